"""`farline portal`: the service and its pages; its tokens, its endpoints, a backup.

The service need not run for tokens and endpoints: they stand in its state folder.
"""

from __future__ import annotations

import json
import platform
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.cli.command import Command, Group
from farline.cli.common import store_option
from farline.cli.limits import SECONDS
from farline.cli.shown import shown
from farline.errors import UsageError

if TYPE_CHECKING:
    from farline.portal.access import Access
    from farline.portal.database import Database
    from farline.portal.endpoints import Endpoints
    from farline.portal.oidc_settings import OidcSettings
    from farline.portal.start import Address

_Command = TypeVar("_Command", bound=Callable[..., Any])

_START = "start"
_SCOPES = ("see", "estimate", "move", "operate")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_STATE = click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep jobs, reservations and tokens in this folder (default"
    " ~/.local/state/farline/portal).",
)
_SITES = click.Path(path_type=Path, exists=True, dir_okay=False)


class _PortalGroup(Group):
    """Starts the portal where no command is named: `farline portal --sites sites.toml`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses `args`, `start` before them unless they name a command or ask for help."""
        if args and (not args[0].startswith("-") or args[0] in ("-h", "--help", "--help-all")):
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, [_START, *args])


@click.group("portal", cls=_PortalGroup, short_help="Serve a web portal and a REST API.")
def command() -> None:
    """Serve pages and a REST API for estimates, reservations and transfers.

    For people who do not use a shell. `farline portal` starts it, and prints the address to open.
    """


@command.command(_START, cls=Command, short_help="Start the portal.")
@click.option(
    "-B",
    "--listen",
    metavar="ADDR|:PORT|ADDR:PORT",
    help="Listen on this address and port (default 127.0.0.1:5480: this host alone).",
)
@click.option(
    "--unix",
    type=click.Path(path_type=Path),
    metavar="SOCKET",
    help="Listen on this Unix socket, for a reverse proxy on this host.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Answer requests for this host name too; repeat for several.",
)
@click.option(
    "--https", is_flag=True, help="State that browsers reach it by https, through a proxy."
)
@click.option(
    "--oidc",
    type=_SITES,
    metavar="FILE",
    help="Let people log in at the OpenID Connect issuer that FILE describes.",
)
@click.option(
    "--reserve-with",
    metavar="COMMAND",
    help="Reserve what users book on a network with this command line: COMMAND reserve|release.",
)
@click.option("--sites", type=_SITES, metavar="FILE", help="Describe sites and capacities by FILE.")
@click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=4,
    metavar="N",
    help="Run at most N transfers at once (default 4).",
)
@_STATE
@store_option
@_JSON
def start(
    listen: str | None,
    unix: Path | None,
    hosts: tuple[str, ...],
    https: bool,
    oidc: Path | None,
    reserve_with: str | None,
    sites: Path | None,
    parallel: int,
    state_dir: Path | None,
    store_path: Path | None,
    as_json: bool,
) -> int:
    """Start the portal, and print the address that logs you in.

    Only this host can reach it unless --listen says otherwise. Running copies continue when the
    portal is stopped, and are found again when it starts.
    """
    _check_installed()
    from farline.logs.stream import take_reopen_signal
    from farline.portal.settings import Settings, default_state_dir
    from farline.portal.start import listening, serve, with_port
    from farline.spec.infrastructure_text import load_infrastructure

    if listen and unix:
        raise click.UsageError("--listen and --unix cannot be combined")
    take_reopen_signal()
    address = _address(listen)
    names = (address.host, platform.node(), *hosts, *Settings.hosts)
    settings = Settings(
        state_dir=state_dir or default_state_dir(),
        store_path=store_path,
        infrastructure=None if sites is None else load_infrastructure(sites),
        hosts=tuple(f"[{name}]" if ":" in name and name[0] != "[" else name for name in names),
        is_secure=https,
        parallel=parallel,
        oidc=_issuer(oidc),
        network=_network(reserve_with),
    )
    with listening(address, unix) as listener:
        place = with_port(address, listener)
        base = _base(place, https, unix, hosts)
        serve(settings, listener, lambda token: _say(base, token, as_json))
    return 0


