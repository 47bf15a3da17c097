"""`make demo`: a server on loopback, a campaign, a report, a tree copied. No root, no network.

Everything it writes is under `demo/`: the server's key, the store, the report, the
tree. The server is stopped whatever happens, and no step can take longer than its limit.
"""

from __future__ import annotations

import filecmp
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FARLINE = ROOT / ".venv" / "bin" / "farline"
DEMO = ROOT / "demo"
READY_LIMIT_S = 30
CAMPAIGN_LIMIT_S = 600
COPY_LIMIT_S = 120
FILES = 2000
LARGE_BYTES = 256 << 20
STOP_LIMIT_S = 15


def environment() -> dict[str, str]:
    """The caller's, with every place where farline keeps things under `demo/`."""
    places = ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    return os.environ | {place: str(DEMO / "home") for place in places}


@contextmanager
def serving() -> Iterator[tuple[str, str]]:
    """Runs a server on a free loopback port; gives the tickets for profiling and for writing."""
    command: list[str | Path] = [FARLINE, "serve", "--listen", "127.0.0.1", "--port", "0", "--json"]
    command += ["--state-dir", DEMO / "server", "--write", DEMO / "archive"]
    # In a session of its own Ctrl-C ends the campaign first, and then this stops the server.
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    )
    overdue = threading.Timer(READY_LIMIT_S, server.kill)
    try:
        overdue.start()
        tickets = read_tickets(server)
        overdue.cancel()
        yield tickets
        if server.poll() is not None:
            raise SystemExit(f"demo: the server ended by itself (exit code {server.returncode})")
    finally:
        overdue.cancel()
        stop(server)


def read_tickets(server: subprocess.Popen[str]) -> tuple[str, str]:
    """The tickets from the server's first line; its later lines are read and dropped."""
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        raise SystemExit(f"demo: the server did not start (exit code {server.wait()})")
    threading.Thread(target=server.stdout.read, daemon=True).start()
    ready = json.loads(line)
    return str(ready["ticket"]), str(ready["tickets"]["write"])


def stop(process: subprocess.Popen[str]) -> None:
    """Asks the process to end, and ends it if it does not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def profile(ticket: str) -> int:
    """Runs the campaign of `plans/demo.toml`; gives its exit code."""
    command: list[str | Path] = [FARLINE, "profile", ticket, ROOT / "plans" / "demo.toml"]
    command += ["--store", DEMO / "store", "--report", DEMO / "report"]
    return run(command, CAMPAIGN_LIMIT_S)


def copy(ticket: str) -> int:
    """Copies a tree of small files and a large one to the server; gives the exit code."""
    to = f"{ticket}#."
    command: list[str | Path] = [FARLINE, "copy", DEMO / "data", to, "--store", DEMO / "store"]
    print("\nfarline copy demo/data farline://...#.", flush=True)
    code = run(command, COPY_LIMIT_S)
    if code == 0 and not is_same(DEMO / "data", DEMO / "archive" / "data"):
        print("demo: what was copied is not what was there", file=sys.stderr)
        return 1
    return code


def run(command: list[str | Path], limit_s: float) -> int:
    """Runs a farline command for `limit_s` at most; gives its exit code."""
    process = subprocess.Popen(command, text=True, env=environment())
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        print(f"demo: farline {command[1]} took over {limit_s} s and is stopped", file=sys.stderr)
        stop(process)
        return 1
    except KeyboardInterrupt:
        # It got the same Ctrl-C and finishes its record.
        return process.wait(STOP_LIMIT_S)


def make_tree() -> None:
    """A tree to copy: many small files and a large one, the same each time."""
    chance = random.Random(20)
    for number in range(FILES):
        file = DEMO / "data" / f"run-{number % 20:02}" / f"event-{number:04}.dat"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(chance.randbytes(chance.randrange(16 << 10)))
    block = chance.randbytes(1 << 20)
    with (DEMO / "data" / "detector.raw").open("wb") as large:
        for _ in range(LARGE_BYTES // len(block)):
            large.write(block)


def is_same(one: Path, other: Path) -> bool:
    """Whether two trees have the same names with the same bytes in them."""
    names = [
        sorted(file.relative_to(tree) for file in tree.rglob("*") if file.is_file())
        for tree in (one, other)
    ]
    same = all(filecmp.cmp(one / name, other / name, shallow=False) for name in names[0])
    return names[0] == names[1] and same


def main() -> int:
    """Runs the demonstration; gives the exit code."""
    for old in ("store", "report", "data", "archive"):
        shutil.rmtree(DEMO / old, ignore_errors=True)
    (DEMO / "archive").mkdir(parents=True, exist_ok=True)
    make_tree()
    with serving() as (profiling, writing):
        code = profile(profiling) or copy(writing)
    report = DEMO / "report" / "report.html"
    if code == 0 and report.is_file():
        print(f"\nOpen {report.relative_to(ROOT)} in a browser; it needs no network.")
        return 0
    print(f"demo: it ended with exit code {code}", file=sys.stderr)
    return code or 1


if __name__ == "__main__":
    sys.exit(main())
