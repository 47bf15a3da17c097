"""A copy that is tuned while it runs: when it begins, what it asks for, what stops it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from farline.copying import CopyRequest
from farline.copying.adjusting import Adjusting
from farline.copying.event_lines import event_of, line_of
from farline.copying.live_tuning import LiveTuning, TunerStart
from farline.copying.stage_rates import StageMeter, StageRates
from farline.copying.tuned_record import tuning_label
from farline.copying.tuned_text import tuned_text, tuning_lines
from farline.errors import UsageError
from farline.tools.events import Adjusted, Event, Notice, NoticeKind, SessionBegun, Stages, Tuned
from tests.support.copies import progress

GBIT = 125_000_000


@dataclass
class Said:
    """A decision."""

    setting: int
    reason: str


@dataclass
class Script:
    """A tuner that says what it was told to, a list for each tick."""

    start: TunerStart
    steps: list[list[Said]]
    restarts: list[tuple[int, int | None]] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)
    looks: int = 0
    setting: int = 0
    settled_bps: float | None = 2e9
    noise: float = 0.1

    def look(self, at_s: float, rates: StageRates, left_bytes: float | None) -> None:
        self.looks += 1

    def tick(self, at_s: float, rates: StageRates, left_bytes: float | None) -> Sequence[Said]:
        self.ticks.append(at_s)
        said = self.steps.pop(0) if self.steps else []
        if said:
            self.setting = said[-1].setting
        return said

    def restart(self, setting: int, most: int | None = None) -> None:
        self.restarts.append((setting, most))
        self.setting = setting


class Engine:
    """A session that a copy's wishes go to."""

    run_id = "01K0000000000000000000000A"

    def __init__(self) -> None:
        self.wanted: list[int] = []

    def adjust(self, request: Any) -> None:
        self.wanted.append(request["streams"])


class Copy:
    """One copy at 1 Gbit/s whose tuner follows a script."""

    def __init__(self, *steps: list[Said], left_s: float = 100.0, known: bool = False) -> None:
        adjusting, self.engine = Adjusting(), Engine()
        adjusting.begun(self.engine)
        self.script: Script | None = None
        self._steps = list(steps)
        self.tuning = LiveTuning(self._make, adjusting, is_known=lambda: known)
        self.at_s, self.streams, self.told = 0.0, 8, list[Event]()
        self._left_s = left_s
        self.tell(SessionBegun())

    def _make(self, start: TunerStart) -> Script:
        self.script = Script(start, self._steps, setting=start.streams)
        return self.script

    def tell(self, event: Event) -> list[Event]:
        told = list(self.tuning.note(event))
        self.told += told
        return told

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.5)):
            self.at_s += 0.5
            found, done = int(GBIT * (3 + self._left_s)), int(GBIT * self.at_s)
            self.tell(progress(
                self.at_s, found_bytes=found, settled_bytes=done, all_found=True
            ))  # fmt: skip
            self.tell(Stages(self.stages()))

    def stages(self) -> Any:
        done = int(GBIT * self.at_s)
        names = ("read_bytes", "sent_bytes", "received_bytes", "written_bytes")
        return {
            "at_us": round(1e6 * self.at_s), "streams": self.streams, "opening_streams": 0,
            **dict.fromkeys(names, done), "retransmits": 0,
        }  # fmt: skip

    def answer(self, before: int, after: int, refused: str | None = None) -> list[Event]:
        change: Any = {"at_us": 1, "knob": "streams", "before": before, "after": after}
        if refused is None:
            self.streams = after
        if refused is not None:
            change["refused"] = refused
        return self.tell(Adjusted(change))

    def lines(self) -> list[str]:
        return [event.text for event in self.told if isinstance(event, Notice)]


def test_a_copy_that_will_last_is_tuned_from_its_third_second_on() -> None:
    copy = Copy()
    copy.run(2.5)
    assert copy.script is None
    copy.run(1.5)
    assert copy.script is not None
    assert (copy.script.start.streams, copy.script.start.is_known) == (8, False)
    assert copy.script.looks > 0, "it knows what was before"


def test_one_that_will_be_over_soon_is_not() -> None:
    copy = Copy(left_s=20.0)
    copy.run(20)
    assert copy.script is None and copy.told == []


def test_what_is_kept_is_one_line_with_both_rates_and_what_failed_is_none() -> None:
    copy = Copy([Said(16, "probe")], [Said(16, "keep")])
    copy.run(4.0)
    assert copy.engine.wanted == [16]
    copy.answer(8, 16)
    copy.run(2.0)
    lines = [tuned_text(event) for event in copy.told if isinstance(event, Tuned)]
    assert lines == [None, "8 -> 16 streams: 1.00 -> 1.00 Gbit/s"]


def test_while_a_change_is_under_way_no_rate_is_believed() -> None:
    copy = Copy([Said(16, "probe")])
    copy.run(4.0)
    assert copy.script is not None
    seen = len(copy.script.ticks)
    copy.run(5.0)
    assert len(copy.script.ticks) == seen
    copy.answer(8, 16)
    copy.run(2.0)
    assert len(copy.script.ticks) > seen
    assert copy.script.ticks[-1] - copy.script.ticks[0] < 3.0, "its clock stood still meanwhile"


def test_a_refusal_is_asked_about_once_more_and_is_a_limit_then() -> None:
    copy = Copy([Said(16, "probe")], [], [], [Said(20, "probe")])
    copy.run(4.0)
    assert copy.answer(8, 16, "an earlier change is still being opened") == []
    copy.run(3.0)
    assert copy.engine.wanted == [16, 16]
    (told,) = copy.answer(8, 16, "the server allows up to 8")
    assert isinstance(told, Notice) and told.kind is NoticeKind.NOT_TUNED
    assert told.text == "no more than 8 streams: the server allows up to 8"
    assert copy.script is not None and copy.script.restarts == [(8, 8)]


