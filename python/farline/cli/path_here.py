"""The emulated path of a process inside a testbed's host: what it is, and how it is changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farline.campaign.path_watch import PathWatch
    from farline.testbed import Testbed

INSIDE = "FARLINE_TESTBED"
"""Set inside a testbed's hosts, to its name."""

SETTLE_S = 0.05
"""Beyond the longer of two round trips, so long does a link rest after a change."""


def inside_testbed() -> bool:
    """Whether this process runs on a testbed's host."""
    return bool(os.environ.get(INSIDE))


def path_watch() -> PathWatch | None:
    """What watches the emulated path here; None outside of testbeds.

    Raises:
        FarlineError: when the testbed is gone.
    """
    if not inside_testbed():
        return None
    from farline.cli.bed_watch import BedWatch
    from farline.testbed import current_bed

    here = current_bed()
    return None if here is None else BedWatch(here)


@dataclass
class LinkSetter:
    """Sets the link that a campaign varies, before each run; changes only what differs."""

    bed: Testbed
    link: str | None = None
    sleep: Callable[[float], None] = time.sleep
    _before: Mapping[str, Any] = field(default_factory=dict, init=False)
    _values: Mapping[str, Any] = field(default_factory=dict, init=False)

    def apply(self, values: Mapping[str, Any]) -> None:
        """Gives the link `values` and lets it settle: packets on the way keep their old delay.

        Raises:
            SpecError: when the link cannot have them.
        """
        from farline.errors import SpecError
        from farline.spec.links import change_of, find_link

        if not values or values == self._values:
            return
        try:
            link = find_link(self.bed.topology(), self.link)
            change = change_of(values, link)
        except ValueError as error:
            raise SpecError(f"[path] {error}") from None
        if not self._before:
            self._before = link
        self.bed.change(link["name"], **change)
        self._values = dict(values)
        self.sleep(SETTLE_S + max(_rtt_s(link), 2 * change.get("delay_s", 0.0)))

    def restore(self) -> None:
        """Gives each direction what it had before the first change, as far as that was changed."""
        if not self._before:
            return
        from farline.spec.links import change_of

        names = change_of(self._values, self._before)
        forward = self._before["forward"]
        for direction, pipe in (
            ("forward", forward),
            ("reverse", self._before.get("reverse") or forward),
        ):
            held = _held(pipe, names)
            if held:
                self.bed.change(self._before["name"], direction=direction, **held)
        self._before, self._values = {}, {}


def _held(pipe: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """What a direction has under the names of changes; absent means none, but for capacities."""
    known = {
        "rate_bps": pipe.get("rate_bps") or 0,
        "delay_s": pipe.get("delay_s") or 0.0,
        "loss": (pipe.get("loss") or {}).get("random") or 0.0,
        "capacity_bytes": (pipe.get("queue") or {}).get("capacity_bytes"),
        **{name: pipe.get(name) or 0.0 for name in ("corrupt", "duplicate", "reorder")},
    }
    return {name: known[name] for name in names if known[name] is not None}


def _rtt_s(link: Mapping[str, Any]) -> float:
    forward = link["forward"]
    back = link.get("reverse") or forward
    return float((forward.get("delay_s") or 0.0) + (back.get("delay_s") or 0.0))


def link_setter(link: str | None) -> LinkSetter:
    """The setter of a link of the testbed around this process.

    Raises:
        UsageError: outside of testbeds.
    """
    from farline.errors import UsageError
    from farline.testbed import current_bed

    here = current_bed()
    if here is None:
        raise UsageError("[path]: only a run on a testbed's host can have its path changed")
    return LinkSetter(here.bed, link)
