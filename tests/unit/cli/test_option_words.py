"""What the engine refuses is said in the words of the command line, and never in its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from farline import _native
from farline.cli import group
from farline.cli.command import Command
from farline.cli.copy.command import command as copy_command
from farline.cli.option_words import in_flags, spoken
from farline.cli.probe import command as probe_command
from farline.cli.profile import command as profile_command
from farline.cli.serve import command as serve_command
from farline.errors import FarlineError, SpecError, SystemFailure, from_failure
from farline.spec.options import NOT_OF_COPIES, nested
from farline.spec.table import OPTIONS, Option
from farline.store import Store

ROOT = Path(__file__).parents[3]
_INNER = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b|\b(?:tcp|udp|udt|rbudp|quic|copy|pairs)\.[a-z]")
"""A name with an underscore, or one in a section: what no flag looks like."""

_OTHER_NAMES = {"wmem_max", "rmem_max", "tcp_rmem", "tcp_wmem"}
"""Names with an underscore that people know: the kernel's."""


@contextmanager
def typed(command: click.Command, *words: str) -> Iterator[None]:
    """Inside the command as it was typed."""
    context = command.make_context(str(command.name), list(words))
    with context.scope(cleanup=False):
        yield


def inner_names(text: str) -> list[str]:
    return [name for name in _INNER.findall(text) if name not in _OTHER_NAMES]


def test_what_was_typed_is_what_is_read() -> None:
    for word, flag in (("-C", "-C"), ("--congestion", "--congestion")):
        with typed(probe_command, "host", word, "nosuch"):
            assert spoken("tcp.congestion_control: nosuch") == f"{flag}: nosuch"
    with typed(probe_command, "host", "-Cnosuch"):
        assert spoken("stream 0: tcp.congestion_control: no") == "stream 0: -C: no"
    with typed(probe_command, "host", "-t", "5", "-n", "10M"):
        assert spoken("total_bytes: cannot be combined with duration_s: give one of the two") == (
            "-n: cannot be combined with -t: give one of the two"
        )
    with typed(probe_command, "host", "-B", "192.0.2.1"):
        assert spoken("pairs.source: not here") == "-B: not here"
    with typed(probe_command, "host", "-u", "-M", "1400"):
        assert spoken("tcp: works only with transport tcp") == "-M: works only with transport tcp"
    with typed(copy_command, "a", "b", "--exclude", "x", "-L", "-u"):
        assert spoken("copy.filters: no; copy.links") == "--exclude: no; -L"


@pytest.mark.parametrize("word", ["--delete", "--delete=3", "--delete-after"])
def test_a_deletion_has_one_name(word: str) -> None:
    with typed(copy_command, "a", "b", "--files-from", "l", word):
        assert spoken("copy.delete: works only with a recursive copy").startswith("--delete: ")


def test_what_was_not_typed_has_the_long_flag_of_the_command() -> None:
    with typed(probe_command, "host"):
        assert spoken("rate_bps: rbudp needs one; omit_s") == "--rate: rbudp needs one; --omit"
    with typed(copy_command, "a", "b"):
        assert spoken("rbudp.checksum: no") == "--blast-checksum: no"
        assert spoken("copy.chunk_bytes: no") == "--chunk: no"
        assert spoken("copy.sources: no") == "SRC: no"


def test_what_stands_in_a_plan_keeps_the_name_that_it_has_there(tmp_path: Path) -> None:
    with typed(profile_command, "host", "plan.toml", "-C", "reno,nosuch"):
        text = "tcp.congestion_control=nosuch streams=4: tcp.mss_bytes: no"
        assert spoken(text) == "-C nosuch streams=4: tcp.mss_bytes: no"


def test_what_is_an_option_of_the_campaign_is_called_as_it_was_typed() -> None:
    with typed(profile_command, "host", "-P", "1,2", "--half-width", "0"):
        text = "[campaign] relative_half_width: 0 is out of range"
        assert spoken(text) == "--half-width: 0 is out of range"


def test_words_and_files_that_only_look_like_options_are_left_alone() -> None:
    with typed(copy_command, "a", "b"):
        for text in (
            "4 streams were opened", "the streams: none", "net.ipv4.tcp_rmem: too small",
            "cannot read 'rate_bps'", "/data/total_bytes: gone", "x/tcp.mss_bytes",
        ):  # fmt: skip
            assert spoken(text) == text
        of_a_file = SystemFailure("total_bytes: no such file or folder")
        assert in_flags(of_a_file) is of_a_file


def test_a_server_speaks_of_its_own_options() -> None:
    with typed(serve_command, "-B", "127.0.0.1"):
        assert spoken("listen[0]: invalid IP address syntax").startswith("-B: ")
        assert spoken("data_port_last: 3") == "--data-ports: 3"
        assert spoken("anonymous_limits.rate_bps: 3") == "--anonymous-rate: 3"


