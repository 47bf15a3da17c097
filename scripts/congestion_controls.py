"""Stated against measured for the congestion controls that farline loads; needs root and bpftool.

    .venv/bin/python -m scripts.congestion_controls [WORD ...]

runs one flow after another over emulated paths (some ten minutes; with words, only the rows that
contain one of them), prints a table and puts it into docs/design/congestion-controls.md. Ends with
1 if a row is not within its limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from farline.testbeds import congestion
from tests.support.congestion import compare, reference, runs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "congestion-controls.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
RTT_S = 0.05
ATTEMPTS = 3
"""Another program that takes the CPU for a moment makes a run invalid; it is then run again."""
DROP_TAIL_RTT_S = 0.01
SEGMENT_BYTES = 1538
"""On the wire: 1500 and 38 of framing."""


@dataclass(frozen=True)
class Row:
    """One statement: what should be, what was, and how far apart they may be."""

    control: str
    what: str
    unit: str
    limit: float
    """Largest allowed distance from the stated value, as a share of it."""
    measure: Callable[[], tuple[float, float, bool]]
    """Stated, measured, and whether the emulator's stamp is valid."""

    @property
    def title(self) -> str:
        """Words to choose it by."""
        return f"{self.control} {self.what}"


@dataclass(frozen=True)
class Result:
    """A row that was measured."""

    row: Row
    stated: float
    measured: float
    valid: bool

    @property
    def holds(self) -> bool:
        """Whether it counts, and is within its limit."""
        return self.valid and abs(self.measured / self.stated - 1) <= self.row.limit

    def text(self) -> str:
        """A line of the table."""
        row, ratio = self.row, self.measured / self.stated
        verdict = "yes" if self.holds else ("no" if self.valid else "run not valid")
        cells = [row.control, row.what, f"{self.stated:.4g} {row.unit}", f"{self.measured:.4g}"]
        cells += [f"{ratio:.3f}", f"{row.limit:.0%}", verdict]
        return f"| {' | '.join(cells)} |"


def growth(control: str, packets: list[int], seconds: float) -> tuple[float, float, bool]:
    """Growth between chosen losses, no queue: packets over all epochs."""
    run = runs.watch(control, seconds, runs.topology(RTT_S, packets=packets))
    return *compare.total_growth(run), run.stamp["valid"]


def response(
    control: str, between: int, first: int, rtt_s: float, seconds: float
) -> tuple[float, float, bool]:
    """Mean window when one packet in so many is lost, against the published response function."""
    run = runs.watch(control, seconds, runs.topology(rtt_s, packets=[first], every=between))
    stated = compare.published_window(control, 1 / between, rtt_s)
    return stated, run.mean_window(3), run.stamp["valid"]


def random_response(
    control: str, between: int, first: int, rtt_s: float, seconds: float
) -> tuple[float, float, bool]:
    """Mean window at independent losses, against the rules followed through many of them."""
    run = runs.watch(control, seconds, runs.topology(rtt_s, packets=[first], random=1 / between))
    stated = compare.random_window(control, 1 / between, rtt_s)
    return stated, run.mean_window(3), run.stamp["valid"]


def cycle_period(
    control: str, between: int, first: int, rtt_s: float, seconds: float
) -> tuple[float, float, bool]:
    """Time from loss to loss, against the rules' cycle with a round trip of recovery."""
    run = runs.watch(control, seconds, runs.topology(rtt_s, packets=[first], every=between))
    stated = compare.cycle(control, 1 / between, rtt_s).round_trips * rtt_s
    return stated, compare.period_s(run, 3), run.stamp["valid"]


def backoff(
    control: str, between: int, first: int, seconds: float, stated: float
) -> tuple[float, float, bool]:
    """Share of the window kept at a loss, once cycles are alike."""
    run = runs.watch(control, seconds, runs.topology(RTT_S, packets=[first], every=between))
    return stated, compare.kept(run, 3), run.stamp["valid"]


