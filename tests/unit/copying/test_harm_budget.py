"""A copy that keeps a budget of harm: rates asked for by what it sees; a warning for the others."""

from __future__ import annotations

from typing import Any

import pytest

from farline.copying import CopyRequest
from farline.copying.adjusting import Adjusting
from farline.copying.harm_budget import HarmBudget
from farline.copying.shared_path import SharedPathWatch, stubborn_name
from farline.errors import UsageError
from farline.fairness.rate_budget import FIRST_BPS, RateBudget
from farline.tools.events import Adjusted, Event, Notice, SessionBegun, Stages, StreamSamples


class Engine:
    """A session that changes its rate when it is asked to."""

    run_id = "01K0000000000000000000000A"

    def __init__(self) -> None:
        self.rates: list[int] = []

    def adjust(self, request: Any) -> None:
        self.rates.append(request["total_rate_bps"])


class Copy:
    """A copy on a line of 1 Gbit/s, whose queue is what is said."""

    def __init__(self) -> None:
        adjusting, self.engine = Adjusting(), Engine()
        self.budget = HarmBudget(RateBudget(0.2), adjusting)
        self.rate_bps = self.budget.first_bps()
        adjusting.begun(self.engine)
        self.told: list[Event] = []
        self.at_us, self.sent = 0, 0
        self.tell(SessionBegun())

    def tell(self, event: Event) -> None:
        self.told += self.budget.note(event)

    def look(self, queue_us: int = 0, loss: float = 0.0) -> None:
        self.at_us += 500_000
        self.sent += (moved := self.rate_bps // 16)
        columns = {
            "end": [0, 1], "stream": [0, 0], "rtt_us": [20_000 + queue_us, 999_999],
            "bytes": [moved, 999_999],
        }  # fmt: skip
        self.tell(StreamSamples(columns))  # type: ignore[arg-type]
        report = {
            "at_us": self.at_us, "streams": 1, "opening_streams": 0, "read_bytes": self.sent,
            "sent_bytes": self.sent, "received_bytes": self.sent, "written_bytes": self.sent,
            "retransmits": int(loss * self.sent / 1448),
        }  # fmt: skip
        self.tell(Stages(report))  # type: ignore[arg-type]
        if self.engine.rates and self.engine.rates[-1] != self.rate_bps:
            before, self.rate_bps = self.rate_bps, self.engine.rates[-1]
            change = {"at_us": self.at_us, "knob": "total-rate", "before": before,
                      "after": self.rate_bps}  # fmt: skip
            self.tell(Adjusted(change))  # type: ignore[arg-type]


def test_it_begins_low_and_doubles_while_no_queue_grows() -> None:
    copy = Copy()
    for _ in range(5):
        copy.look()
    assert copy.engine.rates == [int(FIRST_BPS * 2**step) for step in range(1, 5)]
    assert copy.told == []


def test_a_queue_that_lasts_takes_it_down_to_its_share() -> None:
    copy = Copy()
    for _ in range(8):
        copy.look()
    line_bps = copy.budget.budget.line_bps
    for _ in range(12):
        copy.look(queue_us=15_000)
    assert line_bps >= 200e6
    assert copy.rate_bps == pytest.approx(0.2 * line_bps, rel=0.05)


def test_a_rate_set_by_hand_ends_it_and_is_said_once() -> None:
    copy = Copy()
    change: Any = {"at_us": 1, "knob": "total-rate", "before": 1, "after": 5_000_000}
    copy.tell(Adjusted(change))
    copy.tell(Adjusted(change))
    (notice,) = copy.told
    assert isinstance(notice, Notice)
    assert notice.text == (
        "--max-harm: the rate is no longer held to the budget: the rate was set to 5.00 Mbit/s"
        " by hand"
    )


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"max_harm": 1.5}, "out of range"),
        ({"max_harm": 0.2, "spec": {"transport": "rbudp"}}, "TCP only"),
        ({"max_harm": 0.2, "spec": {"copy": {"give_way": True}}}, "--yield cannot be combined"),
        ({"max_harm": 0.2, "tune": "auto"}, "--tune auto cannot be combined"),
        ({"max_harm": 0.2, "spec": {"interval_s": 5.0}}, "--interval 1s or less"),
    ],
)
def test_what_does_not_go_with_a_budget_is_refused_by_name(more: dict[str, Any], line: str) -> None:
    with pytest.raises(UsageError, match=line):
        CopyRequest.between("a", "host:b", **more).check()


def test_streams_are_not_tuned_beside_a_budget() -> None:
    assert not CopyRequest.between("a", "host:b", max_harm=0.2).tunes_live


def columns(lost: int, packets: int = 1000) -> Any:
    return {
        "end": [0], "start_us": [0], "end_us": [1_000_000], "packets": [packets],
        "lost_packets": [lost], "bytes": [125_000_000],
    }  # fmt: skip


def test_losses_that_last_warn_once_of_those_who_may_share_the_path() -> None:
    watch = SharedPathWatch("RBUDP")
    said = [watch.add(columns(lost)) for lost in (50, 50, 5, 50, 50, 50, 50)]
    (line,) = [line for line in said if line]
    assert line.startswith("5.0 % of the packets are lost at 1.00 Gbit/s: if others share this")
    assert "RBUDP does not give way" in line


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, None),
        ({"transport": "rbudp"}, "RBUDP"),
        ({"transport": "udt"}, None),
        ({"transport": "udt", "udt": {"congestion_control": "bbr"}}, "UDT with bbr"),
    ],
)
def test_transports_that_do_not_give_way_are_known(spec: dict[str, Any], name: str | None) -> None:
    assert stubborn_name(spec) == name
