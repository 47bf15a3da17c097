"""Tickets in words."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from farline.cli.shown import shown
from farline.spec.option_help import time_text
from farline.spec.units import counted, rate_text, size_text

if TYPE_CHECKING:
    from farline.spec._types import Limits, Scope, TicketRecord

_SPANS = (("days", 86_400), ("hours", 3600), ("minutes", 60))


def ticket_lines(tickets: Sequence[TicketRecord]) -> Iterator[str]:
    """A line for each ticket: id, state, address, and what it allows."""
    now_s = time.time()
    rows = [
        (one["claims"]["id"], state_text(one, now_s), one["address"], allowed_text(one))
        for one in tickets
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(3)] if rows else []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield shown("  ".join([*cells, row[3]]))


def ticket_text(record: TicketRecord) -> Iterator[str]:
    """What a ticket says, in lines of a name and a value."""
    claims, now_s = record["claims"], time.time()
    values = {
        "id": claims["id"],
        "server": record["address"],
        "allows": _scope_text(claims["scope"]),
        "limits": limits_text(claims.get("limits", {})) or "none",
        "expires": _expiry_text(claims["expires_at_s"], now_s),
        "state": _state_line(record, now_s),
    }
    if (made := record.get("made_at_s")) is not None:
        values["made"] = _time_text(made)
    if claims.get("limits", {}).get("sessions") is not None and record["signed_here"]:
        values["used"] = counted(record["used_sessions"], "session")
    for name, value in values.items():
        yield shown(f"{name:<9}{value}")


def _state_line(record: TicketRecord, now_s: float) -> str:
    if record["signed_here"]:
        return state_text(record, now_s)
    if record["claims"]["expires_at_s"] <= now_s:
        return "expired"
    return "not checked: only the server that made it can tell whether it is genuine and valid"


def state_text(record: TicketRecord, now_s: float) -> str:
    """`valid for 7 hours`, `revoked`, `expired` or `used up`."""
    if record["revoked"]:
        return "revoked"
    claims = record["claims"]
    if claims["expires_at_s"] <= now_s:
        return "expired"
    most = claims.get("limits", {}).get("sessions")
    if most is not None and record["used_sessions"] >= most:
        return "used up"
    return f"valid for {_span(claims['expires_at_s'] - now_s)}"


def allowed_text(record: TicketRecord) -> str:
    """What a ticket allows, with its limits."""
    limits = limits_text(record["claims"].get("limits", {}))
    return _scope_text(record["claims"]["scope"]) + (f"; {limits}" if limits else "")


def _scope_text(scope: Scope) -> str:
    if scope["may"] == "read":
        return f"read files below {scope['root']}"
    if scope["may"] == "write":
        return f"write files below {scope['root']}"
    return "measure"


def limits_text(limits: Limits) -> str:
    """Limits in words; nothing where there are none."""
    words = []
    if (rate_bps := limits.get("rate_bps")) is not None:
        words.append(f"at most {rate_text(rate_bps)}")
    if (duration_s := limits.get("duration_s")) is not None:
        words.append(f"at most {time_text(duration_s)} per session")
    if (total_bytes := limits.get("total_bytes")) is not None:
        words.append(f"at most {size_text(total_bytes)} per session")
    if (streams := limits.get("streams")) is not None:
        words.append(f"at most {counted(streams, 'stream')} at once")
    if (sessions := limits.get("sessions")) is not None:
        words.append(f"at most {counted(sessions, 'session')}")
    return ", ".join(words)


def _time_text(unix_s: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(unix_s))
    except (OverflowError, OSError, ValueError):
        return "in the far future"


def _expiry_text(then_s: float, now_s: float) -> str:
    away = f"{_span(now_s - then_s)} ago" if then_s <= now_s else f"in {_span(then_s - now_s)}"
    return f"{_time_text(then_s)} ({away})"


def _span(seconds: float) -> str:
    """A time for people, in its largest unit."""
    for name, scale in _SPANS:
        if seconds >= 2 * scale:
            return f"{seconds / scale:.0f} {name}"
    return f"{max(0, seconds):.0f} seconds"
