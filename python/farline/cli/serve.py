"""`farline serve`: copies and profiling runs for other hosts, until a signal or a count ends it.

Over ssh, for one copy, it is `serve_copy` that serves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from farline.cli.command import Command
from farline.cli.limits import LIFETIME, RATE, SECONDS, limit_options, limits_from
from farline.cli.listen import Listen, read_listen
from farline.cli.mark_option import MARK_OPTION
from farline.cli.serve_iperf3 import iperf3_config, iperf3_options
from farline.cli.server_folders import KEY_FILES, default_state_dir, folder_options, keys_text
from farline.cli.shown import shown
from farline.errors import UsageError
from farline.spec.units import counted, size_human
from farline.tools.tickets import TICKET_LIFETIME_S, file_scope, made_state_dir

if TYPE_CHECKING:
    from farline.cli.common import Interruption
    from farline.spec._types import Scope, ServerConfig
    from farline.tools.metrics import MetricsServer
    from farline.tools.native import Iperf3Server, Server
    from farline.tools.service_manager import ServiceManager

_AnyServer = TypeVar("_AnyServer", "Server", "Iperf3Server")

_POLL_S = 0.25


class ServeCommand(Command):
    """A command whose options are the server's."""

    sets: ClassVar[Mapping[str, Sequence[str]]] = {
        "listen": ("listen",),
        "port": ("port",),
        "data_ports": ("data_port_first", "data_port_last"),
        "state_dir": ("state_dir",),
        "keys_dir": ("keys_dir",),
        "max_sessions": ("max_sessions",),
        "stop_after": ("stop_after_sessions",),
        "anonymous_rate": ("anonymous_limits.rate_bps",),
        "anonymous_time": ("anonymous_limits.duration_s",),
        "iperf3_per_address": ("max_sessions_per_address",),
        "iperf3_streams": ("max_streams",),
        "iperf3_key": ("private_key",),
        "iperf3_users": ("users",),
        "iperf3_skew": ("time_skew_s",),
        "iperf3_rate": ("limits.rate_bps",),
        "iperf3_time": ("limits.duration_s",),
        "iperf3_bytes": ("limits.total_bytes",),
    }


ROOT = click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True)


