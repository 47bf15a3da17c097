"""The tables of the page: every setting, every run, both hosts, the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farline.plots.data import CampaignData
from farline.plots.labels import (
    LEFT_OPEN,
    LIMIT_TEXT,
    NOTHING,
    digits,
    parameter_label,
    plural,
    rate_range_text,
    setting_text,
    settings_text,
    size_text,
)
from farline.plots.plan_text import varied_of
from farline.profiles.response import (
    ResponsePoint,
    Row,
    Setting,
    is_figure,
    setting_of,
    setting_order,
    sweepable_parameters,
)
from farline.spec.units import rate_human

_COUNTS = ("retransmits",)


@dataclass(frozen=True, slots=True)
class Column:
    """Heading of a column; numbers stand on the right."""

    text: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, and what it is sorted by; an empty `sort` always comes last."""

    text: str
    sort: str = ""
    bad: bool = False
    badge: str = ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a table."""

    cells: Sequence[Cell]
    best: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table that the page can sort."""

    columns: Sequence[Column]
    rows: Sequence[TableRow]


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of both hosts, or one line of the plan in `client`."""

    name: str
    client: str
    server: str = ""


def settings_table(data: CampaignData) -> Table:
    """One row per setting, the best first."""
    columns = [
        *(Column(parameter_label(name), _is_number(data, name)) for name in data.parameters),
        Column("Throughput", True),
        Column("Confidence interval", True),
        Column("Steady state", True),
        Column("CPU s/GB", True),
        Column("Retransmits", True),
        Column("Runs", True),
        Column("Limited by"),
    ]
    order = sorted(
        range(len(data.throughput)), key=lambda index: -(data.throughput[index].mean or -1.0)
    )
    return Table(columns, [_setting_row(data, index) for index in order])


def runs_table(data: CampaignData) -> Table:
    """One row per run in time order, with what became of it."""
    columns = [
        Column("Started (UTC)"),
        *(Column(parameter_label(name), _is_number(data, name)) for name in data.parameters),
        Column("Status"),
        Column("Throughput", True),
        Column("Verdict or error"),
    ]
    return Table(columns, [_run_row(data, row) for row in data.rows])


def host_facts(record: Mapping[str, Any]) -> tuple[list[Fact], list[Fact]]:
    """Facts of both ends, and their kernel parameters, from one record."""
    ends = [(record.get(end) or {}).get("host") or {} for end in ("client", "server")]
    facts = [Fact(name, *(show(host) for host in ends)) for name, show in _HOST_FACTS]
    tables = [host.get("sysctls") or {} for host in ends]
    names = sorted({name for table in tables for name in table})
    sysctls = [Fact(name, *(table.get(name, NOTHING) for table in tables)) for name in names]
    return facts, sysctls


def plan_lines(data: CampaignData) -> list[Fact]:
    """What was varied, and what was held at a value other than open."""
    lines = [
        Fact(parameter_label(name), ", ".join(_values_text(data, name))) for name in data.parameters
    ]
    lines += _listed_lines(data)
    first = next((row for row in data.rows if not row.get("reference")), data.rows[0])
    held = {
        name: setting_of(first, name)
        for name in sweepable_parameters()
        if name not in data.parameters and setting_of(first, name) not in (None, "[]")
    }
    said = (f"{parameter_label(name).lower()} {setting_text(name, held[name])}" for name in held)
    lines.append(Fact("Same for all", ", ".join(said)))
    repeats = [point.n + point.failed + point.partial for point in data.throughput]
    span = (
        f"{min(repeats)}" if min(repeats) == max(repeats) else f"{min(repeats)} to {max(repeats)}"
    )
    return [*lines, Fact("Runs of each setting", span)]


def _listed_lines(data: CampaignData) -> list[Fact]:
    """What each point of the plan is, and which options vary as one."""
    plan = data.plan.get("plan") or {}
    groups = [
        Fact(
            f"{parameter_label(name)} are", ", ".join(parameter_label(o) for o in group["options"])
        )
        for name, group in (plan.get("together") or {}).items()
    ]
    settings = {
        varied["point"]: {name: value for name, value in varied.items() if name != "point"}
        for varied in varied_of(data.plan).values()
        if "point" in varied
    }
    shown = [name for name in data.parameters if name != "point"]
    return groups + [
        Fact(f"Point {name}", settings_text({k: v for k, v in said.items() if k not in shown}))
        for name, said in settings.items()
    ]


def _values_text(data: CampaignData, name: str) -> list[str]:
    values = sorted({point.settings[name] for point in data.throughput}, key=setting_order)
    return [setting_text(name, value) for value in values]


def _setting_row(data: CampaignData, index: int) -> TableRow:
    point = data.throughput[index]
    best = data.best is not None and point.key == data.best.key
    settings = [_setting_cell(name, value) for name, value in point.settings.items()]
    figures = [_throughput_cell(point), _interval_cell(point)]
    figures += [
        _mean_cell(data, name, index) for name in ("steady_bps", "cpu_s_per_gb", "retransmits")
    ]
    return TableRow([*settings, *figures, _runs_cell(point), _limit_cell(point)], best)


def _setting_cell(name: str, value: Setting) -> Cell:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    text = setting_text(name, value)
    return Cell(text, f"{value:.12g}" if number else "" if text == LEFT_OPEN else text)


def _throughput_cell(point: ResponsePoint) -> Cell:
    if point.mean is None:
        return Cell("no run completed", bad=True)
    return Cell(rate_human(point.mean), f"{point.mean:.6g}")


def _interval_cell(point: ResponsePoint) -> Cell:
    if point.mean is None or point.low is None or point.high is None:
        return Cell(NOTHING)
    return Cell(rate_range_text(point.low, point.high), f"{point.high - point.low:.6g}")


def _mean_cell(data: CampaignData, column: str, index: int) -> Cell:
    if column not in data.points:
        return Cell(NOTHING)
    mean = data.points[column][index].mean
    if mean is None:
        return Cell(NOTHING)
    show = rate_human if column.endswith("_bps") else _count_text if column in _COUNTS else digits
    return Cell(show(mean), f"{mean:.6g}")


def _count_text(mean: float) -> str:
    """Mean of counts: whole where it is large or whole anyway."""
    return f"{mean:.0f}" if mean >= 100 or mean == round(mean) else f"{mean:.1f}"


def _runs_cell(point: ResponsePoint) -> Cell:
    parts = [f"{point.failed} failed"] if point.failed else []
    parts += [f"{point.partial} interrupted"] if point.partial else []
    return Cell(str(point.n), str(point.n), badge=", ".join(parts))


def _limit_cell(point: ResponsePoint) -> Cell:
    text = ", ".join(LIMIT_TEXT.get(limit, limit) for limit in point.limits)
    # One limit stays on one line.
    return Cell(
        text.replace(" ", "\N{NO-BREAK SPACE}").replace(",\N{NO-BREAK SPACE}", ", ") or NOTHING,
        text,
    )


def _run_row(data: CampaignData, row: Row) -> TableRow:
    status, rate = str(row.get("status")), row.get("total_bps")
    settings = [_setting_cell(name, setting_of(row, name)) for name in data.parameters]
    complete = status == "complete"
    started = str(row.get("started_at") or "")[:19].replace("T", " ")
    said = row.get("verdict_line") if complete else row.get("error") or row.get("verdict_line")
    moved = Cell(rate_human(rate), f"{rate:.6g}") if is_figure(rate) and rate else Cell(NOTHING)
    badge = "reference" if row.get("reference") else ""
    return TableRow(
        [Cell(started, started), *settings, Cell(status, status, not complete, badge), moved,
         Cell(str(said or NOTHING), str(said or ""))]
    )  # fmt: skip


def _is_number(data: CampaignData, name: str) -> bool:
    return all(not isinstance(point.settings[name], str) for point in data.throughput)


def _memory(host: Mapping[str, Any]) -> str:
    return (
        size_text(float(f"{host['memory_bytes'] / 2**30:.3g}") * 2**30)
        if host.get("memory_bytes")
        else NOTHING
    )


def _cpu(host: Mapping[str, Any]) -> str:
    cpu = host.get("cpu") or {}
    parts = [cpu.get("model") or "unknown model", f"{cpu.get('online', 0)} online"]
    parts.append(plural(int(cpu.get("numa_nodes") or 1), "NUMA node"))
    parts += [f"governor {cpu['governor']}"] if cpu.get("governor") else []
    parts += ["virtual machine"] if cpu.get("virtualised") else []
    return ", ".join(parts)


def _interfaces(host: Mapping[str, Any]) -> str:
    return "; ".join(_interface(found) for found in host.get("interfaces") or []) or NOTHING


def _interface(found: Mapping[str, Any]) -> str:
    parts = [f"{found.get('name')}: MTU {found.get('mtu_bytes')}"]
    parts += [str(found["driver"])] if found.get("driver") else []
    parts += [rate_human(found["speed_bps"])] if found.get("speed_bps") else []
    parts += [f"queueing {found['qdisc']}"] if found.get("qdisc") else []
    parts += [f"NUMA node {found['numa_node']}"] if found.get("numa_node") is not None else []
    return ", ".join(parts)


_HOST_FACTS = (
    ("Host", lambda host: host.get("hostname") or NOTHING),
    ("System", lambda host: host.get("operating_system") or NOTHING),
    ("Kernel", lambda host: f"{host.get('kernel', NOTHING)} ({host.get('architecture', NOTHING)})"),
    ("Processor", _cpu),
    ("Memory", _memory),
    ("Clock source", lambda host: host.get("clock_source") or NOTHING),
    (
        "Congestion controls",
        lambda host: ", ".join(host.get("congestion_controls") or []) or NOTHING,
    ),
    ("Interfaces", _interfaces),
)
