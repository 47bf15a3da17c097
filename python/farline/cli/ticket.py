"""`farline ticket`: make, list, show and revoke tickets of the server on this host.

The server need not run: its state folder has the key that signs tickets, what each ticket made here
allows, and which are revoked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.command import Command, Group
from farline.cli.limits import LIFETIME, limit_options, limits_from
from farline.cli.serve import ROOT, file_scopes
from farline.cli.server_folders import default_state_dir, folder_options, keys_text
from farline.cli.ticket_text import ticket_lines, ticket_text
from farline.errors import UsageError
from farline.spec.near import did_you_mean
from farline.tools.native import inspect_ticket, list_tickets, mint_ticket, revoke_ticket
from farline.tools.tickets import TICKET_LIFETIME_S

if TYPE_CHECKING:
    from farline.spec._types import TicketRecord

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_MAKE = "make"
_SCHEME = "farline://"


class _TicketGroup(Group):
    """Makes a ticket where the first word is no command: `farline ticket HOST`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses `args`, `make` before them unless they begin with a command or ask for help."""
        known = {*self.commands, "-h", "--help", "--help-all"}
        if not args or args[0] in known:
            return super().parse_args(ctx, args)
        if "." not in args[0] and (meant := did_you_mean(args[0], self.commands)):
            raise click.UsageError(
                f"no such command: {args[0]}; {meant} For a host of that name write"
                f" farline ticket make {args[0]}",
                ctx,
            )
        return super().parse_args(ctx, [_MAKE, *args])


@click.group("ticket", cls=_TicketGroup, short_help="Make, list and revoke tickets of this server.")
def command() -> None:
    """Make, list and revoke tickets of the server on this host.

    A ticket allows its holder to measure to this host, or to copy files below one folder. The
    server need not run. `farline ticket HOST` is short for `farline ticket make HOST`.
    """


@command.command(_MAKE, cls=Command, short_help="Make a ticket for another user.")
@click.argument("host")
@click.option(
    "-p",
    "--port",
    type=click.IntRange(1, 65535),
    default=5470,
    metavar="PORT",
    help="Make the ticket for this control port (default 5470).",
)
@click.option(
    "--lifetime",
    type=LIFETIME,
    default=TICKET_LIFETIME_S,
    help="Let the ticket expire after this time (default 1d).",
)
@click.option("--write", "write_root", type=ROOT, help="Allow only writing files below FOLDER.")
@click.option("--read", "read_root", type=ROOT, help="Allow only reading files below FOLDER.")
@limit_options
@folder_options
@_JSON
def make(
    host: str,
    port: int,
    lifetime: float,
    state_dir: Path | None,
    keys_dir: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Make a ticket that allows others to measure to this host, or to copy files.

    HOST is the name or address by which others reach this host.
    """
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    limits = limits_from(options)
    state = str(state_dir or default_state_dir())
    scopes = file_scopes(options) or [{"may": "profile"}]
    if len(scopes) > 1:
        raise click.UsageError("--write and --read cannot be combined: make two tickets")
    ticket = mint_ticket(state, address, scopes[0], limits, lifetime, keys_text(keys_dir))
    document = {"schema": 1, "ticket": ticket, "scope": scopes[0]}
    click.echo(
        json.dumps({**document, "limits": limits, "lifetime_s": lifetime}) if as_json else ticket
    )
    return 0


@command.command("list", cls=Command, short_help="List the tickets of this server.")
@folder_options
@_JSON
def list_all(state_dir: Path | None, keys_dir: Path | None, as_json: bool) -> int:
    """List the tickets of this server; expired ones are listed until they are cleaned up.

    Tickets of older versions of farline are not listed; revoke them by their whole text.
    """
    from farline.tools.native import list_tickets

    state = state_dir or default_state_dir()
    tickets = list_tickets(str(state), keys_text(keys_dir))
    if as_json:
        click.echo(json.dumps({"schema": 1, "tickets": tickets}, indent=2))
        return 0
    if not tickets:
        click.echo(f"no tickets in {state}; make one with farline ticket make HOST")
    for line in ticket_lines(tickets):
        click.echo(line)
    return 0


@command.command(cls=Command, short_help="Show what a ticket allows.")
@click.argument("ticket")
@folder_options
@_JSON
def show(ticket: str, state_dir: Path | None, keys_dir: Path | None, as_json: bool) -> int:
    """Show what a ticket allows, its limits, and when it expires.

    TICKET is the whole farline://... line, of any server, or the id of a ticket of this server
    (or the beginning or end of the id).
    """
    record = _find(state_dir or default_state_dir(), keys_text(keys_dir), ticket)
    if as_json:
        click.echo(json.dumps({"schema": 1, "ticket": record}, indent=2))
        return 0
    for line in ticket_text(record):
        click.echo(line)
    return 0


@command.command(cls=Command, short_help="Revoke tickets of this server.")
@click.argument("tickets", metavar="[TICKET]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Revoke all tickets that are listed.")
@folder_options
@_JSON
def revoke(
    tickets: tuple[str, ...],
    everything: bool,
    state_dir: Path | None,
    keys_dir: Path | None,
    as_json: bool,
) -> int:
    """Revoke tickets of this server: it refuses them from now on.

    A running server need not be restarted; sessions that have begun continue. TICKET is the whole
    farline://... line, or the id of the ticket (or the beginning or end of the id).
    """
    if everything == bool(tickets):
        raise click.UsageError("no ticket is named: give TICKET or --all")
    state = state_dir or default_state_dir()
    keys = keys_text(keys_dir)
    if everything:
        found = list_tickets(str(state), keys)
    else:
        found = [_find(state, keys, one) for one in tickets]
    for record in found:
        if not record["signed_here"]:
            raise UsageError(
                f"{record['claims']['id']}: not a ticket of this server (state folder {state});"
                f" revoke it on {record['address']}"
            )
    for record in found:
        revoke_ticket(str(state), record["claims"], keys)
    ids = [record["claims"]["id"] for record in found]
    if as_json:
        click.echo(json.dumps({"schema": 1, "revoked": ids}))
        return 0
    if not ids:
        click.echo(f"no tickets in {state}: nothing was revoked")
    for one in ids:
        click.echo(f"revoked {one}")
    return 0


def _find(state: Path, keys: str | None, named: str) -> TicketRecord:
    """The ticket with this text, or the only one that is listed with this id.

    Raises:
        UsageError: when there is none, or more than one.
    """
    if named.startswith(_SCHEME):
        # A ticket for files is printed with the path behind it.
        return inspect_ticket(str(state), named.partition("#")[0], keys)
    word = named.upper()
    known = {record["claims"]["id"]: record for record in list_tickets(str(state), keys)}
    exact = [word] if word in known else []
    found = exact or [one for one in known if one.startswith(word) or one.endswith(word)]
    if len(found) == 1:
        return known[found[0]]
    if found:
        raise UsageError(f"{named}: {len(found)} tickets match; give more of the id")
    raise UsageError(f"{named}: no such ticket in {state}; farline ticket list shows all")
