"""Lines as journalctl and syslog print them: what stands before each is taken off.

So is a time alone, as `ts` and containers' logs have it, a mark of quotation, and spaces that all
lines begin with.

Known are `short` (and what rsyslog writes), `short-precise`, `short-iso`, `short-iso-precise`,
`short-full`, `short-unix`, `short-monotonic` and `json`. Lines of several processes may alternate:
those of one process are put together, so that no line is taken for one of another's output.
Lines that journalctl itself adds (`-- Boot ... --`) are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain

MOST_HELD_BYTES = 32 << 20
"""So much is put together by process; then it is given on, and memory does not grow."""

MOST_LINE_BYTES = 2 << 20
"""Of a line without end no more is kept: it is too long for any format."""

_CLOCK = rb"\d\d:\d\d:\d\d(?:\.\d{1,9})?"
_STAMP = (
    rb"[A-Z][a-z]{2} [ \d]\d " + _CLOCK  # short, short-precise
    + rb"|\d{4}-\d\d-\d\dT" + _CLOCK + rb"(?:Z|[+-]\d\d:?\d\d)"  # short-iso, rsyslog
    + rb"|[A-Z][a-z]{2} \d{4}-\d\d-\d\d " + _CLOCK + rb" [A-Z0-9+-]{1,6}"  # short-full
    + rb"|\d{9,11}\.\d{6}"  # short-unix
    + rb"|\[ *\d{1,9}\.\d{6}\]"  # short-monotonic
)  # fmt: skip
# What follows may be no host and process, but the date and time of a log that ts had the lines of.
_PREFIX = re.compile(
    rb"(?:" + _STAMP + rb") (?!\S+ \d\d:\d\d:\d\d\b)(\S+ [^\s:\[]+(?:\[\d+\])?): ?"
)
# What ts prints, and what docker and Kubernetes do.
_TIME = re.compile(
    rb"(?:[A-Z][a-z]{2} [ \d]\d " + _CLOCK
    + rb"|\d{4}-\d\d-\d\dT" + _CLOCK + rb"(?:Z|[+-]\d\d:\d\d)(?: std(?:out|err) [FP])?)(?: |$)"
)  # fmt: skip
_QUOTE = re.compile(rb">(?: |$)")
_ADDED = re.compile(rb"-- .* --$|-- (?:Logs begin|Journal begins) at ")
_JSON = re.compile(rb'\{(?=.*"__REALTIME_TIMESTAMP")(?=.*"MESSAGE")')
_LOOKED_AT = 20


def without_journal(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The text, without prefixes if it begins as a journal does."""
    first = next(chunks, b"")
    rest = chain([first], chunks)
    kind = _kind(first)
    if kind is None:
        before = _before(first)
        return rest if before is None else _without(before, rest)
    return _grouped(rest, is_json=kind == "json")


def _before(start: bytes) -> re.Pattern[bytes] | None:
    """What every line begins with: a time, a mark of quotation, or spaces."""
    lines = [line for line in start[:65536].split(b"\n")[:-1] if line.strip()]
    if len(lines) < 2:
        return None
    for known in (_TIME, _QUOTE):
        if all(known.match(line) for line in lines[:_LOOKED_AT]):
            return known
    spaces = min(len(line) - len(line.lstrip(b" ")) for line in lines)
    return re.compile(rb" {1,%d}" % spaces) if spaces else None


def _without(before: re.Pattern[bytes], chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines without what they begin with; one without it is left as it is."""
    carry = b""
    for chunk in chunks:
        whole, end, carry = (carry + chunk).rpartition(b"\n")
        carry = carry[:MOST_LINE_BYTES]
        if end:
            yield b"".join(before.sub(b"", line, count=1) + end
                           for line in whole.split(end))  # fmt: skip
    if carry:
        yield before.sub(b"", carry, count=1)


def _kind(start: bytes) -> str | None:
    """`json` or `short` for a text that begins as a journal does."""
    lines = [line for line in start[:65536].split(b"\n")[:-1] if line.strip()][:_LOOKED_AT]
    lines = [line for line in lines if not _ADDED.match(line)]
    if not lines:
        return None
    if all(_JSON.match(line) for line in lines):
        return "json"
    # A message of several lines goes on in lines that are set in.
    plain = [line for line in lines if not line.startswith(b"  ")]
    return "short" if plain and all(_PREFIX.match(line) for line in plain) else None


def _grouped(chunks: Iterator[bytes], *, is_json: bool) -> Iterator[bytes]:
    """The messages, those of one process together."""
    take = _json_message if is_json else _message
    held: dict[bytes, list[bytes]] = {}
    process, carry, size = b"", b"", 0
    for chunk in chain(chunks, [b"\n"]):
        whole, end, carry = (carry + chunk).rpartition(b"\n")
        carry = carry[:MOST_LINE_BYTES]
        for line in whole.split(b"\n") if end else ():
            process, message = take(line, process)
            if message is not None:
                held.setdefault(process, []).append(message + b"\n")
                size += len(message)
        if size > MOST_HELD_BYTES:
            yield _together(held)
            size = 0
    if held:
        yield _together(held)


def _together(held: dict[bytes, list[bytes]]) -> bytes:
    text = b"".join(line for lines in held.values() for line in lines)
    held.clear()
    return text


def _message(line: bytes, process: bytes) -> tuple[bytes, bytes | None]:
    if match := _PREFIX.match(line):
        return match[1], line[match.end() :]
    return process, None if _ADDED.match(line) else line


def _json_message(line: bytes, process: bytes) -> tuple[bytes, bytes | None]:
    try:
        entry = json.loads(line)
        message = entry["MESSAGE"]
        names = ("_HOSTNAME", "SYSLOG_IDENTIFIER", "_PID")
        who = " ".join(str(entry.get(name)) for name in names).encode("utf-8", "replace")
        # A message that is no text is an array of bytes.
        if isinstance(message, list):
            return who, bytes(message)
        text = str(message or "").encode("utf-8", "replace")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return process, line or None
    return who, text
