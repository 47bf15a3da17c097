"""The page of a fairness measurement: whole, self-contained, with its verdicts and figures."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from farline.api.contention import page_data, write_contention_report
from farline.campaign.contention.job import ContentionJob, new_name, seeded
from farline.campaign.contention.journal import new_journal, write_journal
from farline.campaign.contention.outcome import Outcome, outcome_of
from farline.campaign.contention.plan import load_plan, plan_from_document
from farline.errors import SystemFailure, UsageError
from farline.store import Store
from farline.tools import never_stop
from tests.support.contending import FakeLine


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    document: dict[str, Any] = {
        "fairness": {
            "loads": "20%,40%,50%,80%", "repetitions": 2, "lead_s": 0.2, "reference": "tcp",
        },
        "subject": {"tcp": {"tcp": {"congestion_control": "cubic"}}, "udt": {"transport": "udt"}},
        "path": {"rate_bps": "100Mbit"},
        "expect": {"udt": {"harm": {"at_least": 0.9}}},
    }  # fmt: skip
    store = Store(tmp_path_factory.mktemp("store"))
    plan = seeded(plan_from_document(document))
    journal = new_journal(new_name(plan), plan, "testbed dumbbell")
    write_journal(store, journal)
    return outcome_of(journal, ContentionJob(journal, FakeLine(), store).run(_quiet, never_stop))


def _quiet(_progress: object) -> None:
    """Nobody watches."""


def test_a_page_has_verdicts_figures_and_what_was_asserted(
    outcome: Outcome, tmp_path: Path
) -> None:
    page = write_contention_report(outcome, tmp_path)
    text = page.read_text()
    for verdict in outcome.verdicts.values():
        assert verdict.line in text
    assert "UDT: harm at least 0.9" in text and 'class="bad">no<' in text
    assert re.findall(r'<table class="wide sortable" id="loads-(\w+)"', text) == ["tcp", "udt"]
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"{n}.{k}" for n in ("share", "utilisation", "harm") for k in ("png", "svg")}


def test_the_page_needs_no_network_and_runs_no_script(outcome: Outcome, tmp_path: Path) -> None:
    text = write_contention_report(outcome, tmp_path, ("png",)).read_text()
    assert "<script" not in text and not re.search(r'(src|href)="https?:', text)
    pictures = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", text)
    assert len(pictures) == 3
    assert all(b"<svg" in base64.b64decode(one) for one in pictures)
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".png"}


def test_the_plan_on_the_page_is_the_plan_that_was_run(outcome: Outcome, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(page_data(outcome).plan_text)
    assert load_plan(path) == outcome.journal.plan


def test_figures_are_the_same_byte_for_byte(outcome: Outcome, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_contention_report(outcome, tmp_path / folder, ("svg",))
    for name in ("share.svg", "harm.svg"):
        one, other = (tmp_path / folder / "figures" / name for folder in ("a", "b"))
        assert one.read_bytes() == other.read_bytes()


def test_a_folder_that_cannot_be_written_is_named(outcome: Outcome, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemFailure, match="cannot write the report"):
        write_contention_report(outcome, tmp_path / "file")


def test_nothing_measured_is_no_page(outcome: Outcome, tmp_path: Path) -> None:
    from dataclasses import replace

    with pytest.raises(UsageError, match="no transfer was measured"):
        write_contention_report(replace(outcome, contests={}), tmp_path)
