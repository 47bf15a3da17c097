"""Rules about copies that need no samples: what was asked for, names, CPUs, disks; in this order.

A disk is told from a CPU by what is left of the time in reads and writes when all CPU time that
could have been in them is taken off: what comes from the page cache is no disk's doing. The rest,
windows and paths, is judged by the rules for runs.
"""

from __future__ import annotations

from farline.explain import cpu_rules
from farline.explain.copy_figures import CopyFigures, EndFigures
from farline.explain.finding import (
    JUMBO_REMEDY,
    STREAMS_MAX,
    Finding,
    other_congestion_control,
    percent,
)
from farline.spec.units import rate_human, time_human

RATE_REACHED = 0.9
"""Share of the asked rate from which the rate itself is the limit: start and end take theirs."""

TOO_SHORT_US = 500_000.0
"""Payload that moved for less says nothing: most of such a copy is start and end."""

NAMES_OF_WORK = 0.5
"""Share of an end's time at files from which names are what it is about,"""
NAMES_OF_THREADS = 0.3
"""and of what its threads had, from which they are the limit."""

DISK_OF_THREADS = 0.4
"""Share of the threads' time in waiting for a disk from which it is the limit."""

SYNC_OF_WALL = 0.5
"""Share of the run in bringing data to the device from which that is the limit."""

PART_MATTERS = 0.2
"""Share of the threads' time from which hashing or sealing is worth a remedy."""

_PART_TOLD = 0.01

_WORKERS_GOOD, _WORKERS_MOST = 4, 16
_DOES = {"sender": ("reading", "readers", "read"), "receiver": ("writing", "writers", "write")}


def failed(figures: CopyFigures) -> Finding | None:
    """The copy failed as a whole."""
    if figures.status != "failed":
        return None
    return Finding("unknown", f"the copy failed: {figures.error or 'no reason given'}")


def nothing_moved(figures: CopyFigures) -> Finding | None:
    """No file had to be moved, or none could be."""
    if figures.spec.get("dry_run"):
        return Finding("unknown", "a dry run: nothing was moved, so there is nothing to judge")
    if figures.moved_bytes and figures.copied_files:
        return None
    present, found = (figures.report[name]["files"] for name in ("present", "found"))
    if found and present == found:
        return Finding("unknown", f"nothing to move: {_files(present)} were there already")
    if figures.moved_bytes:
        return None
    return Finding("unknown", "nothing was moved, so there is nothing to judge")


def too_short(figures: CopyFigures) -> Finding | None:
    """Over before anything could hold it back."""
    if figures.payload_us >= TOO_SHORT_US:
        return None
    line = f"too short to name a limit: data moved for {time_human(figures.payload_us)}"
    return Finding("unknown", line)


def rate(figures: CopyFigures) -> Finding | None:
    """The rate that was asked for, or that the ticket allows."""
    reached = figures.throughput_bps / figures.asked_bps if figures.asked_bps else 0.0
    if reached < RATE_REACHED:
        return None
    line = f"rate: {percent(min(1.0, reached))} of {rate_human(figures.asked_bps)} reached"
    evidence = (f"held to {rate_human(figures.asked_bps)} in all by {figures.asked_by}",)
    return Finding("rate", line, evidence, (f"a higher rate, or none: {figures.asked_by} 0",))


def file_names(figures: CopyFigures) -> Finding | None:
    """Opening, naming and closing is most of what one end did."""
    end = max(figures.ends, key=_name_share)
    share = _name_share(end)
    if share < NAMES_OF_THREADS or end.times_us["name"] < NAMES_OF_WORK * end.work_us:
        return None
    files = max(1, figures.copied_files)
    line = (
        f"file names: opening, naming and closing {_files(files)} takes {percent(share)} "
        f"of the {end.role}'s threads' time, {time_human(end.times_us['name'] / files)} a file"
    )
    remedies = (*_more_workers(end), "fewer and larger files")
    return Finding("file-names", line, remedies=remedies)


def _name_share(end: EndFigures) -> float:
    return min(1.0, end.of_workers(end.times_us["name"]))


def busy_thread(figures: CopyFigures) -> Finding | None:
    """A stream's thread always runs or waits to run: the busier end is the limit."""
    end = max(figures.ends, key=lambda one: one.thread_cpu + one.thread_wait)
    if end.thread_cpu + end.thread_wait < cpu_rules.THREAD_FULL:
        return None
    line = f"{end.role} CPU: a {end.role} thread uses {percent(end.thread_cpu)} of one CPU"
    remedies: tuple[str, ...] = (*_more_streams(figures), *_cheaper(figures, end))
    if end.thread_wait >= cpu_rules.WAIT_MATTERS:
        line += f" and waits {percent(end.thread_wait)} of the time for one that others have"
        remedies = ("less other work on that host", *_cheaper(figures, end))
    return Finding(cpu_rules.LIMIT[end.role], line + _cpu_parts(end), remedies=remedies)