def _wrong(option: Option) -> Sequence[Any]:
    """Values that the engine refuses for this option."""
    bound = option.maximum
    beyond = [] if bound is None else ["x" * (int(bound) + 1)] if option.kind == "string" else [
        [0] * (int(bound) + 1)
    ] if option.kind == "array" else [bound + 1]  # fmt: skip
    return [*beyond, {"no": "such"}]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.path)
def test_no_refusal_of_an_option_shows_its_inner_name(option: Option) -> None:
    """Every field of the spec, refused by the engine itself."""
    is_copy = option.section == "copy"
    command = copy_command if is_copy else probe_command
    assert isinstance(command, Command)
    transport = option.section if option.section not in ("run", "copy") else "tcp"
    refused = 0
    for value in _wrong(option):
        document = {"transport": transport, **nested({option.path: value})}
        if is_copy:
            document["copy"] |= {"sources": ["a"], "destination": "b"}
        try:
            _native.validate_run_spec(json.dumps(document))
        except _native.NativeError as caught:
            error, refused = from_failure(str(caught.args[0])), refused + 1
        else:
            continue
        with typed(command, "host", *(["b"] if is_copy else [])):
            told = in_flags(error).message
        # What the engine names as allowed are words of options, which may be anything.
        if option.path not in ("schema", "tool_args"):
            assert not inner_names(told.partition("expected")[0]), told
    assert refused


@pytest.mark.parametrize(
    "words",
    [
        "probe host -t 5s -n 10M",
        "probe host -u -M 1400",
        "probe host --transport udt --mss 1400",
        "probe host --transport rbudp",
        "probe host --transport rbudp -b 1G -P 2 -F /tmp/x",
        "probe host --transport rbudp -b 1G -R -F /tmp/x --receiver gather",
        "probe host --transport rbudp -b 1G -P 256 --payload 8G",
        "probe host --transport udt --congestion fixed",
        "probe host -C a-name-that-is-much-too-long",
        "probe host --pair %a-device-with-a-long-name",
        "copy a b --chunk 65537",
        "copy a b --chunk 16M --streams 256 --readers 256",
        "copy a b --read-engine null",
        "copy a b --read-engine sendfile",
        "copy a b --remove-source-files --no-fsync",
        "copy --transport rbudp --receiver naive --files-from /dev/null a c b",
        "profile host -P 1,2 -t 5s -n 10M",
        "profile host --transport udt,tcp --congestion fixed,reno",
    ],
)
def test_no_command_prints_an_inner_name(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    (tmp_path / "a").write_text("a")
    assert group.run(words.split()) == SpecError.exit_code
    said = capsys.readouterr().err
    assert said.startswith("farline: ") and said.count("\n") == 1, said
    assert not inner_names(said), said


def _named_in_rust() -> set[str]:
    """Every path that a refusal of the engine begins with, as the sources have it."""
    found: set[str] = set()
    for room in ("spec", "transport", "session", "iperf3", "mover"):
        for path in (ROOT / "crates" / room / "src").rglob("*.rs"):
            if "test" in path.name or path.parent.name == "tests" or path.name == "topology.rs":
                continue
            source = path.read_text("utf-8").partition("#[cfg(test)]")[0]
            found.update(re.findall(r"Failure::option\(\s*\"([a-z_.]+)\"", source))
            found.update(
                re.findall(r"\"((?:tcp|udp|udt|rbudp|quic|copy|pairs)\.[a-z_]+): ", source)
            )
    return found


def test_every_option_that_the_engine_can_refuse_is_known_here() -> None:
    named = _named_in_rust()
    assert len(named) > 40
    unknown = []
    for path in sorted(named - {"local address", "schema", "copy.origin", "tool"}):
        command = (
            copy_command if path.startswith("copy.") or path in NOT_OF_COPIES else probe_command
        )
        with typed(command, "host", "b") if command is copy_command else typed(command, "host"):
            told = spoken(f"{path}: no")
        if inner_names(told):
            unknown.append((path, told))
    assert not unknown


def test_an_error_stays_of_its_kind() -> None:
    with typed(probe_command, "host"):
        told = in_flags(
            from_failure({"kind": "limit", "message": "rate_bps: 3", "permanent": True})
        )
    assert isinstance(told, FarlineError) and told.kind == "limit" and told.permanent


def test_where_keeps_the_names_of_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(tmp_path)
    assert group.run(["runs", "--store", str(tmp_path), "--where", "streams"]) == 1
    assert "write OPTION=VALUE, such as streams=4" in capsys.readouterr().err
