"""All items, paper by paper, in the order of their figures."""

from __future__ import annotations

from collections.abc import Sequence

from farline.errors import UsageError
from farline.reproduce.item import Item
from farline.reproduce.items import analytics, analytics_logs, end_to_end, rbudp, sharing, tpg

ITEMS: Sequence[Item] = (
    *tpg.ITEMS,
    *end_to_end.ITEMS,
    *sharing.ITEMS,
    *rbudp.ITEMS,
    *analytics.ITEMS,
    *analytics_logs.ITEMS,
)


def items_named(names: Sequence[str]) -> list[Item]:
    """Items by their names, in the order of the papers.

    Raises:
        UsageError: for a name that is not an item's; says which may have been meant.
    """
    from farline.spec.near import did_you_mean

    known = {item.id: item for item in ITEMS}
    for name in names:
        if name not in known:
            meant = did_you_mean(name, known) or "farline reproduce --list lists them"
            raise UsageError(f"no such item: {name}; {meant}")
    wanted = set(names)
    return [item for item in ITEMS if item.id in wanted]
