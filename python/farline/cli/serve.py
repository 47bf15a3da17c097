"""`farline serve`: profiling runs for other hosts, until a signal or a stated count ends it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.limits import RATE, SECONDS, limit_options, limits_from
from farline.errors import SystemFailure
from farline.spec.units import size_human

if TYPE_CHECKING:
    from farline.cli.common import Interruption
    from farline.spec._types import ServerConfig
    from farline.tools.native import Server

TICKET_LIFETIME_S = 86_400.0
"""A printed ticket lasts a day unless said otherwise."""

_POLL_S = 0.25


def default_state_dir() -> Path:
    """Where the server's key lives: `$XDG_STATE_HOME/farline/server`."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "farline" / "server"


STATE_DIR_OPTION = click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the server's key [farline/server under $XDG_STATE_HOME].",
)


@click.command(short_help="Serve profiling runs to other hosts.")
@click.option("-B", "--listen", multiple=True, metavar="ADDR", help="Address to listen on [all].")
@click.option("-p", "--port", type=click.IntRange(0, 65535), default=5470, show_default=True)
@click.option("--data-ports", metavar="FIRST-LAST", help="Ports for data streams, for a firewall.")
@click.option(
    "--max-sessions", type=click.IntRange(1, 1_000_000), default=4, show_default=True,
    help="Sessions at once; one more is told BUSY.",
)  # fmt: skip
@click.option("-1", "--one-off", is_flag=True, help="End after one session.")
@click.option(
    "--stop-after", type=click.IntRange(1, 1_000_000), metavar="N", help="End after N sessions."
)
@click.option(
    "--anonymous", is_flag=True, help="Let clients without a ticket profile, within limits."
)
@click.option(
    "--anonymous-rate", type=RATE, help="Rate limit on them, all streams of a session [10Gbit/s]."
)
@click.option("--anonymous-time", type=SECONDS, help="Limit on the length of their runs [60s].")
@click.option(
    "--host", "ticket_host", metavar="HOST", help="Name or address the printed ticket is for."
)
@click.option(
    "--ticket-lifetime", type=SECONDS, default=TICKET_LIFETIME_S,
    help="How long the printed ticket lasts [1d].",
)  # fmt: skip
@limit_options
@STATE_DIR_OPTION
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object a line: ready, then events."
)
def command(
    as_json: bool,
    ticket_host: str | None,
    ticket_lifetime: float,
    state_dir: Path | None,
    **options: Any,
) -> int:
    """Serve profiling runs to other hosts until SIGINT or SIGTERM.

    Prints its addresses, its key's fingerprint, and a ticket to paste on the
    other host. The limits on rate, time, bytes and sessions are the ticket's.
    """
    from farline.cli.common import interruptible
    from farline.tools.native import Server

    state = state_dir or default_state_dir()
    config = _config(state, options)
    with interruptible(quiet=True) as asked:
        server = Server(config)
        try:
            _announce(server, state, ticket_host, ticket_lifetime, options, as_json)
            _serve(server, asked, as_json)
        finally:
            server.stop()
            server.join()
    return 0


def _config(state: Path, options: dict[str, Any]) -> ServerConfig:
    first, last = _ports(options["data_ports"])
    config: ServerConfig = {
        "listen": list(options["listen"]),
        "port": options["port"],
        "data_port_first": first,
        "data_port_last": last,
        "state_dir": str(_made(state)),
        "max_sessions": options["max_sessions"],
        "anonymous": options["anonymous"],
    }
    if options["anonymous_rate"] is not None or options["anonymous_time"] is not None:
        config["anonymous_limits"] = {
            "rate_bps": options["anonymous_rate"] or 10_000_000_000,
            "duration_s": options["anonymous_time"] or 60.0,
        }
    stop_after = 1 if options["one_off"] else options["stop_after"]
    if stop_after is not None:
        config["stop_after_sessions"] = stop_after
    return config


def _made(state: Path) -> Path:
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SystemFailure(f"{state}: {error.strerror}") from None
    return state


def _ports(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 0
    first, dash, last = text.partition("-")
    if dash and first.isdigit() and last.isdigit() and 0 < int(first) <= int(last) <= 65535:
        return int(first), int(last)
    raise click.UsageError(f"--data-ports: {text!r} is not FIRST-LAST, two ports from 1 to 65535")


def _announce(
    server: Server,
    state: Path,
    host: str | None,
    lifetime_s: float,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    from farline.tools.native import mint_ticket

    addresses, fingerprint = server.addresses(), server.fingerprint()
    address = reachable_address(addresses, host)
    ticket = mint_ticket(str(state), address, {"may": "profile"}, limits_from(options), lifetime_s)
    if as_json:
        ready = {"addresses": addresses, "fingerprint": fingerprint, "ticket": ticket}
        click.echo(json.dumps({"event": "ready", **ready}))
        return
    click.echo(f"listening on {', '.join(addresses)}")
    click.echo(f"server key   {fingerprint}")
    click.echo(f"ticket       {ticket}")
    click.echo(f"on the other host:  farline probe '{ticket}'")
    if options["anonymous"]:
        click.echo(f"without a ticket:   farline probe {address}")


def reachable_address(addresses: list[str], host: str | None) -> str:
    """`host:port` for a ticket: the stated host, or the first address others can reach."""
    port = addresses[0].rpartition(":")[2]
    if host is not None:
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    wildcards = ("0.0.0.0", "[::]")
    bound = [one for one in addresses if one.rpartition(":")[0] not in wildcards]
    return bound[0] if bound else f"{_own_address()}:{port}"


def _own_address() -> str:
    """This host's first address beyond loopback, else loopback."""
    from farline.tools.native import host_facts

    for interface in host_facts()["interfaces"]:
        for address in interface["addresses"]:
            bare = address.partition("/")[0]
            if interface["up"] and interface["name"] != "lo" and ":" not in bare:
                return bare
    return "127.0.0.1"


def _serve(server: Server, asked: Interruption, as_json: bool) -> None:
    """Prints events until a signal comes or the server ends by itself."""
    while not asked():
        event = server.poll(_POLL_S)
        if event is None:
            continue
        kind, document = event
        click.echo(json.dumps(document) if as_json else event_line(kind, document))
        if kind == "stopped":
            return


def event_line(kind: str, event: dict[str, Any]) -> str:
    """One line for people; its first word is the time of day."""
    words = _LINES[kind](event) if kind in _LINES else f"{kind}: {json.dumps(event)}"
    return f"{event['at'][11:19]} {words}"


def _started(event: dict[str, Any]) -> str:
    right = f"ticket {event['ticket']}" if event["ticket"] else "anonymous"
    notes = "".join(f"; {note}" for note in event["notes"])
    what = f"{event['transport']} {event['direction']}, {event['streams']} streams"
    return f"{event['peer']} begins: {what} ({right}){notes}"


def _ended(event: dict[str, Any]) -> str:
    sent, received = size_human(event["bytes_sent"]), size_human(event["bytes_received"])
    why = f": {event['error']['message']}" if event["error"] else ""
    took = f"{event['status']} after {event['session_s']:.1f} s"
    return f"{event['peer']} {took}, sent {sent}, received {received}{why}"


_LINES: dict[str, Callable[[dict[str, Any]], str]] = {
    "session_started": _started,
    "session_ended": _ended,
    "refused": lambda event: f"{event['peer']} refused: {event['error']['message']}",
    "trouble": lambda event: f"trouble: {event['error']['message']}",
    "events_lost": lambda event: f"{event['count']} events lost",
    "stopped": lambda event: f"stopped after {event['sessions']} sessions",
}
