"""How jobs and values look in a notebook: small pieces of HTML with inline SVG, no script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from farline.spec.units import counted, rate_human, size_human

if TYPE_CHECKING:
    from farline.api.campaign import Campaign
    from farline.api.contention import Contention
    from farline.api.copy import Copy
    from farline.api.run import Run
    from farline.campaign.estimate import Estimate
    from farline.tools import Samples

WIDTH, HEIGHT = 640, 120
"""Pixels of a curve."""
COLOURS = ("#0072B2", "#D55E00")
ROWS_SHOWN = 40
"""Settings of a campaign that a notebook shows: the fastest."""


def run_line(run: Run) -> str:
    """A run in a few words."""
    if run.status == "running":
        return "running"
    if run.error is not None:
        return f"failed: {run.error.message}"
    rate = run.throughput_bps
    return run.status if rate is None else f"{rate_human(rate)}, {run.verdict['line']}"


def run_html(run: Run) -> str:
    """Figures and verdict of a run above its throughput over time; while it runs, until now."""
    # The address alone: a ticket is a secret, and a notebook is passed on.
    title = f"{run.spec.get('transport', 'tcp')} to {run.address}"
    if not run.done:
        return _card(title, [("status", "running")], _run_curve(run.so_far))
    if run.error is not None:
        return _card(title, [("failed", run.error.message)])
    rows = [("throughput", _rate(run.throughput_bps)), *_summary_rows(run.summary)]
    return _card(title, [*rows, ("limited by", run.verdict["line"])], _run_curve(run.columns))


def _rate(rate_bps: float | None) -> str:
    return "nothing arrived" if rate_bps is None else rate_human(rate_bps)


def _summary_rows(summary: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if summary["mean_rtt_us"] is not None:
        yield "round-trip time", f"{summary['mean_rtt_us'] / 1000:.3g} ms on average"
    if summary["retransmits"] is not None:
        yield "retransmitted", counted(summary["retransmits"], "segment")
    if summary["lost_packets"] is not None:
        yield "lost", counted(summary["lost_packets"], "packet")


def _run_curve(columns: Samples) -> str:
    from farline.plots.series import run_series

    series = run_series(columns) if columns else None
    if series is None:
        return ""
    lines = [(one.way, [float(rate) for rate in one.total_bps]) for one in series.directions]
    return curve(series.middles_s.tolist(), lines)


def curve(times_s: Sequence[float], lines: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Rates in bit/s over seconds as SVG, with the largest and the last time written beside."""
    top = max((max(rates, default=0.0) for _, rates in lines), default=0.0)
    if top <= 0 or len(times_s) < 2:
        return ""
    end = times_s[-1]
    parts = []
    for (name, rates), colour in zip(lines, COLOURS, strict=False):
        points = " ".join(
            f"{at / end * WIDTH:.1f},{HEIGHT - rate / top * (HEIGHT - 8):.1f}"
            for at, rate in zip(times_s, rates, strict=True)
            if rate == rate
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5">'
            f"<title>{escape(name)}</title></polyline>"
        )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 18}" width="100%" style="max-width:{WIDTH}px"'
        f' role="img" aria-label="Throughput over time, at most {escape(rate_human(top))}">'
        f'<line x1="0" y1="{HEIGHT}" x2="{WIDTH}" y2="{HEIGHT}" stroke="currentColor"'
        f' stroke-opacity="0.4"/>{"".join(parts)}'
        f'<text x="0" y="{HEIGHT + 14}" font-size="11" fill="currentColor">0 s</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 14}" font-size="11" text-anchor="end"'
        f' fill="currentColor">{end:.3g} s</text>'
        f'<text x="4" y="12" font-size="11" fill="currentColor">{escape(rate_human(top))}</text>'
        "</svg>"
    )


def copy_line(copy: Copy) -> str:
    """A copy in a few words."""
    if not copy.done:
        return f"running, {copy_progress(copy)}"
    if copy.error is not None:
        return f"failed: {copy.error.message}"
    return ", ".join(f"{key} {value}" for key, value in copy_rows(copy.report))


def copy_progress(copy: Copy) -> str:
    """How far it is."""
    report = copy.progress
    if report is None:
        return "nothing moved yet"
    return f"{size_human(report['moved_bytes'])} moved"


def copy_rows(report: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Files by what became of them."""
    for name in ("copied", "present", "updated", "failed", "skipped", "deleted"):
        count = report.get(name)
        if count and count["files"]:
            size = f", {size_human(count['bytes'])}" if count.get("bytes") else ""
            yield name, f"{counted(count['files'], 'file')}{size}"


def copy_html(copy: Copy) -> str:
    """What became of the files, or how far it is."""
    title = " ".join(copy.locations[:-1]) + " → " + copy.locations[-1]
    if not copy.done:
        return _card(title, [("status", "running"), ("so far", copy_progress(copy))])
    rows = list(copy_rows(copy.report)) if copy.record is not None else []
    if copy.error is not None:
        rows.append(("failed", copy.error.message))
    if copy.record is not None:
        rows.append(("limited by", copy.record["verdict"]["line"]))  # type: ignore[index]
    return _card(title, rows)


def left_text(left: Estimate) -> str:
    """Time that is left, roughly."""
    seconds = left.seconds
    if seconds is None:
        return counted(left.runs, "run")
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def campaign_html(campaign: Campaign) -> str:
    """A row per setting, the fastest first."""
    title = f"campaign {campaign.name}"
    if not campaign.done:
        return _card(title, [("status", "running"), ("so far", campaign.progress_line)])
    if campaign.error is not None:
        return _card(title, [("failed", campaign.error.message)])
    results = sorted(campaign.results, key=lambda row: -(row.mean_bps or 0.0))
    rows = [
        (
            ", ".join(f"{name} {value}" for name, value in row.varied.items()) or "the setting",
            _rate(row.mean_bps),
            _interval(row.low_bps, row.high_bps),
            str(row.runs),
            (row.verdict_limit or "").replace("-", " "),
        )
        for row in results[:ROWS_SHOWN]
    ]
    heads = ("setting", "throughput", "interval", "runs", "limited by")
    more = len(results) - len(rows)
    return _titled(title) + table(heads, rows) + (f"<p>and {more} more</p>" if more > 0 else "")


def contention_html(contention: Contention) -> str:
    """The verdict of each transfer, or how far the measurement is."""
    title = f"fairness {contention.name}"
    if not contention.done:
        return _card(title, [("status", f"running, {contention.progress_line}")])
    if contention.error is not None:
        return _card(title, [("failed", contention.error.message)])
    return _card(title, [(name, verdict.line) for name, verdict in contention.verdicts.items()])


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{rate_human(low)} to {rate_human(high)}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table of texts."""
    head = "".join(f'<th style="text-align:left">{escape(one)}</th>' for one in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(one)}</td>' for one in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _card(title: str, rows: Iterable[tuple[str, str]], below: str = "") -> str:
    body = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"{_titled(title)}<table><tbody>{body}</tbody></table>{below}"


def _titled(title: str) -> str:
    return f"<p><strong>{escape(title)}</strong></p>"
