"""Options of an emulated link as values: what can be said of it, and what can change in use.

One table for the command line (`testbed up --rtt`, `profile --link-loss`), for plans (`[path]`) and
for what a store keeps. A link's options are named by their field: `rate_bps`, `loss`,
`capacity_bdp`. `rtt_s` stands beside them: half of it is `delay_s` of each direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from farline.spec import units
from farline.spec._link_options import LINK_OPTIONS as _ROWS
from farline.spec.table import Option
from farline.spec.values import read_sweep, read_value


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
    help="Round-trip time of the link: half of it each way.",
    change="rtt_s",
)

LINK_OPTIONS: tuple[LinkOption, ...] = (RTT, *(LinkOption(**row) for row in _ROWS))
"""Every option of a link, `rtt_s` first."""

LINK_OPTION_BY_KEY: Mapping[str, LinkOption] = {option.key: option for option in LINK_OPTIONS}

VARIABLE_KEYS: tuple[str, ...] = (
    *(option.key for option in LINK_OPTIONS if option.change is not None),
    "capacity_bdp",
)
"""What may differ from run to run on one testbed; `capacity_bdp` by way of `capacity_bytes`."""


def read_link_value(option: LinkOption, raw: object, bare_ms: bool = False) -> object:
    """A value of `option`; with `bare_ms`, a time without a unit is in milliseconds.

    Raises:
        ValueError: when `raw` cannot be read or is out of range.
    """
    return read_value(option, _with_unit(option, raw) if bare_ms else raw)


def read_link_sweep(option: LinkOption, text: str, bare_ms: bool = False) -> tuple[object, ...]:
    """Alternatives of `option`: `0,11.8,366` or a range; see `read_link_value`.

    Raises:
        ValueError: when one cannot be read or is out of range.
    """
    if not (bare_ms and option.kind == "seconds"):
        return read_sweep(option, text)

    def parse(item: str) -> float:
        return units.parse_duration(_milliseconds(item))

    values = tuple(units.parse_sweep(text, parse))
    for value in values:
        read_value(option, value)
    return values


def _with_unit(option: LinkOption, raw: object) -> object:
    bare = isinstance(raw, str) and option.kind == "seconds"
    return _milliseconds(str(raw)) if bare else raw


def _milliseconds(text: str) -> str:
    return f"{text.strip()}ms" if text.strip()[-1:].isdigit() else text


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
    raise ValueError(f"{wanted!r} is no link of {topology['name']}: it has {known}")


def half(rtt_s: float) -> float:
    """Half of a time, exact in decimals: `0.0118` gives `0.0059`."""
    return float(Decimal(repr(float(rtt_s))) / 2)


def change_of(values: Mapping[str, Any], link: Mapping[str, Any]) -> dict[str, Any]:
    """A `PipeChange` that gives `link` the `values`, by the keys in `VARIABLE_KEYS`.

    `capacity_bdp` becomes bytes by the rate and the delays that `values` leave the link with.

    Raises:
        ValueError: when a value cannot change in use, or a depth is asked for without a rate.
    """
    fixed = [key for key in values if key not in VARIABLE_KEYS]
    if fixed:
        raise ValueError(f"{fixed[0]} cannot change in use; allowed are {', '.join(VARIABLE_KEYS)}")
    change = {key: value for key, value in values.items() if key not in ("rtt_s", "capacity_bdp")}
    if "rtt_s" in values:
        change["delay_s"] = half(values["rtt_s"])
    if "capacity_bdp" in values:
        change["capacity_bytes"] = _capacity_bytes(values["capacity_bdp"], change, link)
    return change


def _capacity_bytes(depth: float, change: Mapping[str, Any], link: Mapping[str, Any]) -> int:
    pipe = link["forward"]
    rate_bps = change.get("rate_bps", pipe.get("rate_bps")) or 0
    if not rate_bps:
        raise ValueError("capacity_bdp: the link has no rate, so no bandwidth-delay product")
    back = link.get("reverse") or pipe
    delays_s = [change.get("delay_s", way.get("delay_s") or 0.0) for way in (pipe, back)]
    return max(1, round(float(depth * sum(delays_s) * rate_bps / 8)))
