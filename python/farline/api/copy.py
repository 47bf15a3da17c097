"""`farline.copy`: files between this host and others, or between two others, as a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.api import drawing
from farline.api.job import BackgroundJob, Status
from farline.api.options import copy_spec_of
from farline.api.stores import StoreLike, folder_of
from farline.copying import CopyJob, CopyRequest, CopyResult
from farline.copying.adjusting import request_of
from farline.copying.request import RETRY_FOR_S
from farline.errors import FarlineError, SystemFailure, UsageError
from farline.spec._failures import PARTIAL_EXIT_CODE
from farline.spec.units import counted, size_human
from farline.tools.events import DeletionPlanned, Event, Progress

if TYPE_CHECKING:
    from farline.copying import DataPath
    from farline.copying.live_tuning import Tuner, TunerStart
    from farline.spec._types import (
        Adjustment,
        CopyProgress,
        CopyReport,
        CopyStages,
        RunRecord,
    )
    from farline.tools import StopQuestion
    from farline.tools.ssh_command import SshCommand

Location = str | PathLike[str]
"""A path here, `[user@]host:path` over ssh, or a ticket with `#path`."""


def _stream_tuner(start: TunerStart) -> Tuner:
    """What tunes a copy that lasts, imported when one does."""
    from farline.api.live_tuner import StreamTuner

    return StreamTuner(start)


class PartialCopy(FarlineError):
    """Some names failed; the rest is there. `copy.report["failures"]` has a hundred."""

    kind = "partial"
    fault = "caller"
    exit_code = PARTIAL_EXIT_CODE


class Copy(BackgroundJob[Event]):
    """One copy: sessions until all is there. What it came to is there at its end."""

    def __init__(
        self, request: CopyRequest, locations: tuple[str, ...], nodes: str | None = None
    ) -> None:
        """Begins; see `copy`."""
        self._job = _job(request, nodes, self._should_stop)
        self.locations = locations
        self.progress: CopyProgress | None = None
        """How far it is, of the session that runs now."""
        super().__init__("copy")

    def _work(self) -> Status:
        for event in self._job:
            if isinstance(event, Progress):
                self.progress = event.report
            if isinstance(event, DeletionPlanned):
                # Whoever wrote `delete=True` has said yes; `max_delete` bounds it.
                self._job.confirm_deletion()
            self._tell(event)
        result = self._job.wait().checked()
        if result.exit_code:
            raise PartialCopy(_failed_text(result))
        return "complete"

    def set_streams(self, streams: int) -> None:
        """Has it go on over so many data streams; returns at once.

        The event `Adjusted` tells when they are in force, or why they are not; nothing pauses
        meanwhile. Where no session runs now, the next one begins with it.

        Raises:
            UsageError: for a number out of range, or a copy that is over.
        """
        self._job.adjusting.want(request_of(streams=streams))

    def set_concurrency(self, files: int) -> None:
        """Has it send so many files at once, at most; as `set_streams`."""
        self._job.adjusting.want(request_of(concurrency=files))

    def set_rate(self, rate_bps: int | None) -> None:
        """Holds it to so many bits per second in all, or to none; as `set_streams`."""
        self._job.adjusting.want(request_of(rate_bps=rate_bps or 0))

    def adjust(
        self,
        *,
        streams: int | None = None,
        concurrency: int | None = None,
        rate_bps: int | None = None,
        timeout_s: float = 30.0,
    ) -> list[Adjustment]:
        """Changes several things at once and waits: what came of each, in force or `refused`.

        A rate of 0 is without limit. Empty where no session runs: the next begins with it.

        Raises:
            UsageError: as `set_streams`; also when nothing was heard within `timeout_s`.
        """
        return self._job.adjusting.change(request_of(streams, concurrency, rate_bps), timeout_s)

    @property
    def stages(self) -> CopyStages | None:
        """How far reading, network and writing are at both ends; None before it is known.

        Counters run from the start of the session: a controller takes differences. The event
        `Stages` tells the same once an interval.
        """
        return self._job.adjusting.stages

    @property
    def result(self) -> CopyResult:
        """Record, receipt and error of a copy that has ended."""
        self._join(None)
        if self._job.result is None:
            self._checked()
            raise SystemFailure("the copy ended before it began")
        return self._job.result

    @property
    def record(self) -> RunRecord | None:
        """The record of its last session, with summary and verdict; None if none began."""
        return self.result.record

    @property
    def report(self) -> CopyReport:
        """Files by what became of them: copied, present, failed, skipped, deleted ..."""
        record = self.record
        report = None if record is None else record.get("copy")
        if report is None:
            self._checked()
            raise SystemFailure("no session of the copy got as far as a report")
        return report

    def __repr__(self) -> str:
        """One line."""
        return f"<farline.Copy to {self.locations[-1]}: {_line(self)}>"

    def _repr_html_(self) -> str:
        """What became of the files, or how far it is, for a notebook."""
        return _html(self)


def _line(copy: Copy) -> str:
    """A copy in a few words."""
    if not copy.done:
        return f"running, {_progress_text(copy)}"
    if copy.error is not None:
        return f"failed: {copy.error.message}"
    return ", ".join(f"{key} {value}" for key, value in _rows(copy.report))


def _progress_text(copy: Copy) -> str:
    """How far it is."""
    report = copy.progress
    if report is None:
        return "nothing moved yet"
    return f"{size_human(report['moved_bytes'])} moved"


def _rows(report: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Files by what became of them."""
    for name in ("copied", "present", "updated", "failed", "skipped", "deleted"):
        count = report.get(name)
        if count and count["files"]:
            size = f", {size_human(count['bytes'])}" if count.get("bytes") else ""
            yield name, f"{counted(count['files'], 'file')}{size}"


