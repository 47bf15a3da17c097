"""The page or picture of `farline storage --report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from farline.cli.storage_text import (
    COLUMNS,
    caps_text,
    cells,
    conclusions,
    grouped,
    interval_text,
    mean,
)
from farline.plots.page_parts import Tile
from farline.plots.storage_figure import StoragePage, StoragePicture, save_storage
from farline.spec.units import counted, rate_human, size_human
from farline.storage.job import fitted_rates

if TYPE_CHECKING:
    from pathlib import Path

_CURVE_POINTS = 80
_ACTIONS = ("read", "write")
Document = Mapping[str, Any]


def save_report(document: Document, path: Path) -> None:
    """Writes it.

    Raises:
        SystemFailure: when the file cannot be written.
    """
    save_storage(picture_of(document), page_of(document), path)


def picture_of(document: Document) -> StoragePicture:
    """What is drawn of a profile."""
    measured = document["measurements"]
    curves = {}
    for action in _ACTIONS:
        if (caps := document["caps"].get(action)) is not None and caps["most_processes"] > 1:
            places = np.geomspace(1, caps["most_processes"], _CURVE_POINTS)
            curves[action] = list(zip(places, fitted_rates(caps, places), strict=True))
    return StoragePicture(
        {action: list(_over(measured, action, "processes", 1.0)) for action in _ACTIONS},
        curves,
        {action: list(_over(measured, action, "request_bytes", 1024.0)) for action in _ACTIONS},
    )


def _over(
    measured: list[Document], action: str, knob: str, scale: float
) -> Iterator[tuple[float, float]]:
    """Rates over one knob, everything else as in the setting that most others share."""
    own = [one for one in measured if one["action"] == action]
    groups: dict[tuple[Any, ...], list[Document]] = {}
    names = ("processes", "threads", "request_bytes", "depth", "mode", "access", "layout", "sync")
    for one in own:
        groups.setdefault(tuple(one[name] for name in names if name != knob), []).append(one)
    best = max(groups.values(), key=lambda group: len({one[knob] for one in group}), default=[])
    for one in best:
        yield one[knob] / scale, one["rate_bps"]


def page_of(document: Document) -> StoragePage:
    """What is written around it."""
    where = f"{document['mount']} on {document['host']}"
    size = size_human(document["file_bytes"])
    count = counted(len(document["measurements"]), "measurement")
    caps = {action: document["caps"].get(action) for action in _ACTIONS}
    lead = "; ".join(f"{action}: {caps_text(found)}" for action, found in caps.items() if found)
    return StoragePage(
        heading=f"What {where} can do",
        facts=f"{document['file_system']}, {document['source']}; {count}, files of {size}",
        lead=lead,
        tiles=list(_tiles(document)),
        lines=[*(fact for one in document["striping"] for fact in one["facts"]),
               *conclusions(document)],
        heads=["Action", *COLUMNS[1:]],
        table=[cells(group) for group in grouped(document["measurements"])],
    )  # fmt: skip


def _tiles(document: Document) -> Iterator[Tile]:
    for action in _ACTIONS:
        if (caps := document["caps"].get(action)) is None:
            continue
        each, total = caps["process"], caps["total"]
        if each is not None:
            note = interval_text(each)
            yield Tile(f"{action}, one process", rate_human(each["rate_bps"]), note)
        if total is not None:
            note = interval_text(total)
            yield Tile(f"{action}, all processes", rate_human(total["rate_bps"]), note)
    rates = [one["rate_bps"] for one in document["measurements"]]
    yield Tile("highest rate", rate_human(max(rates)), f"mean {rate_human(mean(iter(rates)))}")