@click.command(cls=ServeCommand, short_help="Serve copies and profiling runs to other hosts.")
@click.option(
    "-B",
    "--listen",
    multiple=True,
    metavar="ADDR|:PORT|ADDR:PORT",
    help="Listen on this address and port; repeat for several addresses (default: all addresses).",
)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Listen on this control port; 0 means any free port (default 5470).",
)
@click.option(
    "--data-ports", metavar="FIRST-LAST", help="Use these ports for data streams (default: any)."
)
@click.option(
    "--single-port", is_flag=True, help="Accept TCP and QUIC data streams on the control port too."
)
@click.option(
    "--write", "write_root", type=ROOT, help="Also print a ticket for writing files below FOLDER."
)
@click.option(
    "--read", "read_root", type=ROOT, help="Also print a ticket for reading files below FOLDER."
)
@click.option("--require-cipher", is_flag=True, help="Refuse copies not encrypted.")
@click.option("--keep-owners", is_flag=True, help="Allow copies with --owner and --group.")
@click.option(
    "--max-sessions", type=click.IntRange(1, 1_000_000), default=4, metavar="N",
    help="Accept at most N sessions at once; tell others to retry (default 4).",
)  # fmt: skip
@click.option("-1", "--one-off", is_flag=True, help="Exit after one session.")
@click.option(
    "--stop-after", type=click.IntRange(1, 1_000_000), metavar="N", help="Exit after N sessions."
)
@click.option(
    "--anonymous", is_flag=True, help="Allow profiling runs without a ticket, within limits."
)
@click.option(
    "--anonymous-rate",
    type=RATE,
    help="Limit sessions without a ticket to this rate (default 10Gbit).",
)
@click.option(
    "--anonymous-time", type=SECONDS, help="Limit runs without a ticket to this time (default 60s)."
)
@click.option(
    "--host",
    "ticket_host",
    metavar="HOST",
    help="Print tickets for this name or address of the server.",
)
@click.option(
    "--ticket-lifetime", type=LIFETIME, default=TICKET_LIFETIME_S,
    help="Let the printed tickets expire after this time (default 1d).",
)  # fmt: skip
@limit_options
@iperf3_options
@folder_options
@click.option(
    "--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus at this address."
)
@click.option("--copy-session", type=click.Choice(("write", "read")), hidden=True)
@click.option("--connect-back", is_flag=True, hidden=True)
@MARK_OPTION
@click.option("--json", "as_json", is_flag=True, help="Print each event as one line of JSON.")
def command(
    as_json: bool,
    ticket_host: str | None,
    ticket_lifetime: float,
    state_dir: Path | None,
    keys_dir: Path | None,
    metrics: str | None,
    copy_session: str | None,
    connect_back: bool,
    mark: str | None,
    **options: Any,
) -> int:
    """Serve copies and profiling runs to other hosts until interrupted.

    Prints the server's addresses, the fingerprint of its key, and the commands to
    run on the other host, with their tickets. A ticket for files gives access to
    nothing outside its folder.
    """
    from farline.cli.common import interruptible
    from farline.logs.stream import take_reopen_signal
    from farline.tools.native import Iperf3Server, Server
    from farline.tools.service_manager import (
        ServiceManager,
        credentials_folder,
        sockets_handed_down,
    )

    if copy_session is not None:
        from farline.cli.serve_copy import serve_copy_back, serve_copy_session

        if state_dir is not None or keys_dir is not None:
            raise click.UsageError("--state-dir, --keys: --copy-session uses its own folder")
        serve = serve_copy_back if connect_back else serve_copy_session
        # Whoever started it is the user whose rights it has.
        own = {**options, "keep_owners": True}
        return serve(lambda folder: _config(folder, own), copy_session, mark)
    take_reopen_signal()
    state = state_dir or default_state_dir()
    keys_dir = keys_dir or credentials_folder(KEY_FILES)
    sockets = sockets_handed_down()
    if sockets:
        _check_sockets_alone(options)
    config = None if options["iperf3_only"] else _config(state, options, keys_dir)
    iperf3 = iperf3_config(options, list(_listen(options).addresses))
    if iperf3 is not None and (stop_after := _stop_after(options)) is not None and config is None:
        iperf3["stop_after_sessions"] = stop_after
    with ExitStack() as stack:
        asked = stack.enter_context(interruptible(quiet=True))
        figures = stack.enter_context(_metrics(metrics)) if metrics else None
        servers: list[Server | Iperf3Server] = []
        if config is not None:
            server = Server(config, sockets=sockets)
            servers.append(_ended_by(stack, server))
            folders = str(state), keys_text(keys_dir)
            _announce(server, folders, ticket_host, ticket_lifetime, options, as_json)
        if iperf3 is not None:
            servers.append(_ended_by(stack, Iperf3Server(iperf3)))
            _announce_iperf3(servers[-1].addresses(), as_json)
        manager = ServiceManager()
        manager.ready(f"listening on {', '.join(a for one in servers for a in one.addresses())}")
        stack.callback(manager.stopping)
        _serve(servers, asked, as_json, figures, manager)
    return 0


def _ended_by(stack: ExitStack, server: _AnyServer) -> _AnyServer:
    """`server`, which ends when the stack does."""
    stack.callback(server.join)
    stack.callback(server.stop)
    return server


def _announce_iperf3(addresses: list[str], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"event": "iperf3_ready", "addresses": addresses}))
        return
    click.echo(f"listening on {', '.join(addresses)} for iperf3")


def _metrics(address: str) -> MetricsServer:
    from farline.tools.metrics import MetricsServer

    return MetricsServer(address)


