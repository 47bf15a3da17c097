"""Trials read back from the records that were kept of them.

Labels of a record say which trial it is of, which side, and the window of time in which both sides
ran steadily: by the emulator's clock for its counters, and by the run's own for its samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farline.campaign.contention.order import Place
from farline.fairness.contest import BACKGROUND, SUBJECT, Trial
from farline.fairness.dynamics import Moment
from farline.fairness.wire import Seen, Wires, capacity_of, moments_of, seen_by, wires_between
from farline.profiles.series import RECEIVER, SENDER, known, mean, progress, rows_of
from farline.store import RunFilter

if TYPE_CHECKING:
    from farline.store import Store

LABEL = "fairness"
"""Label of a stored run that is part of a measurement; its value names the measurement."""

_STEP_S = 0.1
Columns = Mapping[str, Any]


@dataclass(frozen=True)
class Kept:
    """One side of a trial as it is kept: record, labels, samples of its streams and of links."""

    record: Mapping[str, Any]
    labels: Mapping[str, Any]
    samples: Columns
    links: Columns

    @property
    def side(self) -> str:
        """Which side it is."""
        return str(self.labels["side"])

    @property
    def place(self) -> Place:
        """The trial that it is of."""
        load = self.labels["load_bps"]
        return Place(
            int(self.labels["repetition"]),
            self.labels["subject"],
            None if load is None else float(load),
        )

    @property
    def valid(self) -> bool:
        """Whether the emulation held, where there was one."""
        path = self.record.get("path")
        return not path or bool(path["stamp"]["valid"])

    def counts(self, count_invalid: bool) -> bool:
        """Whether both sides ran together for long, and the emulation held or may fail."""
        return not self.labels.get("is_short") and (count_invalid or self.valid)


@dataclass(frozen=True)
class Read:
    """Trials, what they say of the line, and places that failed or were not valid."""

    trials: tuple[Trial, ...]
    capacity_bps: float | None
    rtts_s: Mapping[str, float]
    """Round-trip time of the empty path by side, where it is emulated."""
    invalid: int = 0
    kept: Mapping[Place, tuple[Kept, ...]] | None = None


def read_trials(kept: Iterable[Kept], count_invalid: bool = False) -> Read:
    """The trials among what was kept: of each place the last whole one."""
    pairs: dict[tuple[Place, str], list[Kept]] = {}
    for one in kept:
        pairs.setdefault((one.place, str(one.labels["trial"])), []).append(one)
    whole: dict[Place, tuple[Kept, ...]] = {}
    invalid = 0
    for (place, _), sides in pairs.items():
        complete = all(one.record["status"] == "complete" for one in sides)
        if len(sides) != place.sides or not complete:
            continue
        if not all(one.counts(count_invalid) for one in sides):
            invalid += 1
            continue
        whole[place] = tuple(sides)
    trials = {place: trial_of(sides) for place, sides in whole.items()}
    found = {place: trial for place, trial in trials.items() if trial is not None}
    return Read(
        tuple(found.values()),
        _capacity(whole.values()),
        _rtts(whole.values()),
        invalid,
        {place: whole[place] for place in found},
    )


def trial_of(sides: Sequence[Kept]) -> Trial | None:
    """What a trial came to; None where the window has no sample."""
    by_side = {one.side: one for one in sides}
    seen: dict[str, Seen] = {}
    for name, one in by_side.items():
        found = _seen_on_wire(one) if one.links else _seen_at_receiver(one)
        if found is None:
            return None
        seen[name] = found
    place = sides[0].place
    moments = _moments(by_side) if len(by_side) == 2 else ()
    return Trial(place.subject, place.load_bps, place.repetition, seen, moments)


def wires_of(one: Kept) -> Wires:
    """The wires that a side's packets went over, from the topology in its record."""
    path = one.record["path"]
    shared = one.labels.get("link") or path["topology"]["links"][0]["name"]
    return wires_between(
        path["topology"], path["client_host"], path["server_host"], shared, path["rtt_s"]
    )


