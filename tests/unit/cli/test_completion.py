"""What the Tab key offers, in the shells themselves and by the names that this host knows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from farline.cli.completing import SHELLS, answer, fitting
from farline.cli.group import cli, run
from farline.store import RunBundle, Store
from farline.tools.known_servers import KnownServers
from tests.support.records import make_record, make_samples

BIN = str(Path(sys.executable).parent)


def offered(line: str) -> list[str]:
    """What the Tab key offers behind `line`, whose last word may be begun."""
    *before, begun = line.split(" ")
    return [str(one.value) for one in fitting(cli, before, begun)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with a store."""
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    return tmp_path


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pr", ["probe", "profile"]),
        ("testbed ch", ["change"]),
        ("probe --transp", ["--transport"]),
        ("probe --transport ", ["tcp", "udp", "udt", "rbudp", "quic", "null"]),
        ("copy --transport=r", ["rbudp"]),
        ("runs --status ", ["complete", "partial", "failed"]),
        ("testbed up back", ["", "back-to-back"]),
        ("profile h --sweep tcp.mss", ["tcp.mss_bytes="]),
        ("tools grid", ["gridftp"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("man fair", ["fairness"]),
    ],
)
def test_commands_options_and_words_are_offered(line: str, words: list[str]) -> None:
    assert [word for word in offered(line) if word != line.rpartition(" ")[2]] == [
        word for word in words if word
    ]


def test_what_this_host_knows_is_offered(home: Path) -> None:
    record = make_record(1)
    Store(home / "store").append(RunBundle(record, make_samples()))
    KnownServers().remember_ticket("dtn.example.org:5470", "farline://x", "sha256-x")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "config").write_text("Host far near*\n  HostName far.example.org\nHost=site\n")
    assert offered("show ") == ["last", record["run_id"]]
    assert offered("probe ") == ["dtn.example.org:5470", "far", "site"]
    assert offered("copy data f") == ["f", "far:"]
    assert "cubic" in offered("probe -C cu") or "cubic" not in controls()


def test_what_is_in_the_folders_that_the_line_names_is_offered(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = make_record(1), make_record(2)
    Store(home / "store").append(RunBundle(here, make_samples()))
    Store(home / "other").append(RunBundle(there, make_samples()))
    assert offered("show ") == ["last", here["run_id"]]
    for folder in (home / "other", "~/other", "$HOME/other"):
        assert offered(f"show --store {folder} ") == ["last", there["run_id"]]
    folders = ["--state-dir", str(home / "state"), "--keys", str(home / "keys")]
    assert run(["ticket", "make", "host", *folders]) == 0
    assert run(["ticket", "list", "--json", *folders]) == 0
    listed = capsys.readouterr().out
    (ticket,) = offered(" ".join(["ticket", "revoke", *folders, ""]))
    assert len(ticket) == 26 and ticket in listed
    assert offered("ticket revoke ") == []


def controls() -> list[str]:
    """Congestion controls of this kernel."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


@pytest.mark.parametrize("line", ["nosuch ", "probe --nosuch ", "show --store /nosuch ", "copy "])
def test_a_line_that_is_wrong_offers_nothing_and_says_nothing(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered(line) in ([], [""])
    assert capsys.readouterr() == ("", "")


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "tcsh"]) == 1
    assert "'tcsh' is not allowed; allowed: bash, zsh, fish" in capsys.readouterr().err
    assert answer(cli, "tcsh_source") == 1


@pytest.mark.parametrize("shell", list(SHELLS))
def test_shells_complete(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: install {shell}")
    script = tmp_path / "script"
    made = [f"{BIN}/farline", "completion", shell]
    script.write_bytes(subprocess.run(made, check=True, stdout=subprocess.PIPE).stdout)
    tried = {
        "bash": f"source {script}; COMP_WORDS=(farline pro); COMP_CWORD=1;"
        " _farline_completion farline; echo ${COMPREPLY[@]}",
        "zsh": f"autoload -Uz compinit; compinit -D -u; source {script}; words=(farline pro);"
        " CURRENT=2; _describe() { print -- ${(P)3} }; _farline_completion",
        "fish": f"source {script}; complete -C 'farline pro'",
    }[shell]
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    said = subprocess.run(
        [shell, "-c", tried], env=environment, check=True, capture_output=True, text=True
    )
    assert "probe" in said.stdout and "profile" in said.stdout, said


def test_every_name_of_the_table_is_a_parameter() -> None:
    from farline.cli.completing import _NAMES
    from farline.cli.manual.roff import contexts

    known = {
        (ctx.command_path.partition(" ")[2], one.name)
        for ctx in contexts(cli)
        for one in ctx.command.get_params(ctx)
    }
    names = {name for _, name in known}
    assert [
        one for one in _NAMES if one not in known and not (one[0] == "" and one[1] in names)
    ] == []
    assert isinstance(cli, click.Group)