def _check_sockets_alone(options: Mapping[str, Any]) -> None:
    """Where to listen is said by whoever opened the sockets.

    Raises:
        click.UsageError: when the command line says it too.
    """
    names = {"listen": "--listen", "port": "--port", "iperf3_only": "--iperf3-only"}
    for name, flag in names.items():
        if options[name] not in (None, ()) and options[name] is not False:
            raise click.UsageError(
                f"{flag}: the service manager has opened the sockets to listen on; leave {flag}"
                " out, or disable the socket unit"
            )


def _config(state: Path, options: dict[str, Any], keys_dir: Path | None = None) -> ServerConfig:
    first, last = ports_of(options["data_ports"])
    listen = _listen(options)
    config: ServerConfig = {
        "listen": list(listen.addresses),
        "port": listen.port,
        "data_port_first": first,
        "data_port_last": last,
        "state_dir": str(made_state_dir(state)),
        "max_sessions": options["max_sessions"],
        "anonymous": options["anonymous"],
        "single_port": options["single_port"],
        "require_cipher": options["require_cipher"],
        "keep_owners": options["keep_owners"],
    }
    if keys_dir is not None:
        config["keys_dir"] = str(made_state_dir(keys_dir))
    if options["anonymous_rate"] is not None or options["anonymous_time"] is not None:
        config["anonymous_limits"] = {
            "rate_bps": options["anonymous_rate"] or 10_000_000_000,
            "duration_s": options["anonymous_time"] or 60.0,
        }
    if (stop_after := _stop_after(options)) is not None:
        config["stop_after_sessions"] = stop_after
    return config


def _listen(options: dict[str, Any]) -> Listen:
    return read_listen(options["listen"], options["port"])


def _stop_after(options: dict[str, Any]) -> int | None:
    return 1 if options["one_off"] else options["stop_after"]


def ports_of(text: str | None) -> tuple[int, int]:
    """First and last port of `FIRST-LAST`; zeros for none.

    Raises:
        click.UsageError: for what is no such range.
    """
    if text is None:
        return 0, 0
    first, dash, last = text.partition("-")
    if dash and first.isdigit() and last.isdigit() and 0 < int(first) <= int(last) <= 65535:
        return int(first), int(last)
    raise click.UsageError(f"--data-ports: {text!r} is not FIRST-LAST, two ports from 1 to 65535")


