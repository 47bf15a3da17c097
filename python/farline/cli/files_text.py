"""Text of a copy that is kept: what became of its files, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from farline.cli.sum_words import sum_name
from farline.profiles.copy_streams import payload_rate_bps
from farline.spec.units import counted, rate_human, size_human, size_text

if TYPE_CHECKING:
    import pyarrow as pa

MOST_FAILURES = 20
"""Failures that are printed; the receipt has all."""
_BAR = 20
_PARTS = "▏▎▍▌▋▊▉█"
_STATUS = {
    "would-copy": "would copy",
    "would-delete": "would delete",
    "would-update": "would update",
}


def copy_words(spec: Mapping[str, Any]) -> str:
    """What a spec copies, in a few words."""
    copy = spec["copy"]
    sources = copy["sources"]
    named = sources[0] if len(sources) == 1 else f"{len(sources)} sources"
    return f"{named} copied to {copy['destination']}"


def copy_lines(record: Mapping[str, Any]) -> list[str]:
    """What a copy came to; nothing for a run that is none."""
    report = record.get("copy")
    if not report:
        return []
    lines = [f"{'files':<9}{_files_line(record, report)}"]
    lines += [f"{'':<9}{line}" for line in _other_lines(report)]
    lines.append(f"{'moved':<9}{_sealed_line(record, report)}")
    engines = _engine_line(report)
    lines += [f"{'':<9}{engines}"] if engines else []
    times = [] if record["spec"]["copy"].get("dry_run") else time_lines(record)
    return [*lines, *times, *failure_lines(record)]


def _files_line(record: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    copied, seconds = report["copied"], record.get("run_s") or 0.0
    if record["spec"]["copy"].get("dry_run"):
        return f"{copied['files']:,} would be copied, {size_human(copied['bytes'])}"
    text = f"{copied['files']:,} copied, {size_human(copied['bytes'])}"
    if seconds and copied["files"]:
        speed = f"{copied['files'] / seconds:,.0f} files/s, "
        text += f" in {seconds:.2f} s: {speed}{rate_human(payload_rate_bps(record))}"
    return text


def _other_lines(report: Mapping[str, Any]) -> list[str]:
    words = {"present": "already present", "skipped": "skipped", "deleted": "deleted",
             "failed": "failed"}  # fmt: skip
    counts = [f"{report[name]['files']:,} {word}" for name, word in words.items()
              if report[name]["files"]]  # fmt: skip
    if report["made"]:
        one, many = "folder, link or additional name", "folders, links and additional names"
        counts.append(f"{counted(report['made'], one, many)} created")
    spared = [
        f"{size_human(report[name])} {word}"
        for name, word in (("resumed_bytes", "verified by the journal, not retransmitted"),
                           ("hole_bytes", "of holes in sparse files, not sent"))
        if report[name]
    ]  # fmt: skip
    if report["repeated_chunks"]:
        spared.append(f"{report['repeated_chunks']:,} corrupted chunks retransmitted")
    return [", ".join(part) for part in (counts, spared) if part]


def _sealed_line(record: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    copy = record["spec"]["copy"]
    cipher = report["cipher"] or copy.get("cipher", "aes128-gcm")
    sealed = "not encrypted" if cipher == "none" else f"encrypted with {cipher}"
    if by := report.get("encrypted_by"):
        sealed += f" by {by.upper()} itself"
    verify = copy.get("verify", "tree")
    words = [sealed, f"verify {verify}"]
    if verify != "none":
        words.append(sum_name(report.get("hash")))
    if report["chunk_bytes"]:
        words.append(f"chunks of {size_text(report['chunk_bytes'])}")
    return ", ".join(words)


def _engine_line(report: Mapping[str, Any]) -> str:
    words = []
    for role, doing, one in (("sender", "read", "reader"), ("receiver", "written", "writer")):
        end = report[role]
        if end["engine"]:
            place = f" on {end['file_system']}" if end["file_system"] else ""
            threads = f", {counted(end['threads'], one)}" if end["threads"] else ""
            words.append(f"{doing} {end['engine']}{place}{threads}")
    return "; ".join(words)


def time_lines(record: Mapping[str, Any]) -> list[str]:
    """Where the time of the threads of both ends went, as bars."""
    from farline.findings.copy_figures import copy_figures_of
    from farline.findings.copy_verdict import time_shares

    lines = []
    for end in copy_figures_of(record).ends:
        shares = list(time_shares(end).items())
        total_s = sum(end.times_us.values()) / 1e6
        head = f"{end.role}'s threads, {total_s:.3g} s"
        lines += [
            f"{head if not number else '':<32}{word:<20}{bar(share):<{_BAR}} {100 * share:3.0f} %"
            for number, (word, share) in enumerate(shares)
        ]
    return ["where the time went:", *(f"  {line}" for line in lines)] if lines else []


def bar(share: float, width: int = _BAR) -> str:
    """A bar of `width` places for all, in eighths of a place."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return _PARTS[-1] * (eighths // 8) + (_PARTS[eighths % 8 - 1] if eighths % 8 else "")


def failure_lines(record: Mapping[str, Any]) -> list[str]:
    """The first failures with their reasons, and where the others are."""
    report = record["copy"]
    shown = report["failures"][:MOST_FAILURES]
    lines = [f"  {line['path']}: {line.get('reason') or 'no reason given'}" for line in shown]
    more = report["failed"]["files"] - len(shown)
    if lines and more > 0:
        lines.append(f"  and {more:,} more: farline show {record['run_id']} --files --failed")
    return ["failed:", *lines] if lines else []


def receipt_lines(batches: Iterable[pa.RecordBatch]) -> Iterable[str]:
    """A receipt for people: what became of each name, its length and the beginning of its sum."""
    yield f"{'status':<13}{'bytes':>16}  {'checksum':<23}  path"
    for batch in batches:
        for row in batch.to_pylist():
            yield _receipt_line(row)


def _receipt_line(row: Mapping[str, Any]) -> str:
    status = _STATUS.get(row["status"], row["status"])
    kind = "" if row["kind"] == "file" else f" ({row['kind']})"
    reason = f": {row['reason']}" if row["reason"] else ""
    return f"{status:<13}{row['bytes']:>16,}  {_sum_text(row):<23}  {row['path']}{kind}{reason}"


def _sum_text(row: Mapping[str, Any]) -> str:
    """Which sum a line has, and its beginning; `not hashed` where content came without one."""
    for name, word in (("blake3", "blake3"), ("xxh3_tree", "xxh3")):
        if row[name]:
            return f"{word}:{row[name][:16]}"
    return "not hashed" if row["hash"] == "none" else "-"
