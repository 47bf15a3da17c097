"""Figures of a server for Prometheus: `farline serve --metrics HOST:PORT`.

Counts what the server's events tell, and answers `GET /metrics` in Prometheus' text format, version
0.0.4. Sessions count when they end, with their bytes and files; names of files, users, tickets and
peers are not told. Nothing is asked of who reads: give it an address that only they can reach.
"""

from __future__ import annotations

import errno
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, SHUT_RDWR, socket
from types import TracebackType
from typing import Any

from farline.errors import SystemFailure, UsageError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_REQUEST_S = 2.0
"""Who sends nothing for so long is hung up on."""
_MOST_READERS = 16
"""Requests that are served at once; of more, the oldest of the address with the most gives way."""
_REST_S = 0.1
"""Pause after the system had no connection to give."""
_MOST_ACTIVE = 100_000
"""Sessions that are remembered as begun: the end of some may have been lost."""

_HELP = {
    "farline_sessions_total": ("counter", "Sessions that ended."),
    "farline_sessions_active": ("gauge", "Active sessions."),
    "farline_session_seconds_total": ("counter", "Duration of sessions in seconds."),
    "farline_sent_bytes_total": ("counter", "Payload bytes sent in sessions that ended."),
    "farline_received_bytes_total": ("counter", "Payload bytes received in sessions that ended."),
    "farline_last_session_bits_per_second": ("gauge", "Payload rate of the last session."),
    "farline_files_total": ("counter", "Files and folders handled by copies."),
    "farline_file_bytes_total": ("counter", "Bytes in the files handled by copies."),
    "farline_names_changed_total": ("counter", "Names made, changed or removed on request."),
    "farline_refusals_total": ("counter", "Connections without a session, by reason."),
    "farline_troubles_total": ("counter", "Errors of the server."),
    "farline_events_lost_total": ("counter", "Events that were lost before they were counted."),
}  # fmt: skip
_ALWAYS = ("farline_sessions_active", "farline_troubles_total", "farline_events_lost_total")

_Labels = tuple[tuple[str, str], ...]


class Figures:
    """Counts of one server. Safe to ask while events are taken."""

    def __init__(self) -> None:
        """Nothing happened yet."""
        self._lock = threading.Lock()
        self._values: dict[str, dict[_Labels, float]] = {name: {} for name in _HELP}
        self._values.update({name: {(): 0.0} for name in _ALWAYS})
        self._active: dict[str, Mapping[str, Any]] = {}

    def take(self, kind: str, event: Mapping[str, Any]) -> None:
        """Counts one event of a server."""
        with self._lock:
            if kind in ("session_started", "names_started"):
                self._begin(event)
            elif kind == "names_ended":
                self._end_names(event)
            elif kind == "session_ended":
                self._end(event)
            elif kind == "refused":
                self._add("farline_refusals_total", 1, reason=event["error"]["kind"])
            elif kind == "refused_many":
                for reason, count in event["reasons"].items():
                    self._add("farline_refusals_total", count, reason=reason)
            elif kind == "trouble":
                self._add("farline_troubles_total", 1)
            elif kind == "events_lost":
                self._add("farline_events_lost_total", event["count"])
            self._values["farline_sessions_active"][()] = float(len(self._active))

    def text(self) -> str:
        """All figures in Prometheus' text format."""
        with self._lock:
            lines = [line for name in _HELP for line in self._lines(name)]
        return "\n".join(lines) + "\n"

    def _begin(self, event: Mapping[str, Any]) -> None:
        self._active[str(event["session"])] = event
        while len(self._active) > _MOST_ACTIVE:
            del self._active[next(iter(self._active))]

    def _end(self, event: Mapping[str, Any]) -> None:
        begun = self._active.pop(str(event["session"]), {})
        kind = "copy" if event.get("copy") or begun.get("copy") else "profile"
        transport = str(begun.get("transport", "unknown"))
        seconds = float(event["session_s"])
        self._add(
            "farline_sessions_total", 1, kind=kind, transport=transport, status=event["status"]
        )
        self._add("farline_session_seconds_total", seconds, kind=kind)
        for way in ("sent", "received"):
            moved = float(event[f"bytes_{way}"])
            self._add(f"farline_{way}_bytes_total", moved, kind=kind)
            rate = self._values["farline_last_session_bits_per_second"]
            rate[_labels({"kind": kind, "way": way})] = 8 * moved / seconds if seconds > 0 else 0.0
        for outcome, tally in (event.get("copy") or {}).items():
            self._add("farline_files_total", tally["files"], outcome=outcome)
            self._add("farline_file_bytes_total", tally["bytes"], outcome=outcome)

    def _end_names(self, event: Mapping[str, Any]) -> None:
        self._active.pop(str(event["session"]), None)
        labels = {"kind": "names", "transport": "none", "status": event["status"]}
        self._add("farline_sessions_total", 1, **labels)
        self._add("farline_session_seconds_total", float(event["session_s"]), kind="names")
        self._add("farline_sent_bytes_total", float(event["bytes_sent"]), kind="names")
        self._add("farline_names_changed_total", event["changes"])

    def _add(self, name: str, amount: float, **labels: str) -> None:
        values, key = self._values[name], _labels(labels)
        values[key] = values.get(key, 0.0) + amount

    def _lines(self, name: str) -> Iterable[str]:
        kind, meaning = _HELP[name]
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} {kind}"
        for labels, value in sorted(self._values[name].items()):
            told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
            yield f"{name}{{{told}}} {value:.17g}" if told else f"{name} {value:.17g}"


