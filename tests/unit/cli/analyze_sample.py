"""Three sites and what their servers logged: file transfers by GridFTP, memory tests as CSV."""

from __future__ import annotations

import datetime
from pathlib import Path

SITES = ("ash", "elm", "fir")
RTTS_MS = {("ash", "elm"): 10.0, ("ash", "fir"): 60.0, ("elm", "fir"): 30.0}
FACTORS = (0.9, 0.95, 1.0, 1.05, 1.1)
"""Rates of repeats over their mean."""
FILE_GBPS = {("ash", "elm"): 4.0, ("ash", "fir"): 2.0, ("elm", "fir"): 3.0}
MEMORY_GBPS = {("ash", "elm"): 8.0, ("ash", "fir"): 5.0, ("elm", "fir"): 7.0}
MAP = (
    "rate_bps=gbps:Gbit/s,rtt_ms=rtt,from_host=src,to_host=dst,started_at=when,"
    "streams=streams,modality='T',tool='nuttcp'"
)
_START = datetime.datetime(2026, 9, 1)

TOML = """
name = "trees"
capacity_bps = "10G"

[sites.ash]
hosts = ["*.ash.example"]
[sites.elm]
hosts = ["*.elm.example"]
[sites.fir]
hosts = ["*.fir.example"]

[connections]
"ash - elm" = "10ms"
"ash - fir" = "60ms"
"elm - fir" = "30ms"
"""


def gridftp_line(sender: str, receiver: str, gbps: float, number: int, code: int = 226) -> str:
    """A transfer as the sender's server logs it: 10 GB at this rate."""
    start = _START + datetime.timedelta(hours=7 * number)
    end = start + datetime.timedelta(seconds=80 / gbps)
    return (
        f"DATE={end:%Y%m%d%H%M%S.%f} HOST=dtn.{sender}.example PROG=globus-gridftp-server"
        f" NL.EVNT=FTP_INFO START={start:%Y%m%d%H%M%S.%f} USER=someone FILE=/secret/{number}"
        " BUFFER=4194304 BLOCK=262144 NBYTES=10000000000 VOLUME=/ STREAMS=4 STRIPES=1"
        f" DEST=[dtn.{receiver}.example] TYPE=RETR CODE={code} TASKID=none"
    )


def gridftp_lines() -> list[str]:
    """Five transfers of each pair, and one that failed."""
    lines = [
        gridftp_line(a, b, gbps * factor, number)
        for (a, b), gbps in FILE_GBPS.items()
        for number, factor in enumerate(FACTORS)
    ]
    return [*lines, gridftp_line("ash", "elm", 1.0, 9, code=426)]


def csv_lines() -> list[str]:
    """Five memory tests of each pair with 1 stream, and with 4, which are faster by a tenth."""
    lines = ["when,src,dst,gbps,rtt,streams"]
    for (a, b), gbps in MEMORY_GBPS.items():
        for number, factor in enumerate(FACTORS):
            when = _START + datetime.timedelta(hours=5 * number)
            for streams, gain in ((1, 1.0), (4, 1.1)):
                lines.append(
                    f"{when.isoformat()}Z,dtn.{a}.example,dtn.{b}.example,"
                    f"{gbps * factor * gain:.6f},{RTTS_MS[a, b]},{streams}"
                )
    return lines


def write_sample(folder: Path) -> tuple[Path, Path, Path]:
    """A GridFTP log, a CSV file and the description of the sites in `folder`."""
    log, table, sites = folder / "gridftp.log", folder / "memory.csv", folder / "sites.toml"
    log.write_text("\n".join(gridftp_lines()) + "\n")
    table.write_text("\n".join(csv_lines()) + "\n")
    sites.write_text(TOML)
    return log, table, sites
