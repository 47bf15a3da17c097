"""The page: one HTML file that holds styles, scripts and data and asks nobody for anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farline.plots.data import CampaignData, middle_run
from farline.plots.distribution_figure import BOX_FROM
from farline.plots.findings import beats_reference, findings, reference_gain
from farline.plots.labels import LIMIT_TEXT, digits, percent, plural, rate_range_text
from farline.plots.page_parts import Tile, render
from farline.plots.payload import payload
from farline.plots.response_figure import ALL_POINTS_UP_TO
from farline.plots.tables import host_facts, plan_lines, runs_table, settings_table
from farline.spec.units import rate_human

_STYLES = ("uplot/uPlot.min.css", "page/report.css")
_SCRIPTS = (
    "uplot/uPlot.iife.min.js",
    "page/core.js",
    "page/response.js",
    "page/series.js",
    "page/spread.js",
    "page/main.js",
)


def render_page(data: CampaignData, figure_names: Sequence[str] = ()) -> str:
    """The whole page as text."""
    values = page_values(data, figure_names)
    return render("report.html.j2", values, _STYLES, _SCRIPTS, payload(data))


def page_values(data: CampaignData, figure_names: Sequence[str]) -> dict[str, Any]:
    """Everything the template names."""
    said, record = findings(data), _typical_record(data)
    hosts, sysctls = host_facts(record) if record.get("client") else ([], [])
    versions = _versions(record)
    return {
        "title": f"{_heading(record)} · farline",
        "heading": _heading(record),
        "made": f"campaign {data.name}",
        "facts": _facts(data),
        "lead": said[0],
        "findings": said[1:],
        "tiles": _tiles(data),
        "confidence": percent(data.confidence),
        "points_shown": any(1 < point.n <= ALL_POINTS_UP_TO for point in data.throughput),
        "box_from": BOX_FROM,
        "verdict": record.get("verdict") if record.get("status") == "complete" else None,
        "settings_table": settings_table(data),
        "runs_table": runs_table(data),
        "hosts": hosts,
        "sysctls": sysctls,
        "host_notes": _host_notes(data),
        "plan": plan_lines(data),
        "plan_text": data.plan_text,
        "method": _method(data, record),
        "reproduce": data.command,
        "versions": versions,
        "version_text": _version_text(record),
        "figure_names": figure_names,
    }


def _typical_record(data: CampaignData) -> dict[str, Any]:
    """The record of the best setting's middle run, else of the last run with both ends."""
    run_id = middle_run(data.best) if data.best else None
    if run_id is not None:
        return data.document(run_id)
    records = [data.document(str(row["run_id"])) for row in data.rows]
    whole = [record for record in records if record.get("client") and record.get("server")]
    return (whole or records)[-1]


def _heading(record: Mapping[str, Any]) -> str:
    words = {
        "tcp": "TCP",
        "udp": "UDP",
        "udt": "UDT",
        "rbudp": "RBUDP",
        "quic": "QUIC",
        "null": "Harness",
    }
    transport = words.get(str(record.get("spec", {}).get("transport")), "Transport")
    ends = [(record.get(end) or {}).get("host", {}).get("hostname") for end in ("client", "server")]
    server = ends[1] or record.get("server_address", "server")
    if ends[0] and ends[0] == server:
        return f"{transport} profile within {server}"
    return f"{transport} profile from {ends[0] or 'client'} to {server}"


def _facts(data: CampaignData) -> str:
    starts = sorted(str(row.get("started_at") or "") for row in data.rows)
    first, last = (text[:16].replace("T", " ") for text in (starts[0], starts[-1]))
    span = f"{first} UTC" if first == last else f"{first} to {_end_of(first, last)} UTC"
    address = data.rows[0].get("server_address") or "unknown address"
    counts = f"{plural(len(data.rows), 'run')} of {plural(len(data.throughput), 'setting')}"
    return f"{counts}, {span}, server {address}"


def _end_of(first: str, last: str) -> str:
    return last[11:] if first[:10] == last[:10] else last


