"""Statistics of rclone: JSON log lines (`--use-json-log`), and text (`--stats`, `-v`, `-P`).

rclone tells again and again what was moved since it began: the last of a run is the transfer, all
bytes over all its time. A run ends where less is told than before. Prefixes are of 1024 (`k` and
`M` of versions before 1.57 too). Errors make a run a failed one, and so does an end before all
was moved: it was interrupted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.formats.format import Format
from farline.formats.quantity import NUMBER, other_line, scaled
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, number, tables, time_us, whole

if TYPE_CHECKING:
    import pyarrow as pa


_LEFT_OUT = re.compile(r"Skipped .* as --dry-run is set")


@dataclass
class _Status:
    """What rclone told at one moment."""

    line: int
    text: str
    moved: float
    seconds: float | None = None
    files: int | None = None
    errors: int = 0
    written_us: int | None = None
    is_dry: bool = False
    is_whole: bool = True
    """Whether all was moved that was to be, as far as it says so."""

    def row(self) -> Row:
        """The row of a run that ended so."""
        row: Row = {"modality": "E", "bytes": round(self.moved), "files": self.files}
        if self.written_us is not None and self.seconds is not None:
            row["started_at"] = self.written_us - round(self.seconds * 1e6)
        if self.errors:
            return {**row, "complete": False, "code": f"errors {self.errors}"}
        if not self.is_whole:
            return {**row, "complete": False, "code": "not finished"}
        return {**row, "duration_s": self.seconds}


class _Runs:
    """The runs of a log, by what they told."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._last: _Status | None = None
        self._is_dry = False

    def left_out(self) -> None:
        """A file was left out by `--dry-run`: what is told next counts what was not moved."""
        self._is_dry = True

    def take(self, status: _Status) -> Iterator[Record]:
        """Takes in what was told; gives the run that ended before."""
        last = self._last
        if last is not None and last.seconds is not None and status.seconds is not None:
            if status.moved >= last.moved and status.seconds >= last.seconds:
                self._reading.skip("interim status, not a final result")
                status.is_dry = last.is_dry
            else:
                yield from self.end()
        status.is_dry, self._is_dry = status.is_dry or self._is_dry, False
        self._last = status

    def end(self) -> Iterator[Record]:
        """The run that was going on."""
        last, self._last = self._last, None
        if last is None:
            return
        if last.is_dry:
            self._reading.skip("dry run, nothing was moved")
        elif last.moved or last.errors:
            yield Record(last.line, last.text, last.row())
        else:
            self._reading.skip("no data to move")


def _status_of(line_number: int, line: str, runs: _Runs) -> _Status | None:
    """What a line of a JSON log tells; None if it tells no statistics."""
    entry = json.loads(line)
    if isinstance(entry, dict) and entry.get("skipped") and _LEFT_OUT.search(str(entry.get("msg"))):
        runs.left_out()
    stats = entry.get("stats") if isinstance(entry, dict) else None
    if not isinstance(stats, dict):
        return None
    moved, seconds = number(stats.get("bytes")), number(stats.get("elapsedTime"))
    if moved is None or seconds is None:
        raise ValueError("statistics without bytes or elapsedTime")
    errors = whole(stats.get("errors")) or int(stats.get("fatalError") is True)
    written_us = time_us(entry.get("time"))
    files, total = whole(stats.get("transfers")), number(stats.get("totalBytes"))
    status = _Status(line_number, line, moved, seconds, files, errors, written_us)
    status.is_whole = total is None or moved >= total
    return status


def _from_json(reading: Reading) -> Iterator[Record]:
    runs = _Runs(reading)
    for line_number, line in reading.lines():
        if not line.startswith("{"):
            other_line(reading, line_number, line)
            continue
        try:
            status = _status_of(line_number, line, runs)
        except (ValueError, RecursionError) as failure:
            deep = isinstance(failure, RecursionError)
            why = "unreadable JSON: nested too deeply" if deep else f"not a log line: {failure}"
            reading.malformed(line_number, line, why)
            continue
        if status is None:
            reading.skip("message")
        else:
            yield from runs.take(status)
    yield from runs.end()


