"""Which runs are meant: the filters of `farline runs`, `export` and the plots."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farline.errors import SpecError

_AGE = re.compile(r"(\d+)\s*(m|min|h|d|w)")
_AGE_S = {"m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_STAMP = re.compile(r"-\d{8}T\d{6}-[0-9a-f]{4}$")
"""What a campaign's full name adds to the name that a user gave."""
STATUSES = ("complete", "partial", "failed")


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Runs that fit everything given; all of them if nothing is.

    `since` is a time in the form of `started_at`. `where` gives the allowed values of options by
    their dotted names, read in the options' own units; None among them is "left open".
    """

    campaign: str | None = None
    transport: str | None = None
    status: str | None = None
    since: str | None = None
    run_ids: tuple[str, ...] = ()
    where: Mapping[str, tuple[object, ...]] = field(default_factory=dict)


EVERYTHING = RunFilter()


def pick_campaign(known: Sequence[str], wanted: str) -> str | None:
    """The campaign that is meant: its full name, or the newest of those that were called so.

    `known` are full names, newest first. None where nothing fits.
    """
    if wanted in known:
        return wanted
    return next((name for name in known if _STAMP.sub("", name) == wanted), None)


def read_where(texts: Sequence[str]) -> dict[str, tuple[object, ...]]:
    """Filters from texts such as `streams=4`, `block_bytes=64K,1M` or `tcp.mss_bytes=none`.

    Figures of emulated paths too: `path.rtt_s=11.8` is in milliseconds, as on command lines.

    Raises:
        SpecError: for an unknown option or a value it cannot have.
    """
    where: dict[str, tuple[object, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            raise SpecError(f"--where {text!r}: write OPTION=VALUE, such as streams=4")
        where[name.strip()] = _values(name.strip(), values.strip())
    return where


def _values(name: str, text: str) -> tuple[object, ...]:
    from farline.spec.links import LINK_OPTION_BY_KEY
    from farline.spec.values import option_at, read_sweep
    from farline.store.columns import column_of, run_columns

    key = name.removeprefix("path.")
    try:
        if text == "none" and column_of(name) in run_columns() and not _is_word(name, text):
            return (None,)
        if key != name and name in run_columns() and key in LINK_OPTION_BY_KEY:
            return read_sweep(LINK_OPTION_BY_KEY[key], text)
        # The name ends in the unit of the column that numbers are compared with.
        return read_sweep(option_at(name), text, bare=True)
    except ValueError as error:
        raise SpecError(f"--where {name}: {error}") from None


def _is_word(name: str, text: str) -> bool:
    """Whether it is a word of the option, such as the cipher `none`."""
    from farline.spec.table import OPTIONS

    return any(option.path == name and text in option.choices for option in OPTIONS)


def read_since(text: str, now: datetime.datetime | None = None) -> str:
    """A time in the form of `started_at` from a date, a time (RFC 3339) or an age such as `2h`.

    Raises:
        SpecError: for anything else.
    """
    age = _AGE.fullmatch(text.strip())
    if age:
        now = now or datetime.datetime.now(datetime.UTC)
        moment = now - datetime.timedelta(seconds=int(age[1]) * _AGE_S[age[2]])
    else:
        try:
            moment = datetime.datetime.fromisoformat(text.strip())
        except ValueError:
            raise SpecError(
                f"--since {text!r}: write a date (2026-11-21), a time, or an age (30m, 2h, 7d)"
            ) from None
    # A time without a zone is the user's own.
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
