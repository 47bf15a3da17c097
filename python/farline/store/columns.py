"""The runs table: one row per run, flattened so that it can be filtered and grouped.

Options of a run keep their dotted names (`streams`, `tcp.congestion_control`); they come from the
generated option table, lists are JSON texts. Figures of an emulated path are `path.…`; `valid` says
whether its emulator did what it was asked while the run lasted. Results and labels have plain
names. The whole record stands in `record` as JSON, so nothing is lost by flattening, and a column
added later can be filled from it. `total_bps` and `steady_bps` are sums over both directions;
a direction in which nothing arrived has no rate. `asked_rate_bps` is the option `rate_bps`, under a
name that nobody takes for a rate that was measured. `forward_congestion_control` is what the
senders of that direction were granted, `tcp.congestion_control` what was asked for.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from farline.store.entry import Entry

if TYPE_CHECKING:
    import pyarrow as pa

    from farline.spec.table import Option

_INT64_MAX = 2**63 - 1
_RUN = {
    "run_id": "string",
    "campaign": "string",
    "status": "string",
    "started_at": "string",
    "error_kind": "string",
    "error": "string",
    "server_address": "string",
    "client_host": "string",
    "server_host": "string",
    "farline_version": "string",
    "session_s": "double",
    "run_s": "double",
}
_PATH = {
    "valid": "bool",
    "path.testbed": "string",
    "path.client_host": "string",
    "path.server_host": "string",
    "path.rtt_s": "double",
    "path.rate_bps": "int64",
    "path.loss": "double",
    "path.capacity_bytes": "int64",
    "path.capacity_bdp": "double",
    "path.corrupt": "double",
    "path.duplicate": "double",
    "path.reorder": "double",
}
"""Of runs over an emulated path; null for all others."""
_LABELS = {
    "setting": "string",
    "block": "int64",
    "slot": "int64",
    "attempt": "int64",
    "reference": "bool",
}
_THROUGHPUT = {
    f"{way}_{name}": kind
    for way in ("forward", "reverse")
    for name, kind in {
        "total_bps": "double",
        "steady_bps": "double",
        "omitted_s": "double",
        "bytes": "int64",
        "elapsed_s": "double",
    }.items()
}
_GRANTED = {
    "forward_congestion_control": "string",
    "reverse_congestion_control": "string",
}
_SUMMARY = {
    "retransmits": "int64",
    "sent_packets": "int64",
    "lost_packets": "int64",
    "jitter_ns": "int64",
    "mean_rtt_us": "double",
    "min_rtt_us": "int64",
    "cpu_s_per_gb": "double",
    "client_cpu": "double",
    "server_cpu": "double",
}
_COPY = {
    "copied_files": "int64",
    "copied_bytes": "int64",
    "present_files": "int64",
    "failed_files": "int64",
    "resumed_bytes": "int64",
}
"""Of copies; null for all others."""
_RESULTS = {
    "total_bps": "double",
    "steady_bps": "double",
    **_THROUGHPUT,
    **_GRANTED,
    **_SUMMARY,
    **_COPY,
    "verdict_limit": "string",
    "verdict_line": "string",
}
OTHER_NAMES = {"rate_bps": "asked_rate_bps"}
"""Columns of options that are not called as their option, by the option's path."""
NATIVE = "native"
"""`tool` of runs by farline's own engine, which their specs leave out."""
_DOCUMENTS = {"labels": "string", "record": "string"}
_KINDS = {
    "size": "int64",
    "rate": "int64",
    "ms": "int64",
    "integer": "int64",
    "seconds": "double",
    "number": "double",
    "flag": "bool",
}
"""Arrow types of the kinds of options; words, texts and lists (as JSON) are strings."""


@functools.cache
def run_columns() -> dict[str, str]:
    """Columns of the runs table, in order, with their Arrow types."""
    from farline.spec.table import OPTIONS

    spec = {column_of(option.path): _option_type(option) for option in OPTIONS}
    return {**_RUN, **_LABELS, **_RESULTS, **_PATH, **spec, **_DOCUMENTS}


def column_of(path: str) -> str:
    """The column of the option at `path`; any other name is a column's already."""
    return OTHER_NAMES.get(path, path)


def _option_type(option: Option) -> str:
    kind = _KINDS.get(option.kind, "string")
    beyond = kind == "int64" and (option.maximum is None or option.maximum > _INT64_MAX)
    return "uint64" if beyond else kind


@functools.cache
def _option_places() -> tuple[tuple[str, str, str], ...]:
    """Of every option: its column, its section of the spec (or none), its name there."""
    from farline.spec.table import OPTIONS

    places = (option.path.rpartition(".") for option in OPTIONS)
    return tuple((f"{section}{dot}{name}", section, name) for section, dot, name in places)


def runs_table(entries: Iterable[Entry]) -> pa.Table:
    """Entries as rows of the runs table."""
    import pyarrow as pa

    from farline.store.arrays import array_of

    rows = [run_row(entry) for entry in entries]
    columns = run_columns()
    arrays = [array_of([row[name] for row in rows], kind) for name, kind in columns.items()]
    return pa.Table.from_arrays(arrays, names=list(columns))


def run_row(entry: Entry) -> dict[str, Any]:
    """One entry as a row with every column of `run_columns`."""
    record, labels = entry.record, entry.labels
    row: dict[str, Any] = dict.fromkeys(run_columns())
    row.update({name: record.get(name) for name in _RUN})
    row.update({name: labels.get(name) for name in _LABELS})
    row.update(_ends(record), **run_results(record), **_options(record["spec"]))
    row.update(dict.fromkeys(_untold(record)))
    row.update(_granted(record))
    row.update(path_columns(record))
    error = record.get("error") or {}
    row.update(error_kind=error.get("kind"), error=error.get("message"))
    row.update(campaign=entry.campaign, labels=_json(labels), record=_json(record))
    return row


