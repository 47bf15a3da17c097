"""Points in time as people write them, and as text. The present is an argument.

```text
36h, +36h, in 36h, 1d 12h, 2w       from now on
18:00                               today
2026-12-01 18:00[:30]               in this host's time zone; a T may stand for the blank
2026-12-01T18:00+01:00, ...Z        with an offset
2026-12-01 18:00 Europe/Zurich      in a zone of the IANA database
```
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from farline.spec.units import parse_duration

FARTHEST = timedelta(days=366)
"""A deadline that is farther away is a slip of the keyboard."""

MOST_SPAN_S = 10 * FARTHEST.total_seconds()
"""A span that is no slip of the keyboard either way, and that the calendar has."""

FIRST_S, LAST_S = -62_135_510_400.0, 253_402_214_400.0
"""POSIX times that have a date in every zone: a day within the years 1 to 9999."""

_CLOCK_PARTS = ("hour", "minute", "second")
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?"
_TIME = re.compile(
    rf"(?:(?P<day>\d{{4}}-\d{{2}}-\d{{2}})(?:[Tt ]\s*{_CLOCK})?|{_CLOCK.replace('<', '<only_')})"
    r"\s*(?P<zone>.*)",
    re.ASCII,
)
_SPAN = re.compile(r"(?:in\s|\+)?\s*((?:[\d.]+\s*[a-z]+\s*)+)", re.ASCII)
_PART = re.compile(r"([\d.]+)\s*([a-z]+)", re.ASCII)
_WEEK_D = 7
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})?", re.ASCII)
_EXAMPLE = "'2026-12-01 18:00', '2026-12-01T18:00+01:00', '2026-12-01 18:00 Europe/Zurich' or 36h"


def parse_time(text: str, now: datetime) -> datetime:
    """The point in time that `text` names, with its zone; `now` has this host's zone.

    Raises:
        ValueError: when it names none, none that exists, or two.
    """
    words = text.strip()
    if (span := _SPAN.fullmatch(words)) is not None:
        return now + _span(span[1], text)
    match = _TIME.fullmatch(words)
    if match is None:
        raise ValueError(f"{text!r} is not a time: write {_EXAMPLE}")
    prefix = "only_" if match["day"] is None else ""
    if match[f"{prefix}hour"] is None:
        raise ValueError(f"{text!r} has no time of day: write {match['day']} 18:00")
    zone = _zone(match["zone"].strip(), now, text)
    hour, minute, second = (int(match[f"{prefix}{name}"] or 0) for name in _CLOCK_PARTS)
    try:
        day = date.fromisoformat(match["day"] or now.astimezone(zone).date().isoformat())
        plain = datetime.combine(day, time(hour, minute, second))
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: {error}") from None
    return _placed(plain, zone, text)


def _span(words: str, text: str) -> timedelta:
    """A span of one or several parts, such as `1d 12h`; w is a week.

    Raises:
        ValueError: for a part that is none, and for more than the calendar has.
    """
    total_s = 0.0
    for number, unit in _PART.findall(words):
        is_weeks = unit in ("w", "week", "weeks")
        try:
            span_s = parse_duration(number + ("d" if is_weeks else unit))
        except ValueError:
            raise ValueError(f"{text!r} is not a time: write {_EXAMPLE}") from None
        total_s += span_s * (_WEEK_D if is_weeks else 1)
    if total_s > MOST_SPAN_S:
        raise ValueError(f"{text!r} is more than a year away")
    return timedelta(seconds=total_s)


def _zone(text: str, now: datetime, whole: str) -> tzinfo | None:
    """A zone; None is this host's."""
    if not text:
        # A fixed offset would be wrong on the other side of a change of the clocks.
        return now.tzinfo if isinstance(now.tzinfo, ZoneInfo) else None
    if text.upper() in ("Z", "UTC"):
        return UTC
    if offset := _OFFSET.fullmatch(text):
        minutes = 60 * int(offset["hours"]) + int(offset["minutes"] or 0)
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if offset["sign"] == "+" else -minutes))
    try:
        return ZoneInfo(text)
    except (ValueError, OSError, KeyError):
        raise ValueError(
            f"{whole!r}: {text!r} is not a time zone: write one such as Europe/Zurich or +01:00"
        ) from None


def _placed(plain: datetime, zone: tzinfo | None, text: str) -> datetime:
    """The time in its zone, if there is one such time and no second one."""
    first, second = (
        plain.replace(tzinfo=zone, fold=fold) if zone else plain.replace(fold=fold).astimezone()
        for fold in (0, 1)
    )
    before, after = first.utcoffset(), second.utcoffset()
    if before == after or before is None or after is None:
        return first
    if before < after:
        raise ValueError(
            f"{text!r} does not exist: clocks are set forward past it; write another time"
        )
    raise ValueError(
        f"{text!r} occurs twice, as clocks are set back: write it with an offset, such as "
        f"{first.isoformat(timespec='minutes')} or {second.isoformat(timespec='minutes')}"
    )


def checked_future(at: datetime, now: datetime, what: str) -> datetime:
    """The time itself.

    Raises:
        ValueError: when it is past, or more than a year away.
    """
    if at < now:
        raise ValueError(f"{what} {time_text(at)} is in the past: it is {time_text(now)} now")
    if at - now > FARTHEST:
        raise ValueError(f"{what} {time_text(at)} is more than a year away")
    return at


def time_text(at: datetime, with_seconds: bool = False) -> str:
    """`Tue 2026-12-01 18:00 CET`."""
    clock = "%H:%M:%S" if with_seconds else "%H:%M"
    return at.strftime(f"%a %Y-%m-%d {clock} %Z").strip()


def rfc3339(at: datetime) -> str:
    """`2026-12-01T18:00:00+01:00`, to the second."""
    return at.isoformat(timespec="seconds")
