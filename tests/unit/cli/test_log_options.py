"""`--log-level`, `--log-format` and `--log-file` before and after verbs."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from farline.cli import group
from farline.cli.log_options import from_verb
from farline.cli.verbs import COMMANDS
from farline.logs import stream

MISSING = ["show", "01J00000000000000000000000"]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("FARLINE_LOG", raising=False)
    before = signal.getsignal(stream.REOPEN_SIGNAL)
    yield tmp_path
    stream.stop()
    signal.signal(stream.REOPEN_SIGNAL, before)


def failed(path: Path) -> dict[str, Any]:
    """The line in which the command says why it failed."""
    told: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    (line,) = [line for line in told if line["message"] == "failed"]
    return line


@pytest.mark.parametrize("verb_at", [0, 2, 4, 6])
def test_they_work_before_and_after_the_verb(home: Path, verb_at: int) -> None:
    words = ["--log-level", "debug", "--log-format", "json", "--log-file", str(home / "log")]
    assert group.run([*words[:verb_at], *MISSING, *words[verb_at:]]) != 0
    line = failed(home / "log")
    assert (line["target"], line["level"]) == ("cli", "error")
    assert "no store here" in line["fields"]["reason"]


def test_every_command_takes_them_and_lists_them_only_at_the_top() -> None:
    top = click.Context(group.cli)
    names = {"log_level", "log_format", "log_file"}

    def check(command: click.Command) -> None:
        own = {one.name: one for one in command.params if one.name in names}
        assert set(own) == names, command.name
        assert all(isinstance(one, click.Option) and one.hidden for one in own.values())
        if isinstance(command, click.Group):
            for name in command.list_commands(top):
                below = command.get_command(top, name)
                assert below is not None
                check(below)

    for name in COMMANDS:
        command = group.cli.get_command(top, name)
        assert command is not None
        check(command)
    assert "--log-level LEVEL" in group.cli.get_help(top)


def test_the_environment_counts_where_no_option_does(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARLINE_LOG", "cli=error")
    assert group.run(MISSING) != 0
    assert " ERROR cli: failed " in capfd.readouterr().err
    assert group.run(["--log-level", "off", *MISSING]) != 0
    assert " ERROR " not in capfd.readouterr().err


def test_nothing_is_logged_unasked(capfd: pytest.CaptureFixture[str]) -> None:
    assert group.run(MISSING) != 0
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("farline: ")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--log-level", "loud"], "farline: --log-level: unknown level 'loud'; allowed: off,"),
        (["--log-level", "x=debug"], "farline: --log-level: unknown room 'x'; allowed:"),
        (["--log-format", "xml"], "farline: --log-format: 'xml' is not allowed"),
        (["--log-file", "/none/log"], "farline: log file /none/log: No such file"),
    ],
)
def test_what_is_not_allowed_is_said(
    words: list[str], reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert group.run([*words, *MISSING]) in (1, 2)
    assert capfd.readouterr().err.startswith(reason)


def test_json_and_errors_are_the_verbs_whatever_stands_before_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = ["--log-level=off", "--log-format", "text"]
    assert group.run([*words, "copy", "--json", "/none-a", "/none-b/"]) != 0
    assert json.loads(capfd.readouterr().out)["error"]["kind"]
    assert from_verb([*words, "copy", "--log-level", "x"]) == ["copy", "--log-level", "x"]