def test_a_change_by_hand_ends_it_and_is_said_once() -> None:
    copy = Copy()
    copy.run(4.0)
    copy.answer(8, 3)
    copy.answer(3, 4)
    copy.run(5.0)
    assert copy.lines()[1:] == [
        "the number of streams is no longer tuned: the number of streams was set to 3 by hand"
    ]


def test_a_new_session_holds_what_the_last_one_had() -> None:
    copy = Copy([Said(16, "probe")], [Said(16, "keep")])
    copy.run(4.0)
    copy.answer(8, 16)
    copy.run(2.0)
    assert copy.script is not None
    copy.tell(SessionBegun())
    assert copy.script.restarts == [(16, None)]


def test_samples_too_far_apart_end_it_by_name() -> None:
    copy = Copy()
    copy.run(0.5)
    copy.at_s = 40.0
    copy.tell(Stages(copy.stages()))
    assert "--interval" in copy.lines()[0]


def test_rates_are_those_of_each_stage_and_of_the_other_where_an_end_tells_none() -> None:
    meter = StageMeter()
    base: Any = {"at_us": 0, "streams": 1, "opening_streams": 0, "read_bytes": 0,
                 "sent_bytes": 0, "received_bytes": None, "written_bytes": None,
                 "retransmits": 0}  # fmt: skip
    assert meter.add(base) is None
    later = base | {"at_us": 500_000, "read_bytes": GBIT, "sent_bytes": GBIT // 2,
                    "retransmits": 10}  # fmt: skip
    rates = meter.add(later)
    assert rates is not None
    assert (rates.read_bps, rates.network_bps, rates.write_bps) == (2e9, 1e9, 1e9)
    assert rates.loss == pytest.approx(10 * 1448 / (GBIT // 2))


def stages_at(at_us: int, **counters: int) -> Any:
    zero = dict.fromkeys(("read_bytes", "sent_bytes", "received_bytes", "written_bytes"), 0)
    return {
        "at_us": at_us,
        "streams": 1,
        "opening_streams": 0,
        "retransmits": 0,
        **zero,
        **counters,
    }


def test_at_low_rates_the_samples_of_streams_count_and_not_whole_pieces_of_files() -> None:
    meter = StageMeter()
    meter.add(stages_at(0))
    meter.note({"end": [0, 0, 1], "bytes": [300_000, 200_000, 999_999]})  # type: ignore[dict-item]
    rates = meter.add(stages_at(500_000, read_bytes=4 << 20))
    assert rates is not None
    assert rates[:4] == (0.5, 8e6, 8e6, 8e6), "though nothing is counted as sent yet"


def test_a_reader_that_has_read_everything_holds_nobody_up() -> None:
    meter = StageMeter()
    meter.add(stages_at(0, read_bytes=10 * GBIT))
    later = stages_at(500_000, read_bytes=10 * GBIT, sent_bytes=GBIT, written_bytes=GBIT // 2)
    rates = meter.add(later)
    assert rates is not None and rates[1:4] == (2e9, 2e9, 1e9)


def test_the_record_has_what_was_kept_and_where_it_ended() -> None:
    events = [
        Tuned(3.0, 8, 16, "probe", None, 1e9), Tuned(7.0, 8, 16, "keep", 1e9, 1.5e9),
        Tuned(60.0, 16, 16, "alarm", None, 8e8),
    ]  # fmt: skip
    assert list(tuning_lines(tuning_label(events, None))) == [
        "at 7.0 s: tuned: 8 -> 16 streams: 1.00 -> 1.50 Gbit/s",
        "at 60.0 s: the rate changed to 800 Mbit/s",
        "tuning: 1 number of streams tried, not settled",
    ]


@pytest.mark.parametrize("before_bps", [None, 1e9])
def test_a_decision_is_a_line_of_json_and_back(before_bps: float | None) -> None:
    event = Tuned(3.0, 8, 16, "keep", before_bps, 2e9)
    line = line_of(event)
    assert line is not None and event_of(*line) == event


def test_a_change_of_tunings_is_told_from_one_of_people() -> None:
    change: Any = {"at_us": 1, "knob": "streams", "before": 1, "after": 2}
    for event in (Adjusted(change, True), Adjusted(change)):
        line = line_of(event)
        assert line is not None and event_of(*line) == event


@pytest.mark.parametrize(
    ("spec", "tune", "is_tuned"),
    [
        ({}, None, True),
        ({}, "stored", False),
        ({}, "off", False),
        ({"streams": 4}, None, False),
        ({"streams": 4}, "auto", True),
        ({"transport": "udt"}, None, False),
        ({"transport": "udt"}, "auto", True),
        ({"copy": {"total_rate_bps": 10**9}}, None, False),
        ({"copy": {"give_way": True}}, None, False),
        ({"copy": {"dry_run": True}}, "auto", False),
    ],
)
def test_streams_are_tuned_where_nobody_has_said_how_many(
    spec: dict[str, Any], tune: str | None, is_tuned: bool
) -> None:
    request = CopyRequest.between("a", "far.example:b", spec=spec, tune=tune)
    assert request.tunes_live is is_tuned


def test_rbudp_is_refused_by_name() -> None:
    request = CopyRequest.between("a", "host:b", spec={"transport": "rbudp"}, tune="auto")
    with pytest.raises(UsageError, match="RBUDP sends at a set rate"):
        request.check()
