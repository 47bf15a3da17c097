"""What a copy comes to: what is missing, the lines at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from farline.cli.shown import shown
from farline.cli.sum_words import sum_name
from farline.profiles.copy_streams import payload_bytes, payload_rate_bps
from farline.spec.units import counted, rate_human, size_human

if TYPE_CHECKING:
    from farline.spec._types import CopyEnd, CopyReport, RunRecord
    from farline.tools.events import EstimateChecked

FAILURES_SHOWN = 20
"""Names that are listed; the receipt has all of them."""

REMEDIES_SHOWN = 3
"""Remedies that are listed; `farline show` has all of them."""

_CONTINUES = ": it continues with what is missing"
_RESUMES = "; it resumes"
_AGAIN = f"run the same command again{_CONTINUES}"
_AFTER_FAILURE = {
    "auth": "a new ticket from the operator of the server: farline ticket --write FOLDER",
    "busy": f"later, or with a longer --retry-for; {_AGAIN}",
    "interrupted": _AGAIN,
    "limit": "smaller values of the options in the error, or a ticket with higher limits",
    "protocol": f"the same version of farline on both hosts; {_AGAIN}",
    "system": "fix the problem on HOST (space, permissions, path), then repeat the command"
    f"{_RESUMES}",
    "timeout": f"check the path (farline probe HOST), or use a longer --stall-timeout; {_AGAIN}",
    "unreachable": f"check host, port and firewall; {_AGAIN}",
    "version": "the same version of farline on both hosts",
}
"""What to do about a copy that failed, by the kind of its error."""

NOWHERE = ("null", "memory")
"""Engines that write what was received to no file."""

WIDTH = 80
_KEPT = "\u00a0"
"""A blank at which no line ends."""

_STAGES = (
    ("file_us", "files"),
    ("name_us", "names"),
    ("hash_us", "hash"),
    ("cipher_us", "cipher"),
    ("stream_us", "streams"),
    ("sync_us", "sync"),
    ("starved_us", "waiting"),
)


def missing_lines(report: CopyReport) -> list[str]:
    """The first names that failed, each with its reason, how many more there are; then what went
    wrong besides names: why nothing was deleted, say."""
    problems = report.get("problems", [])
    failed = report["failed"]["files"] - len(problems)
    told = report["failures"][:FAILURES_SHOWN]
    lines = [
        shown(f"failed {line['path']}: {line.get('reason') or 'no reason given'}") for line in told
    ]
    if failed > len(told):
        lines.append(f"failed: {failed - len(told)} more; the receipt lists them")
    return [*lines, *map(shown, problems)]


def skipped_lines(report: CopyReport) -> list[str]:
    """The first special files that were skipped, and how many more names were."""
    skips = [line for line in report.get("skips", []) if line["kind"] == "other"]
    told = skips[:FAILURES_SHOWN]
    lines = [
        shown(f"skipped {line['path']}: {line.get('reason') or 'not a file'}") for line in told
    ]
    if len(skips) > len(told):
        lines.append(f"skipped: {len(skips) - len(told)} more; the receipt lists them")
    return lines


def clock_text(seconds: float) -> str:
    """`0:05`, `12:34`, `1:02:03`."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{whole % 60:02d}"
    return f"{minutes}:{whole % 60:02d}"


def summary_lines(
    record: RunRecord,
    stats: bool,
    where: Mapping[str, str],
    estimate: EstimateChecked | None = None,
) -> list[str]:
    """The table at the end, at most 80 columns wide; `where` says where receipt and run are."""
    report = record.get("copy")
    if report is None:
        return []
    is_idle = _is_idle(record, report)
    rows = [
        ("files", _files_text(record, report)),
        ("bytes", _bytes_text(record, report)),
        *([] if is_idle else _time_row(report)),
        *_estimate_row(estimate),
        *_more_rows(report),
        *_not_kept_rows(report),
        *_missing_rows(record, report),
        *([] if is_idle else [("by", _means_text(record, report)), *_disks_row(report)]),
    ]
    if stats:
        rows += [(name, _end_text(report[name])) for name in ("sender", "receiver")]
    rows += _verdict_rows(record, report)
    rows += list(where.items())
    return [line for name, text in rows for line in _wrapped(name, text)]


def _verdict_rows(record: RunRecord, report: CopyReport) -> list[tuple[str, str]]:
    """What limited the copy and what to try; of a failed one, only the latter."""
    verdict, error = record.get("verdict"), record.get("error")
    if error is not None and error["kind"] in _AFTER_FAILURE:
        text = _AFTER_FAILURE[error["kind"]].replace("on HOST", f"on {_host_of(record)}")
        # Where no name was found, there is nothing to continue.
        if not report["found"]["files"]:
            text = text.removesuffix(_CONTINUES).removesuffix(_RESUMES)
        return [("try", text)]
    if not verdict:
        return []
    limited = "" if verdict["limit"] == "unknown" else "limited by "
    remedies = verdict.get("remedies", [])[:REMEDIES_SHOWN]
    tries = [("try" if at == 0 else "", text) for at, text in enumerate(remedies)]
    return [("verdict", limited + verdict["line"]), *tries]


