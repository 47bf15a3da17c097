"""Rules about copies that need no samples: what was asked for, names, CPUs, disks; in this order.

A disk is told from a CPU by what is left of the time in reads and writes when all CPU time that
could have been in them is taken off: what comes from the page cache is no disk's doing. The rest,
windows and paths, is judged by the rules for runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farline.findings.copy_figures import CopyFigures, EndFigures
from farline.findings.finding import (
    JUMBO_REMEDY,
    STREAMS_MAX,
    Finding,
    counted,
    other_congestion_control,
    percent,
)
from farline.findings.rules.cpu import LESS_LOAD, LIMIT, host_line, thread_use
from farline.findings.rules.limits import LIMITS
from farline.spec.units import rate_human, time_human

LIMITS_OF_COPIES = LIMITS["copy"]

_WORKERS_GOOD, _WORKERS_MOST = 4, 16
_DOES = {"sender": ("reading", "reader", "read"), "receiver": ("writing", "writer", "write")}


def failed(figures: CopyFigures) -> Finding | None:
    """The copy failed as a whole."""
    if figures.status != "failed":
        return None
    return Finding("unknown", f"the copy failed: {figures.error or 'no reason given'}")


def nothing_moved(figures: CopyFigures) -> Finding | None:
    """No file had to be moved, or none could be."""
    if figures.spec.get("dry_run"):
        return Finding("unknown", "dry run: no data was copied, so there is nothing to judge")
    if figures.moved_bytes and figures.copied_files:
        return None
    line = nothing_moved_line(figures.report, figures.moved_bytes)
    return None if line is None else Finding("unknown", line)


def nothing_moved_line(report: Mapping[str, Any], moved_bytes: int) -> str | None:
    """Why there is nothing to judge of a copy; None where there may be."""
    present, found = (report[name]["files"] for name in ("present", "found"))
    if found and present == found:
        return f"nothing to copy: {_files(present)} already present"
    return None if moved_bytes else "no data was copied, so there is nothing to judge"


def too_short(figures: CopyFigures) -> Finding | None:
    """Over before anything could hold it back."""
    if figures.payload_us >= 1e6 * LIMITS_OF_COPIES.short_s:
        return None
    span = time_human(figures.payload_us)
    return Finding("unknown", f"too short to tell what limited it ({span} of data)")


def rate(figures: CopyFigures) -> Finding | None:
    """The rate that was asked for, or that the ticket allows."""
    reached = figures.throughput_bps / figures.asked_bps if figures.asked_bps else 0.0
    if reached < LIMITS_OF_COPIES.rate_reached:
        return None
    asked = rate_human(figures.asked_bps)
    line = f"rate: {percent(min(1.0, reached))} of the requested {asked} reached"
    evidence = (f"{figures.asked_by} limits it to {asked} in total",)
    return Finding("rate", line, evidence, (f"a higher rate, or no limit: {figures.asked_by} 0",))


def file_names(figures: CopyFigures) -> Finding | None:
    """Opening, naming and closing is most of what one end did."""
    end = max(figures.ends, key=_name_share)
    share = _name_share(end)
    limits, name_us = LIMITS_OF_COPIES, end.times_us["name"]
    if share < limits.names_of_threads or name_us < limits.names_of_work * end.work_us:
        return None
    files = max(1, figures.copied_files)
    line = (
        f"file names: opening, renaming and closing {_files(files)} takes {percent(share)} "
        f"of the time of the {end.role}'s threads, {time_human(name_us / files)} per file"
    )
    remedies = (*_more_workers(end), "fewer and larger files")
    return Finding("file-names", line, remedies=remedies)


def _name_share(end: EndFigures) -> float:
    return min(1.0, end.of_workers(end.times_us["name"]))


def busy_thread(figures: CopyFigures) -> Finding | None:
    """A stream's thread always runs or waits to run: the busier end is the limit."""
    end = max(figures.ends, key=lambda one: one.thread_cpu + one.thread_wait)
    if end.thread_cpu + end.thread_wait < LIMITS_OF_COPIES.thread_full:
        return None
    least_wait = LIMITS_OF_COPIES.thread_wait
    use = thread_use(end.thread_cpu, end.thread_wait, least_wait)
    line = f"{end.role} CPU: a {end.role} thread {use}"
    remedies: tuple[str, ...] = (*_more_streams(figures), *_cheaper(figures, end))
    if end.thread_wait >= least_wait:
        remedies = (LESS_LOAD, *_cheaper(figures, end))
    return Finding(LIMIT[end.role], line + _cpu_parts(end), remedies=remedies)


def busy_host(figures: CopyFigures) -> Finding | None:
    """All CPUs of a host are in use, though no thread fills one alone."""
    used = {end.role: _host_share(end) for end in figures.ends}
    end = max(figures.ends, key=lambda one: used[one.role])
    share = min(1.0, sum(used.values())) if figures.same_host else used[end.role]
    if share < LIMITS_OF_COPIES.host_full:
        return None
    line = host_line(end.role, share, end.cpus, figures.same_host)
    fewer = ("fewer streams than CPUs",) if figures.streams >= end.cpus else ()
    remedies = (*fewer, *_cheaper(figures, end))
    return Finding(LIMIT[end.role], line + _cpu_parts(end), remedies=remedies)


