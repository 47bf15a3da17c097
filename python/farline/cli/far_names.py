"""What the verbs about names on another host share: how it is reached, and paths there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.cli.copy.options import login_options, remote_farline_option
from farline.copying.locations import SCHEME, SshHost, StandingServer, ThisHost, read_location
from farline.errors import InterruptedRun, UsageError
from farline.spec.path_text import to_path_text

if TYPE_CHECKING:
    from farline.api.folder import Folder
    from farline.copying.locations import Location
    from farline.tools.ssh_command import SshCommand

_Command = TypeVar("_Command", bound=Callable[..., Any])

LOCATION = "LOCATION"
MORE = "[PATH]..."


def reach_options(command: _Command) -> _Command:
    """How a host is reached over ssh."""
    for decorate in reversed(
        (
            login_options,
            click.option("-4", "version4", is_flag=True, help="Use IPv4 only with ssh."),
            click.option("-6", "version6", is_flag=True, help="Use IPv6 only with ssh."),
            remote_farline_option,
            click.option("--tunnel", is_flag=True, help="Go through ssh, where firewalls need it."),
        )
    ):
        command = decorate(command)
    return command


@contextmanager
def opened(
    location: str, more: Sequence[str], may: str, options: Mapping[str, Any]
) -> Iterator[tuple[Folder, list[str]]]:
    """The host of a location, and the paths that are meant there.

    Raises:
        UsageError: for a path on this host, or one of `more` on another host.
    """
    from farline.api.folder import open_host

    at = read_location(location)
    if isinstance(at.host, ThisHost):
        raise UsageError(f"{location}: is on this host; write {SCHEME}...#path or [user@]host:path")
    paths = [at.path, *(_further(at, word) for word in more)]
    folder = open_host(at.host, may=may, ssh=_ssh(at, options), tunnel=options["tunnel"])
    try:
        yield folder, [folder.place(path) for path in paths]
    except KeyboardInterrupt:
        raise InterruptedRun("stopped") from None
    finally:
        folder.close()


def _further(at: Location, word: str) -> str:
    """A further path on the host of the first, also where it is written with the host."""
    if word.startswith(SCHEME) or isinstance(at.host, SshHost):
        other = read_location(word)
        if other.host == at.host:
            return other.path
        if not isinstance(other.host, ThisHost):
            raise UsageError(f"{word if other.path == word else other}: must be on {at.host} too")
    return to_path_text(os.fsencode(word))


def _ssh(at: Location, options: Mapping[str, Any]) -> SshCommand | None:
    from farline.cli.copy.command import refuse_ssh_options, ssh_command

    options = {**options, "bootstrap": False, "bootstrap_program": None}
    if not isinstance(at.host, StandingServer):
        return ssh_command(options)
    why = f"{at.host} is not reached over ssh"
    for name, flag in (("version4", "-4"), ("version6", "-6"), ("tunnel", "--tunnel")):
        if options[name]:
            raise click.UsageError(f"{flag}: {why}")
    refuse_ssh_options(options, why)
    return None
