"""Lines of a file that grows, to any number of listeners, as server-sent events.

An event's id is the offset behind its line: who comes back with `Last-Event-ID` goes on there,
after a restart of the service too. One task per file looks whether it has grown and whether more
will come, and writes its lines as events once, however many listen. What a listener costs is one
wake-up and one write for all that came since; one that lags reads what it missed from the file.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

LOOK_EACH_S = 0.25
ALIVE_EACH_S = 15.0
"""A comment keeps proxies from closing a connection on which nothing is said."""

WAIT_S = 2.0
"""Where nothing came it is looked so often whether anything will."""

MOST_BYTES = 256 << 10
"""Read at once for a listener that lags behind."""

MOST_CHUNKS = 8
"""The newest that a feed keeps, for those that are a little behind or begin together."""

MOST_LISTENERS = 2000

HELLO, ALIVE, CLOSE = b": farline\n\n", b": alive\n\n", b"event: close\ndata: {}\n\n"


@dataclass(frozen=True)
class Chunk:
    """Whole lines of a file, from an offset to another, as server-sent events."""

    start: int
    end: int
    events: bytes


class Feed:
    """One file, followed for as long as anybody listens."""

    def __init__(self, path: Path, has_ended: Callable[[], bool]) -> None:
        """Nobody listens yet. `has_ended` says whether nothing more will be written."""
        self._path, self._has_ended = path, has_ended
        self.listeners = 0
        self._end = 0
        """Offset behind the last whole line that was seen."""
        self._is_over = False
        """Whether nothing comes behind it."""
        self._chunks: dict[int, Chunk] = {}
        self._waiting: list[asyncio.Future[bool]] = []
        self._task: asyncio.Task[None] | None = None

    async def events(self, offset: int) -> AsyncGenerator[bytes, None]:
        """Events behind `offset`, as many at once as there are, until everything was said.

        Raises:
            FarlineError: when it cannot be known whether anything will come.
        """
        self.listeners += 1
        try:
            yield HELLO
            while True:
                # What is followed was looked at just now: nobody looks again for himself.
                is_newest = self._task is not None and offset == self._end
                chunk = Chunk(offset, offset, b"") if is_newest else self._chunk(offset)
                if chunk.events:
                    offset = chunk.end
                    yield chunk.events
                elif self._is_over:
                    yield CLOSE
                    return
                elif not await self._news(offset):
                    yield ALIVE
        finally:
            self.listeners -= 1
            if not self.listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    def _chunk(self, offset: int) -> Chunk:
        """What comes behind an offset; nothing at the end."""
        found = self._chunks.get(offset)
        if found is None:
            found = read_chunk(self._path, offset)
            if found.events:
                self._chunks[offset] = found
                if len(self._chunks) > MOST_CHUNKS:
                    del self._chunks[next(iter(self._chunks))]
        return found

    async def _news(self, offset: int) -> bool:
        """Waits until something came, or nothing will; false when a comment is due."""
        if self._task is None:
            self._end = min(offset, _size(self._path))
            self._task = asyncio.create_task(self._follow())
            self._task.add_done_callback(self._failed)
        waits: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(waits)
        return await waits

    async def _follow(self) -> None:
        told_s = asked_s = time.monotonic()
        has_grown, has_ended = True, False
        while True:
            now_s = time.monotonic()
            if has_grown or now_s - asked_s >= WAIT_S:
                # Asked before the file is read: what ended it stands there by then.
                asked_s, has_ended = now_s, self._has_ended()
            has_grown = self._look()
            self._is_over = has_ended and not has_grown
            is_news = has_grown or self._is_over
            if is_news or now_s - told_s >= ALIVE_EACH_S:
                told_s = now_s
                for one in self._taken():
                    one.set_result(is_news)
            await asyncio.sleep(LOOK_EACH_S)

    def _look(self) -> bool:
        """Whether whole lines have come since the last look."""
        begin = self._end
        if _size(self._path) > begin:
            self._end = self._chunk(begin).end
        return self._end > begin

    def _failed(self, task: asyncio.Task[None]) -> None:
        """Tells all that wait why nothing comes any more; who listens next has it tried again."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._task = None
            for one in self._taken():
                one.set_exception(error)

    def _taken(self) -> list[asyncio.Future[bool]]:
        """Those that wait, who wait no longer."""
        waiting, self._waiting = self._waiting, []
        return [one for one in waiting if not one.done()]


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
    ) -> AsyncGenerator[bytes, None]:
        """Server-sent events of a file, until `has_ended` and everything was sent."""
        feed = self._feeds.setdefault(path, Feed(path, has_ended))
        events = feed.events(offset)
        try:
            async for some in events:
                yield some
        finally:
            await events.aclose()
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


def read_chunk(path: Path, offset: int) -> Chunk:
    """Whole lines from an offset on, up to `MOST_BYTES`; a single longer one is read whole."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            text = file.read(MOST_BYTES)
            if b"\n" not in text:
                text += file.readline()
    except FileNotFoundError:
        return Chunk(offset, offset, b"")
    end, events = offset, []
    for line in text[: text.rfind(b"\n") + 1].splitlines(keepends=True):
        end += len(line)
        events.append(framed(end, line))
    return Chunk(offset, end, b"".join(events))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
