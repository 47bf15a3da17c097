"""What `pscheduler task` and `pscheduler result` print for people: throughput tests.

The result is the line of the last table, `Summary`, its figures rounded to two digits behind the
point. The rate is the receiver's where a column has it, of UDP what was sent less what was lost
(nuttcp's own rate is what arrived). The start is when the run was scheduled; hosts are known where
the test's options are printed with it. Round-trip times and latencies are no transfers.
A run that did not complete, or has no summary, has failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from farline.formats.format import Format
from farline.formats.pscheduler import is_json
from farline.formats.quantity import NUMBER, other_line, scaled
from farline.formats.reading import Reading
from farline.formats.rows import Record, Row, address, line_by_line, read_records, time_us
from farline.formats.tally import excerpt

_TOOLS = ("iperf3", "iperf2", "nuttcp", "ethr", "bwctliperf3", "bwctliperf2")
_BEGINS = re.compile(r"^Submitting task\b|(?:^|\s)pscheduler task ")
_RUN = re.compile(r"Next scheduled run\b")
_TOOL = re.compile(r"Running with tool '(\w{1,40})'")
_STARTS = re.compile(r"Starts (\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d))")
_RESULT = re.compile(
    r"(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d(?::?\d\d)?)) on .* with (\w{1,40}):\s*$"
)
_SPEC = re.compile(r"(?:^|\s)(throughput|latency\w*|rtt|trace|clock|dns|http)(?= --|$)")
_OPTION = re.compile(r"\s--(source|dest|congestion)[ =](\S+)|\s--(reverse|udp)\b")
_STREAM = re.compile(r"\* Stream ID \S+\s*$")
_HEADER = re.compile(r"Interval +Throughput +(Retransmits|Lost / Sent)( .*)?")
_FIGURES = re.compile(
    rf"(\d{{1,9}}\.\d) - (\d{{1,9}}\.\d) +({NUMBER}) ?([KMGT]?)bps +"
    rf"(?:(\d{{1,15}}) / (\d{{1,15}})|(\d{{1,15}})|Not Reported|None|\d+ sent)"
    rf"(?: +({NUMBER}) ?([KMGT]?)bps)?(.*)",
    re.ASCII,
)
_FAILED = re.compile(
    r"(?:Run did not complete|Problem fetching results?|Unable to [a-z ]+|Test failed)\b.*"
)


@dataclass
class _Test:
    """One run of a test, as far as it was told."""

    line: int
    text: str
    tool: str | None = None
    streams: int = 0
    is_throughput: bool = False
    is_other: bool = False
    error: str | None = None
    in_summary: bool = False
    header: re.Match[str] | None = None
    result: re.Match[str] | None = None
    is_last: bool = True
    """Whether nothing follows the result, which may have been cut."""
    options: dict[str, str] = field(default_factory=dict)
    started_us: int | None = None

    @property
    def has_run(self) -> bool:
        """Whether its run was told of: another one is another test."""
        return self.started_us is not None or self.streams > 0 or self.has_ended

    @property
    def has_begun(self) -> bool:
        """Whether it is more than its options."""
        return self.tool is not None or self.has_run

    @property
    def has_ended(self) -> bool:
        """Whether it has a result, or says why it has none."""
        return self.result is not None or self.error is not None

    def row(self) -> Row | str:
        """The row, or why the result is unreadable."""
        ends = address(self.options.get("source")), address(self.options.get("dest"))
        is_reverse = "reverse" in self.options
        row: Row = {
            "modality": "T",
            "started_at": self.started_us,
            "from_host": ends[is_reverse],
            "to_host": ends[not is_reverse],
            "congestion_control": self.options.get("congestion"),
            "streams": self.streams or None,
        }
        if self.result is None or self.header is None:
            code = excerpt(self.error) if self.error else "no end"
            return {**row, "complete": False, "code": code}
        start, end, rate, prefix, lost, sent, retries, received, unit, more = self.result.groups()
        is_udp = self.header[1] == "Lost / Sent"
        rate_bps, is_cut = scaled(rate, prefix, 1000), self.is_last and not more
        if is_udp and self.tool != "nuttcp":
            if is_cut:
                return "the summary is truncated"
            if lost is None or (self.tool is None and int(lost)):
                return "the output does not say how much arrived"
            rate_bps *= max(0.0, 1.0 - int(lost) / int(sent)) if int(sent) else 0.0
        elif received is not None:
            rate_bps = scaled(received, unit, 1000)
        elif "Receiver" in (self.header[2] or "") and "Not Reported" not in more:
            return "the summary is truncated"
        return {
            **row,
            "duration_s": float(end) - float(start),
            "rate_bps": rate_bps,
            "transport": "udp" if is_udp else "tcp",
            "retransmits": None if is_udp or retries is None or is_cut else int(retries),
        }


def _is_other(test: _Test, line: str) -> bool:
    """Whether a line is of another test than what was told before."""
    if _RESULT.match(line) or _RUN.match(line):
        return test.has_run
    if _STREAM.match(line) or line.rstrip() == "Summary":
        return test.has_ended
    return test.has_begun and _BEGINS.search(line) is not None


class _Printed:
    """The tests of an output, line by line."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._test: _Test | None = None
        self._is_spec = False

    def take(self, number: int, line: str) -> Iterator[Record]:
        """Takes a line in; gives the test that ended before it."""
        test, result = self._test, _RESULT.match(line)
        if test is None or _is_other(test, line):
            yield from self.end()
            self._test = _Test(number, line)
            if test is not None and line.startswith("Next scheduled"):
                # A task that is repeated says what it does once.
                self._test.tool, self._test.options = test.tool, test.options
                self._test.is_throughput, self._test.is_other = test.is_throughput, test.is_other
            test = self._test
        told = test.result is not None
        if result:
            test.started_us, test.tool = time_us(result[1]), result[2]
        test.is_last = False if told else test.is_last
        self._spec(test, line)
        self._told(test, line)
        other_line(self._reading, number, line)

    def _spec(self, test: _Test, line: str) -> None:
        """Options of the test, in a line or several."""
        if spec := _SPEC.search(line):
            self._is_spec = spec[1] == "throughput"
            test.is_other = not self._is_spec
            test.is_throughput = self._is_spec
        elif not line.startswith("  --"):
            self._is_spec = False
        for option in _OPTION.finditer(line) if self._is_spec else ():
            test.options[option[1] or option[3]] = option[2] or ""

    def _told(self, test: _Test, line: str) -> None:
        if match := _TOOL.match(line):
            test.tool = match[1]
        elif match := _STARTS.match(line):
            test.started_us = time_us(match[1])
        elif _STREAM.match(line):
            test.streams += 1
            test.is_throughput, test.in_summary, test.header = True, False, None
        elif line.rstrip() == "Summary":
            test.in_summary, test.header = True, None
        elif test.in_summary and (match := _HEADER.match(line)):
            test.header, test.is_throughput = match, True
        elif test.header and test.result is None and (match := _FIGURES.match(line)):
            test.result = match
        elif test.result is None and (match := _FAILED.match(line)):
            test.error = test.error or match[0]

    def end(self) -> Iterator[Record]:
        """The test that was going on."""
        test, self._test = self._test, None
        if test is None:
            return
        known = test.is_throughput or test.tool in _TOOLS
        if test.is_other or not known:
            self._reading.skip("test of another type" if test.tool or test.is_other else "message")
            return
        row = test.row()
        if isinstance(row, str):
            self._reading.malformed(test.line, test.text, row)
        else:
            yield Record(test.line, test.text, row)


_DETECT = re.compile(
    r"^Interval {5,}Throughput {3,}(?:Retransmits|Lost / Sent)|^Running with tool '\w+'$",
    re.MULTILINE,
)

FORMAT = Format(
    "pscheduler-text",
    "what pscheduler prints of throughput tests",
    lambda start: bool(_DETECT.search(start)) and not is_json(start),
    read_records("pscheduler", line_by_line(_Printed)),
)
