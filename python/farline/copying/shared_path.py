"""A warning where a transport that does not give way loses packets: others may share the path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.tools.events import Columns

LOSS = 0.01
"""Share of packets lost from which on a path is taken for shared, or too slow for the rate."""
SECONDS = 3
"""So many seconds in a row: a burst of losses is no neighbour."""


def stubborn_name(spec: Mapping[str, Any]) -> str | None:
    """The transport of a spec in words, if it does not give way to others; else None."""
    transport = spec.get("transport", "tcp")
    if transport == "rbudp":
        return "RBUDP"
    control = (spec.get("udt") or {}).get("congestion_control")
    return "UDT with bbr" if transport == "udt" and control == "bbr" else None


@dataclass(eq=False, repr=False)
class SharedPathWatch:
    """Takes samples of the streams; says once what they do to others."""

    name: str
    _lossy_us: int = 0
    _is_said: bool = False

    def add(self, columns: Columns) -> str | None:
        """A line for people, the first time that losses last."""
        rows = zip(
            *(columns[one] for one in ("end", "start_us", "end_us", "packets", "lost_packets",
                                       "bytes")),
            strict=True,
        )  # fmt: skip
        own = [row for row in rows if row[0] == 0]
        packets, lost = sum(row[3] for row in own), sum(row[4] for row in own)
        if self._is_said or packets <= 0:
            return None
        span_us = max(row[2] for row in own) - min(row[1] for row in own)
        share = lost / packets
        self._lossy_us = self._lossy_us + span_us if share > LOSS else 0
        if self._lossy_us < 1e6 * SECONDS:
            return None
        self._is_said = True
        rate = rate_human(8e6 * sum(row[5] for row in own) / max(1, span_us))
        return (
            f"{100 * share:.1f} % of the packets are lost at {rate}: if others share this path,"
            f" they lose as well, and {self.name} does not give way; use it on dedicated paths, or"
            " --transport tcp with --yield or --max-harm"
        )
