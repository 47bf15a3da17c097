"""The options of `farline copy`: letters of rsync and scp, and every knob of the spec."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from farline.cli.copy.command import ssh_command
from farline.cli.copy.options import (
    CopyCommand,
    filter_order,
    letter_options,
    manner_options,
    read_settings,
    ssh_options,
)
from farline.spec.options import NOT_OF_COPIES
from farline.spec.table import OPTIONS
from farline.spec.units import parse_bwlimit

BUFFERS = ("send_buffer_bytes", "receive_buffer_bytes")


def run(*arguments: str) -> tuple[Any, dict[str, Any]]:
    """The settings and the options of a command line."""
    parsed: list[Any] = []

    @click.command(cls=CopyCommand)
    @click.argument("places", nargs=-1)
    @letter_options
    @manner_options
    @ssh_options
    @click.pass_context
    def command(context: click.Context, /, places: tuple[str, ...], **options: Any) -> None:
        parsed.append(
            (read_settings(options, filter_order(context)), {**options, "places": places})
        )

    result = CliRunner().invoke(command, list(arguments))
    if result.exit_code:
        raise click.UsageError(result.output.strip().splitlines()[-1])
    found: tuple[Any, dict[str, Any]] = parsed[0]
    return found


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = run(*arguments)[0].document
    assert "interval_s" not in found
    return found


@pytest.mark.parametrize(
    ("arguments", "copy"),
    [
        (["-r"], {"recursive": True}),
        (["-n"], {"dry_run": True}),
        (["-H"], {"hard_links": True}),
        (["-X"], {"xattrs": True}),
        (["-u"], {"overwrite": "older"}),
        (["-c"], {"sync_level": "checksum"}),
        (["--checksum"], {"sync_level": "checksum"}),
        (["--size-only"], {"sync_level": "size"}),
        (["--ignore-existing"], {"sync_level": "exists", "overwrite": "never"}),
        (["-p"], {"modes": True, "times": True}),
        (["-a"], {"recursive": True, "links": "keep", "modes": True, "times": True}),
        (["-L"], {"links": "follow"}),
        (["--no-encrypt"], {"cipher": "none"}),
        (["--verify", "read-back"], {"verify": "read-back"}),
        (["--chunk", "1M"], {"chunk_bytes": 1 << 20}),
        (["--readers", "3", "--writers", "2"], {"readers": 3, "writers": 2}),
        (["--concurrency", "8", "--pipeline", "100"], {"concurrency": 8, "pipeline": 100}),
        (["--modify-window=2"], {"modify_window_s": 2.0}),
        (["--modify-window", "100ms"], {"modify_window_s": 0.1}),
        (["-@", "-1"], {"modify_window_s": 0.0}),
        (["--bwlimit", "10M"], {"total_rate_bps": 8 * 10 * 2**20}),
        (["--yield"], {"give_way": True}),
        (["--stall-timeout", "5s"], {"stall_timeout_s": 5.0}),
        (["--delete=17"], {"delete": 17}),
        (["--no-fsync"], {"fsync": False}),
    ],
)
def test_what_concerns_files(arguments: list[str], copy: dict[str, Any]) -> None:
    assert document(*arguments) == {"copy": copy}


@pytest.mark.parametrize(
    ("arguments", "spec"),
    [
        (["--streams", "4"], {"streams": 4}),
        (["--parallel", "4"], {"streams": 4}),
        (["--transport", "udt"], {"transport": "udt"}),
        (["--window", "4M"], {"tcp": dict.fromkeys(BUFFERS, 4 << 20)}),
        (["--congestion", "bbr"], {"tcp": {"congestion_control": "bbr"}}),
        (["--no-blast-checksum", "--transport", "rbudp"],
         {"transport": "rbudp", "rbudp": {"checksum": False}}),
        (["-4"], {"ip_version": "v4"}),
        (["--label", "monday"], {"title": "monday"}),
        (["--rate", "1G"], {"rate_bps": 10**9}),
        (["--bind", "10.0.0.1"], {"pairs": [{"source": "10.0.0.1"}]}),
        (["--bwlimit", "0"], {}),
    ],
)  # fmt: skip
def test_what_concerns_streams(arguments: list[str], spec: dict[str, Any]) -> None:
    assert document(*arguments) == spec


def test_every_option_of_a_copy_has_a_flag_and_no_flag_means_two_things() -> None:
    command = CopyCommand("copy", callback=lambda **_: None)
    command.params = []
    decorated = ssh_options(manner_options(letter_options(lambda **_: None)))
    params = decorated.__click_params__  # type: ignore[attr-defined]
    flags = [flag for param in params for flag in (*param.opts, *param.secondary_opts)]
    assert len(flags) == len(set(flags))
    names = {param.name for param in params}
    missing = {
        option.path
        for option in OPTIONS
        if option.flags and option.section != "udp" and option.name not in names
    }
    assert missing <= NOT_OF_COPIES


RULES = st.lists(
    st.tuples(st.sampled_from(["--include", "--exclude"]), st.text("ab*/", min_size=1, max_size=5)),
    max_size=8,
)


@given(RULES)
def test_filters_keep_their_order(rules: list[tuple[str, str]]) -> None:
    words = [word for flag, pattern in rules for word in (f"{flag}={pattern}",)]
    signs = {"--include": "+ ", "--exclude": "- "}
    wanted = [signs[flag] + pattern for flag, pattern in rules]
    assert document(*words).get("copy", {}).get("filters", []) == wanted


def test_filters_of_all_kinds_stand_in_one_row() -> None:
    found = document("--exclude", "*.o", "--filter", "+ a", "-r", "--include", "*", "--exclude=b")
    assert found["copy"]["filters"] == ["- *.o", "+ a", "+ *", "- b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-z"], "compression is not supported"),
        (["-az"], "compression is not supported"),
        (["-c", "--size-only"], "both set copy.sync_level"),
        (["-u", "--overwrite", "always"], "both set copy.overwrite"),
        (["--no-encrypt", "--cipher", "aes256-gcm"], "both set copy.cipher"),
        (["--filter", "*.o"], "'+ PATTERN'"),
        (["--delete=x"], "is not a number of names"),
        (["--delete", "--delete=3"], "cannot be combined"),
        (["--modify-window", "soon"], "not a duration"),
        (["--bwlimit", "fast"], "not a rate"),
        (["--chunk", "1X"], "not a size"),
        (["--retries", "-1"], "range"),
        (["-P", "src"], "-P is the port of ssh, as in scp"),
        (["-P", "src"], "--streams N"),
        (["--transport", "udp"], "allowed: tcp, udt, rbudp"),
        (["--receiver", "fake"], "allowed: naive, gather"),
    ],
)
def test_what_cannot_be_is_refused_in_words(arguments: list[str], said: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        run(*arguments)
    assert said in refused.value.message


def test_delete_without_a_count_does_not_take_the_next_word() -> None:
    settings, options = run("--delete", "17", "dst")
    assert options["places"] == ("17", "dst")
    assert settings.delete_asked
    assert "delete" not in settings.document.get("copy", {})
    assert run("--", "--delete", "b")[1]["places"] == ("--delete", "b")


def test_ssh_is_called_as_asked() -> None:
    options = run(
        "-e", "ssh -v", "-P", "2222", "-i", "key", "-o", "A=b", "-o", "C=d", "-F", "conf",
        "-J", "jump", "-6", "--remote-farline", "/opt/farline",
    )[1]  # fmt: skip
    words = ssh_command(options).farline("u@host", "serve", "a b")
    assert words == [
        "ssh", "-v", "-p", "2222", "-i", "key", "-F", "conf", "-J", "jump", "-6",
        "-o", "A=b", "-o", "C=d", "-T", "u@host", "/opt/farline serve 'a b'",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("1000", 1000 * 1024 * 8),
        ("1.5M", 12 * 2**20),
        ("2G", 16 * 2**30),
        ("2GiB", 16 * 2**30),
        ("10MB", 80_000_000),
        ("10B", 80),
        ("100Mbit/s", 100_000_000),
        ("1GiB/s", 8 * 2**30),
        ("0", 0),
    ],
)
def test_bwlimit_reads_as_with_rsync_and_units_say_what_they_are(text: str, bps: int) -> None:
    assert parse_bwlimit(text) == bps


def test_a_letter_h_in_a_value_is_no_help() -> None:
    assert run("-e", "ssh -h", "-ehost", "-oHash")[1]["ssh_option"] == ("Hash",)
    assert run("--", "-ah", "b")[1]["places"] == ("-ah", "b")