def busy_host(figures: CopyFigures) -> Finding | None:
    """All CPUs of a host are in use, though no thread fills one alone."""
    used = {end.role: _host_share(end) for end in figures.ends}
    end = max(figures.ends, key=lambda one: used[one.role])
    share = min(1.0, sum(used.values())) if figures.same_host else used[end.role]
    if share < cpu_rules.HOST_FULL:
        return None
    whose = "both ends together use" if figures.same_host else f"the {end.role} uses"
    line = f"{end.role} CPU: {whose} {percent(share)} of the host's {end.cpus} CPUs"
    fewer = ("fewer streams than CPUs",) if figures.streams >= end.cpus else ()
    remedies = (*fewer, *_cheaper(figures, end))
    return Finding(cpu_rules.LIMIT[end.role], line + _cpu_parts(end), remedies=remedies)


def disk(figures: CopyFigures) -> Finding | None:
    """Threads of one end wait for its disk."""
    waits = {end.role: _disk_share(end) for end in figures.ends}
    end = max(figures.ends, key=lambda one: waits[one.role])
    if waits[end.role] >= DISK_OF_THREADS:
        return _disk_finding(figures, end, waits[end.role])
    synced = figures.receiver.of_wall(figures.receiver.times_us["sync"])
    if figures.receiver.has_disk and synced >= SYNC_OF_WALL:
        return _sync_finding(figures, min(1.0, synced))
    return None


def _disk_share(end: EndFigures) -> float:
    return min(1.0, end.of_workers(end.file_wait_us)) if end.has_disk else 0.0


def _disk_finding(figures: CopyFigures, end: EndFigures, share: float) -> Finding:
    doing, workers, _ = _DOES[end.role]
    line = (
        f"{end.role} disk: {doing} waits for it {percent(share)} of the time of "
        f"{_threads(end)}, at {rate_human(figures.throughput_bps)}"
    )
    evidence: tuple[str, ...] = (
        f"{doing} by {end.engine} on {end.file_system}, {workers}: {end.threads}",
    )
    if synced := min(1.0, end.of_wall(end.times_us["sync"])):
        evidence += (f"bringing data to the device took {percent(synced)} of the run's time",)
    remedies = (*_more_workers(end), *_other_engine(end), "a faster disk there")
    word = "sender-disk" if end.role == "sender" else "receiver-disk"
    return Finding(word, line, evidence, remedies)  # type: ignore[arg-type]


def _sync_finding(figures: CopyFigures, share: float) -> Finding:
    end = figures.receiver
    line = f"receiver disk: bringing data to the device takes {percent(share)} of the run's time"
    evidence = (f"writing by {end.engine} on {end.file_system}",)
    durable = figures.spec.get("fsync", True)
    quick = ("--no-fsync, if a power cut may take the newest files back",) if durable else ()
    return Finding("receiver-disk", line, evidence, (*_other_engine(end), *quick))


def _other_engine(end: EndFigures) -> tuple[str, ...]:
    flag = f"--{_DOES[end.role][2]}-engine"
    if end.engine == "uring":
        return ()
    return (f"many requests under way: {flag} uring",)


def _more_workers(end: EndFigures) -> tuple[str, ...]:
    """More threads for files: disks like several requests, which io_uring gives with one."""
    if end.engine == "uring":
        return ()
    wanted = min(_WORKERS_MOST, max(_WORKERS_GOOD, 2 * end.file_workers))
    if wanted <= end.file_workers:
        return ()
    return (f"more threads for files: --{_DOES[end.role][1]} {wanted}",)


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
    if end.of_all("cipher") >= PART_MATTERS:
        if figures.report["cipher"] == "aes256-gcm":
            remedies.append("a cheaper cipher: --cipher aes128-gcm")
        elif figures.report["cipher"] == "aes128-gcm":
            remedies.append("no cipher, where nobody else can read the path: --cipher none")
    if end.of_all("hash") >= PART_MATTERS and figures.report["cipher"] != "none":
        remedies.append("no tree hash, the cipher checks the path: --verify none")
    if not figures.same_host and figures.transport == "tcp":
        if figures.congestion_control == "bbr":
            # It sets a timer for each burst, unless the queueing discipline `fq` paces for it.
            remedies.extend(other_congestion_control(figures, "cubic"))
        remedies.append(JUMBO_REMEDY)
    return tuple(remedies)


def _cpu_parts(end: EndFigures) -> str:
    """Which part of the threads' time hashing and sealing are, where they count."""
    words = {"hash": "hashing", "cipher": "sealing" if end.role == "sender" else "opening seals"}
    parts = [
        f"{word} {percent(end.of_all(name))}"
        for name, word in words.items()
        if end.of_all(name) >= _PART_TOLD
    ]
    return f" ({' and '.join(parts)} of its threads' time)" if parts else ""


def _host_share(end: EndFigures) -> float:
    return min(1.0, end.of_wall(end.cpu_us or 0.0) / max(1, end.cpus))


def _threads(end: EndFigures) -> str:
    count = end.file_workers
    return f"{count} thread{'' if count == 1 else 's'}"


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
