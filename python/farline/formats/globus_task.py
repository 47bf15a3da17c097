"""Tasks of the Globus Transfer service: JSON of one task or of a list, a table, or `task show`.

The time of a task is from request to completion: queueing and checksums are part of it. A table
has the names of the JSON fields as its header; there is no other table of tasks. `globus task show`
prints a line for each field, with names for people; its first versions left out the bytes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from farline.formats.documents import Document, documents
from farline.formats.format import Format
from farline.formats.quantity import other_line
from farline.formats.reading import SAMPLE_CHARACTERS, Reading
from farline.formats.rows import NotATransfer, Record, Row, Unreadable, tables, time_us, whole, word
from farline.formats.table import DELIMITERS

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = re.compile(r"([A-Z][A-Za-z ]{1,40}):(?: +(.*))?")
_NAMES = {
    "Type": "type",
    "Files": "files",
    "Status": "status",
    "Request Time": "request_time",
    "Completion Time": "completion_time",
    "Source Endpoint": "source_endpoint_display_name",
    "Source Endpoint ID": "source_endpoint_id",
    "Destination Endpoint": "destination_endpoint_display_name",
    "Destination Endpoint ID": "destination_endpoint_id",
    "Bytes Transferred": "bytes_transferred",
}
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
        yield from _record(reading, number, line, _with_counts(task))


def _with_counts(task: Document) -> Document:
    """The task with counts as numbers, where they are texts of such."""
    for name in ("bytes_transferred", "files", "files_transferred"):
        # Where a cell is empty, pandas writes all of its column as `990.0`.
        match = re.fullmatch(r"(\d{1,18})(?:\.0)?", task.get(name) or "", re.ASCII)
        task[name] = int(match[1]) if match else task.get(name)
    return task


def _from_shown(reading: Reading) -> Iterator[Record]:
    """Tasks as `globus task show` prints them; each begins with its label."""
    task: Document = {}
    first: tuple[int, str] | None = None
    for number, line in reading.lines():
        match = _SHOWN.fullmatch(line.rstrip())
        if match is None:
            other_line(reading, number, line)
            continue
        if match[1] == "Label" and first is not None:
            yield from _record(reading, *first, _with_counts(task))
            task = {}
        if match[1] == "Label" or first is None:
            first = number, line
        if (name := _NAMES.get(match[1])) and match[2] not in (None, "None"):
            task[name] = match[2]
    if first is not None:
        yield from _record(reading, *first, _with_counts(task))


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of an export: JSON, a table, or what `task show` prints."""
    start = reading.start(SAMPLE_CHARACTERS)
    if start.lstrip()[:1] in ("{", "["):
        records = _from_json(reading)
    else:
        records = (_from_shown if _DETECT_SHOWN.search(start) else _from_table)(reading)
    return tables(reading, "globus", records)


_DETECT_SHOWN = re.compile(r"^Label:.*\nTask ID: +[0-9a-f]{8}-", re.MULTILINE)


def _detect(start: str) -> bool:
    if start.lstrip()[:1] in ("{", "["):
        return '"DATA_TYPE": "task' in start or '"bytes_transferred"' in start
    return bool(_DETECT_SHOWN.search(start)) or _is_header(start.lstrip().split("\n", 1)[0])


FORMAT = Format(
    "globus", "tasks of Globus Transfer: JSON, a table, or task show", _detect, read, version=3
)
