"""The summary of a copy: data count, messages do not, with numpy or without."""

from __future__ import annotations

from typing import Any

from farline.profiles.copy_summary import light_summary
from farline.profiles.summary import summarise
from tests.support.runs import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    columns,
    run_record,
    steady_rows,
    stream,
)

COPY: dict[str, Any] = {"sources": ["a"], "destination": "b"}


def rows(streams: int, rtt_us: int, **more: int) -> list[dict[str, int]]:
    return [
        row
        for number in range(streams)
        for end, role in ((CLIENT, SENDER), (SERVER, RECEIVER))
        for row in steady_rows([1e9] * 8, end=end, role=role, stream=number,
                               **({"rtt_us": rtt_us} if role == SENDER else {}), **more)
    ]  # fmt: skip


def record(streams: int, counted: int) -> Any:
    ends = [
        stream(end, role, number)
        for number in range(streams)
        for end, role in ((CLIENT, SENDER), (SERVER, RECEIVER))
    ]
    spec = {"duration_s": None, "streams": counted, "copy": COPY}
    return run_record(*ends, spec=spec)


def test_messages_do_not_count() -> None:
    messages = [stream(CLIENT, SENDER, 2), stream(SERVER, RECEIVER, 2),
                stream(SERVER, SENDER, 3), stream(CLIENT, RECEIVER, 3)]  # fmt: skip
    plain, whole = record(2, 2), record(2, 2)
    whole["streams"] += messages
    samples = rows(2, 100)
    extra = samples + [dict(row, stream=2 + row["stream"], rtt_us=10**6) for row in rows(1, 1)]
    assert summarise(whole, columns(extra)) == summarise(plain, columns(samples))
    summary = summarise(whole, columns(extra))
    assert summary["reverse"] is None
    assert summary["forward"] is not None
    assert summary["forward"]["bytes"] == 2 * 10**9


def test_a_run_that_is_no_copy_keeps_all_its_streams() -> None:
    run = record(3, 2)
    run["spec"]["copy"] = None
    assert summarise(run, columns([]))["forward"]["bytes"] == 3 * 10**9  # type: ignore[index]


def test_the_light_summary_is_the_same() -> None:
    short = record(2, 2)
    samples = rows(2, 120)
    plain = {name: column.tolist() for name, column in columns(samples).items()}
    assert light_summary(short, plain) == summarise(short, columns(samples))
    assert light_summary(short, {}) == summarise(short, columns([]))
    short["client"] = None
    assert light_summary(short, plain) == summarise(short, columns(samples))
