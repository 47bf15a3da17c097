"""Every finished transfer of a store as rows: of its runs, of the logs that it keeps."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError
from farline.spec.json_text import read_object
from farline.store.disk import locked, make_folder, publish_text
from farline.store.filters import RunFilter
from farline.store.paths.past_transfer import PastTransfer, PathEnds, bare_host

if TYPE_CHECKING:
    from pathlib import Path

    from farline.spec._types import RunRecord
    from farline.spec.infrastructure import Infrastructure
    from farline.store.layout import Layout
    from farline.store.store import Store

MOST_ROWS = 20_000
"""Newest transfers that are given: older ones say nothing that these do not (they age)."""

_HEAD = ("run_id", "status", "error_kind", "direction", "valid", "client_host", "server_host",
         "server_address", "path.client_host", "path.server_host")  # fmt: skip
_MORE = (
    "started_at", "campaign", "tool", "transport", "streams", "copy.concurrency", "copy.pipeline",
    "copied_files", "resumed_bytes", "min_rtt_us", "mean_rtt_us", "path.rtt_s", "path.rate_bps",
    "retransmits", "cpu_s_per_gb", "verdict_limit", "asked_rate_bps", "copy.total_rate_bps",
    "copy.dry_run", "copy.read_engine", "copy.write_engine", "tcp.send_buffer_bytes",
    "tcp.receive_buffer_bytes", "udt.send_buffer_bytes", "udt.receive_buffer_bytes",
    "block_bytes", "copy.chunk_bytes", "labels", "record",
    *(f"{way}_{name}" for way in ("forward", "reverse")
      for name in ("total_bps", "steady_bps", "bytes", "elapsed_s", "congestion_control")),
)  # fmt: skip
_WAYS = {"forward": ("client", "server"), "reverse": ("server", "client")}
_LOG_COLUMNS = (
    "tool", "modality", "started_at", "duration_s", "bytes", "rate_bps", "complete", "from_host",
    "to_host", "rtt_ms", "streams", "concurrency", "parallelism", "pipelining", "files",
    "buffer_bytes", "congestion_control", "transport", "retransmits", "source",
)  # fmt: skip

Row = Mapping[str, Any]


def path_history(
    store: Store,
    ends: PathEnds | None = None,
    *,
    infrastructure: Infrastructure | None = None,
    limit: int = MOST_ROWS,
    with_logs: bool = True,
) -> tuple[PastTransfer, ...]:
    """The finished transfers between `ends`, or of every path; oldest first, the newest `limit`.

    A failed run is left out, as is one over an emulated path that did not do what it was asked, one
    in both directions at once, and a copy that moved nothing; one that somebody stopped counts for
    what it moved. So is what ended before a path's `forget_path`. A transfer that logs tell twice,
    every figure and the time alike, is one. Rows of logs without a time come first.
    With an `infrastructure` hosts become sites in `path`, and its connections give capacities and
    round-trip times where rows have none. Nothing leaves this machine.

    Raises:
        SpecError: when patterns of two sites fit a host equally well.
        SystemFailure: when the store cannot be read.
    """
    rows = [*_runs(store, ends or PathEnds(), limit)]
    if with_logs:
        rows += _once(row for row in _logs(store.layout) if ends is None or ends.fit(row))
    if infrastructure is not None:
        rows = [_sited(row, infrastructure) for row in rows]
    since = forgotten(store.layout)
    kept = [row for row in rows if (row.ended_s or 0.0) > since.get(_pair(row), -1.0)]
    kept.sort(key=lambda row: (row.ended_s or 0.0, row.source))
    return tuple(kept[-limit:])


def transfer_of(record: RunRecord) -> PastTransfer | None:
    """The row that a run will be once it is in a store; None for one that is left out there."""
    from farline.store.columns import run_row
    from farline.store.entry import Entry

    row = run_row(Entry(record))
    return _of_run(row) if _is_meant(row, PathEnds()) and _moved(row) else None


def forget_path(store: Store, ends: PathEnds, now_s: float | None = None) -> int:
    """From now on nothing that ended before counts between `ends`; how many rows that takes away.

    The runs stay where they are: they are measurements, and others may want them.

    Raises:
        SystemFailure: when the store refuses.
    """
    rows = path_history(store, ends)
    now = time.time() if now_s is None else now_s
    marks = forgotten(store.layout) | {_pair(row): now for row in rows}
    make_folder(store.layout.paths)
    text = json.dumps(marks, indent=1, sort_keys=True)
    publish_text(store.layout.temp, _marks(store.layout), text)
    return len(rows)


def forgotten(layout: Layout) -> dict[str, float]:
    """Of paths, `SENDER > RECEIVER`, the time up to which nothing counts."""
    try:
        with _marks(layout).open("rb") as file:
            return {str(path): float(at) for path, at in read_object(file.read()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, SpecError):
        # A damaged note must not bring back what somebody wanted forgotten, nor stop everything.
        from farline.store import left_out

        left_out.note(f"{_marks(layout)}: damaged: it is ignored")
        return {}


def _marks(layout: Layout) -> Path:
    return layout.paths / "forgotten.json"


def _pair(row: PastTransfer) -> str:
    return f"{row.from_host} > {row.to_host}"


def _runs(store: Store, ends: PathEnds, limit: int) -> Iterator[PastTransfer]:
    """Rows of the runs: their heads tell which are meant, and only these are read whole."""
    with store.read() as reader:
        heads = reader.runs(names=_HEAD).to_pylist()
        wanted = [head for head in heads if _is_meant(head, ends)][-limit:]
        if not wanted:
            return
        names = tuple(head["run_id"] for head in wanted)
        chosen = RunFilter(run_ids=names) if len(names) < len(heads) else RunFilter()
        rows = reader.runs(chosen, names=(*_HEAD, *_MORE)).to_pylist()
    meant = set(names)
    yield from (_of_run(row) for row in rows if row["run_id"] in meant and _moved(row))


def _is_meant(head: Row, ends: PathEnds) -> bool:
    stopped = head["status"] == "partial" and head["error_kind"] in (None, "interrupted")
    if head["status"] != "complete" and not stopped:
        return False
    if head["direction"] not in _WAYS or head["valid"] is False:
        return False
    sender, receiver = _WAYS[head["direction"]]
    return ends.match(_names(head, sender), _names(head, receiver))


def _moved(row: Row) -> bool:
    return bool(row[f"{row['direction']}_total_bps"]) and not row["copy.dry_run"]


def _names(row: Row, end: str) -> tuple[str, ...]:
    """Names of an end: in its testbed, its own, and how the server was addressed."""
    found = [row[f"path.{end}_host"], row[f"{end}_host"]]
    if end == "server":
        found.append(row["server_address"])
    return tuple(dict.fromkeys(bare_host(name) for name in found if name)) or ("unknown",)


def _of_run(row: Row) -> PastTransfer:
    way = row["direction"]
    sender, receiver = (_names(row, end) for end in _WAYS[way])
    record = json.loads(row["record"])
    started, duration_s = _seconds(row["started_at"]), row[f"{way}_elapsed_s"]
    nic_bps, streams = _nic_bps(record), _settled(row["labels"]) or row["streams"]
    rtt_s = row["path.rtt_s"]
    rtt_ms = 1000 * rtt_s if rtt_s is not None else _thousandth(row["min_rtt_us"])
    is_copy = row["copied_files"] is not None
    tool = "farline" if row["tool"] in (None, "native") else row["tool"]
    at_once = (row["copy.concurrency"] or 1) if is_copy else 1
    # farline's streams are those of all files at once, other tools' those of one file.
    per_file = _per_file(streams, at_once) if tool == "farline" else streams
    return PastTransfer(
        kind="copy" if is_copy else "probe",
        tool=tool,
        source=row["run_id"],
        started_s=started,
        ended_s=None if started is None else started + (duration_s or 0.0),
        duration_s=duration_s,
        from_host=sender[0], to_host=receiver[0], from_names=sender, to_names=receiver,
        path=f"{sender[0]} > {receiver[0]}",
        rate_bps=row[f"{way}_total_bps"], steady_bps=row[f"{way}_steady_bps"],
        bytes=row[f"{way}_bytes"], files=row["copied_files"],
        concurrency=row["copy.concurrency"] if is_copy else 1,
        streams=streams if tool == "farline" or streams is None else streams * at_once,
        parallelism=per_file,
        pipelining=row["copy.pipeline"] if is_copy else 1,
        rtt_ms=rtt_ms, loaded_rtt_ms=_thousandth(row["mean_rtt_us"]),
        capacity_bps=row["path.rate_bps"] or nic_bps, nic_bps=nic_bps,
        window_bytes=_window(row, record),
        block_bytes=row["copy.chunk_bytes"] if is_copy else row["block_bytes"],
        transport=row["transport"], congestion_control=row[f"{way}_congestion_control"],
        modality="E" if _is_of_files(row) else "T",
        limit=row["verdict_limit"], retransmits=row["retransmits"],
        cpu_s_per_gb=row["cpu_s_per_gb"],
        from_kernel=_kernel(record, _WAYS[way][0]), to_kernel=_kernel(record, _WAYS[way][1]),
        campaign=row["campaign"], estimate=_estimate(row["labels"]),
        capped=bool(row["asked_rate_bps"] or row["copy.total_rate_bps"]),
        resumed=bool(row["resumed_bytes"]),
    )  # fmt: skip


def _estimate(labels: str | None) -> Row | None:
    found = json.loads(labels).get("estimate") if labels else None
    return found if isinstance(found, dict) else None


def _settled(labels: str | None) -> int | None:
    """Streams at which a copy that was tuned while it ran stayed."""
    found = json.loads(labels).get("tuning") if labels else None
    settled = found.get("settled") if isinstance(found, dict) else None
    return settled if isinstance(settled, int) else None


def _per_file(streams: int | None, concurrency: int | None) -> int | None:
    return None if streams is None else max(1, round(streams / max(1, concurrency or 1)))


def _is_of_files(row: Row) -> bool:
    engines = (row["copy.read_engine"], row["copy.write_engine"])
    nowhere = all(engine in ("null", "memory") for engine in engines)
    return row["copied_files"] is not None and not nowhere


def _nic_bps(record: Row) -> int | None:
    """The slower of the two ends' interfaces that carried the streams; None where none is known."""
    local: dict[int, set[str]] = {0: set(), 1: set()}
    for stream in record.get("streams") or []:
        address = (stream.get("granted") or {}).get("local")
        if address:
            local[stream["end"]].add(bare_host(address))
    speeds = [
        interface["speed_bps"]
        for number, end in enumerate(("client", "server"))
        for interface in ((record.get(end) or {}).get("host") or {}).get("interfaces") or []
        if interface.get("speed_bps")
        and local[number] & set(map(bare_host, interface["addresses"]))
    ]
    return min(speeds, default=None)


