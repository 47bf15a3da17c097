"""Reading GridFTP logs: a gigabyte of text into Parquet at 100 MB/s or more, in bounded memory.

Ours is the whole way from text to a Parquet file, in a process of its own. The peer is as little
as can be done: DuckDB reads the same lines and counts them. Both run in turn on the same log,
which is made in the system's folder for temporary files (lines of several kinds, some with spaces
in names, one in ten thousand cut) and deleted at the end. `FARLINE_BENCH_MB` makes it smaller.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from _contract import finish, interleave, row
from _program import program

MEGABYTES = int(os.environ.get("FARLINE_BENCH_MB", "1000"))
WANTED_MB_PER_S = 100.0
MOST_MIB = 1024.0
CUT_SHARE = 1e-4
LINES_AT_ONCE = 10_000

INGEST = """
import sys
import pyarrow.parquet as pq
from farline.formats import arrow_schema, read_log

log = read_log(sys.argv[1])
with pq.ParquetWriter(sys.argv[2], arrow_schema(), compression="zstd") as writer:
    for table in log.batches():
        writer.write_table(table)
print(log.tally.transfers, log.tally.failed, log.tally.skipped_total, log.tally.malformed)
"""

COUNT = """
import sys
import duckdb

engine = duckdb.connect()
engine.execute("SET enable_progress_bar = false")
lines = engine.execute(
    "SELECT count(line) FROM read_csv(?, columns={'line': 'VARCHAR'}, delim='\\x01', quote='',"
    " escape='', header=false, auto_detect=false)", [sys.argv[1]]
).fetchone()
print(lines[0])
"""


@dataclass(frozen=True)
class Made:
    """A log, and how many of its lines are what."""

    path: Path
    size_mb: float
    transfers: int
    failed: int
    listings: int
    cut: int


def line(rng: random.Random) -> tuple[str, str]:
    """A line, and what it is."""
    began_s, took_us = rng.randrange(86_400 * 27), rng.randrange(1_000, 60_000_000)
    start = stamp(began_s, rng.randrange(1_000_000))
    end = stamp(began_s + 1 + took_us // 1_000_000, took_us % 1_000_000)
    kind = rng.choices(("RETR", "STOR", "ERET", "ESTO", "MLSD"), (40, 40, 9, 9, 2))[0]
    code = 426 if rng.random() < 0.01 else 226
    streams = rng.choice((1, 2, 4, 8))
    retrans = ",".join(str(rng.choice((0, 0, 0, 17))) for _ in range(streams))
    name = rng.choice(
        ("/dev/zero", f"/data/run {rng.randrange(99)}/part.h5", f"/scratch/y=1/{rng.random()}.nc")
    )
    text = (
        f"DATE={end} HOST=dtn{rng.randrange(20):02d}.example.org PROG=globus-gridftp-server "
        f"NL.EVNT=FTP_INFO START={start} USER=u{rng.randrange(500)} FILE={name} "
        f"BUFFER={rng.choice((0, 131072, 4194304))} BLOCK=262144 "
        f"NBYTES={rng.randrange(1, 10 ** rng.randrange(3, 11))} VOLUME=/ STREAMS={streams} "
        f"STRIPES=1 DEST=[192.0.2.{rng.randrange(256)}] TYPE={kind} CODE={code} TASKID=none"
    )
    text += f" retrans={retrans}" if rng.random() < 0.7 else ""
    if rng.random() < CUT_SHARE:
        return text[: rng.randrange(20, 150)], "cut"
    return text, "listings" if kind == "MLSD" else "transfers" if code == 226 else "failed"


def stamp(second: int, micros: int) -> str:
    """A time in March 2026 as the log writes it."""
    day, rest = divmod(second, 86_400)
    clock = f"{rest // 3600:02d}{rest // 60 % 60:02d}{rest % 60:02d}"
    return f"202603{day + 1:02d}{clock}.{micros:06d}"


@contextmanager
def made(megabytes: int) -> Iterator[Made]:
    """A log of that size. Its lines repeat after some tens of thousands, in other orders."""
    rng = random.Random(20260301)
    stock = [line(rng) for _ in range(5 * LINES_AT_ONCE)]
    counts = dict.fromkeys(("transfers", "failed", "listings", "cut"), 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gridftp-transfer.log"
        written = 0
        with path.open("w", encoding="ascii") as file:
            while written < megabytes * 1_000_000:
                some = rng.choices(stock, k=LINES_AT_ONCE)
                for _, kind in some:
                    counts[kind] += 1
                written += file.write("".join(f"{text}\n" for text, _ in some))
        yield Made(path, written / 1e6, **counts)


@dataclass(frozen=True)
class Run:
    """One run of a program."""

    mb_per_s: float
    peak_mib: float


def ran(program: str, log: Made, expected: str, *more: str) -> Run:
    """Runs a program on the log in a process of its own; its figures, if its answer is right."""
    started_at = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, str(log.path), *more],
        capture_output=True,
        text=True,
        check=True,
    )
    took_s = time.perf_counter() - started_at
    if done.stdout.split() != expected.split():
        raise RuntimeError(f"counted {done.stdout.strip()}, but the log has {expected}")
    # Of all children so far, so it is ours only as long as there was no other.
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return Run(log.size_mb / took_s, peak_mib)


def main() -> int:
    """Measures, prints, writes."""
    with made(MEGABYTES) as log:
        kinds = f"{log.transfers} {log.failed} {log.listings} {log.cut}"
        lines = str(log.transfers + log.failed + log.listings + log.cut)
        parquet = str(log.path.with_suffix(".parquet"))
        first = ran(INGEST, log, kinds, parquet)
        pairs = interleave(lambda: ran(INGEST, log, kinds, parquet), lambda: ran(COUNT, log, lines))
    ours = [(one.mb_per_s, WANTED_MB_PER_S) for one, _ in pairs]
    beside = [(one.mb_per_s, peer.mb_per_s) for one, peer in pairs]
    memory = [(first.peak_mib, MOST_MIB)] * len(pairs)
    rows = [
        row("text to Parquet, of 100 MB/s", "MB/s", ours),
        row("peak memory, of 1 GiB", "MiB", memory, less_is_better=True),
        row("beside DuckDB only counting lines", "MB/s", beside, must=0.05),
    ]
    return finish("ingest-gridftp", rows)


if __name__ == "__main__":
    program(main)
