"""What a run makes of failures: of the folder, of a measurement, of a judge, of itself."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from farline.cli.reproduce import command
from farline.errors import SystemFailure, UsageError
from farline.reproduce import runner as runner_file
from farline.reproduce.budget import NOTHING
from farline.reproduce.evidence import Evidence, fact
from farline.reproduce.item import Item
from farline.reproduce.items import items_named
from farline.reproduce.kept import campaign_state, newest_campaign
from farline.reproduce.measured import Measured, trial_path
from farline.reproduce.plans import plan_document, plans_folder
from farline.reproduce.runner import Runner
from farline.reproduce.shell import Ran
from farline.reproduce.sources import SOURCES
from farline.reproduce.trials import TRIALS, Trial
from farline.store import Store

GOOD = Evidence([fact("It is so", True, "yes")])


def _runner(folder: Path, resume: bool = False, plans: Path = Path("plans")) -> Runner:
    return Runner(folder, plans, "quick", resume, lambda step: None, lambda: False)


def _item(judge: Any = lambda measured: GOOD, source: str = "rbudp-payload") -> Item:
    return Item("an-item", "Paper", "Fig. 1", "title", "claim", judge, (source,) if source else ())


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaigns that end at once for want of rights."""
    ran = Ran(2, 0.1, 0.1, "farline: testbed: /dev/net/tun is needed")
    monkeypatch.setattr(runner_file, "run_farline", lambda *_: ran)


def _trial(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    monkeypatch.setattr(runner_file, "TRIALS", {"session": Trial("session", "words", (), make)})


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemFailure, match="cannot make the folder for results: Not a directory"):
        _runner(tmp_path / "file" / "below").run(items_named(["rbudp-table1"]))


@pytest.mark.usefixtures("refused")
def test_a_campaign_that_failed_is_not_judged_by_what_the_folder_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runner, "_newest", lambda *_: "rbudp-payload-quick-of-last-week")
    monkeypatch.setattr(Runner, "_state", lambda *_: "finished")
    (result,) = _runner(tmp_path).run([_item()])
    assert result.verdict == "not measured" and "/dev/net/tun is needed" in result.reason


@pytest.mark.usefixtures("refused")
def test_a_campaign_at_its_end_is_judged_though_some_settings_failed_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = iter(["of-last-week", "of-now"])
    monkeypatch.setattr(Runner, "_newest", lambda *_: next(newest))
    monkeypatch.setattr(Runner, "_state", lambda *_: "finished")
    monkeypatch.setattr(Runner, "_budget", lambda *_: NOTHING)
    (result,) = _runner(tmp_path).run([_item()])
    assert result.verdict == "agrees"
    assert any("Not all was measured" in note and "tun" in note for note in result.notes)


@pytest.mark.parametrize("error", [StopIteration(), KeyError("stages"), ZeroDivisionError()])
def test_a_judge_that_finds_too_little_ends_its_item_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def judge(measured: Measured) -> Evidence:
        raise error

    _trial(monkeypatch, lambda *_: {})
    items = [_item(judge, "session"), *items_named(["rbudp-table1"])]
    first, other = _runner(tmp_path).run(items)
    assert first.verdict == "not measured" and "not enough to judge by" in first.reason
    assert other.verdict == "not possible here"
    with pytest.raises(type(error)):
        _runner(tmp_path).run([_item(judge, "")])


@pytest.mark.parametrize("text", ['{"stages": ["a"', "", "[]", "\x00"])
def test_a_damaged_trial_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = trial_path(tmp_path, "session", "quick")
    path.parent.mkdir()
    path.write_text(text)
    _trial(monkeypatch, lambda *_: {"made": 1})
    item = _item(lambda measured: GOOD if measured.trial("session")["made"] else None, "session")
    (result,) = _runner(tmp_path, resume=True).run([item])
    assert result.verdict == "agrees" and json.loads(path.read_text()) == {"made": 1}


def test_a_program_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(*_: object) -> Mapping[str, Any]:
        subprocess.run(["farline-has-no-such-program"], check=True)
        return {}

    _trial(monkeypatch, make)
    (result,) = _runner(tmp_path).run([_item(source="session")])
    assert result.verdict == "not measured"
    assert result.reason == "farline-has-no-such-program is not installed"


