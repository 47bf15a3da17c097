"""What the store knows of a server's application bound, for the verdict of an RBUDP run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farline.campaign.measure import Judge
    from farline.profiles.application_bound import Bound
    from farline.store import Store

NEWEST_RUNS = 200
"""Newest runs of each transport in that mode that are looked through."""


def judge_for(spec: Mapping[str, Any], store: Store | None, address: str) -> Judge | None:
    """The verdict of a run to `address` with what is known; None where nothing more is known.

    The store is asked before the run: a store that cannot be read must not cost a run its record.
    """
    bounds = bounds_for(spec, store, address)
    if not bounds:
        return None
    from functools import partial

    from farline.explain.verdict import verdict

    return partial(verdict, bounds=bounds)


def bounds_for(spec: Mapping[str, Any], store: Store | None, address: str) -> list[Bound]:
    """What is known of the server's application where the run is one that it bounds: RBUDP's."""
    if spec.get("transport") != "rbudp" or store is None:
        return []
    return known_bounds(store, address)


def known_bounds(store: Store, address: str) -> list[Bound]:
    """What `farline app-perf` measured towards `address` (`host:port`), oldest first."""
    from farline.profiles.application_bound import APPLICATION, TRANSPORTS, bounds_of
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
