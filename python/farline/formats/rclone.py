"""Statistics of rclone: JSON log lines (`--use-json-log`), and text (`--stats`, `-v`, `-P`).

rclone tells again and again what was moved since it began: the last of a run is the transfer, all
bytes over all its time. A run ends where less is told than before, where a message of the start
follows, and where the time of the line less the elapsed time is another start. Versions 1.49 to
1.52 counted only the time in which files moved, so that starts seem later and later: of text that
may be theirs (1.43 to 1.56), and of JSON without `transferTime`, only an earlier start tells.
Prefixes are of 1024 (`k` and `M` of versions before 1.57 too, `kBytes` before 1.43). Errors make a
run a failed one, and so does an end before all was moved: it was interrupted. `rclone check` moves
nothing, whatever it finds. What a storage renames, moves or copies by itself is not carried by
rclone, but added to what was transferred: newer versions say how much it is, and of older ones it
is all where files were renamed and none was transferred.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farline.formats.format import Format
from farline.formats.quantity import NUMBER, other_line, scaled
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, number, tables, time_us, whole

if TYPE_CHECKING:
    import pyarrow as pa


_SAID = re.compile(
    r"(?P<left_out>Skipped .* as --dry-run is set)"
    r"|(?P<begins>Starting (?:bandwidth|(?:HTTP )?transaction) limiter"
    r'|rclone: Version "[^"]*" starting with parameters)'
    r"|(?P<compared>\b\d+ differences found$)"
    r"|(?P<check>(?:^|\d |[A-Z] *: )Failed to (?:crypt)?check(?:sum)?\b)",
    re.ASCII,
)
"""Messages that say something of a run."""
_HOUR_US = 3_600_000_000


@dataclass
class _Status:
    """What rclone told at one moment."""

    line: int
    text: str
    moved: float
    seconds: float = 0.0
    files: int | None = None
    errors: int = 0
    written_us: int | None = None
    slack_us: int = 250_000
    """How far starts of one run may be apart: figures are cut off, not rounded."""
    is_local: bool = False
    """Whether the time of the line has no zone: it is no start to tell, and clocks change."""
    is_since_start: bool = True
    """Whether the elapsed time surely is that since the start."""
    is_told_anew: bool = True
    """Whether it cannot be the status before, told again by the same run, if it is the same."""
    is_dry: bool = False
    is_check: bool = False
    is_whole: bool | None = None
    """Whether all was moved that was to be; None where it does not say so."""
    is_under_way: bool = False
    """Whether files are named behind it that were still being moved."""
    by_storage: float = 0.0
    """Of what was moved: what a storage did by itself."""
    files_by_storage: int = 0
    renames: int = 0

    @property
    def carried(self) -> float:
        """What was moved by rclone."""
        says_nothing = not self.by_storage and not self.files_by_storage
        is_renamed = self.renames > 0 and not self.files and self.is_whole is not False
        return 0.0 if is_renamed and says_nothing else max(0.0, self.moved - self.by_storage)

    def row(self) -> Row:
        """The row of a run that ended so."""
        files = None if self.files is None else max(0, self.files - self.files_by_storage)
        row: Row = {"modality": "E", "bytes": round(self.carried), "files": files}
        if self.written_us is not None and not self.is_local:
            row["started_at"] = self.written_us - round(self.seconds * 1e6)
        if self.errors:
            return {**row, "complete": False, "code": f"errors {self.errors}"}
        if self.is_whole is False:
            return {**row, "complete": False, "code": "not finished"}
        return {**row, "duration_s": self.seconds}

    def is_of_run_of(self, last: _Status) -> bool:
        """Whether the run that told `last` told this, too."""
        if self.moved < last.moved or self.seconds < last.seconds:
            return False
        if self.written_us is None or last.written_us is None:
            return True
        passed_us = self.written_us - last.written_us
        later_us = passed_us - (self.seconds - last.seconds) * 1e6
        if passed_us == later_us == 0 and self.moved == last.moved:
            return last.is_under_way or not self.is_told_anew
        if self.is_local and last.seconds * 1e6 > _HOUR_US:
            # Summer time may have begun or ended.
            later_us = min(later_us, later_us - _HOUR_US, later_us + _HOUR_US, key=abs)
        if later_us > self.slack_us:
            return not self.is_since_start
        return later_us >= -self.slack_us


class _Runs:
    """The runs of a log, by what they told."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._last: _Status | None = None
        # Whether messages said so of what is told next: files were left out by `--dry-run`; two
        # places were only compared.
        self._is_dry = self._is_check = False

    def hear(self, message: str) -> list[Record] | None:
        """The runs that a message ends; None if it says nothing of a run."""
        match = _SAID.search(message)
        if match is None:
            return None
        if match["left_out"]:
            self._is_dry = True
        elif match["compared"]:
            self._is_check = True
        else:
            if match["check"] and self._last is not None and not self._is_check:
                self._last.is_check = True
            self._is_dry = self._is_check = False
            return list(self.end())
        return []

    def take(self, status: _Status) -> Iterator[Record]:
        """Takes in what was told; gives the run that ended before."""
        last = self._last
        if last is not None and status.is_of_run_of(last):
            self._reading.skip("interim status, not a final result")
            status.is_dry = last.is_dry
        else:
            yield from self.end()
        status.is_dry, self._is_dry = status.is_dry or self._is_dry, False
        status.is_check, self._is_check = self._is_check, False
        self._last = status

    def goes_on(self) -> None:
        """What was told last was followed by files that were still being moved."""
        if self._last is not None:
            self._last.is_under_way = True
            if self._last.is_whole is None:
                self._last.is_whole = False

    def end(self) -> Iterator[Record]:
        """The run that was going on."""
        last, self._last = self._last, None
        if last is None:
            return
        if last.is_dry:
            self._reading.skip("dry run, nothing was moved")
        elif last.carried or (last.errors and not last.is_check):
            yield Record(last.line, last.text, last.row())
        else:
            self._reading.skip("no data to move")


