"""What `farline app-perf` says at its end: a table of pairs, the rate to state, a document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from farline.findings.finding import rate_flag
from farline.profiles.application_bound import (
    RATE_SHARE,
    Bound,
    Pair,
    bound_of,
    pairs_of,
    ratio,
    raw_bps,
)
from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.spec._types import RunRecord

SCATTERED = 1.25
"""Largest over smallest rate of one kind from which people are told that it scatters."""

Runs = Sequence[tuple[int, "RunRecord"]]


def print_bounds(name: str, runs: Runs, as_json: bool) -> None:
    """The bounds of the pairs that are whole; without any, nothing but the document."""
    pairs = pairs_of(runs)
    if as_json:
        click.echo(json.dumps(document(name, runs, pairs), indent=2))
        return
    for line in text(pairs) if pairs else []:
        click.echo(line)


def text(pairs: Sequence[Pair]) -> list[str]:
    """A row per pair, the medians, and which sending rate to state; at least one pair."""
    bound = bound_of([pair.application for pair in pairs])
    rows = [
        _row("pair", "raw", "application", "ratio", "limited by"),
        *(_pair_row(number, pair) for number, pair in enumerate(pairs, 1)),
        _row("median", rate_human(raw_bps(pairs)), rate_human(bound.application_bps),
             f"{ratio(pairs):.3f}"),
    ]  # fmt: skip
    return ["", *rows, "", *_advice(bound, pairs)]


def _row(name: str, raw: str, application: str, part: str, limits: str = "") -> str:
    return f"{name:>6}  {raw:>12}  {application:>12}  {part:>6}  {limits}".rstrip()


def _pair_row(number: int, pair: Pair) -> str:
    limits = " / ".join(_limit(record) for record in (pair.raw, pair.application))
    rates = (rate_human(pair.raw_bps), rate_human(pair.application_bps))
    return _row(str(number), *rates, f"{pair.ratio:.3f}", limits)


def _limit(record: Mapping[str, Any]) -> str:
    return str((record.get("verdict") or {}).get("limit", "unknown"))


def _advice(bound: Bound, pairs: Sequence[Pair]) -> list[str]:
    """What to state, or that the rate which was stated hides the bound."""
    if bound.only_as_asked:
        return [
            f"application bound: {rate_human(bound.asked_bps)} or more, because the stated or "
            "allowed rate arrived in full; a higher rate would find the bound"
        ]
    each = " a stream" if bound.streams > 1 else ""
    share = f"{100 * RATE_SHARE:.0f} %"
    lines = [
        f"recommended rate for rbudp: {flag(bound.rate_bps)}{each} ({share} of the application "
        f"bound of {rate_human(bound.application_bps)})"
    ]
    limits = {_limit(pair.application) for pair in pairs}
    if not limits <= {"receiver-cpu", "receive-buffer"}:
        lines.append(
            "  the receiving application did not limit every run: `limited by` names what did, "
            "and the bound is at least the value shown"
        )
    return lines + _scatter(pairs)


def _scatter(pairs: Sequence[Pair]) -> list[str]:
    """A warning where runs of one kind differ so much that a median says little."""
    kinds = ([pair.raw_bps for pair in pairs], [pair.application_bps for pair in pairs])
    factor = max(max(kind) / min(kind) if min(kind) else 1.0 for kind in kinds)
    if factor < SCATTERED:
        return []
    return [
        f"  runs of the same kind differ by a factor of {factor:.3g}: use more --rounds, a longer "
        "-t, or a less busy machine"
    ]


def flag(rate_bps: float) -> str:
    """A rate as `-b` takes it, to three digits."""
    return rate_flag(rate_bps)


def document(name: str, runs: Runs, pairs: Sequence[Pair]) -> dict[str, Any]:
    """What `--json` prints; `bounds` is null where no pair is whole, `error` is of the last run."""
    error = runs[-1][1].get("error") if runs else None
    return {
        "schema": 1,
        "app_perf": name,
        "runs": [record["run_id"] for _, record in runs],
        "bounds": _bounds(pairs) if pairs else None,
        **({"error": error} if error else {}),
    }


def _bounds(pairs: Sequence[Pair]) -> dict[str, Any]:
    bound = bound_of([pair.application for pair in pairs])
    return {
        "transport": bound.transport,
        "direction": bound.direction,
        "streams": bound.streams,
        "asked_bps": bound.asked_bps,
        "raw_bps": raw_bps(pairs),
        "application_bps": bound.application_bps,
        "ratio": ratio(pairs),
        "only_as_asked": bound.only_as_asked,
        "rate_bps": bound.rate_bps,
        "pairs": [
            {
                "raw_run": pair.raw["run_id"],
                "application_run": pair.application["run_id"],
                "raw_bps": pair.raw_bps,
                "application_bps": pair.application_bps,
                "ratio": pair.ratio,
                "raw_limit": _limit(pair.raw),
                "application_limit": _limit(pair.application),
            }
            for pair in pairs
        ],
    }
