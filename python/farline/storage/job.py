"""A measurement of storage as a job: looks, lays out files, measures, fits, keeps the profile."""

from __future__ import annotations

import math
import os
import socket
import stat
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import FarlineError, SystemFailure, UsageError
from farline.models.storage_caps import Cap, StorageCaps, fit_caps
from farline.spec.path_text import to_path_text
from farline.spec.units import size_human
from farline.storage.files import WorkFolder, check_room, mode_of, work_folder
from farline.storage.measured import Measured, measured_of, profile_document
from farline.storage.settings import (
    BASE_REQUEST_BYTES,
    STRIDE,
    Mode,
    StoragePlan,
    StorageSetting,
    StorageWishes,
    plan_of,
)
from farline.storage.striping import Striping, advice, striping_of
from farline.storage.workers import Workers
from farline.store.file_systems import write_profile
from farline.tools import StopQuestion, never_stop
from farline.tools.events import Notice, NoticeKind, StorageBegun, StorageLaidOut, StorageMeasured
from farline.tools.job import Job
from farline.tools.mounts import Mount, mount_of
from farline.tools.storage_load import run_storage_load

if TYPE_CHECKING:
    from farline.spec._types import StorageLane, StorageLoad
    from farline.storage.workers import Answer
    from farline.store import Store
    from farline.tools.events import Steps

BUDGET_S = 60.0
SIZE_BYTES = 1 << 30
MEMORY_ONLY = ("tmpfs", "ramfs")
"""File systems without a device."""
FREE_SHARE = 0.1
"""Of what is free, files take no more than this share unless a size is stated."""
LAYOUT_SHARE = 0.25
"""Share of the time in which the files are written."""
LEAST_S = 0.2
"""Shortest time of one measurement."""
_AROUND_S = 0.2
"""What a measurement takes beside its time: giving the loads, dropping caches, meeting."""
_MARGIN_S = 0.1
_MOST_MARGIN_S = 2.0
_LEAST_DURATION_S = 0.01
_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class StorageRequest:
    """What is asked for: a folder to measure in, or a file of which only reads are measured."""

    path: Path
    reads_file: bool = False
    wishes: StorageWishes = field(default_factory=StorageWishes)
    budget_s: float = BUDGET_S
    size_bytes: int | None = None
    """Bytes that all files take together; None: 1 GiB, or a tenth of what is free."""
    is_warm: bool = False
    """Whether what is in the page cache may be read from there."""


@dataclass(frozen=True, slots=True)
class StorageResult:
    """What a measurement came to."""

    document: Mapping[str, Any] | None = None
    measured: tuple[Measured, ...] = ()
    caps: Mapping[str, StorageCaps | None] | None = None
    kept: Path | None = None
    error: FarlineError | None = None

    def checked(self) -> Mapping[str, Any]:
        """The document of the profile.

        Raises:
            FarlineError: what the measurement failed with.
        """
        if self.error is not None:
            raise self.error
        assert self.document is not None
        return self.document


