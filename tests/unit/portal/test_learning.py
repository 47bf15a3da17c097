"""The course: labs that are whole, predictions that are kept and judged, experiments that end."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from farline.campaign.contention.plan import plan_from_document as fairness_plan
from farline.campaign.plan import plan_from_document
from farline.errors import SpecError
from farline.portal.experiment_keeper import ATTEMPT, BEGUN
from farline.portal.experiment_results import Bar
from farline.portal.experiments import START_S
from farline.portal.job_folder import JobFolder
from farline.portal.lessons import Lab, Prediction, checked, judged, labs
from farline.portal.notebooks import notebook_of
from farline.portal.pages.learning import picture
from tests.support.portals import Portal, make_portal

NAMES = ("window", "loss", "streams", "small-files", "buffers", "dedicated", "sharing", "profile")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[JobFolder]:
    """Folders of experiments that were begun; no process starts, and the machine can emulate."""
    folders: list[JobFolder] = []
    monkeypatch.setattr("farline.portal.experiments.start_keeper", folders.append)
    monkeypatch.setattr("farline.portal.pages.learning.why_not_here", lambda: None)
    return folders


@pytest.fixture
def portal(tmp_path: Path, begun: list[JobFolder]) -> Iterator[Portal]:
    """A service that starts no process."""
    yield make_portal(tmp_path)


def step(browser: TestClient, lab: str, act: str, **form: str) -> Any:
    """One step of a lab."""
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', browser.get("/learn").text)
    assert found is not None
    return browser.post(f"/learn/{lab}/{act}", data={"csrf": found[1], **form})


def bars(*rates: tuple[str, float]) -> list[Bar]:
    return [Bar(label, mbit * 1e6) for label, mbit in rates]


def holds(lab: Lab, text: str, measured: Any = None) -> bool:
    found = judged(lab, text, lab.recorded.bars if measured is None else measured)
    assert found is not None
    return found.holds


def logged_in(portal: Portal, user: str, *scopes: str) -> TestClient:
    """A browser of somebody who may do just that."""
    token, _ = portal.service.access.make("bearer", user, scopes, 600)
    browser = TestClient(portal.service.app, base_url="http://localhost", follow_redirects=False)
    browser.post("/login", data={"token": token})
    return browser


def test_the_course_has_its_labs_in_order() -> None:
    assert tuple(labs()) == NAMES
    assert [one.number for one in labs().values()] == list(range(1, 9))


@pytest.mark.parametrize("name", NAMES)
def test_a_lab_is_whole_and_its_recorded_measurement_answers_its_question(name: str) -> None:
    lab = labs()[name]
    read = fairness_plan if lab.verb == "fairness" else plan_from_document
    assert read(tomllib.loads(lab.plan)).name == f"lab-{name}"
    assert lab.explanation and lab.teacher and "farline" in lab.recorded.made
    right = [one for one in (lab.choices or ("1e6",)) if holds(lab, one)]
    assert len(right) == bool(lab.choices), "just one choice is right, and not every rate"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_the_plan_and_code_that_can_be_read(name: str) -> None:
    lab = labs()[name]
    cells = notebook_of(lab)["cells"]
    code = ["".join(one["source"]) for one in cells if one["cell_type"] == "code"]
    assert f"%%writefile {name}.toml\n{lab.plan.strip()}" in code
    for text in code:
        assert text.startswith("%%") or ast.parse(text).body


@pytest.mark.parametrize(("text", "is_right"), [("6.9", True), ("7.1", False), ("3.1", True)])
def test_a_rate_holds_within_its_tolerance(text: str, is_right: bool) -> None:
    assert holds(labs()["window"], text, bars(("64KiB", 5.0))) is is_right


def test_what_was_not_measured_is_not_judged() -> None:
    assert judged(labs()["window"], "5", bars(("256KiB", 20.0))) is None
    assert judged(labs()["loss"], "TCP reno", labs()["loss"].recorded.bars[:2]) is None


@pytest.mark.parametrize(
    ("kind", "rates", "right"),
    [
        ("best", (1, 3, 2), "b"), ("worst", (2, 3, 1), "c"), ("plateau", (5, 9.1, 10), "b"),
        ("plateau", (5, 8.9, 10), "c"), ("half", (10, 6, 4.9), "c"),
    ],
)  # fmt: skip
def test_a_choice_holds_where_the_measurement_says_so(
    kind: str, rates: tuple[float, ...], right: str
) -> None:
    found, lab = bars(*zip("abc", rates, strict=True)), labs()["loss"]
    lab = replace(
        lab, question=replace(lab.question, kind=kind), recorded=replace(lab.recorded, bars=found)
    )
    assert [one for one in "abc" if holds(lab, one)] == [right]


@pytest.mark.parametrize("text", ["", "fast", "-1", "nan", "inf", "1e9"])
def test_a_prediction_that_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="Mbit/s"):
        checked(labs()["window"], text)


def test_a_prediction_that_is_no_choice_is_refused() -> None:
    with pytest.raises(SpecError, match="choose one of"):
        checked(labs()["loss"], "carrier pigeon")


def test_the_answer_is_hidden_until_somebody_has_predicted(portal: Portal) -> None:
    browser = portal.log_in()
    before = browser.get("/learn/window").text
    assert labs()["window"].explanation[0] not in before and 'class="bars"' not in before
    assert step(browser, "window", "recorded").status_code == 422, "predict first"
    assert step(browser, "window", "predict", prediction="5.2").status_code == 303
    assert step(browser, "window", "recorded").status_code == 303
    after = browser.get("/learn/window").text
    assert "Your prediction holds." in after and "Recorded, not measured now" in after
    assert labs()["window"].explanation[0] in after
    assert "Done: you were right" in browser.get("/learn").text


def test_progress_is_each_users_own_and_a_lab_can_be_begun_again(portal: Portal) -> None:
    ada, ben = portal.log_in("ada"), portal.log_in("ben")
    step(ada, "loss", "predict", prediction="TCP reno")
    assert "Predicted" in ada.get("/learn").text and "Predicted" not in ben.get("/learn").text
    step(ada, "loss", "again")
    assert "Predicted" not in ada.get("/learn").text


def test_a_run_is_followed_to_its_end(portal: Portal, begun: list[JobFolder]) -> None:
    browser = portal.log_in()
    step(browser, "window", "predict", prediction="50")
    assert step(browser, "window", "run").status_code == 303
    (folder,) = begun
    assert folder.order()["verb"] == "profile"
    waiting = browser.get("/learn/window")
    assert waiting.headers["refresh"] == "2" and "Waiting for its turn" in waiting.text
    again = step(browser, "window", "run")
    assert again.status_code == 422 and "still running" in again.text
    with folder.held():
        (folder.path / BEGUN).touch()
        assert "Measuring." in browser.get("/learn/window").text
    measured = [{"label": "64KiB", "mean_bps": 5e6, "low_bps": None, "high_bps": None, "runs": 1}]
    end = {"exit_code": 0, "stopped": False, "error": None, "bars": measured}
    folder.write_end(ATTEMPT, end)
    text = browser.get("/learn/window").text
    assert "Measured on this machine" in text and "Your prediction does not hold." in text


def test_a_run_that_failed_says_why_and_can_be_run_again(
    portal: Portal, begun: list[JobFolder]
) -> None:
    browser = portal.log_in()
    step(browser, "loss", "predict", prediction="TCP reno")
    step(browser, "loss", "run")
    end = {"exit_code": 10, "stopped": False, "error": "no room on this disk", "bars": []}
    begun[0].write_end(ATTEMPT, end)
    text = browser.get("/learn/loss").text
    assert "no room on this disk" in text and "Run it" in text


def test_a_process_that_was_killed_does_not_run_forever(portal: Portal) -> None:
    browser = portal.log_in()
    step(browser, "loss", "predict", prediction="TCP reno")
    step(browser, "loss", "run")
    portal.clock.at_s += START_S + 1
    assert "begin it again" in browser.get("/learn/loss").text


def test_a_stop_reaches_the_process(portal: Portal, begun: list[JobFolder]) -> None:
    browser = portal.log_in()
    step(browser, "loss", "predict", prediction="TCP reno")
    step(browser, "loss", "run")
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', browser.get("/learn").text)
    assert found is not None
    sent = browser.post(f"/experiments/{begun[0].path.name}/stop", data={"csrf": found[1]})
    assert sent.headers["location"] == "/learn/loss" and begun[0].stop_file.exists()


def test_a_machine_that_cannot_emulate_says_so_and_shows_the_recorded_run(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "user namespaces are needed"
    monkeypatch.setattr("farline.portal.pages.learning.why_not_here", lambda: reason)
    browser = portal.log_in()
    step(browser, "loss", "predict", prediction="TCP reno")
    text = browser.get("/learn/loss").text
    assert reason in text and "Run it" not in text
    assert "Show the recorded measurement" in text


def test_only_who_may_move_runs_and_only_who_operates_sees_the_class(portal: Portal) -> None:
    eve = logged_in(portal, "eve", "see")
    step(eve, "loss", "predict", prediction="TCP reno")
    assert step(eve, "loss", "run").status_code == 403
    assert eve.get("/learn/instructor").status_code == 403
    text = portal.log_in("ada").get("/learn/instructor").text
    assert "eve" in text and "predicted: TCP reno" in text and labs()["window"].teacher in text


def test_plan_and_notebook_can_be_saved(portal: Portal) -> None:
    browser = portal.log_in()
    plan = browser.get("/learn/streams/plan")
    assert plan.headers["content-disposition"] == 'attachment; filename="streams.toml"'
    assert plan.text == labs()["streams"].plan
    assert json.loads(browser.get("/learn/streams/notebook").text)["nbformat"] == 4
    assert browser.get("/learn/nothing").status_code == 404


def test_a_prediction_far_out_leaves_the_bars_readable() -> None:
    made = Prediction("ada", "window", "90000", None, 0.0)
    (row,) = picture(labs()["window"], bars(("64KiB", 5.0)), made)
    assert row["width"] >= 300 and 900 < row["predicted"] < 1000