def _status_of(line_number: int, line: str, entry: dict[str, Any]) -> _Status | None:
    """What a line of a JSON log tells; None if it tells no statistics."""
    stats = entry.get("stats")
    if not isinstance(stats, dict):
        return None
    moved, seconds = number(stats.get("bytes")), number(stats.get("elapsedTime"))
    if moved is None or seconds is None:
        raise ValueError("statistics without bytes or elapsedTime")
    errors = whole(stats.get("errors")) or int(stats.get("fatalError") is True)
    written_us = time_us(entry.get("time"))
    files, total = whole(stats.get("transfers")), number(stats.get("totalBytes"))
    status = _Status(line_number, line, moved, seconds, files, errors, written_us)
    status.slack_us += 0 if "." in str(entry.get("time")) else 1_000_000
    status.is_since_start = "transferTime" in stats
    status.is_whole = None if total is None else moved >= total
    for kind in ("Copy", "Move"):
        status.by_storage += number(stats.get(f"serverSide{kind}Bytes")) or 0.0
    for kind in ("Copies", "Moves"):
        status.files_by_storage += whole(stats.get(f"serverSide{kind}")) or 0
    status.renames = whole(stats.get("renames")) or 0
    return status


def _from_json(reading: Reading) -> Iterator[Record]:
    runs = _Runs(reading)
    for line_number, line in reading.lines():
        if not line.startswith("{"):
            yield from runs.hear(line) or []
            other_line(reading, line_number, line)
            continue
        try:
            entry = json.loads(line)
            entry = entry if isinstance(entry, dict) else {}
            status = _status_of(line_number, line, entry)
        except (ValueError, RecursionError) as failure:
            deep = isinstance(failure, RecursionError)
            why = "unreadable JSON: nested too deeply" if deep else f"not a log line: {failure}"
            reading.malformed(line_number, line, why)
            continue
        if status is None:
            yield from runs.hear(str(entry.get("msg"))) or []
            reading.skip("message")
        else:
            yield from runs.take(status)
    yield from runs.end()