_MOVED = re.compile(
    rf"(?:.*? INFO  : )?\s*Transferred:\s+({NUMBER}) ?([kKMGTPE]?)i?(?:B|Bytes?)? /"
    r" \S+ ?[kKMGTPE]?i?(?:B|Bytes?)?,(?: (\d{1,3})%,)?.*/s.*",
    re.ASCII,
)
_FILES = re.compile(r"Transferred:\s+(\d{1,12}) / \d+(?:, .*)?\s*", re.ASCII)
_ERRORS = re.compile(r"Errors:\s+(\d{1,12})\b.*", re.ASCII)
_ELAPSED = re.compile(
    r"Elapsed time:\s+(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?"
    r"(\d+(?:\.\d+)?)(ms|s)\s*",
    re.ASCII,
)
_OF_A_FILE = re.compile(r"ERROR +: .+: Failed to ")
"""A file that failed: rclone goes on, and its statistics count it."""
_SPANS_S = (365 * 86_400, 7 * 86_400, 86_400, 3600, 60)


def _seconds(match: re.Match[str]) -> float:
    whole_spans = sum(int(match[at] or 0) * span for at, span in enumerate(_SPANS_S, 1))
    return whole_spans + float(match[6]) * (0.001 if match[7] == "ms" else 1.0)


def _from_text(reading: Reading) -> Iterator[Record]:
    runs = _Runs(reading)
    told: _Status | None = None
    for line_number, line in reading.lines():
        # With `-P` a status overwrites the one before, and may begin behind its last line.
        line = line[line.rfind("Transferred:") :] if line.startswith(" * ") else line
        if match := _MOVED.fullmatch(line):
            told = _Status(line_number, line, scaled(match[1], match[2], 1024))
            told.is_whole = match[3] is None or int(match[3]) >= 100
        elif told is not None and (match := _FILES.fullmatch(line)):
            told.files = int(match[1])
        elif told is not None and (match := _ERRORS.fullmatch(line)):
            told.errors = int(match[1])
        elif told is not None and (match := _ELAPSED.fullmatch(line)):
            told.seconds = _seconds(match)
            yield from runs.take(told)
            told = None
        elif _LEFT_OUT.search(line):
            runs.left_out()
            reading.skip("message")
        elif " Failed to " in line and not _OF_A_FILE.search(line):
            # What was told last is of the run that failed.
            yield from _failed(runs, line_number, line)
            told = None
        else:
            other_line(reading, line_number, line)
    if told is not None:
        reading.malformed(
            told.line, told.text, ("the status is truncated: its elapsed time is missing")
        )
    yield from runs.end()


def _failed(runs: _Runs, line_number: int, line: str) -> Iterator[Record]:
    ended = list(runs.end())
    failure = {"modality": "E", "complete": False, "code": "failed"}
    if not ended:
        yield Record(line_number, line, failure)
    for record in ended:
        row = {"code": "failed", **record.row, "complete": False}
        yield Record(record.line, record.text, row)


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a log."""
    is_json = '"level":' in reading.start(4000)
    return tables(reading, "rclone", (_from_json if is_json else _from_text)(reading))


_DETECT_JSON = re.compile(r'^\{.*"level": ?"', re.MULTILINE)
_DETECT_TEXT = re.compile(r"^(?:.{0,200} INFO  : )?[ \t]*Transferred:[ \t]+\d.* / ", re.MULTILINE)


def _detect(start: str) -> bool:
    if start.startswith("{"):
        return bool(_DETECT_JSON.search(start)) and (
            '"source":' in start or '"elapsedTime":' in start
        )
    return bool(_DETECT_TEXT.search(start)) or bool(
        re.search(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (?:INFO|NOTICE|ERROR) +: ", start, re.MULTILINE)
    )


FORMAT = Format("rclone", "log of rclone, JSON or text, with statistics", _detect, read, version=3)
