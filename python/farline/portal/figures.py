"""Figures of a service for Prometheus, in its text format 0.0.4: counts and gauges, no names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_HELP = {
    "farline_portal_requests_total": ("counter", "Requests by status."),
    "farline_portal_request_seconds_total": ("counter", "Time spent on requests in seconds."),
    "farline_portal_transfers": ("gauge", "Transfers by state."),
    "farline_portal_reservations": ("gauge", "Reservations that are held, reserved or active."),
    "farline_portal_listeners": ("gauge", "Listeners to events."),
}

Gauges = Callable[[], Mapping[str, Mapping[str, float]]]


class Figures:
    """Counts requests; asks for the rest when it is read."""

    def __init__(self, gauges: Gauges) -> None:
        """`gauges` gives values by name and label text (`state="running"`, or nothing)."""
        self._gauges = gauges
        self._requests: Counter[int] = Counter()
        self._seconds = 0.0

    def count(self, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests[status] += 1
        self._seconds += seconds

    def text(self) -> str:
        """All figures."""
        requests = {f'status="{one}"': float(n) for one, n in sorted(self._requests.items())}
        values: dict[str, Mapping[str, float]] = {
            "farline_portal_requests_total": requests,
            "farline_portal_request_seconds_total": {"": round(self._seconds, 6)},
            **self._gauges(),
        }
        lines = []
        for name, (kind, about) in _HELP.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            for label, value in values[name].items():
                lines.append(f"{name}{{{label}}} {value:g}" if label else f"{name} {value:g}")
        return "\n".join(lines) + "\n"