def _announce(
    server: Server,
    folders: tuple[str, str | None],
    host: str | None,
    lifetime_s: float,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    from farline.tools.reachable import reachable_address

    addresses, fingerprint = server.addresses(), server.fingerprint()
    address = reachable_address(addresses, host)
    tickets = _tickets(folders, address, lifetime_s, options)
    if as_json:
        ready = {"addresses": addresses, "fingerprint": fingerprint, "ticket": tickets["profile"]}
        files = {may: ticket for may, ticket in tickets.items() if may != "profile"}
        click.echo(json.dumps({"event": "ready", **ready, "tickets": files}))
        return
    click.echo(f"listening on {', '.join(addresses)}")
    click.echo(f"server key   {fingerprint}")
    click.echo(f"ticket       {tickets['profile']}")
    click.echo(f"on the other host:  farline probe '{tickets['profile']}'")
    if "write" in tickets:
        click.echo(f"to {options['write_root']}:  farline copy FILES... '{tickets['write']}#.'")
    if "read" in tickets:
        click.echo(f"from {options['read_root']}:  farline copy '{tickets['read']}#FILE' .")
    if options["anonymous"]:
        click.echo(f"without a ticket:   farline probe {address}")


def _tickets(
    folders: tuple[str, str | None], address: str, lifetime_s: float, options: dict[str, Any]
) -> dict[str, str]:
    """The tickets to print, by what they are for."""
    from farline.tools.native import mint_ticket

    state, keys = folders
    limits = limits_from(options)
    scopes: list[Scope] = [{"may": "profile"}, *file_scopes(options)]
    return {
        scope["may"]: mint_ticket(state, address, scope, limits, lifetime_s, keys)
        for scope in scopes
    }


def file_scopes(options: dict[str, Any]) -> list[Scope]:
    """Scopes of the tickets for files that were asked for.

    Raises:
        UsageError: when a root's name is no UTF-8, which a ticket cannot say.
    """
    scopes: list[Scope] = []
    for may, root in (("write", options["write_root"]), ("read", options["read_root"])):
        if root is not None:
            try:
                scopes.append(file_scope(may, root))
            except UsageError as error:
                raise click.UsageError(f"--{may}: {error.message}") from None
    return scopes


def _serve(
    servers: Sequence[Server | Iperf3Server],
    asked: Interruption,
    as_json: bool,
    figures: MetricsServer | None,
    manager: ServiceManager,
) -> None:
    """Prints events until a signal comes or the first server ends by itself."""
    while not asked():
        manager.alive()
        for server in servers:
            event = server.poll(_POLL_S / len(servers))
            if event is None:
                continue
            kind, document = event
            if figures is not None:
                figures.take(kind, document)
            click.echo(json.dumps(document) if as_json else event_line(kind, document))
            if kind == "stopped":
                return


def event_line(kind: str, event: dict[str, Any]) -> str:
    """One line for people; its first word is the time of day."""
    words = _LINES[kind](event) if kind in _LINES else f"{kind}: {json.dumps(event)}"
    return shown(f"{event['at'][11:19]} {words}")


def _started(event: dict[str, Any]) -> str:
    right = f"ticket {event['ticket']}" if event["ticket"] else "anonymous"
    notes = "".join(f"; {note}" for note in event["notes"])
    what = f"{event['transport']} {event['direction']}, {counted(event['streams'], 'stream')}"
    return f"{event['peer']} started: {what} ({right}){notes}"


def _ended(event: dict[str, Any]) -> str:
    sent, received = size_human(event["bytes_sent"]), size_human(event["bytes_received"])
    why = f": {event['error']['message']}" if event["error"] else ""
    took = f"{event['status']} after {event['session_s']:.1f} s"
    files = "".join(
        f", {counted(event['copy'][word]['files'], 'file')} {word}"
        for word in ("copied", "failed")
        if event.get("copy") and (word == "copied" or event["copy"][word]["files"])
    )
    return f"{event['peer']} {took}, sent {sent}, received {received}{files}{why}"


def _name_changed(event: dict[str, Any]) -> str:
    verb = event["verb"].replace("_", " ")
    to = f" to {event['to']}" if event["to"] else ""
    outcome = f"refused: {event['error']}" if event["error"] else counted(event["count"], "name")
    return f"{event['peer']} {verb} {event['path']}{to}: {outcome}"


def _names_ended(event: dict[str, Any]) -> str:
    why = f": {event['error']['message']}" if event["error"] else ""
    took = f"{event['status']} after {event['session_s']:.1f} s"
    did = f"{counted(event['requests'], 'request')}, {counted(event['changes'], 'name')} changed"
    return f"{event['peer']} {took}, {did}, sent {size_human(event['bytes_sent'])}{why}"


def _refused_many(event: dict[str, Any]) -> str:
    reasons = ", ".join(f"{count} {reason}" for reason, count in event["reasons"].items())
    refused = (
        f"{counted(event['connections'], 'more connection')} refused in {event['period_s']:.0f} s"
    )
    return f"{event['from']}: {refused} ({reasons}), the last: {event['error']['message']}"


_LINES: dict[str, Callable[[dict[str, Any]], str]] = {
    "session_started": _started,
    "session_ended": _ended,
    "names_started": lambda event: (
        f"{event['peer']} started: names below {event['root']} (ticket {event['ticket']})"
    ),
    "name_changed": _name_changed,
    "names_ended": _names_ended,
    "refused": lambda event: f"{event['peer']} refused: {event['error']['message']}",
    "refused_many": _refused_many,
    "trouble": lambda event: f"problem: {event['error']['message']}",
    "events_lost": lambda event: f"{counted(event['count'], 'event')} lost",
    "stopped": lambda event: f"stopped after {counted(event['sessions'], 'session')}",
}
