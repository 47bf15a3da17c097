"""What a tool printed as checked figures: of another version, cut off, or of another program."""

from __future__ import annotations

import math
from collections.abc import Iterator

from farline.drivers.driver import Driver, Figures, Task
from farline.drivers.processes import Ended
from farline.errors import ProtocolError

_STRANGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a reader meets in a document that has other parts than it looks for."""

_COUNTS = ("retransmits", "sent_packets", "lost_packets", "jitter_ns", "min_rtt_us")


def figures_of(driver: Driver, task: Task, ended: Ended) -> Figures:
    """What a tool says of its run: counts in whole numbers, times and rates that are finite.

    Raises:
        FarlineError: when the tool says that it failed, as `Driver.read`.
        ProtocolError: when what it printed holds no such figures.
    """
    try:
        figures = driver.read(task, ended)
        wrong = next(_wrong(figures), None)
    except _STRANGE as error:
        raise ProtocolError(f"{driver.name} failed: {_UNREADABLE}") from error
    if wrong is not None:
        raise ProtocolError(f"{driver.name} failed: {_UNREADABLE} ({wrong})")
    return figures


_UNREADABLE = "its output is not as farline knows it; check that its version is supported"


def _wrong(figures: Figures) -> Iterator[str]:
    """Figures that cannot be."""
    for way, flow in figures.flows.items():
        yield from _wrong_count(f"{way} bytes", flow.bytes)
        yield from _wrong_number(f"{way} elapsed_s", flow.elapsed_s)
        yield from _wrong_number(f"{way} rate_bps", flow.rate_bps)
    for name in _COUNTS:
        yield from _wrong_count(name, getattr(figures, name))
    yield from _wrong_number("mean_rtt_us", figures.mean_rtt_us)
    if not isinstance(figures.congestion_control, str | None):
        yield f"congestion_control is {figures.congestion_control!r:.40}"
    for name, column in figures.samples.items():
        for value in column:
            yield from _wrong_count(name, value, least=-1)


def _wrong_count(name: str, value: object, least: int = 0) -> Iterator[str]:
    if value is None and least == 0:
        return
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not least <= value < 2**63:  # type: ignore[operator]
        yield f"{name} is {value!r:.40}"


def _wrong_number(name: str, value: object) -> Iterator[str]:
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type,operator]
        yield f"{name} is {value!r:.40}"
