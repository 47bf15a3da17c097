"""JSON of fio: rates of a file system, modality F.

Jobs of one group ran at the same time: they are one row for each of reading and writing, their
rates added. What was done stands in `code`, as the host in both ends if fio says which. fio 2
counted in KiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from farline.ingest.documents import Document, documents
from farline.ingest.format import Format
from farline.ingest.reading import Reading
from farline.ingest.rows import Record, Row, address, number, tables, whole, word
from farline.spec.units import parse_size

if TYPE_CHECKING:
    import pyarrow as pa

_DIRECTIONS = ("read", "write")


def _rows(document: Document) -> Iterator[Row]:
    """Rows of one run of fio."""
    scale = 1024 if (word(document.get("fio version")) or "").startswith("fio-2") else 1
    common = document.get("global options")
    groups: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
    jobs = document.get("client_stats") or document.get("jobs")
    for job in jobs if isinstance(jobs, list) else []:
        # The clients' sum comes as a job of its own.
        if not isinstance(job, dict) or job.get("jobname") == "All clients":
            continue
        failed = bool(whole(job.get("error")))
        for direction in _DIRECTIONS:
            if _done(job, direction):
                together = f"{job.get('hostname')} {job.get('groupid')}"
                groups.setdefault((together, direction, failed), []).append(job)
        if failed and not any(_done(job, direction) for direction in _DIRECTIONS):
            yield {"modality": "F", "complete": False, "code": f"error {job.get('error')}"}
    for (_, direction, failed), group in groups.items():
        yield _row(document, group, direction, failed, scale, common)


def _done(job: dict[str, Any], direction: str) -> dict[str, Any] | None:
    """The figures of one direction, if anything was done in it."""
    done = job.get(direction)
    return done if isinstance(done, dict) and (whole(done.get("io_bytes")) or 0) > 0 else None


def _row(
    document: Document,
    group: list[dict[str, Any]],
    direction: str,
    failed: bool,
    scale: int,
    common: object,
) -> Row:
    figures = [done for job in group if (done := _done(job, direction))]
    # fio 3 has both: `bw` is KiB a second, `bw_bytes` bytes.
    rates = [number(one.get("bw_bytes")) for one in figures]
    rates = [
        (number(one.get("bw")) or 0) * 1024 if rate is None else rate
        for one, rate in zip(figures, rates, strict=True)
    ]
    runtime_ms = max(number(one.get("runtime")) or 0 for one in figures)
    written_ms = number(document.get("timestamp_ms"))
    host = address(group[0].get("hostname"))
    return {
        "modality": "F",
        "started_at": None if written_ms is None else round((written_ms - runtime_ms) * 1000),
        "duration_s": runtime_ms / 1000 or None,
        "bytes": sum(whole(one.get("io_bytes")) or 0 for one in figures) * scale,
        "rate_bps": sum(rate or 0 for rate in rates) * 8,
        "complete": not failed,
        "code": f"error {group[0].get('error')}" if failed else direction,
        "from_host": host,
        "to_host": host,
        "concurrency": len(group),
        "block_bytes": _block_bytes(group[0], common),
    }


def _block_bytes(job: dict[str, Any], common: object) -> int | None:
    for options in (job.get("job options"), common):
        text = word(options.get("bs")) if isinstance(options, dict) else None
        if text is not None:
            try:
                return parse_size(text.split(",")[0]) or None
            except ValueError:
                return None
    return None


def _records(reading: Reading) -> Iterator[Record]:
    # fio writes notes before the document, such as `note: both iodepth >= 1 and ...`.
    for found in documents(reading, lambda line: None if "\ufffd" in line else "message"):
        if not isinstance(found.document.get("fio version"), str):
            reading.malformed(found.line, found.text, "no result of fio")
            continue
        rows = list(_rows(found.document))
        if not rows:
            reading.skip("nothing read or written")
        for row in rows:
            yield Record(found.line, found.text, row)


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a file with one or several results."""
    return tables(reading, "fio", _records(reading))


FORMAT = Format("fio", "JSON of fio", lambda start: '"fio version"' in start, read)