def _tiles(data: CampaignData) -> list[Tile]:
    complete = sum(row.get("status") == "complete" for row in data.rows)
    lost = len(data.rows) - complete
    invalid = sum(point.invalid for point in data.throughput)
    empty = sum(point.mean is None for point in data.throughput)
    beside = [
        f"{lost} failed or interrupted" if lost else "",
        f"{invalid} not valid, so not counted" if invalid else "",
        f"{plural(empty, 'setting')} without a valid run" if empty else "",
    ]
    note = "; ".join(text for text in beside if text) or "none failed"
    bad = lost > 0 or invalid > 0 or empty > 0
    runs = Tile("Runs complete", f"{complete} of {len(data.rows)}", note, bad)
    best = data.best
    if best is None or best.mean is None:
        return [runs]
    interval = "one run, no interval" if best.n == 1 else "runs differ too much for an interval"
    if best.low is not None and best.high is not None:
        interval = f"{percent(data.confidence)} interval {rate_range_text(best.low, best.high)}"
    tiles = [Tile("Best setting", rate_human(best.mean), interval), *_gain_tile(data)]
    if best.limits:
        limit, count = next(iter(best.limits.items()))
        note = f"in {count} of {plural(best.n, 'run')} of the best setting"
        tiles.append(Tile("Limited by", LIMIT_TEXT.get(limit, limit), note))
    return [*tiles, runs]


def _gain_tile(data: CampaignData) -> list[Tile]:
    found = reference_gain(data)
    if found is None:
        return []
    note = "too few runs for an interval, or they differ too much"
    if found.low is not None and found.high is not None:
        note = f"{percent(data.confidence)} interval {digits(found.low)} to {digits(found.high)}"
    ratio = f"{digits(found.ratio)} \N{MULTIPLICATION SIGN}"
    if found.low is not None and not beats_reference(data):
        return [
            Tile("Gain over the reference", "within the uncertainty", f"{ratio}, {note}, alone")
        ]
    return [Tile("Gain over the reference", ratio, note)]


def _host_notes(data: CampaignData) -> list[str]:
    notes = []
    for end in ("client", "server"):
        names = sorted({str(row[f"{end}_host"]) for row in data.rows if row.get(f"{end}_host")})
        if len(names) > 1:
            notes.append(
                f"The {end} was not always the same host: {', '.join(names)}. The facts below "
                "are from one run."
            )
    return notes


def _method(data: CampaignData, record: Mapping[str, Any]) -> list[str]:
    level = percent(data.confidence)
    summary = record.get("summary") or {}
    rule = (summary.get("forward") or summary.get("reverse") or {}).get("warmup_rule")
    steady = f" (rule: {rule})" if rule else ""
    return [
        "Throughput is payload received divided by the time to the last byte, start-up included; "
        f"where both directions ran, they are added. Steady state excludes the warm-up{steady}.",
        f"The run is the unit: means are over complete runs, and {level} confidence intervals are "
        "Student's t on them. Ratios are of geometric means, with Welch's t on logarithms; "
        f"settings are compared with the best one at {percent(1 - data.confidence)} with Holm's "
        "correction. The best of many settings is chosen by its result, so its mean is slightly "
        "optimistic.",
    ]


def _versions(record: Mapping[str, Any]) -> dict[str, str]:
    ends = (record.get("client") or {}, record.get("server") or {})
    found: Mapping[str, Any] = next((end["version"] for end in ends if end.get("version")), {})
    return {"farline": str(found.get("farline") or "unknown")}


def _version_text(record: Mapping[str, Any]) -> str:
    parts = []
    for end in ("client", "server"):
        version = (record.get(end) or {}).get("version")
        if version:
            commit = f" ({version['commit']})" if version.get("commit") else ""
            parts.append(
                f"{end}: farline {version.get('farline')}{commit}, {version.get('profile')} build, "
                f"control protocol {version.get('protocol')}"
            )
    return "; ".join(parts) or "not recorded"
