"""Questions to what was measured: by farline, by other tools, now or years ago."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from farline.api.stores import StoreLike, open_store, store_at
from farline.errors import SpecError, UsageError

if TYPE_CHECKING:
    from os import PathLike

    from farline.analysis import Explained, Refused, Taken
    from farline.api.run import Run
    from farline.profiles.throughput_profile import ThroughputProfile
    from farline.spec._types import Verdict
    from farline.store import Store

Files = str | Path | Sequence[str | Path]
"""Logs and Parquet files: paths, patterns and folders."""


def ingest(
    files: Files,
    store: StoreLike = None,
    *,
    kind: str | None = None,
    mapping: str | None = None,
    defaults: Mapping[str, str] | None = None,
    malformed: str | Path | None = None,
) -> list[Taken | Refused]:
    """Takes logs of other tools into `store`: an answer for each, refused ones among them.

    A log that is there already is recognised. `kind` is the format of logs, found out if None;
    `mapping` says which column of a table is which ("rate_bps=throughput:Mbit/s, rtt_ms=rtt"),
    `defaults` are values for columns without any. Records that could not be read are written to
    the file `malformed`, one a line, with place and reason.

    Raises:
        UsageError: when a name means no file.
        SpecError: for an unknown format, mapping or column.
    """
    from farline.analysis import Reading
    from farline.analysis import ingest as take_in

    reading = Reading(kind, mapping, defaults or {})
    target = Path(malformed) if malformed is not None else None
    return take_in(store_at(store), _names(files), reading, malformed=target)


def throughput_profile(
    files: Files = (),
    *,
    store: StoreLike = None,
    infrastructure: str | Path | None = None,
    capacity_bps: float | None = None,
    **selection: Any,
) -> ThroughputProfile:
    """Throughput over round-trip time of what is selected, with intervals (Rao et al. 2018).

    Of `files`, or of a `store` (the user's own if neither is given). `selection` are arguments of
    `farline.analysis.select`: `modality="T"`, `streams=4` ... The answer evaluates, scores
    (`.coefficients()`, with `capacity_bps`) and draws itself; `.to_frame()` is a pandas table.

    Raises:
        SpecError: when nothing fits, or what fits needs more than one profile.
    """
    from farline.analysis import Shape, open_measurements, select, throughput_profiles

    with open_measurements(
        _names(files),
        store=_asked_store(files, store),
        infrastructure=None if infrastructure is None else Path(infrastructure),
    ) as source:
        shape = Shape(capacity_bps=capacity_bps)
        views, left_out = throughput_profiles(source, select(**selection), shape=shape)
    if len(views) != 1:
        names = ", ".join(view.name for view in views) or "; ".join(left_out) or "nothing fits"
        raise SpecError(f"{len(views)} profiles, not one: {names}; select one with modality=")
    profile: ThroughputProfile = views[0].profile
    return profile


@overload
def explain(what: Run | Mapping[str, Any]) -> Verdict: ...
@overload
def explain(
    what: Files = ...,
    *,
    store: StoreLike = ...,
    infrastructure: str | Path | None = ...,
    period_s: float | None = ...,
    **selection: Any,
) -> Explained: ...
def explain(
    what: Run | Mapping[str, Any] | Files = (),
    *,
    store: StoreLike = None,
    infrastructure: str | Path | None = None,
    period_s: float | None = None,
    **selection: Any,
) -> Verdict | Explained:
    """Says what limits throughput: of one run or record, or over many measurements.

    Of a run the verdict, with its evidence and remedies. Of `files` or a `store`: which sites lose
    how much to what, how sure that is, and what to measure next; `period_s` looks for drift.

    Raises:
        SpecError: when nothing fits.
    """
    from farline.analysis import explain as explain_measurements
    from farline.analysis import open_measurements, select
    from farline.api.run import Run as RunType

    if isinstance(what, RunType):
        return what.verdict
    if isinstance(what, Mapping):
        return _verdict_of(what)
    with open_measurements(
        _names(what),
        store=_asked_store(what, store),
        infrastructure=None if infrastructure is None else Path(infrastructure),
    ) as source:
        return explain_measurements(source, select(**selection), period_s=period_s)


def _verdict_of(record: Mapping[str, Any]) -> Verdict:
    verdict: Verdict | None = record.get("verdict")
    if verdict is None:
        raise UsageError("this record has no verdict: its run never started")
    return verdict


def report(
    campaign: str = "last",
    folder: str | PathLike[str] = "report",
    *,
    store: StoreLike = None,
) -> Path:
    """Writes `report.html` and its figures of a campaign into `folder`; the page's path.

    Raises:
        UsageError: when there is no such campaign.
        SystemFailure: when the folder cannot be written.
    """
    from farline.api.report_page import write_page
    from farline.plots.report import FORMATS

    return write_page(open_store(store), campaign, Path(folder), FORMATS)


def _names(files: Files) -> list[str]:
    return [str(files)] if isinstance(files, str | Path) else [str(one) for one in files]


def _asked_store(files: Files, store: StoreLike) -> Store | None:
    """The store that counts: as stated; the user's own where no file is named."""
    return None if store is None and _names(files) else open_store(store)