def _window(row: Row, record: Row) -> int | None:
    """The smaller of the buffers asked for, else of the largest that the two kernels give."""
    section = "udt" if row["transport"] == "udt" else "tcp"
    asked = [row[f"{section}.{end}_buffer_bytes"] for end in ("send", "receive")]
    if known := [size for size in asked if size]:
        return int(min(known))
    sender, receiver = _WAYS[row["direction"]]
    sizes = [_third(record, sender, "tcp_wmem"), _third(record, receiver, "tcp_rmem")]
    return min((size for size in sizes if size), default=None)


def _third(record: Row, end: str, name: str) -> int | None:
    host = (record.get(end) or {}).get("host") or {}
    words = ((host.get("sysctls") or {}).get(f"net.ipv4.{name}") or "").split()
    return int(words[2]) if len(words) == 3 and words[2].isdigit() else None


def _kernel(record: Row, end: str) -> str | None:
    kernel: str | None = ((record.get(end) or {}).get("host") or {}).get("kernel")
    return kernel


def _seconds(started_at: str | None) -> float | None:
    return None if started_at is None else datetime.fromisoformat(started_at).timestamp()


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _logs(layout: Layout) -> Iterator[PastTransfer]:
    """Rows of the logs that are kept, those that are complete and have a rate."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from farline.store import left_out
    from farline.store.kept_logs import kept_view

    with locked(layout.use_lock, exclusive=False):
        for log in kept_view(layout).logs:
            path = layout.transfers / log.file
            try:
                with pq.ParquetFile(path) as file:
                    there = set(file.schema_arrow.names)
                    table = file.read([name for name in _LOG_COLUMNS if name in there])
            except (pa.ArrowException, OSError) as error:
                left_out.note(f"{path}: damaged: {' '.join(str(error).split())[:200]}")
                continue
            yield from _log_rows(table.to_pylist())


def _once(rows: Iterable[PastTransfer]) -> Iterator[PastTransfer]:
    """Each transfer once: logs that were put together tell some twice."""
    told: set[tuple[object, ...]] = set()
    for row in rows:
        one = (
            row.started_s, row.duration_s, row.bytes, row.files, row.rate_bps, row.tool,
            row.from_host, row.to_host, row.streams, row.concurrency, row.pipelining,
        )  # fmt: skip
        if row.started_s is None or one not in told:
            told.add(one)
            yield row


def _log_rows(rows: Iterable[Row]) -> Iterator[PastTransfer]:
    for row in rows:
        if row.get("complete") and (row.get("rate_bps") or 0) > 0:
            yield _of_log(row.get)


def _of_log(get: Callable[[str], Any]) -> PastTransfer:
    started = get("started_at")
    began = None if started is None else started.timestamp()
    duration_s, streams, concurrency = get("duration_s"), get("streams"), get("concurrency")
    sender, receiver = (bare_host(get(name) or "unknown") for name in ("from_host", "to_host"))
    return PastTransfer(
        kind="ingested", tool=get("tool"), source=get("source"),
        started_s=began,
        ended_s=None if began is None else began + (duration_s or 0.0),
        duration_s=duration_s,
        from_host=sender, to_host=receiver, path=f"{sender} > {receiver}",
        from_names=(sender,), to_names=(receiver,),
        rate_bps=get("rate_bps"), bytes=get("bytes"), files=get("files"),
        concurrency=concurrency, streams=streams,
        parallelism=get("parallelism") or _per_file(streams, concurrency),
        pipelining=get("pipelining"), rtt_ms=get("rtt_ms"), window_bytes=get("buffer_bytes"),
        transport=get("transport"), congestion_control=get("congestion_control"),
        modality=get("modality"), retransmits=get("retransmits"),
    )  # fmt: skip


def _sited(row: PastTransfer, infrastructure: Infrastructure) -> PastTransfer:
    """A row with its sites in `path`, and what their connection says where the row says nothing."""
    from dataclasses import replace

    sites = [_site(infrastructure, names) for names in (row.from_names, row.to_names)]
    shown = (site or host for site, host in zip(sites, (row.from_host, row.to_host), strict=True))
    row = replace(row, path=" > ".join(shown))
    if (a := sites[0]) is None or (b := sites[1]) is None:
        return row
    found = infrastructure.connection(a, b)
    rtt_ms = row.rtt_ms if row.rtt_ms is not None or found is None else found.rtt_ms
    return replace(
        row, rtt_ms=rtt_ms, capacity_bps=row.capacity_bps or infrastructure.capacity(a, b)
    )


@functools.lru_cache(maxsize=4096)
def _site(infrastructure: Infrastructure, names: tuple[str, ...]) -> str | None:
    return next((site for site in map(infrastructure.site_of, names) if site), None)
