"""Options of an emulated link as values: what can be said of it, and what can change in use.

One table for the command line (`testbed up --rtt`, `profile --link-loss`), for plans (`[path]`) and
for what a store keeps. A link's options are named by their field: `rate_bps`, `loss`,
`capacity_bdp`. `rtt_s` stands beside them: half of it is `delay_s` of each direction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from farline.errors import UsageError
from farline.spec._link_options import LINK_OPTIONS as _ROWS
from farline.spec.table import Option


@dataclass(frozen=True)
class LinkOption(Option):
    """One option of a link; `change` is its name in a `PipeChange`, None if it cannot change."""

    change: str | None

    @property
    def key(self) -> str:
        """Its name in plans, columns and calls: `loss`, `rate_bps`, `capacity_bdp`."""
        return self.change or self.name


_DELAY = LinkOption(**next(row for row in _ROWS if row["path"] == "delay_s"))
RTT = replace(
    _DELAY,
    path="rtt_s",
    flags=("--rtt",),
    maximum=2 * (_DELAY.maximum or 0),
    default=None,
    help="Set the round-trip time of the link, half of it each way.",
    change="rtt_s",
)

LINK_OPTIONS: tuple[LinkOption, ...] = (RTT, *(LinkOption(**row) for row in _ROWS))
"""Every option of a link, `rtt_s` first."""

LINK_OPTION_BY_KEY: Mapping[str, LinkOption] = {option.key: option for option in LINK_OPTIONS}

VARIABLE_KEYS: tuple[str, ...] = tuple(
    option.key for option in LINK_OPTIONS if option.change is not None
)
"""What may differ from run to run on one testbed."""

CAPACITY_KEYS = ("capacity_bytes", "capacity_bdp")
"""Ways to say in a change how much a queue holds; whoever says one ends the other."""

_ONE_THING = (("rtt_s", "delay_s", "delay"), (*CAPACITY_KEYS, "queue"))
"""Pairs of keys that mean one thing, and its name."""


def find_link(topology: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
    """A link of a topology by its name, or its main link.

    Raises:
        ValueError: when there is none of that name.
    """
    wanted = name or topology.get("main_link")
    links: list[dict[str, Any]] = list(topology["links"])
    for link in links:
        if wanted in (None, link["name"]):
            return link
    known = ", ".join(link["name"] for link in links[:8])
    raise ValueError(f"{wanted!r} is not a link of {topology['name']}: its links are {known}")


def find_links(topology: Mapping[str, Any], name: str | None = None) -> list[dict[str, Any]]:
    """The link that is named; or the main link and its copies, as a repeated entry makes them.

    Copies differ by nothing but a number in the names of the link and of its ends.

    Raises:
        ValueError: when there is no link of that name.
    """
    main = find_link(topology, name)
    if name is not None:
        return [main]
    return [link for link in topology["links"] if _shape(link) == _shape(main)]


def _shape(link: Mapping[str, Any]) -> tuple[object, ...]:
    """What copies of one entry have in common."""
    names = tuple(re.sub(r"\d+", "#", str(link[key])) for key in ("name", "a", "b"))
    return names, link["forward"], link.get("reverse")


def half(rtt_s: float) -> float:
    """Half of a time, exact in decimals: `0.0118` gives `0.0059`."""
    return float(Decimal(repr(float(rtt_s))) / 2)


def check_together(values: Mapping[str, Any]) -> None:
    """Refuses two values for one thing.

    Raises:
        ValueError: with the two keys.
    """
    for one, other, thing in _ONE_THING:
        if one in values and other in values:
            raise ValueError(f"{one} and {other} both set the {thing}: use one")


def change_of(values: Mapping[str, Any], link: Mapping[str, Any]) -> dict[str, Any]:
    """A `PipeChange` that gives `link` the `values`, by the keys in `VARIABLE_KEYS`.

    Raises:
        ValueError: when a value cannot change in use, two say one thing, or a queue is to hold
            products of a rate that the link has not.
    """
    fixed = [key for key in values if key not in VARIABLE_KEYS]
    if fixed:
        raise ValueError(
            f"{fixed[0]} cannot change while the testbed is up; these can: "
            f"{', '.join(VARIABLE_KEYS)}"
        )
    check_together(values)
    change = {key: value for key, value in values.items() if key != "rtt_s"}
    if "rtt_s" in values:
        change["delay_s"] = half(values["rtt_s"])
    if "capacity_bdp" in change and not _has_rate(change, link):
        raise ValueError("capacity_bdp: the link has no rate, so no bandwidth-delay product")
    return change


def _has_rate(change: Mapping[str, Any], link: Mapping[str, Any]) -> bool:
    if "rate_bps" in change:
        return bool(change["rate_bps"])
    return any((link.get(way) or {}).get("rate_bps") for way in ("forward", "reverse"))


def across(topology: Mapping[str, Any], host: str, link: str | None) -> str:
    """The first host that cannot be reached from `host` without the link; else the last one.

    Raises:
        UsageError: when there is no such link.
    """
    try:
        main = find_link(topology, link)["name"]
    except ValueError as error:
        raise UsageError(f"--link: {error}") from None
    others = [one for one in topology["links"] if one["name"] != main]
    near, grown = {host}, True
    while grown:
        joined = {
            end for one in others if near & {one["a"], one["b"]} for end in (one["a"], one["b"])
        }
        grown = not joined <= near
        near |= joined
    names = [one["name"] for one in topology["hosts"] if one["name"] != host]
    return next((str(name) for name in names if name not in near), str(names[-1]))