_HEADING = re.compile(
    r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) (?:\S+ )?[A-Z]+ *: *$", re.ASCII
)
"""The line before a status."""
_MOVED = re.compile(
    rf"(?:.*? INFO  : )?\s*Transferred:\s+({NUMBER}) ?([kKMGTPE]?)(i?(?:B|Bytes?)?) "
    r"(?:/ \S+ ?[kKMGTPE]?i?(?:B|Bytes?)?,(?: (\d{1,3})%,)?.*/s.*|(\().*/s\)\s*)",
    re.ASCII,
)
_FILES = re.compile(r"Transferred:\s+(\d{1,12})(?: / \d+(?:, .*)?)?\s*", re.ASCII)
_RENAMED = re.compile(r"Renamed:\s+(\d{1,12})\s*", re.ASCII)
_BY_STORAGE = re.compile(
    rf"Server Side (?:Copies|Moves):\s+(\d{{1,12}}) @ ({NUMBER}) ([kKMGTPE]?)i?(?:B|Bytes?)\s*",
    re.ASCII,
)
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


def _moved(line_number: int, line: str, match: re.Match[str], heading: str) -> _Status:
    """What the first line of a status tells, below a line with its time."""
    told = _Status(line_number, line, scaled(match[1], match[2], 1024), is_local=True)
    told.is_whole = None if match[4] is None else int(match[4]) >= 100
    told.is_since_start = match[3] in ("B", "iB") or match[5] is not None
    told.written_us = time_us(heading.replace("/", "-"))
    told.slack_us += 0 if "." in heading else 1_000_000
    return told


def _from_text(reading: Reading) -> Iterator[Record]:
    runs = _Runs(reading)
    told: _Status | None = None
    heading, has_message = "", False
    for line_number, line in reading.lines():
        # With `-P` a status overwrites the one before, and may begin behind its last line.
        line = line[line.rfind("Transferred:") :] if line.startswith(" * ") else line
        if match := _HEADING.search(line):
            heading = match[1]
            other_line(reading, line_number, line)
            continue
        if match := _MOVED.fullmatch(line):
            told = _moved(line_number, line, match, heading)
            told.is_told_anew, has_message = has_message, False
        elif told is not None and (match := _FILES.fullmatch(line)):
            told.files = int(match[1])
        elif told is not None and (match := _ERRORS.fullmatch(line)):
            told.errors = int(match[1])
        elif told is not None and (match := _RENAMED.fullmatch(line)):
            told.renames = int(match[1])
        elif told is not None and (match := _BY_STORAGE.fullmatch(line)):
            told.files_by_storage += int(match[1])
            told.by_storage += scaled(match[2], match[3], 1024)
        elif told is not None and (match := _ELAPSED.fullmatch(line)):
            told.seconds = _seconds(match)
            yield from runs.take(told)
            told = None
        elif (ended := runs.hear(line)) is not None:
            yield from ended
            reading.skip("message")
        elif " Failed to " in line and not _OF_A_FILE.search(line):
            # What was told last is of the run that failed.
            yield from _failed(runs, line_number, line)
            told = None
        else:
            if line.startswith("Transferring:"):
                runs.goes_on()
            has_message = has_message or " INFO " in line
            other_line(reading, line_number, line)
        heading = ""
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


_DETECT_JSON = re.compile(r'^\{.*"level": ?"', re.MULTILINE)
# Below other lines: where in rclone it was said, or its statistics.
_DETECT_JSON_BELOW = re.compile(
    r'^\{(?=.*"level": ?").*"(?:source": ?"[^"]{1,200}\.go:\d+"|elapsedTime":)', re.MULTILINE
)
_DETECT_TEXT = re.compile(
    r"^(?:.{0,200} INFO  : )?[ \t]*Transferred:[ \t]+\d.* (?:/ |\(.*/s\))"
    r"|^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (?:INFO|NOTICE|ERROR) +: ",
    re.MULTILINE,
)


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a log."""
    start = reading.start(64 << 10)
    is_json = _DETECT_JSON_BELOW.search(start) or '"level":' in start[:4000]
    return tables(reading, "rclone", (_from_json if is_json else _from_text)(reading))


def _detect(start: str) -> bool:
    if start.startswith("{"):
        return bool(_DETECT_JSON.search(start)) and (
            '"source":' in start or '"elapsedTime":' in start
        )
    return bool(_DETECT_JSON_BELOW.search(start) or _DETECT_TEXT.search(start))


FORMAT = Format("rclone", "log of rclone, JSON or text, with statistics", _detect, read, version=5)