def _host_of(record: RunRecord) -> str:
    """The host that an error names before its colon; this one, where it begins with a path."""
    error, server = record.get("error"), record["server"]
    name = (error["message"] if error else "").partition(": ")[0]
    address = record["server_address"]
    known = {address, address.rpartition(":")[0].strip("[]")}
    known |= {server["host"]["hostname"]} if server else set()
    if name in known or "@" in name or name.startswith("farline://"):
        return shown(name)
    return "this host" if "/" in name or " " in name else "that host"


def _wrapped(name: str, text: str) -> list[str]:
    """One row; what does not fit goes on below, at blanks."""
    lines, room = [""], WIDTH - 10
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    rows = [f"{name if at == 0 else '':<10}{line}".rstrip() for at, line in enumerate(lines)]
    return [row.replace(_KEPT, " ") for row in rows]


def _files_text(record: RunRecord, report: CopyReport) -> str:
    would = "would be " if _is_dry(record) else ""
    done = "received, nothing written" if _drops(record) and not would else f"{would}copied"
    words = [f"{report['copied']['files']} {done}"]
    if updated := report.get("updated"):
        words.append(f"attributes of {updated['files']} {would or 'were '}updated")
    for key in ("present", "skipped", "deleted", "failed"):
        if count := report[key]["files"]:
            words.append(f"{count} {would if key == 'deleted' else ''}{key}")
    if removed := report.get("removed"):
        words.append(f"{removed} removed at the source")
    if report["made"]:
        one = "folder or link" if report["made"] == 1 else "folders and links"
        words.append(f"{report['made']} {one} {would}created")
    return ", ".join(words)


def _bytes_text(record: RunRecord, report: CopyReport) -> str:
    seconds, size = record["run_s"], size_human(report["copied"]["bytes"])
    if _is_dry(record):
        return f"{size} would be copied; examined in {seconds:.2f} s"
    rate_bps = payload_rate_bps(record)
    rate = f" ({rate_human(rate_bps)})" if rate_bps else ""
    return f"{size} in {seconds:.2f} s{rate}"


def _is_dry(record: RunRecord) -> bool:
    return bool((record["spec"].get("copy") or {}).get("dry_run"))


def _is_idle(record: RunRecord, report: CopyReport) -> bool:
    """Whether no data of files moved: then nothing has copied, verified or written."""
    nothing = not report["copied"]["files"] and not payload_bytes(record)
    return _is_dry(record) or nothing


def _drops(record: RunRecord) -> bool:
    """Whether what was received went nowhere, as was asked for."""
    return (record["spec"].get("copy") or {}).get("write_engine") in NOWHERE


def _more_rows(report: CopyReport) -> list[tuple[str, str]]:
    again = counted(report["repeated_chunks"], "chunk")
    texts = {
        "resumed": size_human(report["resumed_bytes"]) + " already present from before",
        "holes": size_human(report["hole_bytes"]) + " not sent",
        "again": f"retransmitted {again} that arrived corrupted",
    }
    owners, groups = report.get("unset_owners", 0), report.get("unset_groups", 0)
    kept = [f"{owners} owners"] if owners else []
    kept += [f"{groups} groups"] if groups else []
    counts = (report["resumed_bytes"], report["hole_bytes"], report["repeated_chunks"])
    rows = [row for row, count in zip(texts.items(), counts, strict=True) if count]
    if kept:
        text = (
            f"{' and '.join(kept)}: only root can change the owner, or set a group that the user "
            "is not in"
        )
        rows.append(("not set", text))
    return rows


_ATTRIBUTES = {
    "time": ("modification time", "modification times"),
    "link-time": ("time of a link", "times of links"),
    "mode": ("mode", "modes"),
    "xattr": ("extended attribute", "extended attributes"),
    "hard-link": ("additional hard link", "additional hard links"),
    "sync": ("file not flushed to disk", "files not flushed to disk"),
    "lock": ("lock", "locks"),
    "staging": ("folder", "folders"),
}
"""What a destination may not keep: of one name, of several."""


def not_kept_lines(report: CopyReport) -> list[str]:
    """What the destination could not keep, a line for each kind with its count."""
    lines = []
    for lost in report.get("not_kept") or []:
        count = lost["names"]
        one, several = _ATTRIBUTES[lost["attribute"]]
        lines.append(shown(f"{count} {one if count == 1 else several}: {lost['how']}"))
    return lines


def _not_kept_rows(report: CopyReport) -> list[tuple[str, str]]:
    lines = not_kept_lines(report)
    return [("not kept" if at == 0 else "", line) for at, line in enumerate(lines)]


