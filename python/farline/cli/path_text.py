"""Text of an emulated path: what it was, whether it held, what its links did meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from farline.spec.units import rate_human, size_human, time_human

if TYPE_CHECKING:
    import pyarrow as pa

    from farline.plots.link_series import LinkSeries

_WIDTH = 40
_BLOCKS = " ▁▂▃▄▅▆▇█"


def stamp_line(stamp: Mapping[str, Any]) -> str:
    """A stamp in one line: `valid: ...`, or `not valid: ...` with the reasons."""
    if not stamp["valid"]:
        return f"not valid: {'; '.join(stamp['reasons']) or 'no reason was given'}"
    return f"valid: {stamp['deliveries']} deliveries, {lateness_text(stamp)}"


def lateness_text(figures: Mapping[str, Any]) -> str:
    """How late packets were handed over, from a stamp or the relay's counters."""
    names = (("p50", "median"), ("p99", "p99"), ("max", "most"))
    late = (f"{time_human(figures[f'lateness_{name}_us'])} {word}" for name, word in names)
    return f"late by {', '.join(late)}"


def path_lines(record: Mapping[str, Any]) -> list[str]:
    """What the path of a run was and whether it held; nothing where none was emulated."""
    path = record.get("path")
    if not path:
        return []
    rate = rate_human(path["rate_bps"]) if path["rate_bps"] else "no rate limit"
    ends = f"{path['client_host']} to {path['server_host']}"
    facts = f"RTT {time_human(1e6 * path['rtt_s'])}, {rate}"
    name = (path.get("topology") or {}).get("name") or path["testbed"]
    return [
        f"{'path':<9}{name}, {ends}: {facts}",
        f"{'':<9}{stamp_line(path['stamp'])}",
    ]


def queue_lines(links: pa.Table, path: Mapping[str, Any]) -> list[str]:
    """Per link and direction in which something waited: its queue over time, most, drops."""
    from farline.plots.link_series import LINK_COLUMNS, columns_of, link_series

    if len(links) == 0:
        return []
    series = link_series(columns_of(links, LINK_COLUMNS), path.get("topology"))
    busy = [one for one in series if one.busy]
    if not busy:
        return ["queues   no packet waited, no packet was lost"]
    return [
        "queues   (each bar is the maximum in its interval; drops are totals)",
        *map(_queue_line, busy),
    ]


def _queue_line(series: LinkSeries) -> str:
    most = int(series.backlog_max_bytes.max())
    bars = _bars(series.backlog_max_bytes.tolist(), most)
    drops = int(series.drops.sum())
    lost = f"{drops} packet{'s' * (drops != 1)} lost"
    return f"  {series.name} {series.direction:<8} {bars} {size_human(most)}, {lost}"


def _bars(values: Sequence[int], most: int) -> str:
    """At most `_WIDTH` bars, each as high as the most of its share of the values."""
    step = -(-len(values) // _WIDTH)
    parts = [max(values[at : at + step]) for at in range(0, len(values), step)]
    return "".join(_BLOCKS[round(8 * part / most)] if most else " " for part in parts)
