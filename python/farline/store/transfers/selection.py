"""Which transfers are meant: checked once, here, and turned into predicates by `predicates`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farline.errors import SpecError
from farline.spec.transfers import MODALITIES, TRANSFER_COLUMNS

TEXT_COLUMNS = tuple(name for name, kind in TRANSFER_COLUMNS.items() if kind == "string")
WHERE_COLUMNS = tuple(
    name for name, kind in TRANSFER_COLUMNS.items() if kind not in ("timestamp", "double")
)
"""Columns that have values to name; figures and times have limits instead."""
SITE_KEYS = ("from_site", "to_site", "site_pair")
KEYS = (*WHERE_COLUMNS, *SITE_KEYS, "period")
"""What cells can be told apart by."""


@dataclass(frozen=True)
class Selection:
    """Transfers that fit everything given; all of them if nothing is.

    `sites`: both ends at one of them. `at_site`: at least one end there. `pairs`: between the two
    of a pair, either way. `since` (inclusive) and `until` (exclusive) are about `started_at`; a
    time without a zone is UTC. `where` gives the allowed values of columns, None among them is
    "not known".

    `min_rate_bps` is about complete transfers: failed ones have no rate, and are counted beside as
    before. Limits of bytes and durations leave out what does not state them.

    Raises:
        SpecError: for an unknown column, a value of the wrong kind, or limits that exclude each
            other: one line with what is allowed.
    """

    modality: str | None = None
    sites: tuple[str, ...] = ()
    at_site: str | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    tools: tuple[str, ...] = ()
    where: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None
    min_rate_bps: float | None = None
    max_rate_bps: float | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    min_duration_s: float | None = None
    max_duration_s: float | None = None

    def __post_init__(self) -> None:
        """Checks every part, and that each kind of limit leaves something."""
        if self.modality is not None and self.modality not in MODALITIES:
            raise SpecError(f"modality {self.modality!r} is not one of {', '.join(MODALITIES)}")
        for name, values in self.where.items():
            _check_values(name, values)
        for name in ("since", "until"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, _utc(moment))
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise SpecError(f"since {self.since} is not before until {self.until}")
        for what in ("rate_bps", "bytes", "duration_s"):
            self._check_limits(what)

    @property
    def named_sites(self) -> tuple[str, ...]:
        """Every site that is mentioned, once."""
        alone = () if self.at_site is None else (self.at_site,)
        pairs = (site for pair in self.pairs for site in pair)
        return tuple(dict.fromkeys((*self.sites, *alone, *pairs)))

    def _check_limits(self, what: str) -> None:
        low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
        for limit in (low, high):
            if limit is not None and not 0 <= limit < float("inf"):
                raise SpecError(f"{what}: limit {limit!r} is not a number of 0 or more")
        if low is not None and high is not None and low > high:
            raise SpecError(f"{what}: the smallest, {low:g}, is above the largest, {high:g}")


EVERYTHING = Selection()


def checked_keys(by: Sequence[str], period_s: float | None) -> tuple[str, ...]:
    """What cells are told apart by, each once.

    Raises:
        SpecError: for a column that cells cannot have, or a period without its length.
    """
    for name in by:
        if name not in KEYS:
            raise SpecError(f"by {name!r}: no such key; allowed: {', '.join(KEYS)}")
    if "period" in by and not (period_s is not None and 0 < period_s < float("inf")):
        raise SpecError("by 'period': give the length of a period, in seconds above 0")
    return tuple(dict.fromkeys(by))


def checked_column(name: str) -> str:
    """A column of a transfer.

    Raises:
        SpecError: when there is no such column.
    """
    if name not in TRANSFER_COLUMNS:
        allowed = ", ".join(TRANSFER_COLUMNS)
        raise SpecError(f"column {name!r}: no such column; allowed: {allowed}")
    return name


def _check_values(name: str, values: Sequence[object]) -> None:
    if name not in WHERE_COLUMNS:
        raise SpecError(
            f"where {name!r}: no such column with values; allowed: {', '.join(WHERE_COLUMNS)}"
        )
    if isinstance(values, str) or not values:
        raise SpecError(f"where {name}: {values!r} is not a list of values")
    kind = TRANSFER_COLUMNS[name]
    python = {"string": str, "bool": bool}.get(kind, int)
    for value in values:
        wrong = not isinstance(value, python) or (python is int and isinstance(value, bool))
        if value is not None and wrong:
            raise SpecError(f"where {name}: {value!r} is not of type {kind}")


def _utc(moment: datetime.datetime) -> datetime.datetime:
    """A moment in UTC; without a zone it is meant so already."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=datetime.UTC)
    return moment.astimezone(datetime.UTC)
