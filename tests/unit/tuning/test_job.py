"""A search as a job, on paths that are played: events, budget, what is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from farline.errors import AuthError, LimitError, SystemFailure, UsageError
from farline.store import Store
from farline.store.paths.choices import read_choice
from farline.tools import Stop, StopQuestion, never_stop
from farline.tools.events import PathKnown, SampleBegun, SampleFailed, SampleTaken
from farline.tuning.job import TuneJob, TuneRequest
from farline.tuning.knobs import KnobValues
from farline.tuning.sampling import Surroundings, Taken, sample_seconds
from farline.tuning.search import Sample
from farline.tuning.situation import Setting, Situation
from tests.unit.tuning.histories import FLAT, RISING, WAN, row

if TYPE_CHECKING:
    from farline.tools.events import Steps


class PlayedPath:
    """A path that gives the same rates every time."""

    is_own_data = False
    far = "far"
    pushes = True

    def __init__(
        self, truth: Sequence[float], fails_at: int | None = None, most: int = 1024
    ) -> None:
        self._truth, self._fails_at, self._most = truth, fails_at, most
        self.tried: list[int] = []
        self.is_closed = False

    def look(self, should_stop: StopQuestion) -> Steps[Surroundings]:
        yield from ()
        return Surroundings(WAN, Setting(8), 32, {"files": KnobValues(())})

    def sample(self, setting: Setting, seconds: float, should_stop: StopQuestion) -> Steps[Taken]:
        yield None
        if len(self.tried) == self._fails_at:
            raise SystemFailure("no more")
        if setting.streams > self._most:
            raise LimitError(f"--streams: {setting.streams} requested, up to {self._most} allowed")
        self.tried.append(setting.streams)
        mbps = self._truth[int(math.log2(setting.streams))]
        sample = Sample(setting, 1e6 * mbps, seconds, round(seconds * 1e6 * mbps / 8))
        return Taken(sample, row(setting.streams, mbps))

    def close(self) -> None:
        self.is_closed = True


def test_a_search_tells_its_steps_and_keeps_the_choice(tmp_path: Path) -> None:
    store, path = Store(tmp_path), PlayedPath(RISING)
    job = TuneJob(TuneRequest(), path, store)
    events = list(job)
    assert [type(event) for event in events[:3]] == [PathKnown, SampleBegun, SampleTaken]
    assert sum(isinstance(event, SampleTaken) for event in events) == len(path.tried) <= 5
    choice = job.wait().checked()
    kept = read_choice(store.layout.paths, "far", True)
    assert kept is not None
    assert (kept.streams, kept.there_kernel) == (choice.setting.streams, "6.1.0")
    assert kept.low_bps < kept.rate_bps < kept.high_bps
    assert path.is_closed


def test_a_dry_run_samples_and_keeps_nothing(tmp_path: Path) -> None:
    store, path = Store(tmp_path), PlayedPath(RISING)
    result = TuneJob(TuneRequest(dry_run=True), path, store).wait()
    assert (path.tried, result.kept) == ([], None)
    assert result.checked().reason == "history"
    assert read_choice(store.layout.paths, "far", True) is None


def test_the_budget_bounds_the_samples() -> None:
    path = PlayedPath(RISING)
    needed = sample_seconds(WAN)
    result = TuneJob(TuneRequest(budget_s=needed / 2), path).wait()
    # One sample is always taken, shortened; a second does not fit.
    assert len(path.tried) == 1
    assert result.checked().reason == "budget"
    with pytest.raises(UsageError, match="budget"):
        TuneJob(TuneRequest(budget_s=0), path)
    with pytest.raises(UsageError, match=r"budget: 0\.001 s .* at least 1 s"):
        TuneJob(TuneRequest(budget_s=0.001), path)


def test_the_bracket_is_a_way_to_search() -> None:
    path = PlayedPath(FLAT)
    choice = TuneJob(TuneRequest(method="bracket"), path).wait().checked()
    assert path.tried == [8, 32, 16]
    assert choice.setting == Setting(8)


def test_files_at_once_are_searched_beside_streams() -> None:
    path = PlayedPath(RISING)
    choice = TuneJob(TuneRequest(knobs=("streams", "files")), path).wait().checked()
    assert 1 <= len(path.tried) <= 2
    assert choice.default == Setting(8)
    assert choice.setting == choice.default or choice.setting.concurrency is not None
    assert Setting(8) < Setting(8, 1) < Setting(8, 4) < Setting(16)


def test_a_sample_that_fails_is_the_job_s_error(tmp_path: Path) -> None:
    store, path = Store(tmp_path), PlayedPath(RISING, fails_at=1)
    result = TuneJob(TuneRequest(), path, store).wait()
    assert result.error is not None
    assert (result.choice, result.exit_code) == (None, SystemFailure.exit_code)
    assert read_choice(store.layout.paths, "far", True) is None


@pytest.mark.parametrize("most", [1, 2, 4, 8, 16])
def test_streams_that_are_refused_are_left_out_and_the_search_goes_on(
    tmp_path: Path, most: int
) -> None:
    store, path = Store(tmp_path), PlayedPath(RISING, most=most)
    job = TuneJob(TuneRequest(), path, store)
    events = list(job)
    result = job.wait()
    failed = [event for event in events if isinstance(event, SampleFailed)]
    choice = result.checked()
    assert failed
    assert failed[0].text.endswith(f"up to {most} allowed")
    assert choice.setting.streams <= most
    assert choice.default == Setting(min(8, most))
    assert {sample.setting.streams for sample in choice.samples} == set(path.tried)


def test_a_path_that_fails_again_and_again_ends_the_search() -> None:
    """Two failures may be the settings'; a third is the path's."""
    path = PlayedPath(RISING, fails_at=1)
    job = TuneJob(TuneRequest(), path)
    assert sum(isinstance(event, SampleFailed) for event in job) == 2
    assert isinstance(job.wait().error, SystemFailure)


def test_a_bracket_ends_where_more_streams_are_refused() -> None:
    path = PlayedPath(RISING, most=16)
    choice = TuneJob(TuneRequest(method="bracket"), path).wait().checked()
    assert (choice.setting, choice.reason, path.tried) == (Setting(8), "failed", [8])


def test_a_failure_that_no_setting_is_to_blame_for_ends_the_search() -> None:
    class Locked(PlayedPath):
        def sample(
            self, setting: Setting, seconds: float, should_stop: StopQuestion
        ) -> Steps[Taken]:
            yield None
            raise AuthError("the ticket has expired")

    result = TuneJob(TuneRequest(), Locked(RISING)).wait()
    assert isinstance(result.error, AuthError)


def test_a_search_that_is_stopped_before_a_sample_chooses_nothing() -> None:
    path = PlayedPath(RISING)
    result = TuneJob(TuneRequest(), path, should_stop=lambda: Stop.GRACEFULLY).wait()
    assert result.choice is None
    assert result.exit_code == 130


def test_a_sample_lasts_until_it_is_behind_its_ramp() -> None:
    short = sample_seconds(Situation(rtt_ms=0.1))
    long = sample_seconds(Situation(rtt_ms=200.0, capacity_bps=1e10))
    assert short == pytest.approx(2.0, abs=0.1)
    # RTT log2(BDP / first window) = 0.2 s * log2(250 MB / 14.48 kB) = 2.8 s.
    assert long == pytest.approx(1.5 * 2.81 + 2.0, abs=0.1)
    assert never_stop() is Stop.GO_ON


CLIFF = (100, 200, 400, 800, 1600, 40)
"""32 streams are too many for the queue of the path: nearly all that they send is lost."""


def test_what_collapses_says_nothing_of_fewer_streams_and_what_takes_more_is_not_tried() -> None:
    path = PlayedPath(CLIFF)
    choice = TuneJob(TuneRequest(), path).wait().checked()
    assert 32 in path.tried
    assert path.tried.count(32) == 1
    assert choice.setting == Setting(16)
    assert 32 not in {setting.streams for setting, _ in choice.believed}


def test_what_collapsed_in_the_last_month_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = PlayedPath(CLIFF)
    history = tuple(row(2**at, mbps) for at, mbps in enumerate(CLIFF))
    monkeypatch.setattr("farline.tuning.job.path_history", lambda _: history)
    choice = TuneJob(TuneRequest(), path, Store(tmp_path)).wait().checked()
    assert choice.setting == Setting(16)
    assert 32 not in path.tried