def highspeed_backoff(between: int, first: int, seconds: float) -> tuple[float, float, bool]:
    """The same for HighSpeed TCP, whose share depends on the window it was at."""
    path = runs.topology(RTT_S, packets=[first], every=between)
    run = runs.watch("highspeed", seconds, path)
    before = [one.window_before for one in run.epochs()[3:]]
    stated = [1 - reference.hstcp_decrease(window) for window in before]
    return sorted(stated)[len(stated) // 2], compare.kept(run, 3), run.stamp["valid"]


def queue_backoff(queue_bdp: float, stated: float) -> tuple[float, float, bool]:
    """H-TCP's share kept, where the queue makes RTT_max = (1 + queue) RTT_min."""
    path = runs.topology(0.02, rate="200Mbit", queue_bdp=queue_bdp)
    run = runs.watch("htcp_no_scale", 20.0, path)
    return stated, compare.kept(run, 3), run.stamp["valid"]


def drop_tail_epoch(rate_bps: int) -> tuple[float, float, bool]:
    """Scalable TCP's epoch behind a full queue of one BDP.

    It grows by 0.01 per packet delivered, at the rate of the link, from 7/8 of the window that
    fills link and queue; before that come a round trip until the loss is seen and one of recovery,
    both with the queue nearly full.
    """
    path = runs.topology(DROP_TAIL_RTT_S, rate=f"{rate_bps}bit")
    run = runs.watch("scalable", 10.0, path, every_s=0.002)
    packets_per_s = rate_bps / 8 / SEGMENT_BYTES
    full = 2 * DROP_TAIL_RTT_S * packets_per_s
    growing_s = 0.125 * full / (reference.SCALABLE_INCREASE * packets_per_s)
    return growing_s + 2 * 2 * DROP_TAIL_RTT_S, compare.period_s(run, 4), run.stamp["valid"]


def growth_rows() -> Iterator[Row]:
    """Growth between losses."""
    what = f"growth between losses, RTT {RTT_S * 1000:.0f} ms"
    for control in ("htcp", "htcp_no_scale", "scalable", "highspeed"):
        measure = partial(growth, control, [1000, 100_000, 300_000], 14.0)
        yield Row(control, what, "packets", 0.05, measure)


def backoff_rows() -> Iterator[Row]:
    """Share of the window kept."""
    steady = partial(backoff, "htcp", 10_000, 250, 18.0, 0.8)
    yield Row("htcp", "kept, throughput steady, no queue", "", 0.02, steady)
    for queue_bdp, stated in ((0.5, 1 / 1.5), (1.0, 0.5)):
        what = f"kept, drop-tail queue of {queue_bdp} BDP"
        yield Row("htcp_no_scale", what, "", 0.05, partial(queue_backoff, queue_bdp, stated))
    yield Row("scalable", "kept", "", 0.01, partial(backoff, "scalable", 10_000, 800, 10.0, 0.875))
    yield Row("highspeed", "kept", "", 0.02, partial(highspeed_backoff, 10_000, 330, 16.0))


@dataclass(frozen=True)
class ResponseCase:
    """One loss rate for one congestion control, and a first loss that starts it near its cycle."""

    control: str
    between: int
    first: int
    rtt_s: float
    seconds: float

    @property
    def settings(self) -> tuple[str, int, int, float, float]:
        """In the order in which they are measured with."""
        return self.control, self.between, self.first, self.rtt_s, self.seconds

    @property
    def place(self) -> str:
        """Loss and path, in words."""
        return f"1/{self.between}, RTT {self.rtt_s * 1000:.0f} ms"


RESPONSE_CASES = (
    ResponseCase("scalable", 1_000, 80, 0.02, 10.0),
    ResponseCase("scalable", 10_000, 800, 0.02, 12.0),
    ResponseCase("scalable", 100_000, 8_000, 0.1, 20.0),
    ResponseCase("highspeed", 1_000, 50, 0.02, 15.0),
    ResponseCase("highspeed", 10_000, 330, 0.02, 16.0),
    ResponseCase("highspeed", 100_000, 2_100, 0.02, 20.0),
    ResponseCase("htcp", 10_000, 250, 0.05, 20.0),
    ResponseCase("htcp", 100_000, 1_300, 0.02, 20.0),
    ResponseCase("htcp_no_scale", 10_000, 300, 0.05, 20.0),
)
RANDOM_CASES = (
    ResponseCase("scalable", 10_000, 800, 0.02, 20.0),
    ResponseCase("highspeed", 1_000, 50, 0.02, 30.0),
    ResponseCase("htcp", 1_000, 50, 0.02, 30.0),
    ResponseCase("htcp_no_scale", 1_000, 100, 0.02, 30.0),
)


def response_rows() -> Iterator[Row]:
    """Mean windows and cycles at loss rates: at equal distances, and random."""
    for case in RESPONSE_CASES:
        even = partial(response, *case.settings)
        yield Row(case.control, f"mean window, every {case.place}", "packets", 0.1, even)
        period = partial(cycle_period, *case.settings)
        yield Row(case.control, f"time between losses, every {case.place}", "s", 0.08, period)


def random_rows() -> Iterator[Row]:
    """Mean windows at independent losses; some dozens of them leave 10 to 15 % to chance."""
    for case in RANDOM_CASES:
        uneven = partial(random_response, *case.settings)
        yield Row(case.control, f"mean window, random {case.place}", "packets", 0.25, uneven)


def drop_tail_rows() -> Iterator[Row]:
    """Scalable TCP's epoch behind a queue."""
    for rate_bps in (500_000_000, 1_000_000_000):
        what = f"epoch, drop-tail queue of 1 BDP, {rate_bps / 1e9:g} Gb/s, 10 ms"
        yield Row("scalable", what, "s", 0.05, partial(drop_tail_epoch, rate_bps))


def rows() -> list[Row]:
    """All of them, in the order of the page."""
    return [*growth_rows(), *backoff_rows(), *response_rows(), *random_rows(), *drop_tail_rows()]


@contextmanager
def controls_loaded() -> Iterator[None]:
    """Loads what is not there yet, and takes out again what was loaded here."""
    names = [one.name for one in congestion.available() if one.state == "loadable"]
    try:
        for one in congestion.available():
            congestion.load(one.name)
        yield
    finally:
        for name in set(names) & set(congestion.loaded()):
            congestion.unload(name)


HEADER = (
    "| control | what | stated | measured | ratio | limit | within |\n|---|---|---|---|---|---|---|"
)


def write_page(results: list[Result]) -> None:
    """Puts what was measured between the page's two marks, in the order of `rows`.

    Lines of rows that were not measured this time stay.
    """
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    lines = {tuple(line.split(" | ")[:2]): line for line in old.splitlines()}
    lines |= {tuple(one.text().split(" | ")[:2]): one.text() for one in results}
    known = [(f"| {row.control}", row.what) for row in rows()]
    table = "\n".join([HEADER, *(lines[place] for place in known if place in lines)])
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def measured(row: Row) -> Result:
    """The row's first run that the emulator calls valid, or its last."""
    for _ in range(ATTEMPTS):
        result = Result(row, *row.measure())
        if result.valid:
            break
    return result


def main(words: list[str]) -> int:
    """Measures, prints, and puts what was measured into the page."""
    chosen = [
        row
        for row in rows()
        if not words or any(word in f"{row.control} {row.what}" for word in words)
    ]
    print(HEADER, flush=True)
    results = []
    with controls_loaded():
        for row in chosen:
            results.append(measured(row))
            print(results[-1].text(), flush=True)
    write_page(results)
    return 0 if results and all(one.holds for one in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
