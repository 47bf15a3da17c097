"""Tables of runs and campaigns: as many columns as the width takes, one line per run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]
SHORT_ID = 8
"""Last characters of a run's name, its random part, by which `farline show` finds it."""


def runs_table(rows: Sequence[Row], width: int) -> Table:
    """The widest form that fits into `width`; the narrowest one if none does."""
    from rich.console import Console

    console = Console(width=10_000)
    over_paths = any(row["path.rtt_s"] is not None for row in rows)
    copies = any(row["copied_files"] is not None for row in rows)
    ways = any(row["direction"] not in (None, "forward") for row in rows)
    shown = {"path": over_paths, "files": copies, "direction": ways}
    for form in _FORMS:
        names = [name for name in form if shown.get(name, True)]
        table = _table(names, [[_CELLS[name](row) for name in names] for row in rows])
        if console.measure(table).maximum <= width:
            break
    return table


def campaigns_table(rows: Sequence[Row]) -> Table:
    """One line per campaign."""
    heads = ("campaign", "started", "runs", "complete", "partial", "failed")
    cells = [
        [str(row["campaign"]), _started(row), *(str(row[h]) for h in heads[2:])] for row in rows
    ]
    return _table(heads, cells)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for head in heads:
        table.add_column(head.strip(), no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _plain(name: str) -> Callable[[Row], str]:
    return lambda row: "-" if row[name] is None else str(row[name])


def _started(row: Row) -> str:
    return str(row["started_at"])[:19].replace("T", " ")


def _block(row: Row) -> str:
    """Block of a run; of RBUDP the payload of a blast, which is what matters there."""
    from farline.spec.units import size_text

    if row["copied_files"] is not None:
        size = row["copy.chunk_bytes"]
        return "-" if size is None else size_text(size)
    size = row["rbudp.payload_bytes" if row["transport"] == "rbudp" else "block_bytes"]
    return "-" if size is None else size_text(size)


def _congestion(row: Row) -> str:
    """What the senders were granted, of either direction; else what was asked for."""
    granted = [row[f"{way}_congestion_control"] for way in ("forward", "reverse")]
    asked = row["tcp.congestion_control"] or row["udt.congestion_control"]
    return "+".join(dict.fromkeys(name for name in granted if name)) or str(asked or "-")


def _throughput(row: Row) -> str:
    from farline.spec.units import rate_human

    # A run of an older store has a rate of 0 where nothing arrived.
    return rate_human(row["total_bps"]) if row["total_bps"] else "-"


def _setting(row: Row) -> str:
    """Transport, streams and block in a word or three: `tcp x4 64KiB`."""
    way = {"reverse": " -R", "bidirectional": " --bidir"}.get(str(row["direction"]), "")
    if row["copied_files"] is not None:
        return f"{row['transport']} x{row['streams']} copy{way}"
    block = "" if row["transport"] == "udp" else f" {_block(row)}"
    return f"{row['transport']} x{row['streams']}{block}{way}"


def _rtt(row: Row) -> str:
    rtt_s = row["path.rtt_s"]
    return "" if rtt_s is None else f"{1000 * rtt_s:.4g} ms"


def _files(row: Row) -> str:
    """Files copied, or those there already where there were no others, and how many failed."""
    if row["copied_files"] is None:
        return ""
    if not row["copied_files"] and row["present_files"] and not row["failed_files"]:
        return f"{row['present_files']:,} present"
    failed = f", {row['failed_files']:,} failed" if row["failed_files"] else ""
    return f"{row['copied_files']:,}{failed}"


def _status(row: Row) -> str:
    complete = row["status"] == "complete"
    if complete and row["copy.dry_run"]:
        return "dry run"
    return "not valid" if complete and row["valid"] is False else str(row["status"])


_CELLS: Mapping[str, Callable[[Row], str]] = {
    "run": _plain("run_id"),
    "run ": lambda row: str(row["run_id"])[-SHORT_ID:],
    "started (UTC)": _started,
    "UTC": lambda row: _started(row)[5:16],
    "server": _plain("server_address"),
    "transport": _plain("transport"),
    "direction": _plain("direction"),
    "streams": _plain("streams"),
    "block": _block,
    "setting": _setting,
    "congestion": _congestion,
    "throughput": _throughput,
    "resent": _plain("retransmits"),
    "limited by": _plain("verdict_limit"),
    "path": _rtt,
    "files": _files,
    "status": _status,
}
"""How a row fills a column; `run ` with a space is the short form of `run`."""

_FORMS: Sequence[Sequence[str]] = (
    ("run", "started (UTC)", "server", "path", "transport", "direction", "streams", "block",
     "congestion", "throughput", "files", "resent", "limited by", "status"),
    ("run ", "UTC", "server", "path", "transport", "direction", "streams", "block",
     "congestion", "throughput", "files", "resent", "limited by", "status"),
    ("run ", "UTC", "path", "setting", "congestion", "throughput", "files", "limited by",
     "status"),
    ("run ", "UTC", "path", "setting", "throughput", "limited by", "status"),
    ("run ", "path", "setting", "throughput", "limited by", "status"),
)  # fmt: skip
"""Columns from the widest form to the ones for 80 columns; `path`, the round-trip time of an
emulated one, and `files` are left out where no run has any, `direction` where all run forward."""