def _missing_rows(record: RunRecord, report: CopyReport) -> list[tuple[str, str]]:
    """What a copy that did not come to its end has not settled."""
    if record["status"] == "complete":
        return []
    kinds = ("copied", "present", "failed", "skipped")
    settled = [report[kind] for kind in kinds]  # type: ignore[literal-required]
    settled += [report["updated"]] if "updated" in report else []
    names = report["found"]["files"] - report["made"] - sum(one["files"] for one in settled)
    size = max(0, report["found"]["bytes"] - sum(one["bytes"] for one in settled))
    if not report["found"]["files"]:
        return []
    found = counted(report["found"]["files"], "name")
    text = f"{max(0, names)} of {found} found so far, {size_human(size)}"
    error = record.get("error")
    if _is_dry(record) or _drops(record) or (error and error["kind"] == "system"):
        # A disk that takes no more has said in its error what is kept of files under way.
        return [("missing", text)]
    whole = report["copied"]["bytes"] - report["resumed_bytes"] - report["hole_bytes"]
    parts = max(0, payload_bytes(record) - max(0, whole))
    rate_bps = payload_rate_bps(record)
    left_s = 8 * max(0, size - parts) / rate_bps if rate_bps else 0.0
    if left_s >= 1:
        text += f", about {clock_text(left_s)} at this rate"
    rows = [("missing", text)]
    if parts:
        rows.append(("parts", f"{size_human(parts)} of files that are not complete yet"))
    if not parts and not report["copied"]["files"] and not report["resumed_bytes"]:
        return rows
    name, last = rows.pop()
    kept = "what has arrived and was verified is kept; run the same command again to continue"
    return [*rows, (name, f"{last}; {kept}")]


def _time_row(report: CopyReport) -> list[tuple[str, str]]:
    """How long the command has taken in all, beside what its sessions took to move files."""
    if not (command_us := report.get("command_us")):
        return []
    attempts = report.get("attempts", 1)
    sessions = f" in {attempts} sessions" if attempts > 1 else ""
    moving = f"{report.get('moving_us', 0) / 1e6:.2f} s copying{sessions}"
    return [("time", f"{moving}, {command_us / 1e6:.2f} s in total")]


def _estimate_row(estimate: EstimateChecked | None) -> list[tuple[str, str]]:
    """What earlier copies over the path had said of this one."""
    if estimate is None:
        return []
    from farline.estimating.words import span_words

    low, high = span_words(estimate.low_s), span_words(estimate.high_s)
    expected, took = span_words(estimate.estimated_s), span_words(estimate.took_s)
    text = f"{expected} from earlier copies, 8 in 10 take {low} to {high}; it took {took}"
    return [("estimate", text)]


def _means_text(record: RunRecord, report: CopyReport) -> str:
    spec = record["spec"]
    streams, asked = spec.get("streams", 1), spec.get("copy") or {}
    cipher = report["cipher"] or asked.get("cipher") or "none"
    sealed = "not encrypted" if cipher == "none" else cipher
    if by := report.get("encrypted_by"):
        sealed += f" by {by.upper()}"
    plural = "" if streams == 1 else "s"
    rate_bps = spec.get("rate_bps")
    rate = f" at {rate_human(rate_bps)}" if rate_bps else ""
    verified = _verified_text(asked.get("verify", "tree"), report.get("hash"))
    return f"{spec.get('transport', 'tcp')}, {streams} stream{plural}{rate}, {sealed}, {verified}"


def _verified_text(verify: str, hash_word: str | None) -> str:
    """What proved the content: which sum, and whether the device was asked once more."""
    if verify == "none":
        return "not verified (no checksums)"
    read_back = ", read back" if verify == "read-back" else ""
    return f"verified with {sum_name(hash_word)}{read_back}"


def _disks_row(report: CopyReport) -> list[tuple[str, str]]:
    """What reads and what writes; of an end that has not said, nothing."""
    told = {name: _disk_text(report[name]) for name in ("sender", "receiver")}
    if all(told.values()):
        return [("disks", " -> ".join(told.values()))]
    return [("disks", f"{text} at the {name}") for name, text in told.items() if text]


def _disk_text(end: CopyEnd) -> str:
    if not end["engine"] and not end["file_system"]:
        return ""
    threads = f" x {end['threads']}" if end["threads"] else ""
    return f"{end['engine'] or 'unknown'}{threads} on {end['file_system'] or 'unknown'}"


def _end_text(end: CopyEnd) -> str:
    """Seconds of the end's threads at each stage, and its largest memory."""
    spent = [
        f"{word} {end[key] / 1e6:.2f} s"  # type: ignore[literal-required]
        for key, word in _STAGES
        if end[key] >= 5_000  # type: ignore[literal-required]
    ]
    words = [*spent, f"memory {size_human(end['peak_memory_bytes'])}"]
    return ", ".join(word.replace(" ", _KEPT) for word in words)