class StorageJob(Job[StorageResult]):
    """One measurement."""

    def __init__(
        self,
        request: StorageRequest,
        store: Store | None = None,
        should_stop: StopQuestion = never_stop,
    ) -> None:
        """Prepares; nothing is begun.

        Raises:
            UsageError: for a request that cannot be carried out.
        """
        super().__init__(should_stop)
        self._request, self._store = request, store
        self._plan = _checked_plan(request)
        _each_s(self._plan, request)
        self._notes: list[str] = []
        self._margin_s = _MARGIN_S

    def _failed(self, error: FarlineError) -> StorageResult:
        return StorageResult(error=error)

    def _work(self) -> Steps[StorageResult]:
        request = self._request
        mount, layers = mount_of(request.path), striping_of(request.path)
        with ExitStack() as ends:
            folder = None
            if not request.reads_file:
                folder = ends.enter_context(work_folder(request.path))
            plan = yield from self._possible(folder)
            each_s = _each_s(plan, request)
            size_bytes = self._size(folder)
            yield _begun(request, mount, layers, plan, each_s, size_bytes)
            workers = ends.enter_context(Workers(self._should_stop))
            workers.prepare(plan.most_processes + plan.shares)
            if folder is None:
                ground = Ground.of_file(request.path, plan)
            else:
                ground = yield from self._lay_out(folder, plan, size_bytes, workers)
            measured = yield from self._measure(plan, ground, each_s, workers)
        return self._concluded(measured, ground, mount, layers)

    def _possible(self, folder: WorkFolder | None) -> Steps[StoragePlan]:
        """The plan without what the file system or the kernel does not do, said so."""
        wishes, settings = self._request.wishes, self._plan.settings
        direct, deep = self._abilities(folder)
        if not direct and any(one.mode == "direct" for one in settings):
            note = "direct I/O is not supported here: everything goes through the page cache"
            if "direct" in wishes.modes:
                raise UsageError(f"{self._request.path}: {note}; use --io buffered")
            settings = _merged(settings, mode="buffered", depth=1)
            yield self._said(note)
        if not deep and any(one.depth > 1 for one in settings):
            note = "io_uring is not available here: each thread has one request in flight"
            if wishes.depths:
                raise SystemFailure(f"{note}; use --depth 1 and more --threads")
            settings = _merged(settings, depth=1)
            yield self._said(note)
        return StoragePlan(settings)

    def _said(self, note: str) -> Notice:
        self._notes.append(note)
        return Notice(NoticeKind.CHOICE, note)

    def _abilities(self, folder: WorkFolder | None) -> tuple[bool, bool]:
        """Whether files open for direct I/O, and whether several requests can be in flight."""
        path = self._request.path
        if folder is not None:
            path = folder.shared
            folder.make(path)
            os.truncate(path, _PAGE_BYTES)
        try:
            return _opens_direct(path), _takes_depth(path)
        finally:
            if folder is not None:
                path.unlink()

    def _size(self, folder: WorkFolder | None) -> int:
        request = self._request
        if folder is None:
            return request.path.stat().st_size
        size = request.size_bytes
        if size is None:
            found = os.statvfs(request.path)
            size = min(SIZE_BYTES, int(FREE_SHARE * found.f_bavail * found.f_frsize))
        check_room(request.path, size)
        return size

    def _size_text(self, size_bytes: int) -> str:
        """What all files take together, and who said so."""
        if self._request.size_bytes is not None:
            return f"--size {size_human(size_bytes)}"
        share = "" if size_bytes == SIZE_BYTES else ", a tenth of the free space"
        return f"{self._request.path}: files of {size_human(size_bytes)}{share}"

    def _lay_out(
        self, folder: WorkFolder, plan: StoragePlan, size_bytes: int, workers: Workers
    ) -> Steps[Ground]:
        """Writes the files, as far as the time for that goes."""
        began = time.monotonic()
        own_bytes, shared_bytes = _file_sizes(plan, size_bytes, self._size_text(size_bytes))
        files = [folder.lane(number) for number in range(plan.most_lanes)]
        for path in [*files, *([folder.shared] if plan.shares else [])]:
            folder.make(path)
        is_direct = any(one.mode == "direct" for one in plan.settings)
        mode: Mode = "direct" if is_direct else "buffered"
        request = min(BASE_REQUEST_BYTES, plan.most_request_bytes)
        setting = StorageSetting("write", request_bytes=request, depth=1, mode=mode)
        limit_s, count = LAYOUT_SHARE * self._request.budget_s, plan.most_processes
        parts = [
            [_lane(path, 0, own_bytes, request) for path in files[n::count]] for n in range(count)
        ]
        loads = [_load(setting, part, 0, limit_s, own_bytes) for part in parts]
        if plan.shares:
            part = [_lane(folder.shared, 0, shared_bytes, request)]
            loads.append(_load(setting, part, 0, limit_s, shared_bytes))
        yield from workers.run(loads, limit_s)
        own = min(path.stat().st_size for path in files)
        shared = folder.shared.stat().st_size if plan.shares else 0
        ground = Ground(
            tuple(files), _whole(own, plan), folder.shared, _whole(shared, plan) if shared else 0
        )
        ground.check(plan, self._request.budget_s)
        yield StorageLaidOut(len(files), ground.own_bytes, time.monotonic() - began)
        return ground

    def _measure(
        self, plan: StoragePlan, ground: Ground, each_s: float, workers: Workers
    ) -> Steps[tuple[Measured, ...]]:
        done: list[Measured] = []
        if not ground.was_laid_out:
            yield from self._one(plan.settings[0], ground, 0.0, workers, done)
        for number, setting in enumerate(plan.settings, 1):
            one = yield from self._one(setting, ground, each_s, workers, done)
            done.append(one)
            yield StorageMeasured(number, setting.text, one.rate_bps, one.latency_s, one.cached)
        return tuple(done)

    def _one(
        self,
        setting: StorageSetting,
        ground: Ground,
        each_s: float,
        workers: Workers,
        done: Sequence[Measured],
    ) -> Steps[Measured]:
        lanes = ground.lanes(setting)
        most = _most_lane_bytes(setting, lanes, each_s, done)
        begin_at_ns = time.monotonic_ns() + int(1e9 * self._margin_s)
        loads = [
            _load(
                setting, lanes[n * setting.threads : (n + 1) * setting.threads], begin_at_ns,
                each_s, most, drops=setting.action == "read" and not self._request.is_warm,
            )
            for n in range(setting.processes)
        ]  # fmt: skip
        answers: list[Answer] = yield from workers.run(loads, each_s + self._margin_s)
        found = measured_of(setting, answers, begin_at_ns)
        self._margin_s = min(_MOST_MARGIN_S, self._margin_s + 2 * found.late_s)
        return found

    def _concluded(
        self,
        measured: tuple[Measured, ...],
        ground: Ground,
        mount: Mount | None,
        layers: tuple[Striping, ...],
    ) -> StorageResult:
        request = self._request
        caps = {action: caps_of(measured, action) for action in ("read", "write")}
        self._notes += _cache_notes(measured, request.is_warm)
        if mount is not None and mount.kind in MEMORY_ONLY:
            self._notes.append(
                f"{mount.kind} keeps files in memory: these are the rates of memory, not of a disk"
            )
        document = profile_document(
            host=socket.gethostname(), path=str(request.path.resolve()), mount=mount,
            file_bytes=ground.own_bytes,
            read_file=str(request.path) if request.reads_file else None,
            layers=layers, advice=advice(layers), measured=measured, caps=caps, notes=self._notes,
        )  # fmt: skip
        kept = None
        if self._store is not None:
            layout = self._store.layout
            kept = write_profile(layout.file_systems, layout.temp, document)
        return StorageResult(document, measured, caps, kept)


