"""A line that two sides share, without a network: what a router would count, at once."""

from __future__ import annotations

import datetime
import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from farline.campaign.contention.job import ContentionJob, new_name, seeded
from farline.campaign.contention.journal import new_journal, write_journal
from farline.campaign.contention.plan import plan_from_document
from farline.fairness.contest import BACKGROUND, SUBJECT
from farline.fairness.curve import ideal_rates
from farline.spec._types import LINK_SAMPLE_COLUMNS
from farline.spec.path_watch import PathSeen
from farline.store import Store
from farline.tools import Capabilities, EventSink, RunResult, StopQuestion, never_stop
from tests.support.paths import make_stamp
from tests.support.records import make_record

CAPACITY_BPS = 100_000_000
HOSTS = {SUBJECT: ("source", "sink"), BACKGROUND: ("background-source", "background-sink")}
LINKS = (
    ("bottleneck", "left-switch", "router"),
    ("router-right", "router", "right-switch"),
    ("source", "source", "left-switch"),
    ("background-source", "background-source", "left-switch"),
    ("sink", "right-switch", "sink"),
    ("background-sink", "right-switch", "background-sink"),
)
NUMBER = {name: number for number, (name, _a, _b) in enumerate(LINKS)}
_PACKET = 1250
_numbers = itertools.count(1)


def topology() -> dict[str, Any]:
    """The dumbbell of Yu et al. 2014, as a record has it."""
    links = [{"name": name, "a": a, "b": b, "forward": {}} for name, a, b in LINKS]
    hosts = [{"name": name} for pair in HOSTS.values() for name in pair]
    return {"name": "dumbbell", "main_link": "bottleneck", "hosts": hosts, "links": links}


def link_columns(rates: Mapping[str, float], seconds: float) -> dict[str, Any]:
    """Ten samples a second of every link, in which each side has its rate."""
    rows: list[dict[str, int]] = []
    for tick in range(round(10 * seconds)):
        for name, number in NUMBER.items():
            side = next((s for s, pair in HOSTS.items() if name in pair), None)
            bits = sum(rates.values()) if side is None else rates.get(side, 0.0)
            packets = round(bits / 80 / _PACKET)
            rows.append(
                {
                    "link": number, "direction": 0, "start_us": tick * 100_000,
                    "end_us": (tick + 1) * 100_000, "in_packets": packets, "out_packets": packets,
                    "out_bytes": round(bits / 80),
                    "rate_bps": CAPACITY_BPS if name == "bottleneck" else 0,
                }
            )  # fmt: skip
    return {
        column: np.array([row.get(column, 0) for row in rows], dtype=np.int64)
        for column in LINK_SAMPLE_COLUMNS
    }


@dataclass
class FakeLine:
    """Two sides on one line: each gets what is ideal, or what `rates` says by the flows of both.

    `errors` has failures of the next trials, `invalid` how many of the next stamps do not hold.
    """

    capacity_bps: float | None = float(CAPACITY_BPS)
    link: str | None = "bottleneck"
    errors: list[dict[str, Any] | None] = field(default_factory=list)
    invalid: int = 0
    late_s: float = 0.0
    """How much later than the background a transfer really starts beside it."""
    backgrounds: list[Any] = field(default_factory=list)
    """Specs of the backgrounds of all trials."""
    ran: list[tuple[str, ...]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    specs: dict[str, Any] = field(default_factory=dict)
    start_s: float = 0.0
    ready: threading.Event = field(default_factory=threading.Event)
    """Set once the background of the present trial has said at which rate it sends."""

    def tool(self, side: str, name: str) -> tuple[FakeTool, str]:
        self.asked.append(side)
        return FakeTool(self, side, name), "target"

    def watch(self, side: str) -> FakeWatch:
        return FakeWatch(self, side)

    def clock_us(self) -> int:
        """Asked once per trial, before its sides run."""
        self.ran.append(tuple(sorted(self.asked)))
        self.asked.clear()
        self.specs = {}
        self.ready.clear()
        self.start_s = datetime.datetime.now(datetime.UTC).timestamp()
        return 0

    def sends(self, side: str, since_us: int) -> bool:
        """At once."""
        return True

    def rates(self) -> dict[str, float]:
        """What each side of the present trial gets."""
        sides, capacity = self.ran[-1], float(CAPACITY_BPS)
        if BACKGROUND in sides:
            assert self.ready.wait(30)
        load = float(self.specs.get(BACKGROUND, {}).get("rate_bps") or 0)
        if SUBJECT not in sides:
            return {BACKGROUND: min(load, capacity)}
        if BACKGROUND not in sides:
            return {SUBJECT: capacity}
        mine, theirs = ideal_rates(load, capacity)
        return {SUBJECT: mine, BACKGROUND: theirs}


@dataclass
class FakeTool:
    """One side of a trial."""

    line: FakeLine
    side: str
    name: str

    def capabilities(self) -> Capabilities:
        return Capabilities(self.name, ("tcp",), ("forward",), samples=False)

    def run(
        self, target: str, spec: Any, on_event: EventSink, should_stop: StopQuestion
    ) -> RunResult:
        self.line.specs[self.side] = spec
        if self.side == BACKGROUND:
            self.line.backgrounds.append(spec)
            self.line.ready.set()
        error = self.line.errors.pop(0) if self.line.errors else None
        status = "failed" if error else "complete"
        record = make_record(next(_numbers), spec, status=status, error=error)
        late_s = self.line.late_s if self.side == SUBJECT and len(self.line.ran[-1]) == 2 else 0.0
        started = datetime.datetime.fromtimestamp(self.line.start_s + late_s, datetime.UTC)
        record["started_at"] = started.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        result: Any = record
        return RunResult(result, {})


@dataclass
class FakeWatch:
    """What an emulator would say of a side's path."""

    line: FakeLine
    side: str

    def start(self) -> int:
        return 0

    def finish(self, _mark: Any, _address: str) -> PathSeen:
        reasons: tuple[str, ...] = ()
        if self.line.invalid:
            self.line.invalid -= 1
            reasons = ("1 % of packets were late",)
        client, server = HOSTS[self.side]
        path: Any = {
            "testbed": "dumbbell", "client_host": client, "server_host": server, "rtt_s": 0.01,
            "rate_bps": CAPACITY_BPS, "topology": topology(), "stamp": make_stamp(*reasons),
        }  # fmt: skip
        return PathSeen(path, link_columns(self.line.rates(), 16.0))


def made_measurement(store: Store) -> str:
    """Keeps a measurement of TCP and UDT beside one CUBIC flow; its name."""
    document: dict[str, Any] = {
        "fairness": {
            "loads": "20%,40%,50%,80%", "repetitions": 2, "lead_s": 0.2, "reference": "tcp",
        },
        "subject": {"tcp": {"tcp": {"congestion_control": "cubic"}}, "udt": {"transport": "udt"}},
        "path": {"rate_bps": "100Mbit"},
        "expect": {"udt": {"harm": {"at_least": 0.9}}},
    }  # fmt: skip
    plan = seeded(plan_from_document(document))
    journal = new_journal(new_name(plan), plan, "testbed dumbbell")
    write_journal(store, journal)
    ContentionJob(journal, FakeLine(), store).run(lambda _progress: None, never_stop)
    return journal.name