def _labels(labels: Mapping[str, str]) -> _Labels:
    return tuple(sorted(labels.items()))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class MetricsServer:
    """Answers Prometheus from a thread of its own while the block runs."""

    def __init__(self, address: str) -> None:
        """Listens on `address`, a `HOST:PORT` with brackets around an IPv6 address.

        Raises:
            UsageError: when it is no such text.
            SystemFailure: when the port cannot be had.
        """
        host, port = _parsed(address)
        self._figures = Figures()
        try:
            self._server = _server(host, port, self._figures)
        except OSError as error:
            raise SystemFailure(f"--metrics {address}: {_why(error)}") from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="fl-metrics", daemon=True
        )

    @property
    def address(self) -> str:
        """Where it listens, `HOST:PORT`."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def take(self, kind: str, event: Mapping[str, Any]) -> None:
        """Counts one event of the server."""
        self._figures.take(kind, event)

    def __enter__(self) -> MetricsServer:
        """Begins to answer."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hangs up."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _why(error: OSError) -> str:
    """Why nobody can listen there, and what to do about it."""
    if error.errno == errno.EADDRINUSE:
        return "another program uses this port; stop that program, or choose another port"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this host does not have this address; ip addr lists those it has"
    return error.strerror or str(error)


def _parsed(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    plain = bare == host and ":" in host
    if not colon or not host or plain or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"--metrics {address!r}: write HOST:PORT, such as 127.0.0.1:9470 or [::1]:9470"
        )
    return bare, int(port)


class _Readers:
    """The connections that are being served: a silent one keeps nobody out."""

    def __init__(self) -> None:
        """There is none."""
        self._lock = threading.Lock()
        self._open: list[tuple[str, socket]] = []

    def enter(self, address: str, connection: socket) -> None:
        """Adds one; with too many, one is hung up on."""
        with self._lock:
            self._open.append((address, connection))
            if len(self._open) <= _MOST_READERS:
                return
            counts = Counter(one for one, _ in self._open)
            busiest = max(counts.values())
            index = next(i for i, (one, _) in enumerate(self._open) if counts[one] == busiest)
            _, oldest = self._open.pop(index)
            # Its thread finds the end, and closes it.
            with suppress(OSError):
                oldest.shutdown(SHUT_RDWR)

    def leave(self, connection: socket) -> None:
        """Takes one out, if it is there."""
        with self._lock:
            self._open = [one for one in self._open if one[1] is not connection]


def _server(host: str, port: int, figures: Figures) -> HTTPServer:
    readers = _Readers()

    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_S
        server_version = "farline"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND, explain="the metrics are at /metrics")
                return
            body = figures.text().encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Says nothing: the server's own lines are for people."""

    class Listener(ThreadingHTTPServer):
        address_family = AF_INET6 if ":" in host else AF_INET
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

        def get_request(self) -> tuple[Any, Any]:
            try:
                return super().get_request()
            except OSError:
                # The process can open no more files, say: without a rest this would only spin.
                time.sleep(_REST_S)
                raise

        def process_request(self, request: Any, client_address: Any) -> None:
            readers.enter(client_address[0], request)
            super().process_request(request, client_address)

        def shutdown_request(self, request: Any) -> None:
            readers.leave(request)
            super().shutdown_request(request)

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A reader that hangs up is its own business."""

    return Listener((host, port), Handler)
