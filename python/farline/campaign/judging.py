"""The verdict of a run with what is known beside it: of the receiver's application, of the path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from farline.findings.verdict import verdict
from farline.profiles.application_bound import APPLICATION, TRANSPORTS, bounds_of
from farline.spec.extras import has_analysis
from farline.tools import path_mtu

if TYPE_CHECKING:
    from farline.campaign.measure import Judge
    from farline.findings.black_hole import Suspicion
    from farline.profiles.application_bound import Bound
    from farline.profiles.series import Columns
    from farline.spec._types import RunRecord, Verdict
    from farline.store import Store
    from farline.store.quick import Spool

NEWEST_RUNS = 200
"""Newest runs of each transport in that mode that are looked through."""


def asking_path(bounds: Sequence[Bound]) -> Judge:
    """The verdict with `bounds` of the receiver, which asks where large packets seem to vanish."""

    def judge(record: RunRecord, samples: Columns) -> Verdict:
        return verdict(record, samples, bounds, passing_bytes)

    return judge


def passing_bytes(found: Suspicion) -> int | None:
    """The largest packet that the path to the server passes, asked by echo requests."""
    host = found.address.rpartition(":")[0].strip("[]")
    return path_mtu.passing_bytes(host, found.packet_bytes, found.rtt_s)


def judge_for(spec: Mapping[str, Any], store: Store | None, address: str) -> Judge | None:
    """The verdict of a run to `address` with what is known; None where nothing more is known.

    The store is asked before the run: a store that cannot be read must not cost a run its record.
    """
    bounds = bounds_for(spec, store, address)
    if not bounds:
        return None
    return partial(verdict, bounds=bounds)


def bounds_for(spec: Mapping[str, Any], store: Store | Spool | None, address: str) -> list[Bound]:
    """What is known of the server's application where the run is one that it bounds: RBUDP's."""
    if spec.get("transport") != "rbudp" or not has_analysis():
        return []
    from farline.store import Store

    if not isinstance(store, Store):
        return []
    return known_bounds(store, address)


def known_bounds(store: Store, address: str) -> list[Bound]:
    """What `farline app-perf` measured towards `address` (`host:port`), oldest first."""
    from farline.store import RunFilter

    rows: list[dict[str, Any]] = []
    for transport in TRANSPORTS:
        # Where nobody measured a bound, which is nearly everywhere, no engine need start.
        if not store.may_hold(f"{transport}.receive_mode", APPLICATION):
            continue
        where = {"server_address": (address,), f"{transport}.receive_mode": (APPLICATION,)}
        wanted = RunFilter(transport=transport, where=where)
        found = store.runs(wanted, limit=NEWEST_RUNS)
        rows += found.select(["labels", "record"]).to_pylist()
    return bounds_of(rows)
