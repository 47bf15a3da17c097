"""The plan editor: fields to TOML, checks by the plan's own reader, and what may start here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from farline.errors import FarlineError, SpecError
from farline.portal.experiment_keeper import PLAN, command_of
from farline.portal.fairness_check import check_fairness_plan
from farline.portal.job_folder import JobFolder
from farline.portal.pages.planning import FAIRNESS
from farline.portal.plan_check import check_plan
from farline.portal.plan_form import fairness_plan_of_fields, plan_of_fields
from tests.support.portals import Portal, make_portal

FORM = {"name": "two", "repetitions": "3", "duration": "5s", "streams": "1, 4",
        "line": "100Mbit", "rtt": "10ms, 100ms"}  # fmt: skip
PATH = '[path]\nrtt_s = "10ms"\n'
EMULATED = f'[fixed]\nduration_s = "2s"\n[grid]\nstreams = [1, 2]\n{PATH}'

SHARED = '[subject.udt]\ntransport = "udt"\n'
FAIR = f'[fairness]\nname = "two"\nloads = "50%, 20Mbit"\nrepetitions = 2\n{SHARED}{PATH}'


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


def test_fields_make_a_fairness_plan_of_which_trials_and_time_are_foreseen() -> None:
    text = fairness_plan_of_fields(FAIRNESS.example)
    found = check_fairness_plan(text)
    assert (found.name, found.transfers, found.refusal) == ("udt-beside-cubic", 2, None)
    assert found.trials == 3 * (2 + 3 + 2 * 3), "alone, the background alone, and together"
    assert found.trials * 6 < found.duration_s < found.trials * 12
    assert found.varies == {
        "Transfers": ["UDT", "TCP cubic (reference)"], "Background": ["TCP cubic"],
        "Loads": ["30.0 Mbit/s", "60.0 Mbit/s", "100 Mbit/s"],
    }  # fmt: skip
    assert tomllib.loads(text)["subject"]["transfer"] == {"transport": "udt"}


@pytest.mark.parametrize("name", ['"]\n[path]', "\\", "\x7f\x01", "007x"])
def test_whatever_stands_in_a_field_of_a_side_stays_one_text(name: str) -> None:
    assert tomllib.loads(fairness_plan_of_fields({"name": name})) == {"fairness": {"name": name}}


@pytest.mark.parametrize("side", ["tcq", "tcp,streams", "tcp,streems=4", "tcp,streams=0", ","])
def test_a_side_that_cannot_be_is_refused_by_its_label(side: str) -> None:
    with pytest.raises(SpecError, match="Background"):
        fairness_plan_of_fields({"background": side})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[fairness", "not TOML"), ("[fairness]\nload = '1%'\n", "load"), (PATH, "no transfer"),
        (SHARED + "[fairness]\nreference = 'x'\n", "no subject"), ("#" * 70_000, "characters"),
        (f"[fairness]\nrepetitions = 1000\n{SHARED}{PATH}", "up to 2000"),
        (FAIR + "subject_hosts = ['source', 'nobody']\n", "nobody"),
        (FAIR + "rate_bps = '10Mbit'\nloss = '200%'\n", "loss"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_fairness_plan_is_said_by_its_reader(text: str, reason: str) -> None:
    with pytest.raises(FarlineError, match=reason):
        check_fairness_plan(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SHARED, "needs a host"), (FAIR + "testbed = '/etc/passwd.toml'\n", "only presets"),
        (FAIR + "[background]\ntool = 'iperf3'\n", "[background] tool"),
        ("[subject.one]\ntool = 'nuttcp'\n" + PATH, "[one] tool"),
        ("[subject.one]\ntransport = 'rbudp'\nrbudp.file = '/etc/shadow'\n" + PATH,
         "[one] rbudp.file"),
        (FAIR.replace("= 2", "= 200\nduration_s = '5min'"), "24 hours"),
    ],
)  # fmt: skip
def test_a_fairness_plan_that_reaches_beyond_an_emulated_line_does_not_start_here(
    portal: Portal, begun: list[JobFolder], text: str, reason: str
) -> None:
    answer = send(portal.log_in(), "start", plan=text, verb="fairness")
    assert answer.status_code == 422 and reason in answer.text and begun == []


def test_a_fairness_plan_is_written_saved_and_started(
    portal: Portal, begun: list[JobFolder]
) -> None:
    browser = portal.log_in()
    assert 'href="/plans/fairness"' in browser.get("/fairness").text
    opened = browser.get("/plans/fairness").text
    assert all(f'value="{text}"' in opened for text in FAIRNESS.example.values())
    written = send(browser, "write", verb="fairness", **FAIRNESS.example).text
    assert "Start it here" in written and "33 trials" in written
    saved = send(browser, "save", plan=FAIR, verb="fairness")
    assert tomllib.loads(saved.text) == tomllib.loads(FAIR)
    answer = send(browser, "start", plan=FAIR, verb="fairness")
    assert answer.status_code == 303
    assert command_of(begun[0])[3] == "fairness"
    assert begun[0].order()["store"] == str(portal.settings.store_path)
    assert tomllib.loads((begun[0].path / PLAN).read_text()) == tomllib.loads(FAIR)
    audit = portal.get("/v1/audit").json()
    assert audit[0]["act"] == "experiment.begin"
    again = browser.get("/plans/fairness").text
    assert answer.headers["location"] in again
    assert answer.headers["location"] not in browser.get("/plans/new").text


def test_who_may_only_look_writes_and_checks_and_does_not_start(
    portal: Portal, begun: list[JobFolder]
) -> None:
    token, _ = portal.service.access.make("bearer", "eve", ("see",), 3600)
    browser = TestClient(portal.service.app, base_url="http://localhost", follow_redirects=False)
    browser.post("/login", data={"token": token})
    checked = send(browser, "check", plan=FAIR, verb="fairness").text
    assert "The plan is valid" in checked and "Start it here" not in checked
    refused = send(browser, "start", plan=FAIR, verb="fairness")
    assert "does not allow" in refused.text and begun == []


def test_a_plan_of_the_other_kind_is_refused_by_the_tables_it_has(portal: Portal) -> None:
    browser = portal.log_in()
    assert "fairness: unknown" in send(browser, "check", plan=FAIR).text
    assert "table fixed: unknown" in send(browser, "check", plan=EMULATED, verb="fairness").text
