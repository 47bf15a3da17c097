"""Topologies the cases use: two hosts with one link, and the dumbbell that comes with farline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from farline import testbeds
from farline.testbeds.topology import topology_from_document

if TYPE_CHECKING:
    from farline.spec._types import Topology

LINK = "wan"
SENDER, RECEIVER = "a", "b"


def pipe(rate_bps: float, rtt_s: float, **more: Any) -> dict[str, Any]:
    """One direction of a link; a rate of 0 is none."""
    limited = {"rate_bps": int(rate_bps)} if rate_bps else {}
    return {**limited, "delay_s": rtt_s / 2, **more}


def pair(
    forward: dict[str, Any],
    *,
    mode: str = "shared",
    interval_s: float = 0.1,
    cpus: Sequence[int] = (),
) -> Topology:
    """Hosts a and b and one link between them, alike in both directions but for loss.

    Both hosts' programs keep to `cpus`, if there are any, and the emulator to the others.
    """
    back = {name: value for name, value in forward.items() if name != "loss"}
    link = {"name": LINK, "a": SENDER, "b": RECEIVER, "forward": forward, "reverse": back}
    return topology_from_document(
        {
            "name": "bench",
            "seed": 1,
            "mode": mode,
            "interval_s": interval_s,
            "hosts": [{"name": name, "cpus": list(cpus)} for name in (SENDER, RECEIVER)],
            "links": [link],
        }
    )


def preset_rtts_s() -> list[float]:
    """Every round-trip time that a link of a preset has, each once, in order."""
    found = {rtt for name in testbeds.presets() for rtt in _link_rtts_s(testbeds.load(name))}
    return sorted(found)


def _link_rtts_s(topology: Topology) -> Iterator[float]:
    for link in topology["links"]:
        forward = link["forward"]
        back = link.get("reverse") or forward
        # Delays are whole nanoseconds.
        yield round(forward["delay_s"] + back["delay_s"], 9)
