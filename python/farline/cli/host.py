"""`farline host`: what this host can do, and what holds it back on a stated path."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from farline.cli.command import Command
from farline.cli.limits import RATE, SECONDS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from farline.findings.host_finding import HostFinding, Severity, StatedPath
    from farline.spec._types import HostFacts

MEASURE_S = 0.3
"""Time to measure the memory for."""

SYSCTL = "sysctl -w "
"""How the command of a finding begins that changes a kernel setting."""

WIDTH_MAX = 100
"""Columns beyond which lines get hard to read."""

_STYLES: dict[Severity, str] = {"bad": "bold red", "warn": "yellow", "ok": "green"}
_LABELS: dict[Severity, str] = {"bad": "blocking", "warn": "warning", "ok": "ok"}


@click.command("host", cls=Command, short_help="Check this host for limits on a path.")
@click.option(
    "--rate",
    type=RATE,
    default="10Gbit",
    help="Check for this rate of the path (default 10Gbit).",
)
@click.option(
    "--rtt",
    type=SECONDS,
    default="100ms",
    help="Check for this round-trip time of the path (default 100ms).",
)
@click.option(
    "-P", "--streams", type=click.IntRange(1, 256), default=1, metavar="N",
    help="Share the path among N streams (default 1).",
)  # fmt: skip
@click.option(
    "--loss", type=click.FloatRange(0, 1, max_open=True), metavar="SHARE",
    help="Assume that the path loses this share of packets, such as 1e-5.",
)  # fmt: skip
@click.option(
    "--interface", metavar="IF", help="Check only this network interface (default: all in use)."
)
@click.option(
    "--map", "as_map", is_flag=True,
    help="Show NUMA nodes, cores and network interfaces, and the CPUs that suit each interface.",
)  # fmt: skip
@click.option("--no-measure", is_flag=True, help="Do not measure the copy rate of memory.")
@click.option("--json", "as_json", is_flag=True, help="Print facts and findings as JSON.")
@click.option(
    "--sysctl", "as_sysctl", is_flag=True,
    help="Print the kernel settings to change, as a file for /etc/sysctl.d.",
)  # fmt: skip
@click.option(
    "--firewall", "as_firewall", is_flag=True,
    help="Print nftables rules that let others reach farline serve on this host.",
)  # fmt: skip
@click.option(
    "-p", "--port", type=click.IntRange(1, 65535), metavar="PORT",
    help="With --firewall, open this control port (default 5470).",
)  # fmt: skip
@click.option(
    "--data-ports", metavar="FIRST-LAST",
    help="With --firewall, open these ports for data (default 5471-5500).",
)  # fmt: skip
def command(
    rate: float,
    rtt: float,
    streams: int,
    loss: float | None,
    interface: str | None,
    as_map: bool,
    no_measure: bool,
    as_json: bool,
    as_sysctl: bool,
    as_firewall: bool,
    port: int | None,
    data_ports: str | None,
) -> None:
    """Check this host for limits on a path, and print a command that fixes each.

    Kernel limits are compared with the bandwidth-delay product of the path.
    Changes nothing and sends no packets.
    """
    from farline.findings.host import findings, judged_interfaces
    from farline.tools.native import host_facts, memory_copy_bps

    if as_map and (as_sysctl or as_firewall):
        raise click.UsageError("--map works only with --json")
    if as_map:
        from farline.cli.host_map import print_map

        print_map(as_json)
        return
    if sum((as_json, as_sysctl, as_firewall)) > 1:
        raise click.UsageError("--json, --sysctl and --firewall cannot be combined")
    if as_firewall:
        click.echo("\n".join(_firewall(port or 5470, data_ports or "5471-5500")))
        return
    if port is not None or data_ports is not None:
        raise click.UsageError("--port and --data-ports: need --firewall")
    path = _path(rate, rtt, streams, loss)
    facts = host_facts()
    try:
        judged_interfaces(facts, interface)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--interface") from None
    threads = min(streams, max(1, facts["cpu"]["online"]))
    copied = None if no_measure or as_sysctl else memory_copy_bps(threads, MEASURE_S)
    found = findings(facts, path, interface, copied, _loadable_modules())
    if as_sysctl:
        click.echo("\n".join(sysctl_lines(facts, path, found)))
    elif as_json:
        click.echo(json.dumps(document(facts, path, copied, found), indent=2))
    else:
        _print(facts, path, found)


def _firewall(port: int, data_ports: str) -> list[str]:
    from farline.cli.serve import ports_of
    from farline.findings.firewall import firewall_lines

    first, last = ports_of(data_ports)
    if first <= port <= last:
        raise click.UsageError(f"--port {port}: is one of --data-ports {data_ports}")
    return firewall_lines(port, first, last)


def _loadable_modules() -> frozenset[str]:
    """Modules of congestion controls that modprobe can load here; a dry run loads none."""
    from farline.findings.kernel_rules import WANTED_CONTROLS
    from farline.testbeds.congestion import has_module

    modules = (f"tcp_{name}" for name in WANTED_CONTROLS)
    return frozenset(module for module in modules if has_module(module))


def sysctl_lines(facts: HostFacts, path: StatedPath, found: list[HostFinding]) -> list[str]:
    """A file for /etc/sysctl.d (sysctl.d(5)) with every kernel setting that is to change."""
    name = "/etc/sysctl.d/90-farline.conf"
    lines = [
        f"# {name}",
        *(f"# {line}" for line in headlines(facts, path)),
        f"# Save it as {name}; `sudo sysctl --system` applies it now.",
    ]
    changes = [item for item in found if item.command.startswith(SYSCTL)]
    for item in changes:
        command, _, _ = item.command.removeprefix(SYSCTL).partition(" && ")
        setting, _, value = command.partition("=")
        text = value.strip('"')
        lines += ["", f"# now: {item.what}; {item.why}", f"{setting} = {text}"]
    if not facts["sysctls"]:
        return [*lines, "", "# No kernel setting can be read here; run this on the host itself."]
    return lines if changes else [*lines, "", "# Nothing needs to change for this path."]


def _path(rate: float, rtt: float, streams: int, loss: float | None) -> StatedPath:
    from farline.findings.host_finding import StatedPath

    for value, name in ((rate, "--rate"), (rtt, "--rtt")):
        if value <= 0:
            raise click.BadParameter("must be above 0", param_hint=name)
    return StatedPath(int(rate), rtt, streams, loss)


def document(
    facts: HostFacts, path: StatedPath, memory_copy_bps: float | None, found: list[HostFinding]
) -> dict[str, object]:
    """What `--json` prints."""
    return {
        "schema": 1,
        "path": {**asdict(path), "bdp_bytes": path.bdp_bytes},
        "memory_copy_bps": memory_copy_bps,
        "findings": [asdict(finding) for finding in found],
        "host": facts,
    }


def _print(facts: HostFacts, path: StatedPath, found: list[HostFinding]) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    console.width = min(console.width, WIDTH_MAX)
    for line in headlines(facts, path):
        console.print(line, markup=False)
    _print_table(console, found)
    console.print(_tally(found), markup=False)


def headlines(facts: HostFacts, path: StatedPath) -> list[str]:
    """Who the host is, and what it is judged against."""
    from farline.spec.units import rate_human, size_human, time_human

    cpu = facts["cpu"]
    stated = f"{rate_human(path.rate_bps)} over {time_human(path.rtt_s * 1e6)}"
    shared = f"{path.streams} stream{'s' if path.streams > 1 else ''}"
    return [
        f"{facts['hostname']}: {facts['operating_system']}, Linux {facts['kernel']}",
        f"{cpu['online']} CPUs ({cpu['model'] or facts['architecture']}), "
        f"{size_human(facts['memory_bytes'])} of memory",
        f"Path: {stated}, {shared}; bandwidth-delay product {size_human(path.bdp_bytes)}",
    ]


def _print_table(console: Console, found: list[HostFinding]) -> None:
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(width=8)
    table.add_column(overflow="fold")
    for finding in found:
        style = _STYLES[finding.severity]
        table.add_row(f"[{style}]{_LABELS[finding.severity]}[/]", _cell(finding))
    console.print()
    console.print(table)
    console.print()


def _cell(finding: HostFinding) -> Text:
    """What was found; for what is not well also why it matters, and the mend on a line to copy."""
    from rich.text import Text

    text = Text(f"{finding.subject}: ", style="bold")
    text.append(finding.what, style="not bold")
    if finding.severity == "ok":
        return text
    if finding.why:
        text.append(f"\n{finding.why}", style="not bold dim")
    if finding.command:
        text.append(f"\n{finding.command}", style="not bold cyan")
    return text


def _tally(found: list[HostFinding]) -> str:
    counts = {word: sum(item.severity == word for item in found) for word in _STYLES}
    return f"{counts['bad']} blocking, {counts['warn']} warnings, {counts['ok']} ok"
