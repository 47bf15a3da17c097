"""Lines of a file that grows, to any number of listeners, as server-sent events.

An event's id is the offset behind its line: who comes back with `Last-Event-ID` goes on there,
after a restart of the service too. One task per file looks whether it has grown, however many
listen; what it read last is kept, so that listeners who are up to date read nothing themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

LOOK_EACH_S = 0.25
ALIVE_EACH_S = 15.0
"""A comment keeps proxies from closing a connection on which nothing is said."""

WAIT_S = 2.0
"""A listener for whom nothing came looks so often whether anything will."""

MOST_BYTES = 256 << 10
"""Read at once by a listener that lags behind."""

MOST_LISTENERS = 2000


@dataclass(frozen=True)
class Chunk:
    """Whole lines of a file, from an offset to another."""

    start: int
    end: int
    lines: tuple[bytes, ...]


class Feed:
    """One file, followed for as long as anybody listens."""

    def __init__(self, path: Path) -> None:
        """Nobody listens yet."""
        self.path = path
        self.listeners = 0
        self._grown = asyncio.Condition()
        self._latest = Chunk(0, 0, ())
        self._task: asyncio.Task[None] | None = None

    async def lines(self, offset: int) -> AsyncIterator[tuple[int, bytes] | None]:
        """Lines behind `offset` with the offset behind each; None whenever nothing came."""
        self.listeners += 1
        if self._task is None:
            self._latest = Chunk(size := _size(self.path), size, ())
            self._task = asyncio.create_task(self._follow())
        try:
            while True:
                chunk = self._chunk(offset)
                for line in chunk.lines:
                    offset += len(line)
                    yield offset, line
                if not chunk.lines:
                    yield None
                    await self._wait(offset)
        finally:
            self.listeners -= 1
            if not self.listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    def _chunk(self, offset: int) -> Chunk:
        latest = self._latest
        return latest if latest.start == offset and latest.lines else read_lines(self.path, offset)

    async def _wait(self, offset: int) -> None:
        async with self._grown:
            if self._latest.end <= offset:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._grown.wait(), WAIT_S)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EACH_S)
            if _size(self.path) > self._latest.end:
                chunk = read_lines(self.path, self._latest.end)
                if chunk.lines:
                    self._latest = chunk
                    async with self._grown:
                        self._grown.notify_all()


class Feeds:
    """The feeds of a service, by file."""

    def __init__(self) -> None:
        """None yet."""
        self._feeds: dict[Path, Feed] = {}

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return sum(feed.listeners for feed in self._feeds.values())

    async def events(
        self, path: Path, offset: int, has_ended: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """Server-sent events of a file, until `has_ended` and everything was sent."""
        feed = self._feeds.setdefault(path, Feed(path))
        lines = feed.lines(offset)
        said_s = time.monotonic()
        try:
            yield b": farline\n\n"
            async for found in lines:
                if found is not None:
                    said_s = time.monotonic()
                    yield framed(*found)
                elif has_ended():
                    yield b"event: close\ndata: {}\n\n"
                    return
                elif time.monotonic() - said_s > ALIVE_EACH_S:
                    said_s = time.monotonic()
                    yield b": alive\n\n"
        finally:
            await lines.aclose()  # type: ignore[attr-defined]
            if not feed.listeners:
                self._feeds.pop(path, None)


def framed(offset: int, line: bytes) -> bytes:
    """A line of events as a server-sent event; one that is damaged says so."""
    try:
        document = json.loads(line)
        name, data = str(document["event"]), json.dumps(document["data"])
    except (ValueError, KeyError, TypeError):
        name, data = "notice", '{"kind": "notice", "text": "an event is damaged"}'
    return f"id: {offset}\nevent: {name}\ndata: {data}\n\n".encode()


def read_lines(path: Path, offset: int) -> Chunk:
    """Whole lines from an offset on, up to `MOST_BYTES`; a single longer one is read whole."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            text = file.read(MOST_BYTES)
            if b"\n" not in text:
                text += file.readline()
    except FileNotFoundError:
        return Chunk(offset, offset, ())
    whole = text[: text.rfind(b"\n") + 1]
    return Chunk(offset, offset + len(whole), tuple(whole.splitlines(keepends=True)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
