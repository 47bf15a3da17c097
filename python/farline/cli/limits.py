"""Options that bound what the holder of a ticket may do, and the types of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.spec import units

if TYPE_CHECKING:
    from farline.spec._types import Limits

_Command = TypeVar("_Command", bound=Callable[..., Any])


class UnitType(click.ParamType[float]):
    """A text with a unit, read by one of the parsers in `spec.units`."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        """Shown as `name` in help texts."""
        self.name = name
        self._parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, in the unit of the parser."""
        if not isinstance(value, str):
            return float(value)
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_MOST_LIFETIME_DAYS = 3650


def _parse_lifetime(text: str) -> float:
    seconds = units.parse_duration(text)
    if not 1 <= seconds <= _MOST_LIFETIME_DAYS * 86_400:
        raise ValueError(f"{text} is out of range; allowed: 1s to {_MOST_LIFETIME_DAYS}d")
    return seconds


RATE = UnitType("rate", units.parse_rate)
SECONDS = UnitType("time", units.parse_duration)
SIZE = UnitType("size", units.parse_size)
LIFETIME = UnitType("time", _parse_lifetime)
"""How long a ticket is valid."""


def limit_options(command: _Command) -> _Command:
    """`--limit-rate`, `--limit-time`, `--limit-bytes`, `--limit-streams`, `--limit-sessions`."""
    for decorate in (
        click.option(
            "--limit-sessions",
            type=click.IntRange(1, 1_000_000),
            metavar="N",
            help="Limit the ticket to N sessions in all.",
        ),
        click.option(
            "--limit-streams",
            type=click.IntRange(1, 256),
            metavar="N",
            help="Limit each session of the ticket to N data streams at once.",
        ),
        click.option(
            "--limit-bytes", type=SIZE, help="Limit each session of the ticket to this many bytes."
        ),
        click.option(
            "--limit-time", type=SECONDS, help="Limit each session of the ticket to this time."
        ),
        click.option(
            "--limit-rate", type=RATE, help="Limit each session of the ticket to this rate."
        ),
    ):
        command = decorate(command)
    return command


def limits_from(options: dict[str, Any]) -> Limits:
    """The limits that were stated; what is absent is without bound."""
    limits: Limits = {}
    if (rate_bps := options["limit_rate"]) is not None:
        limits["rate_bps"] = int(rate_bps)
    if (duration_s := options["limit_time"]) is not None:
        limits["duration_s"] = duration_s
    if (total_bytes := options["limit_bytes"]) is not None:
        limits["total_bytes"] = int(total_bytes)
    if (streams := options["limit_streams"]) is not None:
        limits["streams"] = streams
    if (sessions := options["limit_sessions"]) is not None:
        limits["sessions"] = sessions
    return limits
