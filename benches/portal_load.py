"""A service under load: estimates per second while hundreds listen to events, on one core.

Every estimate is another question (sizes differ), over paths with three hundred transfers each. The
listeners follow transfers that tell of their progress once a second. The database has ten thousand
transfers, and pages are asked for meanwhile. Ratios: estimates per second over 200, listeners that
heard everything over 500, 100 ms over the 99th percentile of an estimate's time, 200 ms over that
of a page's, one core over the CPU time that the service took a second: on a busy machine that one
tells whether the others could be reached. Service and clients have a core each; all is on loopback,
and ends by itself.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from _contract import FEWEST_PAIRS, finish, row
from _program import program

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from farline.portal.database import Database
from farline.portal.settings import Settings
from farline.portal.transfers import Order, Place, Transfers
from tests.support.portals import Process, made_store, made_transfers, portal_process, sites_text

ESTIMATES_PER_S, LISTENERS, MOST_MS, PAGE_MS = 200, 500, 100.0, 200.0
JOBS, FOLLOWED = 10_000, 10
ROUND_S = 4.0
CONNECTIONS = 8
PAIRS = (("ANL", "BNL"), ("CERN", "NERSC"), ("ORNL", "ANL"), ("NERSC", "CERN"))


@dataclass
class Heard:
    """What a listener got."""

    events: int = 0
    is_on: bool = False
    """Whether its stream has begun."""


async def request(
    port: int, token: str, method: str, path: str, body: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Sends one request; the answer is read by the caller."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head(token, method, path, body) + body)
    await writer.drain()
    return reader, writer


def head(token: str, method: str, path: str, body: bytes) -> bytes:
    """The head of a request."""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()


async def answered(reader: asyncio.StreamReader) -> int:
    """Reads one answer; its status."""
    top = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = next(
        int(line.split(":")[1]) for line in top.split("\r\n") if "content-length" in line.lower()
    )
    await reader.readexactly(length)
    return int(top.split()[1])


async def listen(port: int, token: str, name: str, heard: Heard) -> None:
    """Counts events until it is cancelled."""
    reader, writer = await request(port, token, "GET", f"/v1/transfers/{name}/events")
    with suppress(asyncio.CancelledError, ConnectionError):
        while line := await reader.readline():
            heard.is_on = True
            heard.events += line.startswith(b"event: progress")
    writer.close()


async def ask(port: int, token: str, number: int, until_s: float, times: list[float]) -> None:
    """One connection that asks, its share of the rate, whether or not the last answer was quick."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    step_s, next_s, count = CONNECTIONS / (1.1 * ESTIMATES_PER_S), time.monotonic(), 0
    while next_s < until_s and time.monotonic() < until_s + 1.0:
        await asyncio.sleep(max(0.0, next_s - time.monotonic()))
        source, destination = PAIRS[(number + count) % len(PAIRS)]
        size = 10**9 + 7_777_777 * (number + CONNECTIONS * count)
        asked = {"source": source, "destination": destination, "bytes": size, "files": 1 + count}
        body = json.dumps(asked).encode()
        writer.write(head(token, "POST", "/v1/estimates", body) + body)
        assert await answered(reader) == 200
        # From when it was due: one that waits behind another is late as well.
        times.append(time.monotonic() - next_s)
        next_s, count = next_s + step_s, count + 1
    writer.close()


async def log_in(port: int, token: str) -> str:
    """The cookie of a browser session."""
    form = f"token={token}".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    top = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(form)}\r\n"
    kind = "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    writer.write((top + kind).encode() + form)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    writer.close()
    return next(
        line.partition(": ")[2].partition(";")[0]
        for line in answer.split("\r\n") if line.lower().startswith("set-cookie")
    )  # fmt: skip


async def look(port: int, token: str, until_s: float, times: list[float]) -> None:
    """Opens the page Transfers and asks for the list of the newest, each once a second."""
    cookie = await log_in(port, token)
    page = f"GET /transfers HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n\r\n".encode()
    listed = head(token, "GET", "/v1/transfers?limit=100", b"")
    for asked in itertools.cycle((page, listed)):
        if (begun_s := time.monotonic()) >= until_s:
            break
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(asked)
        assert await answered(reader) == 200
        times.append(time.monotonic() - begun_s)
        writer.close()
        await asyncio.sleep(0.5)


async def tell(files: Sequence[Path], until_s: float) -> int:
    """Adds a line to every file once a second; how many each got."""
    count = 0
    while time.monotonic() < until_s - 1.0:
        line = json.dumps({"event": "progress", "data": {"bytes": count, "at": time.time()}})
        for path in files:
            with path.open("a") as file:
                file.write(line + "\n")
        count += 1
        await asyncio.sleep(1.0)
    return count


