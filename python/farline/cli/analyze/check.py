"""`farline analyze check`: reads a description of sites and shows what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farline.cli.analyze.options import json_option
from farline.cli.command import Command

if TYPE_CHECKING:
    from farline.spec.infrastructure import Infrastructure


@click.command("check", cls=Command, short_help="Check a description of sites.")
@click.argument("path", metavar="SITES.toml", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def command(path: Path, as_json: bool) -> None:
    """Check a description of sites, and print its sites and connections or what is wrong."""
    from farline.spec.infrastructure_text import load_infrastructure

    found = load_infrastructure(path)
    if as_json:
        from dataclasses import asdict

        click.echo(json.dumps({"schema": 1, **asdict(found)}, indent=2))
        return
    _print(found)


def _print(found: Infrastructure) -> None:
    from farline.cli.analyze.text import ABSENT, say, show_table
    from farline.spec.units import counted, rate_human

    def rate(rate_bps: float | None) -> str:
        return ABSENT if rate_bps is None else rate_human(rate_bps)

    capacity = f", L = {rate_human(found.capacity_bps)}" if found.capacity_bps else ""
    click.echo(f"{found.name}: {counted(len(found.sites), 'site')}{capacity}")
    show_table(
        ["site", "hosts", "host limit", "file systems"],
        [
            [site.name, str(len(site.hosts)), rate(site.host_bps),
             ", ".join(system.name for system in site.file_systems) or ABSENT]
            for site in found.sites
        ],
    )  # fmt: skip
    wanted = len(found.sites) * (len(found.sites) + 1) // 2
    say(f"{len(found.connections)} of {wanted} connections have a round-trip time"
        " (pairs of sites, and each with itself):")  # fmt: skip
    rows = [
        [*one.sites, f"{one.rtt_ms:g} ms", rate(one.capacity_bps or found.capacity_bps)]
        for one in sorted(found.connections, key=lambda one: one.rtt_ms)
    ]
    show_table(["from", "to", "RTT", "capacity"], rows, words=2)
