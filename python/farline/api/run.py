"""`farline.probe`: one run towards a host, as a job."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from farline.api import drawing
from farline.api.job import BackgroundJob, Status
from farline.api.options import spec_of
from farline.api.path_here import path_watch
from farline.api.stores import StoreLike, keeper_at
from farline.api.tool_here import tool_chooser
from farline.campaign.judging import asking_path, bounds_for
from farline.campaign.measure import Measured
from farline.campaign.probe import ProbeJob
from farline.campaign.settings import sampled_spec
from farline.spec.units import counted, rate_human
from farline.tools.events import Event, StreamSamples
from farline.tools.native import as_arrays, parse_target

if TYPE_CHECKING:
    import pyarrow as pa

    from farline.spec._types import RunRecord, RunSpec, Summary, Verdict
    from farline.spec.path_watch import PathWatch
    from farline.store import Store
    from farline.store.quick import Spool
    from farline.tools import Samples


class Run(BackgroundJob[Event]):
    """One run. What it came to is there at its end: these properties wait for it."""

    def __init__(
        self, target: str, spec: RunSpec, store: Store | Spool | None, path: PathWatch | None = None
    ) -> None:
        """Begins; see `probe`. `path` watches the emulated path that it goes over."""
        self._path = path
        self.target, self.spec = target, spec
        self._store = store
        self._measured: Measured | None = None
        self.address = parse_target(target).address
        super().__init__(f"probe {self.address}")

    def _work(self) -> Status:
        judge = asking_path(bounds_for(self.spec, self._store, self.address))
        job = ProbeJob(
            self.target, self.spec, self._store,
            path=self._path, judge=judge, should_stop=self._should_stop,
            tool=tool_chooser().tool(self.spec, self.target),
        )  # fmt: skip
        for event in job:
            self._tell(event)
        result = job.wait()
        self._measured = result.measured
        result.checked()
        return "complete"

    @property
    def so_far(self) -> Samples:
        """Rows of the streams until now, while it runs: the same columns as `columns`."""
        rows: dict[str, array[int]] = {}
        for event in self._kept():
            if isinstance(event, StreamSamples):
                for name, values in event.columns.items():
                    rows.setdefault(name, array("q")).extend(values)
        return as_arrays(rows)

    def _end(self) -> Measured:
        """What it came to, failed or not.

        Raises:
            FarlineError: when nothing ran.
        """
        self._join(None)
        if self._measured is None:
            self._checked()
        assert self._measured is not None
        return self._measured

    @property
    def record(self) -> RunRecord:
        """The whole record: docs/reference/records.md has its fields."""
        return self._end().record

    @property
    def summary(self) -> Summary:
        """Throughput of each direction, retransmissions, round-trip times, CPU time."""
        summary = self.record["summary"]
        assert summary is not None  # `measure` adds both
        return summary

    @property
    def verdict(self) -> Verdict:
        """What limited it: `limit`, `line`, `evidence`, `remedies`."""
        verdict = self.record["verdict"]
        assert verdict is not None
        return verdict

    @property
    def throughput_bps(self) -> float | None:
        """Payload bits per second at the receivers, both directions added; None if nothing came."""
        ways = self.summary["forward"], self.summary["reverse"]
        rates = [way["total_bps"] for way in ways if way is not None]
        return sum(rates) if rates else None

    @cached_property
    def samples(self) -> pa.Table:
        """A row per stream, end and sampling interval; null where a figure is not known.

        Columns and units: docs/reference/samples.md.
        """
        from farline.store.entry import sample_table

        return sample_table(self.record["run_id"], self.columns)

    @property
    def columns(self) -> Samples:
        """The same as numpy arrays of 64-bit integers, -1 for unknown."""
        return as_arrays(self._end().samples)

    def __repr__(self) -> str:
        """One line."""
        return f"<farline.Run to {self.address}: {_line(self)}>"

    def _repr_html_(self) -> str:
        """Its throughput over time and what limited it, for a notebook."""
        return _html(self)


def _line(run: Run) -> str:
    """A run in a few words."""
    if run.status == "running":
        return "running"
    if run.error is not None:
        return f"failed: {run.error.message}"
    rate = run.throughput_bps
    return run.status if rate is None else f"{rate_human(rate)}, {run.verdict['line']}"


def _html(run: Run) -> str:
    """Figures and verdict of a run above its throughput over time; while it runs, until now."""
    # The address alone: a ticket is a secret, and a notebook is passed on.
    title = f"{run.spec.get('transport', 'tcp')} to {run.address}"
    if not run.done:
        return drawing.card(title, [("status", "running")], _curve(run.so_far))
    if run.error is not None:
        return drawing.card(title, [("failed", run.error.message)])
    rows = [("throughput", drawing.rate_text(run.throughput_bps)), *_summary_rows(run.summary)]
    return drawing.card(title, [*rows, ("limited by", run.verdict["line"])], _curve(run.columns))


def _summary_rows(summary: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if summary["mean_rtt_us"] is not None:
        yield "round-trip time", f"{summary['mean_rtt_us'] / 1000:.3g} ms on average"
    if summary["retransmits"] is not None:
        yield "retransmitted", counted(summary["retransmits"], "segment")
    if summary["lost_packets"] is not None:
        yield "lost", counted(summary["lost_packets"], "packet")


def _curve(columns: Samples) -> str:
    from farline.plots.series import run_series

    series = run_series(columns) if columns else None
    if series is None:
        return ""
    lines = [(one.way, [float(rate) for rate in one.total_bps]) for one in series.directions]
    return drawing.curve(series.middles_s.tolist(), lines)


def probe(target: str, *, store: StoreLike = None, keep: bool = True, **spec: Any) -> Run:
    """Begins one run towards `target`: a host with an optional `:PORT`, or a ticket.

    Options have their names in plans (docs/reference/options.md): `streams=4`,
    `duration_s="5s"`, `transport="udt"`, `tcp={"congestion_control": "reno"}`. The run is kept in
    `store`, the user's own if None, unless `keep` is false.

    Raises:
        UsageError: when `target` is no target.
        SpecError: when an option is not allowed.
    """
    parse_target(target)
    document = sampled_spec(spec_of(spec))
    return Run(target, document, keeper_at(store) if keep else None, path_watch())