@dataclass
class Round:
    """What one round came to."""

    rate: float
    p99_ms: float
    page_ms: float
    heard: int
    cores: float
    """CPU seconds of the service in a second."""


async def one_round(
    pid: int, port: int, token: str, names: Sequence[str], files: Sequence[Path]
) -> Round:
    """All of it at once, for some seconds; the service is the process `pid`."""
    for path in files:
        path.write_text("")
    heard = [Heard() for _ in range(LISTENERS)]
    ears = [
        asyncio.create_task(listen(port, token, names[i % len(names)], heard[i]))
        for i in range(LISTENERS)
    ]
    while not all(one.is_on for one in heard):
        await asyncio.sleep(0.1)
    await asyncio.sleep(1.0)
    begun_s, used_s = time.monotonic(), cpu_s(pid)
    until_s, times, pages = begun_s + ROUND_S, [], []  # type: ignore[var-annotated]
    results = await asyncio.gather(
        tell(files, until_s), look(port, token, until_s, pages),
        *(ask(port, token, number, until_s, times) for number in range(CONNECTIONS)),
    )  # fmt: skip
    lasted_s, used_s = time.monotonic() - begun_s, cpu_s(pid) - used_s
    await asyncio.sleep(1.0)
    told = results[0]
    for task in ears:
        task.cancel()
    await asyncio.gather(*ears, return_exceptions=True)
    whole = sum(one.events == told for one in heard)
    return Round(
        len(times) / lasted_s, 1e3 * percentile(times), 1e3 * percentile(pages), whole,
        used_s / lasted_s,
    )  # fmt: skip


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has had: fields 14 and 15 of proc(5)'s stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(times: Sequence[float]) -> float:
    """The 99th; of fewer than a hundred, the longest."""
    if len(times) < 100:
        return max(times)
    return statistics.quantiles(times, n=100, method="inclusive")[98]


def fill(folder: Path) -> tuple[list[str], list[Path]]:
    """Ten thousand transfers that have been paused; names and event files of those followed."""
    state = folder / "home-state" / "farline" / "portal"
    settings = Settings(state, most_waiting=10**6)
    queue = Transfers(Database(settings.database), settings)
    order = Order(Place("src"), Place("dst"))
    first, _ = queue.create("ada", order)
    database = Database(settings.database)
    with database.write() as write:
        write.execute("UPDATE transfers SET state = 'paused', wanted = 'pause'")
        write.executemany(
            "INSERT INTO transfers SELECT ?, user, label, source, destination, options, state,"
            " wanted, attempt, starts, reservation, created_s + ?, begun_s, ended_s, result"
            " FROM transfers WHERE id = ?",
            [(f"{n:012x}", n / 1e3, first.id) for n in range(1, JOBS)],
        )
    names = [f"{n:012x}" for n in range(1, FOLLOWED + 1)]
    files = [settings.jobs / name / "events.jsonl" for name in names]
    for path in files:
        path.parent.mkdir(parents=True)
    return names, files


def measured(portal: Process, names: Sequence[str], files: Sequence[Path]) -> list[Round]:
    """Rounds, after one that warms up; the service has a core of its own."""
    assert portal.process is not None
    cores = sorted(os.sched_getaffinity(0))
    pid = portal.process.pid
    os.sched_setaffinity(pid, {cores[0]})
    os.sched_setaffinity(0, {cores[-1]})
    port = int(portal.url.rpartition(":")[2])
    rounds = [
        asyncio.run(one_round(pid, port, portal.token, names, files))
        for _ in range(FEWEST_PAIRS + 1)
    ]
    return rounds[1:]


def main() -> int:
    """Measures and prints."""
    with tempfile.TemporaryDirectory(prefix="farline-portal-load-") as made:
        folder = Path(made)
        store, sites = made_store(folder, made_transfers(each=300)), folder / "sites.toml"
        sites.write_text(sites_text())
        words = ("--store", str(store), "--sites", str(sites), "--log-level", "error")
        with portal_process(folder, *words) as portal:
            rounds = measured(portal, *fill(folder))
    return finish("portal-load", [
        row("estimates", "1/s", [(one.rate, ESTIMATES_PER_S) for one in rounds]),
        row("estimate, 99th percentile", "ms", [(one.p99_ms, MOST_MS) for one in rounds],
            less_is_better=True),
        row("listeners that heard all", "", [(one.heard, LISTENERS) for one in rounds]),
        row("10,000 jobs: pages, 99th percentile", "ms", [(one.page_ms, PAGE_MS) for one in rounds],
            less_is_better=True),
        row("CPU of the service", "cores", [(one.cores, 1.0) for one in rounds],
            less_is_better=True),
    ])  # fmt: skip


if __name__ == "__main__":
    program(main, any_build=True)