def entry_of_row(row: Mapping[str, Any], labels: str = "labels") -> dict[str, Any]:
    """An entry's document from the columns `record`, `campaign` and `labels` of its row."""
    return {
        "record": json.loads(row["record"]),
        labels: json.loads(row[labels]),
        "campaign": row["campaign"],
    }


def _ends(record: Mapping[str, Any]) -> dict[str, Any]:
    client, server = record.get("client") or {}, record.get("server") or {}
    return {
        "client_host": client.get("host", {}).get("hostname"),
        "server_host": server.get("host", {}).get("hostname"),
        "farline_version": client.get("version", {}).get("farline"),
    }


def path_columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record says of the emulated path; nothing where there was none.

    Chances and the capacity of the queue are those of the main link's way from `a` to `b`; of a
    campaign that varies another link, those of that link.
    """
    path = record.get("path")
    if not path:
        return {}
    pipe = _main_pipe(path.get("topology") or {})
    queue = pipe.get("queue") or {}
    row = {
        "valid": path["stamp"]["valid"],
        # Sums of halves leave crumbs that would tell equal paths apart.
        "path.rtt_s": round(float(path["rtt_s"]), 9),
        "path.loss": (pipe.get("loss") or {}).get("random"),
        "path.capacity_bytes": queue.get("capacity_bytes"),
        "path.capacity_bdp": queue.get("capacity_bdp"),
    }
    row.update(
        {f"path.{n}": path.get(n) for n in ("testbed", "client_host", "server_host", "rate_bps")}
    )
    return row | {f"path.{name}": pipe.get(name) for name in ("corrupt", "duplicate", "reorder")}


def _main_pipe(topology: Mapping[str, Any]) -> Mapping[str, Any]:
    links = topology.get("links") or []
    main = topology.get("main_link")
    link: Mapping[str, Any] = next((one for one in links if main in (None, one["name"])), {})
    pipe: Mapping[str, Any] = link.get("forward") or {}
    return pipe


def run_results(record: Mapping[str, Any]) -> dict[str, Any]:
    """The results of a record under the names of their columns."""
    summary, verdict = record.get("summary") or {}, record.get("verdict") or {}
    row = {name: summary.get(name) for name in _SUMMARY}
    ways = {way: summary.get(way) or {} for way in ("forward", "reverse")}
    for name in _THROUGHPUT:
        way, _, field = name.partition("_")
        arrived = bool(ways[way].get("bytes"))
        row[name] = ways[way].get(field) if arrived or not field.endswith("_bps") else None
    for name in ("total_bps", "steady_bps"):
        row[name] = _sum(row[f"{way}_{name}"] for way in ways if ways[way])
    row.update(_copied(record.get("copy") or {}), **_driven(record.get("driven") or {}))
    row.update(verdict_limit=verdict.get("limit"), verdict_line=verdict.get("line"))
    return row


def _granted(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the senders of each direction were granted, of the streams that carry payload."""
    spec = record["spec"]
    count = max(1, int(spec.get("streams") or 1))
    found: dict[str, set[str]] = {name: set() for name in _GRANTED}
    for stream in record.get("streams") or []:
        name = (stream.get("granted") or {}).get("congestion_control")
        carries = stream["stream"] < count or not spec.get("copy")
        if name and carries and stream["role"] == 0:
            way = "reverse" if stream["end"] else "forward"
            found[f"{way}_congestion_control"].add(name)
    driven = record.get("driven") or {}
    if (name := driven.get("congestion_control")) and spec.get("direction") != "bidirectional":
        found[f"{spec.get('direction', 'forward')}_congestion_control"].add(name)
    return {column: "+".join(sorted(names)) or None for column, names in found.items()}


def _driven(driven: Mapping[str, Any]) -> dict[str, Any]:
    """What another tool copied, as far as it is known; nothing for runs of no such tool."""
    if driven.get("files") is None:
        return {}
    flow = driven.get("forward") or driven.get("reverse") or {}
    return {"copied_files": driven["files"], "copied_bytes": flow.get("bytes")}


def _copied(report: Mapping[str, Any]) -> dict[str, Any]:
    if not report:
        return dict.fromkeys(_COPY)
    return {
        "copied_files": report["copied"]["files"],
        "copied_bytes": report["copied"]["bytes"],
        "present_files": report["present"]["files"],
        "failed_files": report["failed"]["files"],
        "resumed_bytes": report["resumed_bytes"],
    }


def _sum(figures: Iterable[float | None]) -> float | None:
    """The sum; unknown when there is nothing to add or a part is unknown."""
    known = list(figures)
    if not known or any(figure is None for figure in known):
        return None
    return sum(figure for figure in known if figure is not None)


def _options(spec: Mapping[str, Any]) -> dict[str, Any]:
    row = {}
    for path, section, name in _option_places():
        place = (spec.get(section) or {}) if section else spec
        value = place.get(name)
        row[column_of(path)] = _json(value) if isinstance(value, list | dict) else value
    return {**row, "tool": spec.get("tool") or NATIVE}


def _untold(record: Mapping[str, Any]) -> list[str]:
    """Columns of options that say nothing of a run, since its tool was not told them."""
    driven = record.get("driven")
    if driven is None:
        return []
    told = {column_of(path) for path in driven["told"]}
    places = (column for column, _, _ in _option_places())
    return [column_of(path) for path in places if column_of(path) not in told | {"tool"}]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
