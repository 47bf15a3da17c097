"""Queues of an emulated path over time: one series per link and direction, from its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    LinkColumns = Mapping[str, NDArray[np.int64]]

LINK_COLUMNS = (
    "link", "direction", "start_us", "end_us", "backlog_bytes", "backlog_max_bytes",
    "tail_drop_packets", "codel_drop_packets", "loss_packets", "cut_packets",
)  # fmt: skip
"""Columns of link samples that are drawn."""

DIRECTIONS = ("forward", "reverse")
_DROPS = ("tail_drop_packets", "codel_drop_packets", "loss_packets", "cut_packets")


@dataclass(frozen=True)
class LinkSeries:
    """One direction of one link: times are the ends of intervals, from the first sample on.

    `backlog_max_bytes` is the most that waited in each interval, `drops` the packets lost in it,
    whatever the cause.
    """

    name: str
    direction: str
    times_s: NDArray[np.float64]
    backlog_max_bytes: NDArray[np.int64]
    drops: NDArray[np.int64]

    @property
    def busy(self) -> bool:
        """Whether anything waited or was lost."""
        return bool(self.backlog_max_bytes.any() or self.drops.any())


def columns_of(table: pa.Table, names: Sequence[str]) -> LinkColumns:
    """Columns of a table of link samples as integers; what is not known is 0."""
    import numpy as np

    return {name: table[name].fill_null(0).to_numpy().astype(np.int64) for name in names}


def link_series(links: LinkColumns, topology: Mapping[str, Any] | None) -> list[LinkSeries]:
    """Series of every link and direction that has samples, in the order of the topology."""
    import numpy as np

    if len(links["link"]) == 0:
        return []
    start_us = int(links["start_us"].min())
    found = []
    for link in np.unique(links["link"]).tolist():
        for direction, word in enumerate(DIRECTIONS):
            rows = (links["link"] == link) & (links["direction"] == direction)
            if rows.any():
                found.append(
                    LinkSeries(
                        name=link_name(topology, link),
                        direction=word,
                        times_s=(links["end_us"][rows] - start_us) / 1e6,
                        backlog_max_bytes=links["backlog_max_bytes"][rows],
                        drops=np.sum([links[name][rows] for name in _DROPS], axis=0),
                    )
                )
    return found


def link_name(topology: Mapping[str, Any] | None, number: int) -> str:
    """Name of a link by its number."""
    links = (topology or {}).get("links") or []
    return str(links[number]["name"]) if number < len(links) else f"link {number}"