def _seen_on_wire(one: Kept) -> Seen | None:
    first_us, last_us = one.labels["window_us"]
    return seen_by(one.links, wires_of(one), (first_us, last_us))


def _seen_at_receiver(one: Kept) -> Seen | None:
    """The same from the tool's own samples, where no router counts: payload, not wire."""
    window_us = [1e6 * time_s for time_s in one.labels["window_s"]]
    moved = _received(one)
    if moved is None or moved.end_us < window_us[1] - 1e6 * _STEP_S:
        return _seen_in_summary(one)
    bits = 8 * float(moved.at([window_us[1]])[0] - moved.at([window_us[0]])[0])
    begins_us = one.samples["start_us"]
    inside = [row for row in rows_of(one.samples, SENDER) if begins_us[row] >= window_us[0]]
    rtt_us = mean(known(one.samples, "rtt_us", inside))
    rtt_s = None if rtt_us is None else float(rtt_us) / 1e6
    return Seen(1e6 * bits / (window_us[1] - window_us[0]), rtt_s, _loss(one.record))


def _seen_in_summary(one: Kept) -> Seen | None:
    """The rate of the whole run, of a tool that gives no samples."""
    way = (one.record.get("summary") or {}).get("forward")
    if not way:
        return None
    rate = way["steady_bps"] if way.get("steady_bps") is not None else way["total_bps"]
    return Seen(float(rate), None, _loss(one.record))


def _received(one: Kept) -> Any:
    for end in (1, 0):
        if rows_of(one.samples, RECEIVER, end):
            return progress(one.samples, RECEIVER, end)
    return None


def _loss(record: Mapping[str, Any]) -> float | None:
    summary = record.get("summary") or {}
    lost, sent = summary.get("lost_packets"), summary.get("sent_packets")
    return None if lost is None or not sent else max(0.0, lost / sent)


def _moments(by_side: Mapping[str, Kept]) -> tuple[Moment, ...]:
    """Rates of both from when the transfer came; nothing without counters of a router."""
    mine, theirs = by_side[SUBJECT], by_side[BACKGROUND]
    if not mine.links or not theirs.links:
        return ()
    since_us, until_us = mine.labels["ran_us"]
    # The background was watched for longer: its columns hold both.
    return moments_of(theirs.links, wires_of(mine), wires_of(theirs), since_us, until_us)


def _capacity(trials: Iterable[Sequence[Kept]]) -> float | None:
    for sides in trials:
        for one in sides:
            if one.links:
                return capacity_of(one.links, wires_of(one).shared)
    return None


def _rtts(trials: Iterable[Sequence[Kept]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for sides in trials:
        for one in sides:
            if one.links:
                found.setdefault(one.side, wires_of(one).rtt_s)
    return found


def kept_in_store(store: Store, name: str) -> list[Kept]:
    """Everything that a store has of one measurement, oldest first."""
    rows = store.runs(RunFilter(campaign=name)).select(["run_id", "labels", "record"]).to_pylist()
    mine = [row for row in rows if json.loads(row["labels"] or "{}").get(LABEL) == name]
    run_ids = [row["run_id"] for row in mine]
    if not run_ids:
        return []
    links = _by_run(store.link_samples(run_ids))
    samples = _by_run(store.samples(run_ids))
    return [
        Kept(
            json.loads(row["record"]),
            json.loads(row["labels"]),
            samples.get(row["run_id"], {}),
            links.get(row["run_id"], {}),
        )
        for row in mine
    ]


def _by_run(table: Any) -> dict[str, Columns]:
    """The columns of each run as integer arrays, -1 for unknown."""
    import numpy as np

    if not table.num_rows:
        return {}
    names = np.asarray(table["run_id"].to_pylist(), dtype=object)
    columns = {
        name: np.asarray(table[name].fill_null(-1).to_numpy(), dtype=np.int64)
        for name in table.column_names
        if name != "run_id"
    }
    return {
        str(run): {name: column[names == run] for name, column in columns.items()}
        for run in dict.fromkeys(names)
    }
