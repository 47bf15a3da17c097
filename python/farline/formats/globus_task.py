"""Tasks of the Globus Transfer service: JSON of one task or of a list, or a table of tasks.

The time of a task is from request to completion: queueing and checksums are part of it. A table
has the names of the JSON fields as its header; there is no other table of tasks.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from farline.formats.documents import Document, documents
from farline.formats.format import Format
from farline.formats.reading import Reading
from farline.formats.rows import NotATransfer, Record, Row, Unreadable, tables, time_us, whole, word
from farline.formats.table import DELIMITERS

if TYPE_CHECKING:
    import pyarrow as pa

_NEEDED = ("request_time", "bytes_transferred", "status")


def parse_task(task: Document) -> Row:
    """The row of one task.

    Raises:
        NotATransfer: for deletions, tasks that go on, and tasks with nothing to move.
        Unreadable: with what is missing.
    """
    for name in _NEEDED:
        if task.get(name) in (None, ""):
            raise Unreadable(f"not a Globus task: {name} is missing")
    if (word(task.get("type")) or "TRANSFER") != "TRANSFER":
        raise NotATransfer("task of another type")
    status = str(task["status"])
    if status in ("ACTIVE", "INACTIVE"):
        raise NotATransfer("task that has not ended")
    if status not in ("SUCCEEDED", "FAILED"):
        raise Unreadable(
            f"status is {status[:40]!r}, not one of SUCCEEDED, FAILED, ACTIVE, INACTIVE"
        )
    moved, complete = whole(task["bytes_transferred"]), status == "SUCCEEDED"
    if moved is None:
        raise Unreadable("bytes_transferred is not a number")
    if complete and moved == 0:
        raise NotATransfer("no data to move")
    start_us, end_us = time_us(task["request_time"]), time_us(task.get("completion_time"))
    if start_us is None:
        raise Unreadable("request_time is not a time")
    if end_us is not None and end_us < start_us:
        raise Unreadable("completion_time is before request_time")
    files = whole(task.get("files_transferred"))
    return {
        "modality": "E",
        "started_at": start_us,
        "duration_s": None if end_us is None else (end_us - start_us) / 1e6,
        "bytes": moved,
        "complete": complete,
        "code": status,
        "from_host": _endpoint(task, "source"),
        "to_host": _endpoint(task, "destination"),
        "files": whole(task.get("files")) if files is None else files,
    }


def _endpoint(task: Document, side: str) -> str | None:
    """The endpoint's name as people see it, or its identifier."""
    for name in ("endpoint_display_name", "endpoint", "endpoint_id"):
        if found := word(task.get(f"{side}_{name}")):
            return found
    return None


def _tasks(document: Document) -> list[Any]:
    data = document.get("DATA")
    return data if isinstance(data, list) else [document]


def _record(reading: Reading, line: int, text: str, task: object) -> Iterator[Record]:
    try:
        if not isinstance(task, dict):
            raise Unreadable("not a Globus task")
        yield Record(line, text, parse_task(task))
    except NotATransfer as reason:
        reading.skip(str(reason))
    except Unreadable as reason:
        reading.malformed(line, text, str(reason))


def _from_json(reading: Reading) -> Iterator[Record]:
    for found in documents(reading):
        for task in _tasks(found.document):
            yield from _record(reading, found.line, found.text, task)


def _is_header(line: str) -> bool:
    return "bytes_transferred" in line and "request_time" in line


def _from_table(reading: Reading) -> Iterator[Record]:
    header: list[str] = []
    delimiter = ","
    for number, line in reading.lines():
        if not header and _is_header(line):
            delimiter = max(DELIMITERS, key=line.count)
        try:
            cells = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error as failure:
            reading.malformed(number, line, f"not a table row: {failure}")
            continue
        if "request_time" in cells and "bytes_transferred" in cells:
            header = cells
            continue
        if len(cells) != len(header):
            reading.malformed(
                number, line, f"{len(cells)} fields, but the header has {len(header)}"
            )
            continue
        task: Document = dict(zip(header, cells, strict=True))
        for name in ("bytes_transferred", "files", "files_transferred"):
            # Where a cell is empty, pandas writes all of its column as `990.0`.
            match = re.fullmatch(r"(\d{1,18})(?:\.0)?", task.get(name) or "", re.ASCII)
            task[name] = int(match[1]) if match else task.get(name)
        yield from _record(reading, number, line, task)


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of an export, JSON or a table."""
    is_json = reading.start(1000).lstrip()[:1] in ("{", "[")
    return tables(reading, "globus", (_from_json if is_json else _from_table)(reading))


def _detect(start: str) -> bool:
    if start.lstrip()[:1] in ("{", "["):
        return '"DATA_TYPE": "task' in start or '"bytes_transferred"' in start
    return _is_header(start.lstrip().split("\n", 1)[0])


FORMAT = Format("globus", "tasks of Globus Transfer, JSON or a table", _detect, read, version=2)
