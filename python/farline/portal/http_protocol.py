"""HTTP/1.1 as strangers send it: httptools parses, and what it would let through is refused here.

httptools has no limits of its own: it puts a head that does not end together anew with each part
that comes, so fifty megabytes of one kept everybody waiting for a quarter of a minute. And where
two readers may see the length, the end or the target of a request differently, it is refused and
the connection closed: behind a proxy no part of one request is taken for another.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from farline.portal.around import MOST_BODY

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

MOST_HEAD = 32 << 10
"""Bytes of a request's first line and fields, and of what is in a body without being of it."""

MOST_FIELDS = 100

MOST_RECEIVED = MOST_HEAD + 2 * MOST_BODY
"""Bytes of a request that are read, though the answer was given before."""

MOST_WAITING = 8
"""Requests of one connection that wait for the answer of one before them."""

REQUEST_S = 30.0
"""How long a request may take to come; the first of a connection, from its beginning."""

TEXTS = {
    400: b"This request is not valid HTTP/1.1.",
    408: b"This request took too long to arrive.",
    413: b"This request is too long.",
    431: b"The head of this request is too long.",
    505: b"This service speaks HTTP/1.0 and HTTP/1.1.",
}


class RefusedError(Exception):
    """Stops the parser."""


class Protocol(HttpToolsProtocol):
    """One connection of a client; its requests are answered in the order in which they came."""

    _active: RequestResponseCycle | None = None
    """What is being answered, or was last."""
    _is_whole = _in_body = False
    """Whether nothing of a request is missing; whether the head has come and its body has not."""
    _is_deaf = False
    """Whether what comes is not read any more."""
    _received = _head = _body = _fields = 0
    """Bytes since the last whole request, of its head and of its body; fields of its head."""
    _status = 400
    """Of the answer, if the parser stops."""
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for a request."""
        super().connection_made(transport)
        self._patience = self.loop.call_later(REQUEST_S, self._is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no longer."""
        self._is_deaf = True
        self._has_come()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses what has come."""
        if self._is_deaf:
            self.flow.pause_reading()
            return
        self._received += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Answered like any other, and the last: what is behind it speaks another protocol.
            self._is_deaf = True
            self._has_come()
        except httptools.HttpParserError:
            self._refuse(self._status)
        else:
            self._judge()

    def _judge(self) -> None:
        """Refuses what is too long as far as it has come; else waits for the rest."""
        if not self._in_body:
            if self._received > MOST_HEAD:
                self._refuse(431)
        elif self._received > min(MOST_HEAD + 2 * self._body, MOST_RECEIVED):
            self._refuse(413)
        if self._is_whole:
            self._has_come()
        elif self._patience is None and not self._is_deaf:
            self._patience = self.loop.call_later(REQUEST_S, self._is_late)

    # The parser calls these; what they raise stops it.

    def on_message_begin(self) -> None:
        """A request begins."""
        if len(self.pipeline) >= MOST_WAITING:
            raise RefusedError
        self._unset_keepalive_if_required()
        self._is_whole, self._status = False, 400
        self._head = self._body = self._fields = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._head += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head. Those behind a body are no part of what was asked, and dropped."""
        self._head += len(name) + len(value) + len(b": \r\n")
        self._fields += 1
        if self._head > MOST_HEAD or self._fields > MOST_FIELDS:
            self._status = 431
            raise RefusedError
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head has come: it is answered, unless something is wrong with it."""
        self._unset_keepalive_if_required()
        version = self.parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._status = 505
            raise RefusedError
        has_body = _checked_body(self.headers, version)
        is_last = self.parser.should_upgrade()
        if (is_last and has_body) or not _is_target(self.url):
            raise RefusedError
        super().on_headers_complete()
        self._in_body = True
        if is_last:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request has come."""
        self._is_whole, self._in_body, self._received = True, False, 0
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._active = cycle
        super()._start_asgi_task(cycle, app)

    def _has_come(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _is_late(self) -> None:
        if self._received:
            self._refuse(408)
        else:
            self.transport.close()

    def _refuse(self, status: int) -> None:
        """Reads no more. What came before is answered first; then the connection ends."""
        self._is_deaf = True
        self._has_come()
        last: RequestResponseCycle | None = self.cycle
        if self._in_body and last is self._active and last is not None:
            is_free = not last.response_started
            last.disconnected = True
            last.message_event.set()
        else:
            if self._in_body:
                self.pipeline.popleft()
                last = self.pipeline[0][0] if self.pipeline else self._active
            is_free = last is None or last.response_complete
            if last is not None and not is_free:
                last.keep_alive = False
                return
        if is_free:
            self._answer(status)
        self.transport.close()

    def _answer(self, status: int) -> None:
        text = TEXTS[status]
        fields = [*self.server_state.default_headers, (b"content-type", b"text/plain")]
        fields += [(b"content-length", b"%d" % len(text)), (b"connection", b"close")]
        lines = [STATUS_LINE[status], *(b"%s: %s\r\n" % field for field in fields), b"\r\n", text]
        self.transport.write(b"".join(lines))


def _is_target(url: bytes) -> bool:
    """Whether it is a path as this service has them; what names another host is not."""
    return (url.startswith(b"/") or url == b"*") and b"#" not in url and url.isascii()


def _checked_body(fields: list[tuple[bytes, bytes]], version: str) -> bool:
    """Whether a body follows, of which everybody sees the same end; for one host.

    Raises:
        RefusedError: where that is not certain.
    """
    hosts, lengths, codings = (
        [value for name, value in fields if name == wanted]
        for wanted in (b"host", b"content-length", b"transfer-encoding")
    )
    if len(hosts) > 1 or (not hosts and version == "1.1") or len(lengths) + len(codings) > 1:
        raise RefusedError
    if codings and (version == "1.0" or codings[0].lower() != b"chunked"):
        raise RefusedError
    if lengths and not lengths[0].isdigit():
        raise RefusedError
    return bool(codings) or bool(lengths and int(lengths[0]))
