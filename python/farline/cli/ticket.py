"""`farline ticket HOST`: a ticket for the server on this host, without asking the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from farline.cli.limits import SECONDS, limit_options, limits_from
from farline.cli.serve import (
    ROOT,
    STATE_DIR_OPTION,
    TICKET_LIFETIME_S,
    default_state_dir,
    file_scopes,
)
from farline.tools.native import mint_ticket


@click.command(short_help="Make a ticket for this host's server.")
@click.argument("host")
@click.option("-p", "--port", type=click.IntRange(1, 65535), default=5470, show_default=True)
@click.option("--lifetime", type=SECONDS, default=TICKET_LIFETIME_S, help="How long it lasts [1d].")
@click.option("--write", "write_root", type=ROOT, help="To copy files to ROOT, instead.")
@click.option("--read", "read_root", type=ROOT, help="To copy files from ROOT, instead.")
@limit_options
@STATE_DIR_OPTION
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(
    host: str, port: int, lifetime: float, state_dir: Path | None, as_json: bool, **options: Any
) -> int:
    """Make a ticket by which others may profile towards this host, or copy files.

    HOST is the name or address under which they reach it. The ticket is signed
    with the server's key, so the server need not run.
    """
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    limits = limits_from(options)
    state = str(state_dir or default_state_dir())
    scopes = file_scopes(options) or [{"may": "profile"}]
    if len(scopes) > 1:
        raise click.UsageError("--write and --read: a ticket is for one of them; make two tickets")
    ticket = mint_ticket(state, address, scopes[0], limits, lifetime)
    document = {"schema": 1, "ticket": ticket, "scope": scopes[0]}
    click.echo(
        json.dumps({**document, "limits": limits, "lifetime_s": lifetime}) if as_json else ticket
    )
    return 0
