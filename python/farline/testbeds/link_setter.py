"""Sets a link of a testbed from run to run of a campaign, and puts it back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from farline.errors import SpecError, UsageError
from farline.spec.link_change import link_changes, round_trip_s, touched_names
from farline.spec.links import find_link, find_links
from farline.testbeds.bed import Testbed
from farline.testbeds.record import current_bed

SETTLE_S = 0.05
"""Beyond the longer of two round trips, so long does a link rest after a change."""


@dataclass
class LinkSetter:
    """Sets the link that a campaign varies, before each run: a named one, or the main link.

    `keys` are all that any setting of the campaign states: what a setting does not state itself
    is as it was before. The main link's copies are set with it.
    """

    bed: Testbed
    link: str | None = None
    keys: tuple[str, ...] = ()
    sleep: Callable[[float], None] = time.sleep
    _before: tuple[Mapping[str, Any], ...] = field(default=(), init=False)
    _touched: frozenset[str] = field(default=frozenset(), init=False)
    _values: Mapping[str, Any] | None = field(default=None, init=False)

    def apply(self, values: Mapping[str, Any]) -> None:
        """Gives the link `values` and lets it settle: packets on the way keep their old delay.

        Raises:
            SpecError: when the link cannot have them.
            SystemFailure: when the machine has no room for them.
        """
        if values == self._values or not (values or self.keys or self._touched):
            return
        # After a failure half-way nobody knows what the link has.
        self._values = None
        try:
            links = self._links()
            self._before = self._before or tuple(links)
            self._touched |= touched_names((*self.keys, *values))
            self._change(values)
        except ValueError as error:
            raise SpecError(f"[path] {error}") from None
        self._values = dict(values)
        after = self._links()
        self.sleep(SETTLE_S + max(round_trip_s(link) for link in (*links, *after)))

    def restore(self) -> None:
        """Gives the link what it had before the first change, as far as that was changed."""
        self._change({})
        self._before, self._touched, self._values = (), frozenset(), None

    def _links(self) -> list[dict[str, Any]]:
        topology = self.bed.topology()
        if not self._before:
            return find_links(topology, self.link)
        return [find_link(topology, link["name"]) for link in self._before]

    def _change(self, values: Mapping[str, Any]) -> None:
        wanted = [
            (link["name"], link_changes(link, values, self._touched)) for link in self._before
        ]
        for name, changes in wanted:
            for direction, change in changes.items():
                self.bed.change(name, direction=direction, **change)


def link_setter(link: str | None, keys: tuple[str, ...] = ()) -> LinkSetter:
    """The setter of a link of the testbed around this process; see `LinkSetter`.

    Raises:
        UsageError: outside of testbeds.
    """
    here = current_bed()
    if here is None:
        raise UsageError("[path]: only runs on a testbed host can change the path")
    return LinkSetter(here.bed, link, keys)
