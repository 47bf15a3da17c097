"""Makes the logs of `examples/five-sites`, for the guide to analysing existing measurements.

    .venv/bin/python -m scripts.five_sites [FOLDER]

Five sites that do not exist, a GridFTP server at each, 300 transfers in a month, and 120 tests from
memory to memory. Every host has a window of 48 MiB, and the file system of cedar is slow: whoever
analyses the logs should find both. The same files come out every time.
"""

from __future__ import annotations

import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "five-sites"
RTT_MS = {
    ("alder", "birch"): 13.5, ("birch", "cedar"): 17.5, ("alder", "cedar"): 29.5,
    ("doum", "elm"): 31.5, ("cedar", "doum"): 35.5, ("birch", "doum"): 51.5,
    ("alder", "doum"): 63.5, ("cedar", "elm"): 65.5, ("birch", "elm"): 81.5,
    ("alder", "elm"): 93.5,
}  # fmt: skip
SITES = ("alder", "birch", "cedar", "doum", "elm")
ADDRESSES = {site: f"192.0.2.{number}" for number, site in enumerate(SITES, 1)}
WINDOW_BITS = 48 * 2**20 * 8
LINE_BPS = 9.6e9
FILES_BPS = 7.5e9
SLOW_SITE, SLOW_BPS = "cedar", 1.15e9
TRANSFERS, TESTS = 15, 6
"""Of files and from memory to memory, for each direction of each connection."""
FIRST = datetime(2026, 9, 1)
SECONDS = 30 * 86400

Row = tuple[datetime, str]


def rate_bps(chance: random.Random, rtt_ms: float, most: float, spread: float) -> float:
    """What one transfer reaches: its window or `most`, with a spread of its own."""
    reached = min(most, WINDOW_BITS / (rtt_ms / 1e3)) * chance.lognormvariate(0, spread)
    return min(reached, LINE_BPS)


def transfer(chance: random.Random, server: str, client: str, rtt_ms: float) -> Row:
    """One line of the server's log: a file that its client fetched."""
    slow = SLOW_SITE in (server, client)
    rate = rate_bps(chance, rtt_ms, SLOW_BPS if slow else FILES_BPS, 0.18)
    size = chance.randrange(8, 60) * 10**9
    start = FIRST + timedelta(seconds=chance.uniform(0, SECONDS))
    failed = chance.random() < 0.025
    if failed:
        size //= 10
    end = start + timedelta(seconds=size * 8 / rate)
    line = (
        f"DATE={end:%Y%m%d%H%M%S.%f} HOST=dtn1.{server}.example PROG=globus-gridftp-server "
        f"NL.EVNT=FTP_INFO START={start:%Y%m%d%H%M%S.%f} USER=somebody FILE=/data/run.dat "
        f"BUFFER=0 BLOCK=262144 NBYTES={size} VOLUME=/ STREAMS=4 STRIPES=1 "
        f"DEST=[{ADDRESSES[client]}] TYPE=RETR CODE={426 if failed else 226}"
    )
    return end, line


def gridftp_log(chance: random.Random, server: str) -> str:
    """All transfers that one site's server logged, in the order of their ends."""
    rows = [
        transfer(chance, server, one if server == other else other, rtt_ms)
        for (one, other), rtt_ms in RTT_MS.items()
        if server in (one, other)
        for _ in range(TRANSFERS)
    ]
    lines = [line for _, line in sorted(rows)]
    if server == "birch":  # a line that was cut, and one that is none
        lines.insert(20, lines[20].partition("USER=")[0].strip())
        lines.insert(40, "-- log rotated --")
    return "\n".join(lines) + "\n"


def memory_table(chance: random.Random) -> str:
    """Tests from memory to memory, as a table."""
    rows = []
    for (one, other), rtt_ms in RTT_MS.items():
        for source, sink in [(one, other), (other, one)] * TESTS:
            start = FIRST + timedelta(seconds=chance.uniform(0, SECONDS))
            gbps = rate_bps(chance, rtt_ms, LINE_BPS, 0.1) / 1e9
            names = f"dtn1.{source}.example,dtn1.{sink}.example"
            rows.append(f"{start:%Y-%m-%dT%H:%M:%SZ},{names},30,{gbps:.3f}")
    return "\n".join(["start,src,dst,seconds,gbps", *sorted(rows)]) + "\n"


def sites_toml() -> str:
    """The description of the sites, with all their connections."""
    lines = ["# Five made-up sites: made by scripts/five_sites.py.", 'name = "five sites"']
    lines += ['capacity_bps = "10G"', ""]
    for site in SITES:
        lines += [f"[sites.{site}]", f'hosts = ["*.{site}.example", "{ADDRESSES[site]}"]', ""]
    lines += ["[connections]"]
    lines += [f'"{one} - {other}" = "{rtt_ms}ms"' for (one, other), rtt_ms in RTT_MS.items()]
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """Text of every file, by its name."""
    chance = random.Random(5)
    logs = {f"gridftp-{site}.log": gridftp_log(chance, site) for site in SITES}
    return logs | {"memory.csv": memory_table(chance), "sites.toml": sites_toml()}


def main() -> None:
    """Writes the files."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
