"""Text of `farline storage`: measurements as they come, tables, caps in words."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from farline.cli.shown import shown
from farline.spec.units import counted, rate_human, size_human, time_human
from farline.tools.events import Notice, StorageBegun, StorageLaidOut, StorageMeasured

if TYPE_CHECKING:
    from pathlib import Path

    from farline.tools.events import Event

WIDTH = 80
_DOES = {"read": "reads", "write": "writes"}
COLUMNS = ("", "proc", "request", "depth", "I/O", "rate", "p50", "p99", "CPU", "cached")
"""`proc` is the number of processes, `4x2` where each has two threads."""
Document = Mapping[str, Any]


class View:
    """Shows events as they come: on a terminal one line that changes, and all of it at the end."""

    def __init__(self, quiet: bool) -> None:
        """Nothing is shown where one document at the end is all that is wanted."""
        self._quiet, self._is_live = quiet, sys.stdout.isatty()
        self._whole, self._is_open = 0, False

    def show(self, event: Event) -> None:
        """Shows one event, if it is one of those that are shown."""
        if self._quiet:
            return
        if isinstance(event, StorageBegun):
            self._whole = event.measurements
            for line in _begun_lines(event):
                click.echo(line)
        elif isinstance(event, StorageLaidOut):
            size, seconds = size_human(event.file_bytes), f"{event.seconds:.1f} s"
            click.echo(f"wrote {counted(event.files, 'file')} of {size} in {seconds}")
        elif isinstance(event, StorageMeasured):
            self._measured(event)
        elif isinstance(event, Notice):
            self.close()
            click.echo(f"farline: {shown(event.text)}", err=True)

    def _measured(self, event: StorageMeasured) -> None:
        if not self._is_live:
            return
        line = f"{event.number}/{self._whole}  {event.setting}: {rate_human(event.rate_bps)}"
        click.echo(f"\r\x1b[K{line[: WIDTH - 1]}", nl=False)
        self._is_open = True

    def close(self) -> None:
        """Removes the line that changes."""
        if self._is_open:
            click.echo("\r\x1b[K", nl=False)
        self._is_open = False


def _begun_lines(event: StorageBegun) -> Iterator[str]:
    yield shown(f"{event.mount} ({event.file_system})")
    for fact in event.facts:
        yield from textwrap.wrap(shown(fact), WIDTH, initial_indent="  ", subsequent_indent="    ")
    count = counted(event.measurements, "measurement")
    yield f"{count} of {event.each_s:.2g} s, files of {size_human(event.size_bytes)} in all"


def print_result(document: Document, kept: Path | None) -> None:
    """Tables of all measurements, then what was found."""
    for line in table_lines(document["measurements"]):
        click.echo(line)
    for text in conclusions(document):
        for line in textwrap.wrap(shown(text), WIDTH, subsequent_indent="  "):
            click.echo(line)
    if kept is not None:
        click.echo(f"kept as the profile of {shown(document['mount'])} on {document['host']}")


def table_lines(measured: Sequence[Document]) -> Iterator[str]:
    """A row for each setting, repeats as their mean, within 80 columns."""
    rows = [COLUMNS, *(cells(group) for group in grouped(measured))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    yield ""
    for row in rows:
        first = f"{row[0]:<{widths[0]}}"
        rest = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        yield " ".join([first, *rest]).rstrip()
    yield ""


def grouped(measured: Sequence[Document]) -> list[list[Document]]:
    """Measurements by setting, in the order of their first."""
    names = ("action", "processes", "threads", "request_bytes", "depth", "mode", "access",
             "layout", "sync")  # fmt: skip
    groups: dict[tuple[Any, ...], list[Document]] = {}
    for one in sorted(measured, key=lambda one: str(one["action"])):
        groups.setdefault(tuple(one[name] for name in names), []).append(one)
    return list(groups.values())


def cells(group: Sequence[Document]) -> tuple[str, ...]:
    one = group[0]
    more = [word for word in (one["access"], one["layout"]) if word in ("strided", "shared")]
    if one["action"] == "write" and one["sync"] != "end":
        more.append({"each": "sync each", "none": "no sync"}[one["sync"]])
    cached = one["cached"]
    cpu = sum(m["cpu_s"] for m in group) / sum(m["seconds"] for m in group)
    return (
        " ".join([one["action"], *more]), _processes(one),
        size_human(one["request_bytes"]).replace(".00", "").replace(".0", ""), str(one["depth"]),
        "cache" if one["mode"] == "buffered" else "direct",
        rate_human(mean(m["rate_bps"] for m in group)),
        _time(mean(m["latency_s"] for m in group)),
        _time(max(m["latency_p99_s"] for m in group)), f"{cpu:.0%}",
        "-" if cached is None or one["mode"] == "direct" else f"{cached:.0%}",
    )  # fmt: skip


def _processes(one: Document) -> str:
    threads = one["threads"]
    return str(one["processes"]) if threads == 1 else f"{one['processes']}x{threads}"


def _time(seconds: float) -> str:
    return time_human(1e6 * float(f"{seconds:.2g}"))


def mean(values: Iterator[float]) -> float:
    """The arithmetic mean."""
    found = list(values)
    return sum(found) / len(found)


def conclusions(document: Document) -> Iterator[str]:
    """Caps of both directions, advice, notes: what somebody takes away."""
    for action in ("read", "write"):
        if (caps := document["caps"].get(action)) is not None:
            yield f"{_DOES[action]}: {caps_text(caps)}"
    if document["advice"]:
        yield f"striping: {document['advice']}"
    for note in document["notes"]:
        yield f"note: {note}"


def caps_text(caps: Document) -> str:
    """Both caps in one sentence, with their intervals; what is not known is said."""
    most, best = caps["most_processes"], counted(caps["best_processes"], "process", "processes")
    each, total = caps["process"], caps["total"]
    if each is None:
        words = f"up to {_rate(total)} in all, which one process reaches alone"
    elif total is None:
        words = f"up to {_rate(each)} by one process"
        if caps["declines_to_bps"]:
            words += (
                f", {rate_human(caps['best_bps'])} in all" if caps["best_processes"] > 1 else ""
            )
        elif most > 1:
            words += f"; the total still rose at {most} processes, {rate_human(caps['best_bps'])}"
    else:
        words = f"up to {_rate(each)} by one process, {_rate(total)} in all"
    if caps["form"] == "smooth":
        words += " (a gradual transition)"
    if caps["declines_to_bps"]:
        fallen = rate_human(caps["declines_to_bps"])
        words += f"; best with {best}, {fallen} with {most}"
    return words


def _rate(cap: Document) -> str:
    return f"{rate_human(cap['rate_bps'])} ({interval_text(cap)})"


def interval_text(cap: Document) -> str:
    """The 95 % interval of a cap."""
    low = rate_human(cap["low_bps"])
    return f"{low} to {rate_human(cap['high_bps'])}" if cap["high_bps"] else f"{low} or more"
