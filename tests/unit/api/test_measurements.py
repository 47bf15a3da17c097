"""Questions of a script to what was measured: the same answers as of `farline analyze`."""

from __future__ import annotations

from pathlib import Path

import pytest

import farline
from farline.analysis import Taken
from farline.errors import SpecError, UsageError

pytestmark = pytest.mark.unit

FIVE_SITES = Path(__file__).parents[3] / "examples" / "five-sites"
SITES = FIVE_SITES / "sites.toml"
LOGS = sorted(FIVE_SITES.glob("*.log"))
MAPPING = (
    "started_at=start, from_host=src, to_host=dst, duration_s=seconds, rate_bps=gbps:Gbit/s,"
    " modality='T'"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("measurements") / "store"
    taken = farline.ingest(LOGS, store=path)
    taken += farline.ingest(FIVE_SITES / "memory.csv", store=path, mapping=MAPPING)
    assert len(taken) == len(LOGS) + 1
    assert all(isinstance(one, Taken) for one in taken)
    return path


def test_logs_are_taken_in_once(store: Path) -> None:
    again = farline.ingest(LOGS, store=store)
    assert {one.outcome for one in again if isinstance(one, Taken)} == {"same"}


def test_a_profile_evaluates_scores_and_draws_itself(store: Path) -> None:
    profile = farline.throughput_profile(
        store=store, infrastructure=SITES, capacity_bps=10e9, modality="T"
    )
    assert len(profile) > 1
    rates = profile.evaluate([float(profile.rtt_ms[0])]).rate_bps
    assert rates[0] > 0
    assert 0 < profile.coefficients().c_uc.value < 1
    assert "<table" in profile._repr_html_()


def test_what_needs_two_profiles_is_refused_with_the_way_to_one(store: Path) -> None:
    with pytest.raises(SpecError, match="modality="):
        farline.throughput_profile(store=store, infrastructure=SITES)


def test_causes_are_explained_over_many_measurements(store: Path) -> None:
    found = farline.explain(store=store, infrastructure=SITES)
    assert found.notes
    assert "transfers" in found.notes[0]


def test_a_record_is_explained_by_its_verdict() -> None:
    verdict = {"limit": "path", "line": "the path", "evidence": [], "remedies": []}
    assert farline.explain({"verdict": verdict}) == verdict
    with pytest.raises(UsageError, match="no verdict"):
        farline.explain({"verdict": None})


def test_a_store_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no store"):
        farline.open_store(tmp_path / "none")
    with pytest.raises(UsageError, match="no store"):
        farline.report(store=tmp_path / "none", folder=tmp_path / "page")
    assert not (tmp_path / "page").exists()