def disk(figures: CopyFigures) -> Finding | None:
    """Threads of one end wait for its disk."""
    waits = {end.role: _disk_share(end) for end in figures.ends}
    end = max(figures.ends, key=lambda one: waits[one.role])
    if waits[end.role] >= LIMITS_OF_COPIES.disk_of_threads:
        return _disk_finding(figures, end, waits[end.role])
    synced = figures.receiver.of_wall(figures.receiver.times_us["sync"])
    if figures.receiver.has_disk and synced >= LIMITS_OF_COPIES.sync_of_run:
        return _sync_finding(figures, min(1.0, synced))
    return None


def _disk_share(end: EndFigures) -> float:
    return min(1.0, end.of_workers(end.file_wait_us)) if end.has_disk else 0.0


def _disk_finding(figures: CopyFigures, end: EndFigures, share: float) -> Finding:
    doing, workers, _ = _DOES[end.role]
    line = (
        f"{end.role} disk: {counted(end.file_workers, 'thread')} spent {percent(share)} of the "
        f"time {doing} and waiting for it, at {rate_human(figures.throughput_bps)}"
    )
    evidence: tuple[str, ...] = (
        f"{doing} by {end.engine} on {end.file_system}, {counted(end.threads, workers)}",
    )
    if synced := min(1.0, end.of_wall(end.times_us["sync"])):
        evidence += (f"flushing data to the device took {percent(synced)} of the run's time",)
    remedies = (*_more_workers(end), *_other_engine(end), "a faster disk there")
    word = "sender-disk" if end.role == "sender" else "receiver-disk"
    return Finding(word, line, evidence, remedies)  # type: ignore[arg-type]


def _sync_finding(figures: CopyFigures, share: float) -> Finding:
    end = figures.receiver
    line = f"receiver disk: flushing data to the device takes {percent(share)} of the run's time"
    evidence = (f"writing by {end.engine} on {end.file_system}",)
    durable = figures.spec.get("fsync", True)
    quick = (
        ("--no-fsync, if losing the newest files in a power cut is acceptable",) if durable else ()
    )
    return Finding("receiver-disk", line, evidence, (*_other_engine(end), *quick))


def _other_engine(end: EndFigures) -> tuple[str, ...]:
    flag = f"--{_DOES[end.role][2]}-engine"
    if end.engine == "uring":
        return ()
    return (f"many requests in flight: {flag} uring",)


def _more_workers(end: EndFigures) -> tuple[str, ...]:
    """More threads for files: disks like several requests, which io_uring gives with one."""
    if end.engine == "uring":
        return ()
    wanted = min(_WORKERS_MOST, max(_WORKERS_GOOD, 2 * end.file_workers))
    if wanted <= end.file_workers:
        return ()
    return (f"more threads for files: --{_DOES[end.role][1]}s {wanted}",)


def _more_streams(figures: CopyFigures) -> tuple[str, ...]:
    known = [end.cpus for end in figures.ends if end.cpus]
    spare = min(known, default=0) // (2 if figures.same_host else 1)
    wanted = min(max(4, 2 * figures.streams), STREAMS_MAX, spare or STREAMS_MAX)
    if wanted <= figures.streams:
        return ()
    return (f"more streams on other CPUs: --streams {wanted}",)


def _cheaper(figures: CopyFigures, end: EndFigures) -> tuple[str, ...]:
    """What takes less CPU time, where it matters."""
    remedies = []
    if end.of_all("cipher") >= LIMITS_OF_COPIES.stage:
        if figures.report["cipher"] == "aes256-gcm":
            remedies.append("a cheaper cipher: --cipher aes128-gcm")
        elif figures.report["cipher"] == "aes128-gcm":
            remedies.append("no encryption, where nobody else can read the traffic: --cipher none")
    if end.of_all("hash") >= LIMITS_OF_COPIES.stage and figures.report["cipher"] != "none":
        remedies.append(_cheaper_sum(figures.report.get("hash", "blake3")))
    if not figures.same_host and figures.transport == "tcp":
        if figures.congestion_control == "bbr":
            # It sets a timer for each burst, unless the queueing discipline `fq` paces for it.
            remedies.extend(other_congestion_control(figures, "cubic"))
        remedies.append(JUMBO_REMEDY)
    return tuple(remedies)


def _cheaper_sum(used: str) -> str:
    if used == "blake3":
        return "a cheaper checksum, since the cipher keeps others away from the data: --hash xxh3"
    return "no checksums, where damage within the hosts need not be found: --hash none"


def _cpu_parts(end: EndFigures) -> str:
    """Which part of the threads' time hashing and sealing are, where they count."""
    words = {"hash": "hashing", "cipher": "encryption" if end.role == "sender" else "decryption"}
    parts = [
        f"{word} {percent(end.of_all(name))}"
        for name, word in words.items()
        if end.of_all(name) >= LIMITS_OF_COPIES.stage_named
    ]
    return f" ({' and '.join(parts)} of its threads' time)" if parts else ""


def _host_share(end: EndFigures) -> float:
    return min(1.0, end.of_wall(end.cpu_us or 0.0) / max(1, end.cpus))


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


RULES = (
    failed,
    nothing_moved,
    too_short,
    rate,
    file_names,
    busy_thread,
    busy_host,
    disk,
)
"""Rules for copies, in the order they are asked."""
