"""The plan editor: fields to TOML, checks by the plan's own reader, and what may start here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from farline.errors import FarlineError
from farline.portal.experiment_keeper import PLAN
from farline.portal.job_folder import JobFolder
from farline.portal.plan_check import check_plan
from farline.portal.plan_form import plan_of_fields
from tests.support.portals import Portal, make_portal

FORM = {"name": "two", "repetitions": "3", "duration": "5s", "streams": "1, 4",
        "line": "100Mbit", "rtt": "10ms, 100ms"}  # fmt: skip
PATH = '[path]\nrtt_s = "10ms"\n'
EMULATED = f'[fixed]\nduration_s = "2s"\n[grid]\nstreams = [1, 2]\n{PATH}'


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[JobFolder]:
    """Folders of experiments that were begun; no process starts, and the machine can emulate."""
    folders: list[JobFolder] = []
    monkeypatch.setattr("farline.portal.experiments.start_keeper", folders.append)
    monkeypatch.setattr("farline.portal.pages.planning.why_not_here", lambda: None)
    return folders


@pytest.fixture
def portal(tmp_path: Path, begun: list[JobFolder]) -> Portal:
    """A service that starts no process."""
    return make_portal(tmp_path, store=tmp_path / "store")


def send(browser: TestClient, act: str, **form: str) -> Any:
    """What a button of the editor does."""
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', browser.get("/plans/new").text)
    assert found is not None
    return browser.post("/plans", data={"csrf": found[1], "act": act, **form})


def test_fields_make_a_plan_of_which_runs_and_time_are_foreseen() -> None:
    found = check_plan(plan_of_fields(FORM))
    assert (found.name, found.settings, found.refusal) == ("two", 4, None)
    assert found.runs[0] > 4 * 3, "settings, repetitions and reference runs"
    assert found.seconds[0] is not None and found.seconds[0] > 5 * 12
    assert found.varies["path.rtt_s"] == ["10 ms", "100 ms"]


@pytest.mark.parametrize("name", ['"]\n[data]', "\\", "\x7f\x01", "\N{GRINNING FACE}", "007"])
def test_whatever_stands_in_a_field_stays_one_text(name: str) -> None:
    assert tomllib.loads(plan_of_fields({"name": name})) == {"campaign": {"name": name}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[grid", "not TOML"), ("[grid]\nstreems = 1\n", "streems"), ("#" * 70_000, "characters"),
        ("[grid]\nstreams = '1..64+1'\nblock_bytes = '4K..256K+4K'\n", "up to 2000"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_the_words_of_the_reader(text: str, reason: str) -> None:
    with pytest.raises(FarlineError, match=reason):
        check_plan(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[fixed]\nduration_s = '1s'\n", "needs a host"),
        (EMULATED + "testbed = '/etc/passwd.toml'\n", "only presets"),
        (EMULATED + "[campaign]\nstore = '/tmp/elsewhere'\n", "store"),
        (f"[[point]]\nname = 'a'\ntool = 'iperf3'\n{PATH}", "tool"),
        ("[fixed]\ntransport = 'rbudp'\nrate_bps = '10M'\nrbudp.file = '/etc/shadow'\n" + PATH,
         "rbudp.file"),
        (f"[data]\nfiles = ['1x1K']\nsource = '/etc'\n{PATH}", "data"),
        (f"[campaign]\nrepetitions = 500\n[fixed]\nduration_s = '10min'\n{PATH}", "24 hours"),
    ],
)  # fmt: skip
def test_a_plan_that_reaches_beyond_an_emulated_line_does_not_start_here(
    portal: Portal, begun: list[JobFolder], text: str, reason: str
) -> None:
    answer = send(portal.log_in(), "start", plan=text)
    assert answer.status_code == 422 and reason in answer.text and begun == []


def test_a_plan_is_written_saved_and_started(portal: Portal, begun: list[JobFolder]) -> None:
    browser = portal.log_in()
    assert "Start it here" in send(browser, "write", **FORM).text
    assert tomllib.loads(send(browser, "save", plan=EMULATED).text)
    answer = send(browser, "start", plan=EMULATED)
    assert answer.status_code == 303
    assert begun[0].order()["store"] == str(portal.settings.store_path)
    assert tomllib.loads((begun[0].path / PLAN).read_text()) == tomllib.loads(EMULATED)
    assert browser.get(answer.headers["location"]).headers["refresh"] == "3"
