"""What a link is changed to for one setting of a campaign: its own values over the link's first.

A setting says some of what can change; whatever else the campaign touches anywhere goes back to
what the link had before the campaign. So no value of one run is left for the next, and the changes
for no values at all put the link back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from farline.spec.links import CAPACITY_KEYS, LINK_OPTION_BY_KEY, change_of

DIRECTIONS = ("forward", "reverse")

_FLOOR_S = 0.010
_FLOOR_BYTES = 150_000
"""A queue of no stated capacity holds one bandwidth-delay product, at least so many seconds of the
rate and so many bytes (crates/emulator/src/model/capacity.rs)."""


def touched_names(keys: Iterable[str]) -> frozenset[str]:
    """Fields of a `PipeChange` that values by these keys state."""
    names = {"delay_s" if key == "rtt_s" else key for key in keys}
    # A queue has one capacity: to state one way of it touches the other.
    return frozenset(names | set(CAPACITY_KEYS) if names & set(CAPACITY_KEYS) else names)


def link_changes(
    link: Mapping[str, Any], values: Mapping[str, Any], names: frozenset[str]
) -> dict[str, dict[str, Any]]:
    """Per direction, the `PipeChange` that gives `values` and, of other `names`, what `link` has.

    One change for `both` where the two are the same.

    Raises:
        ValueError: as `spec.links.change_of`.
    """
    own = change_of(values, link) if values else {}
    ways = {direction: way(link, direction) for direction in DIRECTIONS}
    changes = {name: {**_held(pipe, names), **own} for name, pipe in ways.items()}
    if names & set(CAPACITY_KEYS) and not own.keys() & set(CAPACITY_KEYS):
        after = {name: {**pipe, **changes[name]} for name, pipe in ways.items()}
        rtt_s = sum(float(pipe.get("delay_s") or 0.0) for pipe in after.values())
        for name, pipe in after.items():
            changes[name].update(_capacity(pipe, rtt_s))
    forward, reverse = (changes[name] for name in DIRECTIONS)
    return {"both": forward} if forward == reverse else changes


def way(link: Mapping[str, Any], direction: str) -> Mapping[str, Any]:
    """A direction of a link; the way back is like the way there unless it is stated."""
    pipe: Mapping[str, Any] = link.get(direction) or link["forward"]
    return pipe


def round_trip_s(link: Mapping[str, Any]) -> float:
    """Round-trip time of a link."""
    return sum(float(way(link, name).get("delay_s") or 0.0) for name in DIRECTIONS)


def _held(pipe: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """What a direction has under the names of changes, capacities aside; absent means none."""
    known = {
        "rate_bps": pipe.get("rate_bps") or 0,
        "delay_s": pipe.get("delay_s") or 0.0,
        "loss": (pipe.get("loss") or {}).get("random") or 0.0,
        **{name: pipe.get(name) or 0.0 for name in ("corrupt", "duplicate", "reorder")},
    }
    return {name: value for name, value in known.items() if name in names}


def _capacity(pipe: Mapping[str, Any], rtt_s: float) -> dict[str, Any]:
    """The capacity that a queue states, or what it holds by default over this round trip."""
    queue = pipe.get("queue") or {}
    stated = {key: queue[key] for key in CAPACITY_KEYS if queue.get(key) is not None}
    if stated:
        return stated
    if queue.get("capacity_packets") is not None:
        return {"capacity_bytes": int(LINK_OPTION_BY_KEY["capacity_bytes"].maximum or 0)}
    product_bytes = (pipe.get("rate_bps") or 0) * rtt_s / 8
    if not product_bytes:
        # The model's own floors hold without a rate or a round trip.
        return {"capacity_bdp": 1.0}
    default_bytes = max(product_bytes * max(1.0, _FLOOR_S / rtt_s), _FLOOR_BYTES)
    products = default_bytes / product_bytes
    if products > (LINK_OPTION_BY_KEY["capacity_bdp"].maximum or 0):
        return {"capacity_bytes": round(default_bytes)}
    return {"capacity_bdp": products}


def same_but_for(
    one: Mapping[str, Any], other: Mapping[str, Any], links: Iterable[str], names: frozenset[str]
) -> bool:
    """Whether two topologies are equal, the changes by `names` to these links aside."""
    aside = frozenset(links)
    return bool(_bare(one, aside, names) == _bare(other, aside, names))


def _bare(topology: Mapping[str, Any], links: frozenset[str], names: frozenset[str]) -> Any:
    """A topology in which nothing is left of what `names` change on `links`."""
    whole = {key: value for key, value in topology.items() if key not in ("links", "main_link")}
    found = []
    for link in topology["links"]:
        ways = [_stated(way(link, direction)) for direction in DIRECTIONS]
        if link["name"] in links:
            ways = [_without(pipe, names) for pipe in ways]
        found.append((link["name"], link["a"], link["b"], ways))
    return _stated(whole), found


def _without(pipe: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    left = {name: value for name, value in pipe.items() if name not in names}
    loss = {k: v for k, v in left.pop("loss", {}).items() if k != "random" or "loss" not in names}
    queue = {k: v for k, v in left.pop("queue", {}).items() if k not in names}
    return {**left, "loss": loss, "queue": queue}


def _stated(value: Any) -> Any:
    """`value` without what is null, at any depth."""
    if isinstance(value, Mapping):
        return {key: _stated(item) for key, item in value.items() if item is not None}
    return [_stated(item) for item in value] if isinstance(value, list) else value
