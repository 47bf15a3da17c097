"""What surrounds every request: a limit of its body, headers of its answer, a count."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from farline.errors import LimitError
from farline.portal import problems
from farline.portal.figures import Figures

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 1 << 20
"""Bytes of a request's body."""


class BodyTooLongError(LimitError):
    """More was sent than any request needs."""


class Around:
    """Middleware. Answers pass through it as they come: those to listeners never end."""

    def __init__(self, app: ASGIApp, figures: Figures, headers: Mapping[str, str]) -> None:
        self._app, self._figures = app, figures
        self._headers = [(n.lower().encode(), v.encode()) for n, v in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun_s, status, length = time.monotonic(), 0, 0

        async def limited() -> Message:
            nonlocal length
            message = await receive()
            length += len(message.get("body", b""))
            if length > MOST_BODY:
                raise BodyTooLongError(f"the body is longer than {MOST_BODY} bytes")
            return message

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                self._add_headers(message)
            await send(message)

        async def unless_too_long(message: Message) -> None:
            # What was made of half a body is no answer.
            if length <= MOST_BODY:
                await counted(message)

        try:
            with suppress(BodyTooLongError):
                await self._app(scope, limited, unless_too_long)
            if length > MOST_BODY and not status:
                error = BodyTooLongError(f"the body is longer than {MOST_BODY} bytes")
                await problems.answer(error, 413)(scope, receive, counted)
        finally:
            self._figures.count(status or 500, time.monotonic() - begun_s)

    def _add_headers(self, message: dict[str, Any] | Message) -> None:
        there = {name.lower() for name, _ in message["headers"]}
        more = [one for one in self._headers if one[0] not in there]
        message["headers"] = [*message["headers"], *more]