@pytest.mark.parametrize("name", ["nodes", "node-copies"])
def test_nodes_ask_for_iperf3_before_a_testbed_is_brought_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("farline.testbeds.Testbed.up", lambda *_: pytest.fail("it was"))
    monkeypatch.setattr("farline.reproduce.trials.COPY_MIB", {"quick": 0})
    with pytest.raises(SystemFailure, match="iperf3 is not installed; install"):
        TRIALS[name].make(tmp_path, "quick", lambda: False)


def test_one_process_measures_into_a_folder_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _trial(monkeypatch, lambda *_: {})
    with (tmp_path / ".measuring.lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another farline reproduce measures into this folder"):
            _runner(tmp_path).run([_item(source="session")])
        (computed,) = _runner(tmp_path).run(items_named(["rbudp-text-payload"]))
    assert computed.verdict == "agrees"
    (result,) = _runner(tmp_path).run([_item(source="session")])
    assert result.verdict == "agrees"


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "cannot read the plan"), ("a = [", "not a plan"), ("a = 1", "changes 'point'")],
)
def test_a_plan_that_cannot_be_used_is_told_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, said: str
) -> None:
    _trial(monkeypatch, lambda *_: pytest.fail("it was measured"))
    if text is not None:
        (tmp_path / "rbudp-payload.toml").write_text(text)
    with pytest.raises(UsageError, match=f"rbudp-payload.toml: .*{said}"):
        _runner(tmp_path, plans=tmp_path).run([_item(source="session"), _item()])


def test_what_was_begun_ends_with_the_one_who_began_it(tmp_path: Path) -> None:
    farline = tmp_path / "farline.sh"
    farline.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid.new\n"
                       f"mv {tmp_path}/pid.new {tmp_path}/pid\nexec sleep 120\n")  # fmt: skip
    farline.chmod(0o755)
    code = (
        "import sys\nfrom pathlib import Path\nfrom farline.reproduce.shell import run_farline\n"
        f"sys.executable = {str(farline)!r}\nfolder = Path({str(tmp_path)!r})\n"
        "run_farline(['profile'], folder, folder / 'log', lambda: False)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as one:
        pid = int(_awaited(tmp_path / "pid"))
        one.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _lives(pid)


def _awaited(path: Path) -> str:
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return path.read_text()


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_damaged_result_of_any_item_is_told_before_measuring(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "tpg-fig1-quick.json").write_text('{"schema": 1')
    done = CliRunner().invoke(command, ["rbudp-table1", "-o", str(tmp_path)])
    assert isinstance(done.exception, SystemFailure)
    assert "tpg-fig1-quick.json: damaged" in done.exception.message
    assert [one.name for one in (tmp_path / "results").iterdir()] == ["tpg-fig1-quick.json"]


def test_what_is_computed_needs_no_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> Path:
        raise UsageError("no plans")

    monkeypatch.setattr("farline.reproduce.plans.plans_folder", none)
    words = ["rbudp-text-payload", "-o", str(tmp_path)]
    done = CliRunner().invoke(command, words)
    assert done.exception is None and "1 of 1 agree" in done.output
    measured = CliRunner().invoke(command, ["rbudp-fig6", "-o", str(tmp_path)])
    assert isinstance(measured.exception, UsageError)


@pytest.mark.parametrize("columns", [80, 60])
def test_what_is_printed_fits_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    runs = CliRunner().invoke(command, ["rbudp-text-window", "fairness-text-gridftp",
                                        "-o", str(tmp_path / "r")])  # fmt: skip
    listed = CliRunner().invoke(command, ["--list", "-o", str(tmp_path / "r")])
    for done in (runs, listed):
        lines = [line for line in done.output.splitlines() if not line.startswith("pages:")]
        assert max(map(len, lines)) <= columns
    assert "Rao et al. 2018:" in listed.output.splitlines()


def test_a_damaged_campaign_is_none_and_is_measured_again(tmp_path: Path) -> None:
    source = SOURCES["rbudp-payload"]
    folder = Store(tmp_path / "store").layout.campaigns
    (folder / "rbudp-payload-quick-20260101T000000-abcd.json").write_text('{"version": 1, "id"')
    document = plan_document(source, "quick", plans_folder())
    assert campaign_state(tmp_path / "store", source, "quick", document) == "absent"
    assert newest_campaign(tmp_path / "store", source, "quick") is None
