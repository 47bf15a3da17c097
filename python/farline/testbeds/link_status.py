"""What the links of a testbed carry, hold back and lose, direction by direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farline.testbeds.bed import Testbed

_DROPS = ("tail_drop_packets", "codel_drop_packets", "mtu_drop_packets")
_LOST = ("loss_packets", "cut_packets")
_EFFECTS = ("ecn_marked", "corrupted", "duplicated", "reordered")


@dataclass(frozen=True)
class LinkRow:
    """One direction of one link: what it is, what it carried lately, what was since the start."""

    name: str
    way: str
    ends: str
    rate_bps: int
    delay_s: float
    carried_bps: float
    backlog_bytes: int
    backlog_max_bytes: int
    in_packets: int
    dropped: int
    lost: int
    other: Mapping[str, int]


def look(bed: Testbed) -> tuple[list[LinkRow], Mapping[str, Any]]:
    """Every direction of every link, with rates since the last look, and the raw counters."""
    samples, counters = bed.link_samples(), bed.counters()
    links = bed.topology()["links"]
    rows = []
    for number, counted in enumerate(counters["links"]):
        link, direction = links[number // 2], number % 2
        ends = (link["a"], link["b"])
        mine = (samples["link"] == number // 2) & (samples["direction"] == direction)
        rows.append(
            LinkRow(
                name=link["name"],
                way="→←"[direction],
                ends=f"{ends[direction]} → {ends[1 - direction]}",
                rate_bps=counted["rate_bps"],
                delay_s=counted["delay_ns"] / 1e9,
                carried_bps=_carried_bps({n: c[mine] for n, c in samples.items()}),
                backlog_bytes=counted["backlog_bytes"],
                backlog_max_bytes=int(samples["backlog_max_bytes"][mine].max(initial=0)),
                in_packets=counted["in_packets"],
                dropped=sum(counted[name] for name in _DROPS),
                lost=sum(counted[name] for name in _LOST),
                other={n: counted[f"{n}_packets"] for n in _EFFECTS if counted[f"{n}_packets"]},
            )
        )
    return rows, counters


def _carried_bps(samples: Mapping[str, Any]) -> float:
    if not len(samples["end_us"]):
        return 0.0
    span_us = int(samples["end_us"].max() - samples["start_us"].min())
    return 8e6 * int(samples["out_bytes"].sum()) / span_us if span_us else 0.0
