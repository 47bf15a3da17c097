"""A profile as a table: for the terminal, a notebook, and as a pandas DataFrame."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

from farline.spec.units import rate_human

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

ROWS_SHOWN = 20
"""Knots up to which all are shown; of more, half of it from each end."""

HEADINGS = ("rtt_ms", "n", "mean", "sd", "low", "high")


def frame_of(profile: ThroughputProfile, confidence: float = 0.95) -> Any:
    """A row for each knot.

    Columns: rtt_ms, n, mean_bps, sd_bps, ci_low_bps and ci_high_bps (of the mean), and where they
    are known low_bps, high_bps and p10_bps, p50_bps, ... of the measurements.
    """
    import pandas

    low, high = profile.band(confidence)
    columns = {
        "rtt_ms": profile.rtt_ms,
        "n": profile.n.astype(int),
        "mean_bps": profile.mean_bps,
        "sd_bps": profile.sd_bps,
        "ci_low_bps": low,
        "ci_high_bps": high,
    }
    if profile.low_bps is not None and profile.high_bps is not None:
        columns |= {"low_bps": profile.low_bps, "high_bps": profile.high_bps}
    columns |= {f"p{100 * share:g}_bps": values for share, values in profile.quantiles.items()}
    return pandas.DataFrame(columns)


def text_of(profile: ThroughputProfile) -> str:
    """A heading, the table with aligned columns, and what is doubtful."""
    rows = [HEADINGS, *_rows(profile)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    table = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join([heading_of(profile), *table, *profile.notes])


def html_of(profile: ThroughputProfile) -> str:
    """The same as an HTML table; every text is escaped."""
    head = "".join(f"<th>{name}</th>" for name in HEADINGS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in _rows(profile)
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in profile.notes)
    return (
        f"<div><table><caption>{escape(heading_of(profile))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}</div>"
    )


def heading_of(profile: ThroughputProfile) -> str:
    """What it is of, in one line."""
    capacity = profile.capacity_bps
    parts = [
        f"ThroughputProfile {profile.label!r}" if profile.label else "ThroughputProfile",
        f"modality {profile.modality}",
        f"{len(profile)} round-trip times",
        "capacity unknown" if capacity is None else f"capacity {_rate(profile, capacity)}",
    ]
    if profile.failed:
        parts.append(f"{profile.failed} failed")
    return ", ".join(parts)


def _rows(profile: ThroughputProfile) -> list[tuple[str, ...]]:
    low, high = profile.band()
    rows = [
        (
            f"{profile.rtt_ms[place]:.10g}",
            f"{profile.n[place]:g}",
            *(
                _rate(profile, float(values[place]))
                for values in (profile.mean_bps, profile.sd_bps, low, high)
            ),
        )
        for place in range(len(profile))
    ]
    if len(rows) <= ROWS_SHOWN:
        return rows
    half = ROWS_SHOWN // 2
    return [*rows[:half], ("...",) * len(HEADINGS), *rows[-half:]]


def _rate(profile: ThroughputProfile, rate: float) -> str:
    if math.isnan(rate):
        return "-"
    if profile.unit != "bit/s":
        return f"{rate:.4g}"
    return f"-{rate_human(-rate)}" if rate < 0 else rate_human(rate)
