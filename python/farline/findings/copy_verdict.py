"""What limited a copy: its own rules first, then those for runs about windows and paths.

Hashing and encryption are work of a CPU, so they come as `sender-cpu` or `receiver-cpu` with their
share. `quick_verdict` asks what the record alone can answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from farline.findings.copy_figures import CopyFigures, EndFigures, copy_figures_of
from farline.findings.finding import Finding, counted, percent
from farline.findings.rules import copies
from farline.spec.units import rate_human, size_human

if TYPE_CHECKING:
    from farline.spec._types import RunRecord, Verdict

_NOT_OF_COPIES = re.compile(r"(^|\W)(-l|-t|-O|-Z|--send-mode|--receive-mode|--packet)(\W|$)")
"""Options of runs that a copy has not: a remedy that names one is none."""

_LONG = {"-P": "--streams", "-C": "--congestion", "-w": "--window", "-b": "--rate"}
"""Letters that mean something else in a copy."""

_SMALL = 0.005
"""Share of the threads' time below which a stage is not named."""

_STAGE_WORDS = {
    "sender": {"file": "reading", "name": "file names", "hash": "hashing", "cipher": "encryption",
               "stream": "sending", "starved": "nothing to send"},
    "receiver": {"file": "writing", "name": "file names", "hash": "hashing", "cipher": "decryption",
                 "stream": "receiving", "sync": "syncing", "starved": "receive buffer full"},
}  # fmt: skip


def quick_verdict(record: RunRecord) -> Verdict | None:
    """What limited a copy, where its record alone tells; None where samples have to be asked.

    Takes a record with `copy`; imports neither numpy nor anything else that takes time.
    """
    if record.get("path"):
        return None
    figures = copy_figures_of(record)
    found = find(figures)
    return verdict_of(found, figures) if found is not None else None


def find(figures: CopyFigures) -> Finding | None:
    """The first rule's finding that needs no samples."""
    return next((found for rule in copies.RULES if (found := rule(figures))), None)


def verdict_of(found: Finding, figures: CopyFigures) -> Verdict:
    """A finding as a verdict, with what every copy's says."""
    line = found.line
    if figures.spec.get("give_way") and found.limit in ("path", "cwnd", "unknown"):
        line += "; it yielded to other traffic (--yield)"
    return {
        "limit": found.limit,
        "line": line,
        "evidence": [*found.evidence, *evidence(figures)],
        "remedies": [text for one in found.remedies if (text := remedy_of_copy(one))],
    }


def remedy_of_copy(remedy: str) -> str | None:
    """A remedy of a run in the words of `farline copy`; None where a copy has no such option."""
    if _NOT_OF_COPIES.search(remedy) or remedy == "a longer run":
        return None
    commands = remedy.split("`")
    # Between backquotes, and after `sysctl`, the letters are other programs' options.
    commands[::2] = [_with_long_options(text) for text in commands[::2]]
    return "`".join(commands)


def _with_long_options(text: str) -> str:
    words = text.split(" ")
    before = ["", *words]
    return " ".join(
        word if last == "sysctl" else _LONG.get(word, word)
        for last, word in zip(before, words, strict=False)
    )


def evidence(figures: CopyFigures) -> list[str]:
    """How much was moved in which time, and what the threads of both ends were at."""
    seconds = figures.wall_us / 1e6
    lines = []
    if figures.spec.get("dry_run"):
        return []
    if seconds and figures.moved_bytes:
        files, size = figures.copied_files, figures.copied_bytes
        lines.append(
            f"{files:,} files, {size_human(size)} in {seconds:.3g} s: "
            f"{files / seconds:,.0f} files/s, {rate_human(figures.throughput_bps)}, "
            f"{figures.direction}"
        )
    return lines + [line for end in figures.ends if (line := _end_line(end))]


def time_shares(end: EndFigures) -> dict[str, float]:
    """What the threads of an end were at, as shares of all the time that was accounted for.

    Largest first; what took next to nothing is left out.
    """
    total = sum(end.times_us.values())
    words: Mapping[str, str] = _STAGE_WORDS[end.role]
    named = {words.get(n, n): us / total for n, us in end.times_us.items() if us > _SMALL * total}
    return dict(sorted(named.items(), key=lambda item: -item[1]))


def _end_line(end: EndFigures) -> str:
    shares = time_shares(end)
    if not shares:
        return ""
    parts = ", ".join(f"{word} {percent(share)}" for word, share in shares.items())
    threads = counted(end.streams, "stream")
    threads += f", files by {counted(end.threads, 'thread')}" if end.threads else ""
    place = " on ".join(word for word in (end.engine, end.file_system) if word)
    return f"{end.role} ({place}; {threads}): thread time: {parts}"


def is_judged_here(record: Mapping[str, Any]) -> bool:
    """Whether a record is that of a copy which came to a report."""
    return bool(record["spec"].get("copy")) and bool(record.get("copy"))