def _opens_direct(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _takes_depth(path: Path) -> bool:
    setting = StorageSetting("read", request_bytes=_PAGE_BYTES, depth=2, mode="buffered")
    try:
        run_storage_load(
            _load(setting, [_lane(path, 0, _PAGE_BYTES, _PAGE_BYTES)], 0, LEAST_S, _PAGE_BYTES)
        )
    except SystemFailure as failure:
        if "io_uring" not in failure.message:
            raise
        return False
    return True


def _merged(settings: Sequence[StorageSetting], **changes: Any) -> tuple[StorageSetting, ...]:
    """All of them changed alike; those that become one are measured as often as one of them was."""
    most = {one: settings.count(one) for one in settings}
    kept: list[StorageSetting] = []
    for one in settings:
        changed = replace(one, **changes)
        if kept.count(changed) < most[one]:
            kept.append(changed)
    return tuple(kept)


def _checked_plan(request: StorageRequest) -> StoragePlan:
    wishes = request.wishes
    if request.reads_file:
        if wishes.actions != ("read",):
            raise UsageError("--read FILE: only reads are measured; nothing is written to it")
        if wishes.layouts == ("own",):
            raise UsageError("--read FILE: one file has no files of its own for each thread")
        if request.size_bytes is not None:
            raise UsageError("--size: says how large files are made; with --read none are")
        if not stat.S_ISREG(mode_of(request.path, "file")):
            raise UsageError(f"{request.path}: not a regular file")
    if request.budget_s <= 0:
        raise UsageError("--budget: allow some time, such as 60s")
    plan = plan_of(wishes)
    if request.reads_file:
        settings = (replace(one, layout="shared") for one in plan.settings)
        # The plan has a shared file already: no setting twice in a round.
        plan = StoragePlan(tuple(settings))
        Ground.of_file(request.path, plan)
    for one in plan.settings:
        if one.mode == "direct" and one.request_bytes % _PAGE_BYTES:
            raise UsageError(
                f"requests of {one.request_bytes} bytes: direct I/O takes multiples of "
                f"{_PAGE_BYTES} bytes; use such a size, or --io buffered"
            )
    return plan


def _each_s(plan: StoragePlan, request: StorageRequest) -> float:
    """Time of one measurement.

    Raises:
        UsageError: when there is too little for as many as are wanted.
    """
    count = len(plan.settings)
    share = 1.0 if request.reads_file else 1 - LAYOUT_SHARE
    each_s = share * request.budget_s / count - _AROUND_S
    if each_s < LEAST_S:
        needed = count * (LEAST_S + _AROUND_S) / share
        raise UsageError(
            f"--budget: {count} measurements need {needed:.0f} s or more; allow more time, or "
            "name fewer values"
        )
    return each_s


def _file_sizes(plan: StoragePlan, size_bytes: int, said: str) -> tuple[int, int]:
    """Bytes of each thread's file, and of the one that is shared; `said` is the size in words.

    Raises:
        UsageError: when a request does not fit.
    """
    own = size_bytes // 2 if plan.shares else size_bytes
    own_bytes, shared = _whole(own // plan.most_lanes, plan), _whole(size_bytes - own, plan)
    if _is_short(plan, own_bytes, shared):
        raise UsageError(
            f"{said}: {plan.most_lanes} threads with requests of "
            f"{size_human(plan.most_request_bytes)} need more; state a larger size, or fewer "
            "processes or smaller requests"
        )
    return own_bytes, shared


def _is_short(plan: StoragePlan, own_bytes: int, shared_bytes: int) -> bool:
    """Whether some thread's part would be shorter than the largest request."""
    lanes = max((one.lanes for one in plan.settings if one.layout == "shared"), default=1)
    most = plan.most_request_bytes
    return own_bytes < most or (plan.shares and shared_bytes // lanes < most)


def _whole(size_bytes: int, plan: StoragePlan) -> int:
    """Down to whole requests of the largest size."""
    return size_bytes // plan.most_request_bytes * plan.most_request_bytes


@dataclass(frozen=True, slots=True)
class Ground:
    """The files that are measured, and how much of each."""

    own: tuple[Path, ...]
    own_bytes: int
    shared: Path
    shared_bytes: int

    @classmethod
    def of_file(cls, path: Path, plan: StoragePlan) -> Ground:
        """One existing file, of which each thread reads a part.

        Raises:
            UsageError: when it is too short.
        """
        size = path.stat().st_size
        if size // plan.most_lanes < plan.most_request_bytes:
            raise UsageError(
                f"{path}: has {size_human(size)}; {plan.most_lanes} threads with requests of "
                f"{size_human(plan.most_request_bytes)} need more: name fewer or smaller ones"
            )
        return cls((), size, path, size)

    @property
    def was_laid_out(self) -> bool:
        """Whether the files were made for this."""
        return bool(self.own)

    def check(self, plan: StoragePlan, budget_s: float) -> None:
        """Refuses files that are too short for a request.

        Raises:
            SystemFailure: when storage is too slow for the time.
        """
        if _is_short(plan, self.own_bytes, self.shared_bytes):
            raise SystemFailure(
                f"{LAYOUT_SHARE * budget_s:.0f} s, the share of --budget for it, were too short to "
                "write the files; allow more time, or name fewer processes or smaller requests"
            )

    def lanes(self, setting: StorageSetting) -> list[StorageLane]:
        """A part of a file for each thread."""
        request, count = setting.request_bytes, setting.lanes
        gaps = setting.access == "strided"
        if setting.layout == "own":
            step = request * (STRIDE if gaps else 1)
            return [_lane(path, 0, self.own_bytes, step) for path in self.own[:count]]
        if gaps:
            whole = self.shared_bytes // request * request
            return [
                _lane(self.shared, n * request, whole - n * request, count * request)
                for n in range(count)
            ]
        part = self.shared_bytes // count // request * request
        return [_lane(self.shared, n * part, part, request) for n in range(count)]


def _lane(path: Path, offset: int, span: int, step: int) -> StorageLane:
    return {
        "file": to_path_text(os.fsencode(path)),
        "offset_bytes": offset,
        "span_bytes": span,
        "step_bytes": step,
    }


def _load(
    setting: StorageSetting,
    lanes: list[StorageLane],
    begin_at_ns: int,
    seconds: float,
    most_lane_bytes: int,
    drops: bool = False,
) -> StorageLoad:
    return {
        "action": setting.action,
        "request_bytes": setting.request_bytes,
        "depth": setting.depth,
        "direct": setting.mode == "direct",
        "sync": setting.sync,
        "drop_cache": drops,
        "begin_at_ns": begin_at_ns,
        "duration_s": max(seconds, _LEAST_DURATION_S),
        "most_lane_bytes": most_lane_bytes,
        "lanes": lanes,
    }


def load_of(
    setting: StorageSetting, path: Path, span_bytes: int, begin_at_ns: int, seconds: float
) -> StorageLoad:
    """What one process does to one file at a setting."""
    lane = _lane(path, 0, span_bytes, setting.request_bytes)
    return _load(setting, [lane], begin_at_ns, seconds, 0)


def _most_lane_bytes(
    setting: StorageSetting,
    lanes: Sequence[StorageLane],
    each_s: float,
    done: Sequence[Measured],
) -> int:
    """Through the page cache no byte twice, and no more is written than can be synced in time."""
    if setting.mode == "direct":
        return 0
    span = lanes[0]["span_bytes"]
    if setting.access == "strided":
        span //= max(1, lanes[0]["step_bytes"] // setting.request_bytes)
    known = [one.rate_bps for one in done if one.setting.action == setting.action]
    if setting.action == "read" or not known:
        return max(span, setting.request_bytes)
    most = int(max(known) / 8 * max(each_s, LEAST_S) / setting.lanes)
    return max(min(span, most), 4 * setting.request_bytes)


def caps_of(measured: Sequence[Measured], action: str) -> StorageCaps | None:
    """Caps fitted to the settings that differ in their processes alone; most counts win."""
    groups: dict[StorageSetting, list[Measured]] = defaultdict(list)
    for one in measured:
        if one.setting.action == action:
            groups[replace(one.setting, processes=1)].append(one)
    if not groups:
        return None

    def counts(group: list[Measured]) -> tuple[int, float]:
        return len({one.setting.processes for one in group}), max(one.rate_bps for one in group)

    best = max(groups.values(), key=counts)
    return fit_caps([one.setting.processes for one in best], [one.rate_bps for one in best])


def fitted_rates(caps: Mapping[str, Any], processes: Any) -> list[float]:
    """The fitted curve at numbers of processes, from the caps of a document; bit/s."""
    each, total = (
        None if (found := caps[name]) is None
        else Cap(found["rate_bps"], found["low_bps"], found["high_bps"] or math.inf)
        for name in ("process", "total")
    )  # fmt: skip
    curve = StorageCaps(
        caps["form"], each, total, caps["sharpness"] or math.inf, caps["spread"],
        caps["most_processes"], caps["best_processes"], caps["best_bps"], caps["declines_to_bps"],
    )  # fmt: skip
    return [float(rate) for rate in curve.rate_bps(processes)]


def _cache_notes(measured: Sequence[Measured], is_warm: bool) -> Iterator[str]:
    """What was read from the page cache, as it was measured; and what cannot be seen from here."""
    kinds = [(one.setting.action, one.setting.mode) for one in measured]
    pairs = zip(measured, kinds, strict=True)
    reads = [one for one, kind in pairs if kind == ("read", "buffered")]
    known = [one.cached for one in reads if one.cached is not None]
    if reads and not known:
        yield "the kernel does not tell what of the files was in the page cache"
    elif known and (max(known) > 0.01 or is_warm):
        why = "" if is_warm else ": it could not be dropped"
        yield f"up to {max(known):.0%} of what was read was in the page cache{why}"
    elif known:
        yield "nothing of what was read was in the page cache"
    if measured:
        yield "memory inside a device or a server acts as a cache that this host cannot see"


def _begun(
    request: StorageRequest,
    mount: Mount | None,
    layers: Sequence[Striping],
    plan: StoragePlan,
    each_s: float,
    size_bytes: int,
) -> StorageBegun:
    facts = [fact for layer in layers for fact in layer.facts]
    if (line := advice(layers)) is not None:
        facts.append(line)
    return StorageBegun(
        mount.kind if mount else "unknown", mount.point if mount else str(request.path),
        tuple(facts), len(plan.settings), each_s, size_bytes,
    )  # fmt: skip
