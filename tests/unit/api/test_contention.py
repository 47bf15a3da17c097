"""`farline.contend`: a fairness measurement from a script or notebook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import farline
from farline.errors import SpecError, UsageError
from tests.support.contending import FakeLine

PLAN: dict[str, Any] = {
    "fairness": {"loads": "50%", "repetitions": 1, "lead_s": 0.2},
    "subject": {"udt": {"transport": "udt"}},
    "path": {"rate_bps": "100Mbit"},
}


@pytest.fixture(autouse=True)
def fake_line(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def line(*_about: object) -> Iterator[FakeLine]:
        yield FakeLine()

    monkeypatch.setattr("farline.testbeds.shared_line.running_line", line)
    monkeypatch.setattr("farline.testbeds.lookup.list_beds", lambda: [])


def test_a_measurement_is_a_job_like_others(tmp_path: Path) -> None:
    job = farline.contend(PLAN, store=tmp_path / "store")
    events = list(job)
    assert job.wait().status == "complete"
    assert [event.done for event in events if event.kept] == [1, 2, 3]
    assert job.verdicts["udt"].level == "fair"
    assert job.outcome.contests["udt"].full.mean("harm") == pytest.approx(0.0)
    assert "3 of 3 trials done" in repr(job)
    assert "UDT takes" in job._repr_html_()
    assert job.report(tmp_path / "page").name == "report.html"
    again = farline.report("last", tmp_path / "again", store=tmp_path / "store")
    assert "UDT beside TCP" in again.read_text()


def test_a_finished_measurement_can_be_resumed_for_its_results(tmp_path: Path) -> None:
    first = farline.contend(PLAN, store=tmp_path).wait()
    again = farline.contend(resume="last", store=tmp_path).wait()
    assert again.name == first.name
    assert again.outcome.verdicts == first.outcome.verdicts


def test_what_cannot_be_measured_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give a plan, or the name"):
        farline.contend(store=tmp_path)
    with pytest.raises(UsageError, match="no line to share"):
        farline.contend({"subject": {"tcp": {}}}, store=tmp_path)
    with pytest.raises(UsageError, match="leave out HOST"):
        farline.contend(PLAN, target="host.example.org", store=tmp_path)
    with pytest.raises(SpecError, match="rbudp needs a rate"):
        farline.contend(
            {"subject": {"blast": {"transport": "rbudp"}}, "fairness": {"loads": "1M"}},
            target="host.example.org",
            store=tmp_path,
        )
    with pytest.raises(UsageError, match="No such file"):
        farline.contend("no-such-plan.toml", store=tmp_path)
