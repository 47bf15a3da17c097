"""One link from its table: `rtt_s`, `both`, `forward` and `reverse` into two directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farline.spec.links import RTT, half
from farline.spec.topology import fields_of, read_document, read_field
from farline.spec.values import read_value

CAPACITIES = ("capacity_bytes", "capacity_packets", "capacity_bdp")
"""Ways to state how long a queue is: who states one states it anew."""

_DIRECTIONS = ("both", "forward", "reverse")
_ALLOWED = ("name", "a", "b", "rtt_s", *_DIRECTIONS)


def read_link(raw: Mapping[str, Any], defaults: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A `LinkSpec` from its table and what all links have in common.

    Raises:
        ValueError: when something in it is unknown or not allowed; the line says where.
    """
    common = _read(defaults, "defaults.link")
    own = _read(raw, place)
    parts = {name: merged(common.get(name, {}), own.get(name, {})) for name in _DIRECTIONS}
    link: dict[str, Any] = {name: own[name] for name in ("name", "a", "b") if name in own}
    same = not parts["reverse"] and not (parts["both"] and parts["forward"])
    link["forward"] = merged(parts["both"], parts["forward"])
    if not same:
        link["reverse"] = merged(parts["both"], parts["reverse"])
    _put_rtt(link, own, common, place)
    return link


def _read_rtt(raw: object, place: str) -> float:
    try:
        rtt_s: Any = read_value(RTT, raw)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    return float(rtt_s)


def _put_rtt(
    link: dict[str, Any], own: Mapping[str, Any], common: Mapping[str, Any], place: str
) -> None:
    """Half the round trip to each direction, unless the link itself states a delay."""
    delay_stated = any("delay_s" in own.get(name, {}) for name in _DIRECTIONS)
    if delay_stated and "rtt_s" in own:
        raise ValueError(f"{place}: rtt_s and delay_s cannot be combined: both set the delay")
    rtt_s = own.get("rtt_s", common.get("rtt_s"))
    if rtt_s is not None and not delay_stated:
        set_rtt(link, rtt_s)


def _read(raw: object, place: str) -> dict[str, Any]:
    """The table's values with their units read."""
    if not isinstance(raw, Mapping):
        raise ValueError(f"{place}: {raw!r} is not a table")
    read: dict[str, Any] = {}
    for name, value in raw.items():
        here = f"{place}.{name}"
        if name not in _ALLOWED:
            allowed = ", ".join(_ALLOWED)
            raise ValueError(f"{here}: unknown field; allowed: {allowed}")
        if name in _DIRECTIONS:
            read[name] = read_document("PipeSpec", value, here)
        elif name == "rtt_s":
            read[name] = _read_rtt(value, here)
        else:
            read[name] = read_field(fields_of("LinkSpec")[name], value, here)
    return read


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with the fields of `above` instead of its own, tables in it alike.

    A queue's capacity is one statement: any of its fields in `above` ends all of them in `below`.
    """
    kept = dict(below)
    if any(name in above for name in CAPACITIES):
        kept = {name: value for name, value in kept.items() if name not in CAPACITIES}
    for name, value in above.items():
        both_tables = isinstance(value, Mapping) and isinstance(kept.get(name), Mapping)
        kept[name] = merged(kept[name], value) if both_tables else value
    return kept


def set_rtt(link: dict[str, Any], rtt_s: float) -> None:
    """Gives both directions half of `rtt_s`."""
    for name in ("forward", "reverse"):
        if name in link:
            link[name]["delay_s"] = half(rtt_s)
