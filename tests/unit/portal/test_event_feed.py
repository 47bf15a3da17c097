"""Events to many listeners: each hears all, once, in order, and a line is read and written once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from farline.errors import SystemFailure
from farline.portal import event_feed
from farline.portal.event_feed import ALIVE, CLOSE, HELLO, Feeds, framed

LISTENERS = 200


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at all the time."""
    monkeypatch.setattr(event_feed, "LOOK_EACH_S", 0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of events that is not there yet."""
    return tmp_path / "events.jsonl"


def add(file: Path, *numbers: int) -> None:
    """Adds a line for each number."""
    with file.open("a") as opened:
        for number in numbers:
            opened.write(json.dumps({"event": "progress", "data": {"bytes": number}}) + "\n")


def numbers(heard: bytes) -> list[int]:
    """The numbers that were heard."""
    parts = heard.decode().split("\n\n")
    return [json.loads(one.partition("data: ")[2])["bytes"] for one in parts if "id: " in one]


async def all_of(feeds: Feeds, file: Path, has_ended: Callable[[], bool], offset: int = 0) -> bytes:
    """What a listener hears until it is told that nothing more comes."""
    return b"".join([some async for some in feeds.events(file, offset, has_ended)])


async def until(is_so: Callable[[], bool]) -> None:
    """Lets others go on until something is so."""
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0)


def run(test: Coroutine[Any, Any, None]) -> None:
    """Runs a test's part that waits."""
    asyncio.run(test)


def test_each_of_many_hears_all_and_a_line_is_framed_once(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    asked: list[bool] = []

    def counted(offset: int, line: bytes) -> bytes:
        made.append(offset)
        return framed(offset, line)

    async def test() -> None:
        feeds, is_over = Feeds(), False

        def has_ended() -> bool:
            asked.append(is_over)
            return is_over

        ears = [asyncio.create_task(all_of(feeds, file, has_ended)) for _ in range(LISTENERS)]
        await until(lambda: feeds.listeners == LISTENERS)
        for number in range(5):
            add(file, number)
            await until(lambda: len(made) > number)  # noqa: B023
        is_over = True
        heard = await asyncio.gather(*ears)
        assert {tuple(numbers(one)) for one in heard} == {(0, 1, 2, 3, 4)}
        assert all(one.startswith(HELLO) and one.endswith(CLOSE) for one in heard)
        assert feeds.listeners == 0

    monkeypatch.setattr(event_feed, "framed", counted)
    monkeypatch.setattr(event_feed, "WAIT_S", 0.05)
    run(test())
    assert len(made) == 5 and len(set(made)) == 5
    assert len(asked) < LISTENERS, "whether it has ended is asked by the feed, not by listeners"


def test_a_listener_that_is_up_to_date_reads_no_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read_chunk = event_feed.read_chunk

    def counted(path: Path, offset: int) -> event_feed.Chunk:
        reads.append(offset)
        return read_chunk(path, offset)

    monkeypatch.setattr(event_feed, "read_chunk", counted)
    monkeypatch.setattr(event_feed, "LOOK_EACH_S", 0.001)

    async def test() -> None:
        feeds, heard = Feeds(), [0] * LISTENERS

        async def hear(number: int) -> None:
            async for some in feeds.events(file, 0, lambda: False):
                heard[number] += some.count(b"event: progress")

        add(file, 0)
        tasks = [asyncio.create_task(hear(number)) for number in range(LISTENERS)]
        await until(lambda: heard == [1] * LISTENERS)
        await asyncio.sleep(0.05)
        reads.clear()
        for number in range(1, 6):
            add(file, number)
            await until(lambda: heard == [number + 1] * LISTENERS)  # noqa: B023
        assert len(reads) < 20
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(test())


def test_a_slow_listener_misses_nothing(file: Path) -> None:
    async def test() -> None:
        feeds = Feeds()
        slow = feeds.events(file, 0, lambda: False)
        quick = feeds.events(file, 0, lambda: False)
        assert await anext(slow) == await anext(quick) == HELLO
        heard = b""
        for number in range(3 * event_feed.MOST_CHUNKS):
            add(file, number)
            heard += await anext(quick)
        assert numbers(heard) == list(range(3 * event_feed.MOST_CHUNKS))
        late = await anext(slow)
        assert numbers(late) == numbers(heard)
        await slow.aclose()
        await quick.aclose()
        assert feeds.listeners == 0

    run(test())


def test_what_was_written_before_the_end_is_heard_before_the_close(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line comes between a look that found nothing and the question whether it has ended."""

    async def test() -> None:
        asked = 0

        def has_ended() -> bool:
            nonlocal asked
            asked += 1
            if asked == 2:
                add(file, 2)
            return asked >= 2

        add(file, 1)
        heard = await all_of(Feeds(), file, has_ended)
        assert numbers(heard) == [1, 2] and heard.endswith(CLOSE)

    monkeypatch.setattr(event_feed, "WAIT_S", 0.0)
    run(test())


def test_silence_is_filled_with_comments(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "ALIVE_EACH_S", 0.0)

    async def test() -> None:
        events = Feeds().events(file, 0, lambda: False)
        assert [await anext(events) for _ in range(3)] == [HELLO, ALIVE, ALIVE]
        await events.aclose()

    run(test())


def test_an_offset_behind_the_end_does_not_keep_others_from_hearing(file: Path) -> None:
    async def test() -> None:
        feeds = Feeds()
        beyond, other = (feeds.events(file, at, lambda: False) for at in (10**9, 0))
        assert await anext(beyond) == HELLO
        waits = asyncio.ensure_future(anext(beyond))
        await asyncio.sleep(0)
        assert await anext(other) == HELLO
        hears = asyncio.ensure_future(anext(other))
        await asyncio.sleep(0)
        add(file, 7)
        async with asyncio.timeout(20):
            assert numbers(await hears) == [7]
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        await beyond.aclose()
        await other.aclose()

    run(test())


def test_a_failure_is_told_and_the_next_listener_has_it_tried_again(file: Path) -> None:
    async def test() -> None:
        fails = True

        def has_ended() -> bool:
            if fails:
                raise SystemFailure("the database cannot be read")
            return True

        feeds = Feeds()
        with pytest.raises(SystemFailure, match="database"):
            await all_of(feeds, file, has_ended)
        fails = False
        assert (await all_of(feeds, file, has_ended)).endswith(CLOSE)

    run(test())