def _html(copy: Copy) -> str:
    """What became of the files, or how far it is."""
    title = " ".join(copy.locations[:-1]) + " → " + copy.locations[-1]
    if not copy.done:
        return drawing.card(title, [("status", "running"), ("so far", _progress_text(copy))])
    rows = list(_rows(copy.report)) if copy.record is not None else []
    if copy.error is not None:
        rows.append(("failed", copy.error.message))
    if copy.record is not None:
        rows.append(("limited by", copy.record["verdict"]["line"]))  # type: ignore[index]
    return drawing.card(title, rows)


def copy(
    source: Location | Iterable[Location],
    destination: Location,
    *,
    store: StoreLike = None,
    keep: bool = True,
    tune: str | None = None,
    max_harm: float | None = None,
    receipt: str | Path | None = None,
    retry_for_s: float = RETRY_FOR_S,
    retries: int | None = None,
    archive: bool = False,
    delete: bool = False,
    max_delete: int | None = None,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    filters: str | Iterable[str] = (),
    tell_files: bool = False,
    ssh: SshCommand | None = None,
    data_path: DataPath | None = None,
    nodes: int | str | None = None,
    own_disks: str | None = None,
    place_streams: str | None = None,
    **options: Any,
) -> Copy:
    """Begins to copy `source`, one or several, to `destination`, with the rules of `farline copy`.

    Either may be a path, `host:path` over ssh, or a ticket with `#path`. Options of the run
    (`streams=8`, `transport="udt"`) and of a copy (`overwrite="different"`, `dry_run=True`) have
    their names in plans: docs/reference/options.md. `include` and `exclude` are patterns as of
    rsync, one or several, tried in this order, then the rules `filters` ("+ PATTERN",
    "- PATTERN"). With `delete` names that the source does not have go, at most `max_delete` of
    them. `tell_files` adds an event for every name. Without `streams`, what was found for the path
    is used, and a copy of more than half a minute changes its streams while it runs (event
    `Tuned`): `tune="stored"` does only the former, `tune="off"` neither; `tune="auto"` says the
    latter of a copy with `streams`.
    `nodes` is how many nodes are used of an end that has several (`dtn[1-8]:/archive/`), or a
    setting such as `4stm-1str-2n-1str-2n`; `own_disks="destination"`, `"source"` or `"both"` says
    whose nodes share no file system: each file is whole on one of them. `place_streams="off"`
    leaves the streams of nodes to the kernel, and does not run them beside their interfaces.
    `max_harm=0.2` slows down before others on the path lose more than a fifth of their rate.

    Raises:
        UsageError: when the locations are no sources and a destination; for `max_delete` alone.
        SpecError: when an option is not allowed.
    """
    if max_delete is not None and not delete:
        raise UsageError("max_delete: needs delete=True; alone it deletes nothing")
    locations = location_texts(source, destination)
    rules = _rules(include, exclude, filters)
    more = {} if data_path is None else {"data_path": data_path}
    request = CopyRequest.between(
        *locations,
        spec=_spec(options, rules, max_delete),
        ssh=ssh,
        archive=archive,
        confirm_deletion=delete,
        retry_for_s=retry_for_s,
        retries=retries,
        keep=keep,
        tune=tune,
        max_harm=max_harm,
        own_disks=own_disks,
        place_streams=place_streams,
        store_path=folder_of(store),
        receipt=None if receipt is None else fspath(receipt),
        tell_files=tell_files,
        **more,
    )
    return Copy(request, locations, None if nodes is None else str(nodes))


def _spec(options: dict[str, Any], rules: list[str], max_delete: int | None) -> dict[str, Any]:
    """The spec of options as they are called in plans, with what has arguments of its own."""
    spec = copy_spec_of(options)
    if rules:
        spec["copy"]["filters"] = rules
    if max_delete is not None:
        spec["copy"]["max_delete"] = max_delete
    return spec


def _job(request: CopyRequest, nodes: str | None, should_stop: StopQuestion) -> CopyJob:
    if request.is_over_nodes or nodes is not None:
        from farline.cluster import copy_job

        return copy_job(request, nodes, should_stop, _stream_tuner)
    return CopyJob(request, should_stop=should_stop, make_tuner=_stream_tuner)


def location_texts(source: Location | Iterable[Location], destination: Location) -> tuple[str, ...]:
    """Sources and destination as the command line has them."""
    return tuple(_text(one) for one in (*_sources(source), destination))


def _sources(source: Location | Iterable[Location]) -> Iterator[Location]:
    if isinstance(source, str | PathLike):
        yield source
    else:
        yield from source


def _rules(
    include: str | Iterable[str], exclude: str | Iterable[str], filters: str | Iterable[str]
) -> list[str]:
    """What is copied and what is not, as rules in the order in which they are tried."""
    named = (("+ ", include), ("- ", exclude), ("", filters))
    return [sign + one for sign, patterns in named for one in _each(patterns)]


def _each(patterns: str | Iterable[str]) -> list[str]:
    """The patterns of one argument; a text is one of them, not as many as it has letters."""
    return [patterns] if isinstance(patterns, str) else list(patterns)


def _text(location: Location) -> str:
    """A location as the command line has it; a path object is always a path of this host."""
    text = fspath(location)
    is_plain = isinstance(location, str) or text.startswith("/") or ":" not in text
    return text if is_plain else f"./{text}"


def _failed_text(result: CopyResult) -> str:
    report = None if result.record is None else result.record.get("copy")
    if report is None:
        return "the copy is not complete"
    failed = report["failed"]["files"]
    first = next(iter(report["failures"]), None)
    detail = "" if first is None else f"; first: {first['path']}: {first.get('reason') or ''}"
    return f"{failed} of {counted(report['found']['files'], 'name')} failed{detail}"
