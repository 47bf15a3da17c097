"""`farline trust`: servers' keys and tickets, remembered, listed, forgotten."""

from __future__ import annotations

import json

import click

from farline.cli.command import Command
from farline.errors import UsageError
from farline.tools.known_servers import KnownServers
from farline.tools.native import parse_target


@click.command(cls=Command, short_help="Remember a ticket, or forget a server.")
@click.argument("ticket", required=False)
@click.option("--forget", metavar="HOST", help="Forget the key and ticket of this server.")
@click.option("--list", "as_list", is_flag=True, help="List known servers, without their tickets.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(ticket: str | None, forget: str | None, as_list: bool, as_json: bool) -> int:
    """Remember TICKET for its host, so that later commands need only the name of the host."""
    if sum((ticket is not None, forget is not None, as_list)) != 1:
        raise click.UsageError("give one of: a ticket, --forget HOST, --list")
    document = _trust(ticket) if ticket else _forget(forget) if forget else _listed()
    if as_json:
        click.echo(json.dumps({"schema": 1, **document}))
        return 0
    for address, what in document["servers"].items():
        click.echo(f"{address}  {what['text']}")
    return 0


def _trust(text: str) -> dict[str, dict[str, dict[str, str]]]:
    # A ticket for files is printed with the path behind it.
    text = text.partition("#")[0]
    target = parse_target(text)
    if target.ticket is None:
        raise UsageError(
            f"{text!r} is not a ticket: a ticket starts with farline:// and is printed by "
            "`farline serve`"
        )
    if target.pin is None:
        raise UsageError(
            f"the ticket for {target.address} contains no server key (?key=sha256-...): copy the "
            "complete line that `farline serve` prints"
        )
    KnownServers().remember_ticket(target.address, text, target.pin)
    return {"servers": {target.address: {"text": "ticket remembered"}}}


def _forget(text: str) -> dict[str, dict[str, dict[str, str]]]:
    address = parse_target(text).address
    if not KnownServers().forget(address):
        raise UsageError(f"{address} is not known; farline trust --list shows the known servers")
    return {"servers": {address: {"text": "forgotten"}}}


def _listed() -> dict[str, dict[str, dict[str, str]]]:
    servers = {}
    for address, known in KnownServers().all().items():
        ticket = ", with a ticket" if known.ticket else ""
        servers[address] = {"text": f"key {known.fingerprint or 'not known'}{ticket}"}
    return {"servers": servers}
