"""`make demo`: a server on loopback, a campaign against it, a report. No root, no network.

Everything it writes is under `demo/`: the server's key, the store, the report. The
server is stopped whatever happens, and no step can take longer than its limit.
"""

from __future__ import annotations

import json
import os
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
STOP_LIMIT_S = 15


def environment() -> dict[str, str]:
    """The caller's, with every place where farline keeps things under `demo/`."""
    places = ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    return os.environ | {place: str(DEMO / "home") for place in places}


@contextmanager
def serving() -> Iterator[str]:
    """Runs a server on a free loopback port; gives the ticket to use it with."""
    command: list[str | Path] = [FARLINE, "serve", "--listen", "127.0.0.1", "--port", "0", "--json"]
    command += ["--state-dir", DEMO / "server"]
    # In a session of its own Ctrl-C ends the campaign first, and then this stops the server.
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    )
    overdue = threading.Timer(READY_LIMIT_S, server.kill)
    try:
        overdue.start()
        ticket = read_ticket(server)
        overdue.cancel()
        yield ticket
        if server.poll() is not None:
            raise SystemExit(f"demo: the server ended by itself (exit code {server.returncode})")
    finally:
        overdue.cancel()
        stop(server)


def read_ticket(server: subprocess.Popen[str]) -> str:
    """The ticket from the server's first line; its later lines are read and dropped."""
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        raise SystemExit(f"demo: the server did not start (exit code {server.wait()})")
    threading.Thread(target=server.stdout.read, daemon=True).start()
    return str(json.loads(line)["ticket"])


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
    campaign = subprocess.Popen(command, text=True, env=environment())
    try:
        return campaign.wait(CAMPAIGN_LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"demo: the campaign took over {CAMPAIGN_LIMIT_S} s and is stopped", file=sys.stderr)
        stop(campaign)
        return 1
    except KeyboardInterrupt:
        # It got the same Ctrl-C and finishes its record.
        return campaign.wait(STOP_LIMIT_S)


def main() -> int:
    """Runs the demonstration; gives the exit code."""
    for old in ("store", "report"):
        shutil.rmtree(DEMO / old, ignore_errors=True)
    DEMO.mkdir(exist_ok=True)
    with serving() as ticket:
        code = profile(ticket)
    report = DEMO / "report" / "report.html"
    if code == 0 and report.is_file():
        print(f"\nOpen {report.relative_to(ROOT)} in a browser; it needs no network.")
        return 0
    print(f"demo: no report; the campaign ended with exit code {code}", file=sys.stderr)
    return code or 1


if __name__ == "__main__":
    sys.exit(main())
