"""The command line as a whole: verbs, help, errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from farline.cli import group
from farline.cli.failures import json_style
from farline.cli.verbs import COMMANDS
from farline.errors import BusyError

HEAVY = (
    "numpy", "pandas", "pyarrow", "duckdb", "ibis", "matplotlib", "rich", "scipy",
    "farline._native",
)  # fmt: skip


def imported_after(*arguments: str) -> set[str]:
    """Which heavy modules a command line loads."""
    code = (
        "import sys\nfrom farline.cli.group import run\n"
        f"run({list(arguments)!r})\n"
        "print('loaded:', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = done.stderr.rpartition("loaded: ")[2].split()
    return {name for name in HEAVY if name in loaded}


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["probe", "--help"], ["serve", "--help"]]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert imported_after(*arguments) == set()


def test_every_verb_exists_and_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in COMMANDS:
        assert group.run([verb, "--help"]) == 0
    assert group.run(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(verb in listed for verb in COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["prob"],
        ["probe"],
        ["probe", "h", "--get-server-output"],
        ["probe", "h", "-M", "7"],
        ["trust"],
    ],
)
def test_mistakes_are_one_line_and_exit_1(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert group.run(arguments) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("farline: ") and told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("flag", "key"),
    [("--json", "error"), ("-J", "error"), ("--json=iperf3", "error"), ("--json-stream", "data")],
)
def test_mistakes_are_json_where_json_was_asked_for(
    flag: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert group.run(["probe", flag, "--nonsense", "h"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert "nonsense" in str(document[key])
    assert document.get("schema", 1) == 1


def test_our_errors_keep_their_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def busy(**_: object) -> None:
        raise BusyError("no room")

    monkeypatch.setattr(group.cli, "main", busy)
    assert group.run(["probe"]) == 5
    assert capsys.readouterr().err == "farline: no room\n"


def test_a_defect_has_its_own_code_and_a_line_behind_where_it_happened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> None:
        raise StopIteration("nothing left")

    monkeypatch.setattr(group.cli, "main", broken)
    assert group.run(["runs", "--json"]) == 70
    said = capsys.readouterr()
    assert said.err.startswith("Traceback")
    assert said.err.splitlines()[-1].startswith("farline: a defect in farline: StopIteration: noth")
    assert json.loads(said.out)["error"]["kind"] == "internal"


def test_ctrl_c_outside_a_run_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(group.cli, "main", interrupted)
    assert group.run(["runs"]) == 130


@pytest.mark.parametrize("words", ["--help", "reproduce --list -o none"])
def test_a_reader_that_goes_away_is_no_error(words: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m farline {words} | head -n 1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_json_styles_are_told_from_raw_arguments() -> None:
    assert json_style(["probe", "-uJ", "h"]) == "iperf3"
    assert json_style(["probe", "--json", "h"]) == "farline"
    assert json_style(["probe", "--json-stream"]) == "stream"
    assert json_style(["probe", "h", "--title", "J"]) is None
