"""Our own runs as transfers: a row for each direction in which a run sent data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farline.spec.transfers import TRANSFER_COLUMNS
from farline.store.columns import NATIVE
from farline.store.filters import RunFilter

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from farline.store.store import Store

TOOL = "farline"
SOURCE = "farline's own runs"
_WAYS = {"forward": ("client", "server"), "reverse": ("server", "client")}


def run_transfers(store: Store, wanted: RunFilter) -> pa.Table:
    """The runs of a store that fit, as rows with the columns of a transfer."""
    from farline.store.engine import open_engine
    from farline.store.transfers.rows import checked_table, transfer_schema

    runs = store.runs(wanted)
    if not len(runs):
        # A store of logs alone: compiling the question takes longer than everything else.
        return transfer_schema().empty_table()
    with open_engine() as engine:
        return checked_table(engine.arrow(transfers_of_runs(engine.memory(runs))))


def transfers_of_runs(runs: ir.Table) -> ir.Table:
    """Rows with the columns of a transfer from rows of the runs table.

    The round-trip time is that of the emulated path, else the smallest that was measured. A run
    over a path that did not do what it was asked is not complete: its rate means nothing. A dry
    run, and a copy that found all there was already, is no transfer: nothing was to be moved.
    """
    parts = []
    for way, ends in _WAYS.items():
        there = runs.filter(
            runs.direction.isin([way, "bidirectional"]), ~_had_nothing_to_move(runs)
        )
        parts.append(there.select(**_columns(there, way, *ends)))
    return parts[0].union(*parts[1:])


def _columns(runs: ir.Table, way: str, sender: str, receiver: str) -> dict[str, Any]:
    import ibis

    valid = runs.valid.fill_null(True)
    complete = (runs.status == "complete") & valid & (runs[f"{way}_total_bps"] > 0)
    word = ibis.ifelse((runs.status == "complete") & ~valid, "not valid", runs.status)
    rtt_ms = ibis.coalesce(runs["path.rtt_s"] * 1000.0, runs.min_rtt_us / 1000.0)
    both_ways = runs.direction == "bidirectional"
    found = {
        "tool": runs.tool.fill_null(NATIVE).substitute({NATIVE: TOOL}),
        "modality": ibis.ifelse(_of_files(runs), "E", "T"),
        "started_at": runs.started_at.cast("timestamp"),
        "duration_s": runs[f"{way}_elapsed_s"],
        "bytes": runs[f"{way}_bytes"],
        "rate_bps": runs[f"{way}_total_bps"],
        "complete": complete.fill_null(False),
        "code": ibis.coalesce(runs.error_kind, word),
        "from_host": _host(runs, sender),
        "to_host": _host(runs, receiver),
        "rtt_ms": rtt_ms.round(6),
        "streams": runs.streams.cast("int32"),
        "buffer_bytes": _buffer(runs),
        "concurrency": runs["copy.concurrency"].cast("int32"),
        "pipelining": runs["copy.pipeline"].cast("int32"),
        "files": runs.copied_files,
        "block_bytes": ibis.ifelse(
            runs.copied_files.notnull(), runs["copy.chunk_bytes"], runs.block_bytes
        ),
        "congestion_control": _of_transport(
            runs,
            {
                name: ibis.coalesce(
                    runs[f"{way}_congestion_control"], runs[f"{name}.congestion_control"]
                )
                for name in ("tcp", "udt")
            },
        ),
        "transport": runs.transport,
        # One figure for both ways says nothing of either.
        "retransmits": ibis.ifelse(both_ways, ibis.null("int64"), runs.retransmits),
        "source": ibis.literal(SOURCE),
    }
    nothing = {"timestamp": "timestamp", "double": "float64", "bool": "boolean"}
    return {
        name: found[name] if name in found else ibis.null(nothing.get(kind, kind))
        for name, kind in TRANSFER_COLUMNS.items()
    }


def _had_nothing_to_move(runs: ir.Table) -> Any:
    """Whether a copy only looked, or found nothing that was not there already."""
    moved = (runs.forward_bytes.fill_null(0) + runs.reverse_bytes.fill_null(0)) > 0
    settled = runs.copied_files.notnull() & (runs.status == "complete") & ~moved
    return runs["copy.dry_run"].fill_null(False) | settled


def _of_files(runs: ir.Table) -> Any:
    """Whether bytes came from files or went to some, at either end."""
    no_disk = [
        runs[f"copy.{doing}_engine"].isin(["null", "memory"]).fill_null(False)
        for doing in ("read", "write")
    ]
    copies = runs.copied_files.notnull() & ~(no_disk[0] & no_disk[1])
    return copies | runs["rbudp.file"].notnull()


def _host(runs: ir.Table, end: str) -> Any:
    """Name of an end: in its testbed, else its own, else how the server was addressed."""
    import ibis

    names = [runs[f"path.{end}_host"], runs[f"{end}_host"]]
    if end == "server":
        names.append(runs.server_address.re_replace(r":\d+$", ""))
    return ibis.coalesce(*names)


def _buffer(runs: ir.Table) -> Any:
    """The smaller of both buffers, of the transport used: it bounds what is under way."""
    import ibis

    sizes = {}
    for section in ("tcp", "udp", "udt"):
        ends = [runs[f"{section}.{end}_buffer_bytes"] for end in ("send", "receive")]
        sizes[section] = ibis.ifelse(
            ends[0].isnull() | ends[1].isnull(), ibis.coalesce(*ends), ibis.least(*ends)
        )
    return _of_transport(runs, sizes)


def _of_transport(runs: ir.Table, values: dict[str, Any]) -> Any:
    return runs.transport.cases(*values.items())