def _network(command: str | None) -> tuple[str, ...] | None:
    """The words of the command that reserves; it must be there."""
    if command is None:
        return None
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise click.UsageError(f"--reserve-with: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise click.UsageError(f"--reserve-with: {command!r}: no such program")
    return words


def _issuer(path: Path | None) -> OidcSettings | None:
    """Where people log in, if anywhere."""
    if path is None:
        return None
    from farline.portal.oidc import check_installed
    from farline.portal.oidc_settings import load_oidc

    check_installed()
    return load_oidc(path)


def _base(place: Address, https: bool, unix: Path | None, hosts: tuple[str, ...]) -> str:
    """The address that people open: a name where one was given, through a proxy without a port."""
    name = hosts[0] if hosts else place.text
    if place.host in ("0.0.0.0", "::") and not hosts:
        name = platform.node()
    is_direct = hosts and unix is None and not https
    port = f":{place.port}" if is_direct or name == platform.node() else ""
    return f"{'https' if https else 'http'}://{name}{port}"


def _say(base: str, token: str, as_json: bool) -> None:
    # Behind the #, the token stays in the browser: no server, proxy or log gets it.
    url = f"{base}/login#{token}"
    if as_json:
        click.echo(json.dumps({"schema": 1, "event": "ready", "url": base, "login": url}))
    else:
        click.echo(f"farline portal on {base}; this address logs you in once, within 10 minutes:")
        click.echo(url)


def _address(text: str | None) -> Address:
    from farline.cli.listen import read_listen
    from farline.portal.start import DEFAULT_PORT, Address

    if text is None:
        return Address()
    found = read_listen([text], None, DEFAULT_PORT)
    return Address(found.addresses[0] if found.addresses else "0.0.0.0", found.port)


def _check_installed() -> None:
    try:
        import fastapi
        import uvicorn
    except ModuleNotFoundError as error:
        from farline.spec.extras import missing_text

        text = missing_text("farline portal", error)
        if text is None:
            raise
        raise UsageError(text) from None
    assert fastapi and uvicorn


@command.command(cls=Command, short_help="Make, list or revoke tokens.")
@click.option("--user", metavar="NAME", help="Make a token for this user (default: your own name).")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(_SCOPES),
    help="Allow this; repeat for several (default: see, estimate and move).",
)
@click.option(
    "--lifetime", type=SECONDS, help="Let the token expire after this time (default 30d)."
)
@click.option("--list", "lists", is_flag=True, help="List the valid tokens, without their texts.")
@click.option("--revoke", metavar="ID", help="Revoke the token with this id.")
@_STATE
@_JSON
def token(
    user: str | None,
    scopes: tuple[str, ...],
    lifetime: float | None,
    lists: bool,
    revoke: str | None,
    state_dir: Path | None,
    as_json: bool,
) -> int:
    """Make a token for programs, or for a person to log in with.

    The token is printed once, and only a hash of it is kept. Scopes: see (read what was measured),
    estimate, move (copy and reserve), operate (see and stop what others do).
    """
    if lists + bool(revoke) + bool(user or scopes or lifetime) > 1:
        raise click.UsageError("--list, --revoke and the options of a new token cannot be combined")
    access = _access(state_dir)
    if lists:
        return _list_tokens(access, as_json)
    if revoke:
        access.revoke(revoke)
        click.echo(json.dumps({"schema": 1, "revoked": revoke}) if as_json else f"revoked {revoke}")
        return 0
    return _make_token(access, user, scopes, lifetime, as_json)


def _make_token(
    access: Access, user: str | None, scopes: tuple[str, ...], lifetime: float | None, as_json: bool
) -> int:
    import getpass

    from farline.portal.access import BEARER, TOKEN_S

    text, token_id = access.make(
        BEARER, user or getpass.getuser(), scopes or _SCOPES[:3], lifetime or TOKEN_S
    )
    document = {"schema": 1, "id": token_id, "token": text, "lifetime_s": lifetime or TOKEN_S}
    click.echo(json.dumps(document) if as_json else text)
    return 0


def _list_tokens(access: Access, as_json: bool) -> int:
    found = access.tokens()
    if as_json:
        click.echo(json.dumps({"schema": 1, "tokens": found}, indent=2))
        return 0
    if not found:
        click.echo("no tokens; make one with farline portal token")
    for one in found:
        until = _time_text(one["expires_s"])
        click.echo(f"{one['id']}  {shown(one['user'])}  {','.join(one['scopes'])}  until {until}")
    return 0


def _time_text(at_s: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


@command.group("endpoint", cls=Group, short_help="Name the places that data are copied between.")
def endpoint() -> None:
    """Name the places that data are copied between.

    Users of the portal see only the names, not the tickets and folders behind them.
    """


@endpoint.command(cls=Command, short_help="Register a place under a name.")
@click.argument("name")
@click.argument("location")
@_STATE
def add(name: str, location: str, state_dir: Path | None) -> int:
    """Register LOCATION under NAME, and replace what had that name.

    LOCATION is a folder of this host, [user@]host:folder over ssh, or a ticket with #folder. Users
    can reach only what is below it.
    """
    found = _endpoints(state_dir).add(name, location)
    click.echo(f"{found.name}: {found.kind} on {shown(found.host)}")
    return 0


@endpoint.command("list", cls=Command, short_help="List the registered places.")
@_STATE
@_JSON
def list_all(state_dir: Path | None, as_json: bool) -> int:
    """List the registered places, without their tickets."""
    found = _endpoints(state_dir).all()
    rows = [{"name": one.name, "kind": one.kind, "location": str(one.location)} for one in found]
    if as_json:
        click.echo(json.dumps({"schema": 1, "endpoints": rows}, indent=2))
        return 0
    if not rows:
        click.echo("no endpoints; register one with farline portal endpoint add NAME LOCATION")
    for row in rows:
        click.echo(f"{row['name']}  {row['kind']}  {shown(row['location'])}")
    return 0


@endpoint.command(cls=Command, short_help="Forget a registered place.")
@click.argument("name")
@_STATE
def remove(name: str, state_dir: Path | None) -> int:
    """Forget the place called NAME; running transfers continue."""
    _endpoints(state_dir).remove(name)
    click.echo(f"removed {name}")
    return 0


@command.command(cls=Command, short_help="Write a copy of the portal's database.")
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
@_STATE
def backup(target: Path, state_dir: Path | None) -> int:
    """Write a copy of the portal's database to TARGET, while the portal runs.

    To restore it, stop the portal and put the copy in place of portal.sqlite in the state folder.
    """
    if target.exists():
        raise UsageError(f"{target}: exists already; name a new file")
    _database(state_dir).copy_to(target)
    click.echo(f"wrote {target}")
    return 0


def _database(state_dir: Path | None) -> Database:
    from farline.portal.database import Database
    from farline.portal.settings import Settings, default_state_dir

    return Database(Settings(state_dir or default_state_dir()).database)


def _access(state_dir: Path | None) -> Access:
    import time

    from farline.portal.access import Access

    return Access(_database(state_dir), time.time)


def _endpoints(state_dir: Path | None) -> Endpoints:
    import time

    from farline.portal.endpoints import Endpoints

    return Endpoints(_database(state_dir), time.time)
