"""The order by which one host has another copy to a third: a JSON document, and its reading there.

The host that is reached over ssh gets it on its standard input (`remote_to_remote` sends it), makes
a job of it, and tells that job's events in the lines of `event_lines`.
"""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from typing import TYPE_CHECKING, Any

from farline.copying.adjusting import request_of
from farline.copying.event_lines import ADJUST, ORDER_SCHEMA
from farline.copying.host_names import HostNames
from farline.copying.job import CopyJob
from farline.copying.locations import SCHEME, Endpoints, Host, StandingServer, ThisHost
from farline.copying.request import CopyRequest, NameList
from farline.copying.session import DirectSessions
from farline.errors import FarlineError, ProtocolError, UsageError
from farline.spec.json_text import read_object
from farline.spec.path_text import from_path_text, to_path_text
from farline.tools.native import Target

if TYPE_CHECKING:
    from farline.copying.live_tuning import MakeTuner
    from farline.spec._types import AdjustRequest
    from farline.tools import StopQuestion
    from farline.tools.events import Steps


@dataclass
class OrderedConnector:
    """Leads to the server that the order names."""

    target: Target
    called: HostNames

    def open(self, should_stop: StopQuestion) -> Steps[Target]:
        """That server."""
        yield from ()
        return self.target

    def path(self, path: str) -> str:
        """As ordered."""
        return path

    def names(self) -> HostNames:
        """As whoever ordered the copy calls the two hosts."""
        return self.called

    def buffers(self) -> None:
        """Not known here."""

    def advice(self, error: FarlineError) -> str:
        """That the two hosts do not see each other, which the one who ordered may not know."""
        return f" (from {socket.gethostname()})" if error.fault == "path" else ""

    def close(self) -> None:
        """Nothing was started."""


def read_order(line: str) -> dict[str, Any]:
    """The order in a line.

    Raises:
        ProtocolError: when it is none, or one of another version.
    """
    try:
        order = read_object(line)
        if order["schema"] != ORDER_SCHEMA:
            raise ValueError(f"version {order['schema']}, expected {ORDER_SCHEMA}")
    except (ValueError, KeyError, TypeError) as error:
        raise ProtocolError(f"--order: no order on standard input ({error})") from None
    return order


def read_change(line: str) -> AdjustRequest | None:
    """The change of the copy under way that a line asks for; None for a line that is an order."""
    # An order may be long, and is read but once.
    if not line.startswith(f'{{"{ADJUST}"'):
        return None
    try:
        asked = read_object(line)[ADJUST]
        return request_of(
            asked.get("streams"), asked.get("concurrency"), asked.get("total_rate_bps")
        )
    except (ValueError, TypeError, AttributeError, UsageError):
        return None


def ordered_job(order: Mapping[str, Any], make_tuner: MakeTuner | None = None) -> CopyJob:
    """The job that carries the order out, on the host that got it. It keeps no record here.

    `make_tuner` gives what tunes its streams, where that is ordered.

    Raises:
        ProtocolError: when the order makes no sense.
    """
    try:
        sessions = _ordered_sessions(order)
        request = CopyRequest(
            _endpoints(sessions),
            dict(order["document"]),
            retry_for_s=float(order["retry_for_s"]),
            retries=order["retries"],
            keep=False,
            tune="auto" if order.get("tunes") else "off",
            tell_files=True,
            name_list=_name_list(order),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"--order: {error} is missing or invalid") from None
    # A part of a copy is changed with the whole of it, by the host that ordered it.
    is_part = bool(order.get("more"))
    return CopyJob(request, sessions, make_tuner=make_tuner, listens=not is_part)


def _name_list(order: Mapping[str, Any]) -> NameList | None:
    """The names to copy, where only some of the source's are ordered."""
    if (names := order.get("list")) is None:
        return None
    return NameList(io.BytesIO(b"\0".join(from_path_text(str(name)) for name in names)), True)


def _ordered_sessions(order: Mapping[str, Any]) -> DirectSessions:
    there = order["target"]
    target = Target(there["host"], there["port"], there.get("ticket"), there.get("pin"))
    sources = _expanded(order["sources"]) if order["pushes"] else tuple(order["sources"])
    return DirectSessions(
        OrderedConnector(target, _names(order)), sources, order["destination"], order["pushes"],
        most_streams=order.get("most_streams"),
    )  # fmt: skip


def _endpoints(sessions: DirectSessions) -> Endpoints:
    here: Host = ThisHost()
    there: Host = StandingServer(f"{SCHEME}{sessions.connector.names().other}")
    source, target = (here, there) if sessions.pushes else (there, here)
    return Endpoints(source, sessions.sources, target, sessions.destination)


def _names(order: Mapping[str, Any]) -> HostNames:
    """None are in an order of the first farlines."""
    names = order.get("names")
    if isinstance(names, dict):
        return HostNames(str(names["other"]), str(names["own"]))
    return HostNames()


def _expanded(sources: Sequence[str]) -> tuple[str, ...]:
    """Patterns among sources of this host that another one named; what fits nothing is itself."""
    found: list[str] = []
    for source in sources:
        path = from_path_text(source)
        # Not by pathlib: names may be any bytes.
        names = [] if os.path.lexists(path) else sorted(glob(path))  # noqa: PTH207
        found += [to_path_text(name) for name in names] or [source]
    return tuple(found)
