"""Where a copy comes from and goes to: locations as people write them.

```text
name, ./a:b, /a/b:c         here
[user@]host:path            there, over ssh; a relative path begins at the home folder
[user@][2001:db8::1]:path   the same, by an IPv6 address
farline://HOST:PORT/TICKET?key=KEY#path     a server, by a ticket
farline://HOST[:PORT]#path                  a server whose ticket is remembered
```

As with rsync and scp, a colon before the first slash makes a name remote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farline.copying.pools import NodePool, split_pool
from farline.errors import SystemFailure, UsageError
from farline.spec.path_text import to_path_text

SCHEME = "farline://"
# As text: they are compiled where a host is named, and small copies on this host spared it.
_HOST = r"[A-Za-z0-9_][A-Za-z0-9._%-]*"
_URL = re.compile(r"(?:rsync|ssh|sftp|scp|ftp|https?)://")
"""How a location of another tool begins."""
_USER = r"[A-Za-z0-9_][A-Za-z0-9._@+$-]*"
_IPV6 = r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?"


@dataclass(frozen=True)
class ThisHost:
    """This host."""


@dataclass(frozen=True)
class SshHost:
    """A host that ssh leads to; an IPv6 address is without brackets."""

    host: str
    user: str | None = None

    @property
    def target(self) -> str:
        """As ssh takes it."""
        return self.host if self.user is None else f"{self.user}@{self.host}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.user is None else f"{self.user}@{host}"


@dataclass(frozen=True)
class StandingServer:
    """A standing server: a ticket's URL, or one that names the server alone."""

    url: str

    def __str__(self) -> str:
        """The server without the ticket, which is a secret."""
        return SCHEME + self.url.removeprefix(SCHEME).partition("/")[0].partition("?")[0]


Host = ThisHost | SshHost | StandingServer | NodePool


@dataclass(frozen=True)
class Location:
    """A path on a host; the path is bytes written as text (`farline.spec.path_text`)."""

    host: Host
    path: str

    def __str__(self) -> str:
        if isinstance(self.host, ThisHost):
            return self.path
        sign = "#" if isinstance(self.host, StandingServer) else ":"
        return f"{self.host}{sign}{self.path}"


@dataclass(frozen=True)
class Endpoints:
    """The two ends of a copy: where the sources are, and where they go."""

    source_host: Host
    sources: tuple[str, ...]
    destination_host: Host
    destination: str


def read_location(text: str) -> Location:
    """A location from a word of a command line, which may hold bytes that are no UTF-8.

    Raises:
        UsageError: for an empty path, a host that is none, rsync's `host::module`.
    """
    if text.startswith(SCHEME):
        return _server_location(text)
    if (pool := split_pool(text)) is not None:
        return Location(pool[0], _path(pool[1], text))
    if found := _URL.match(text):
        raise UsageError(
            f"{text}: {found[0]} URLs are not supported; write [user@]host:path, or a ticket"
        )
    host, path = _split_host(text)
    if host is None:
        return Location(ThisHost(), _path(text, text))
    if path.startswith(":"):
        raise UsageError(f"{text}: farline does not support the rsync daemon; one colon means ssh")
    return Location(_ssh_host(host, text), _path(path or ".", text))


def _split_host(text: str) -> tuple[str | None, str]:
    """Host and path; no host where the first slash comes before any colon."""
    bracketed = ":" in text and re.match(r"((?:[^/:\[\]]*@)?\[[^\]/]*\]):(.*)", text, re.DOTALL)
    if bracketed:
        return bracketed[1], bracketed[2]
    before, colon, path = text.partition(":")
    if not colon or "/" in before:
        return None, text
    return before, path


def _ssh_host(text: str, whole: str) -> SshHost:
    user, at, host = text.rpartition("@")
    address = host[1:-1] if host.startswith("[") else None
    good = re.fullmatch(*((_IPV6, address) if address is not None else (_HOST, host)))
    if not good or (at and not re.fullmatch(_USER, user)):
        raise UsageError(
            f"{whole}: {text!r} is not a host: write [user@]host:path, an IPv6 address in "
            f"brackets; for a local name with a colon, ./{whole}"
        )
    return SshHost(address or host, user if at else None)


def _server_location(text: str) -> Location:
    url, sign, path = text.partition("#")
    if not sign or not path:
        raise UsageError(
            f"{_shown(url)}: the path is missing: write it after a #, as in {SCHEME}host#data/"
        )
    return Location(StandingServer(url), _path(path, _shown(url)))


def _shown(url: str) -> str:
    return str(StandingServer(url))


def _path(text: str, whole: str) -> str:
    if not text:
        raise UsageError(f"{whole!r}: the path is empty; use . for the current folder")
    if "\0" in text:
        raise UsageError(f"{to_path_text(os.fsencode(whole))}: a path cannot contain a zero byte")
    return to_path_text(os.fsencode(text))


def read_endpoints(words: Sequence[str]) -> Endpoints:
    """Sources and destination from the words of a command line.

    A source that stands there twice, as patterns that overlap have it, is taken once.

    Raises:
        UsageError: when there are fewer than two, or the sources are not all in one place.
    """
    if len(words) == 1:
        raise UsageError("no destination: name at least one source and a destination")
    if not words:
        raise UsageError("no source or destination: name at least one source and a destination")
    sources = list(dict.fromkeys(words[:-1]))
    locations = [read_location(word) for word in (*sources, words[-1])]
    hosts = list(dict.fromkeys(location.host for location in locations[:-1]))
    if len(hosts) > 1:
        first, second = (_name(host) for host in hosts[:2])
        raise UsageError(
            f"sources on {first} and on {second}: all sources of a copy must be on one host; run "
            "two copies"
        )
    destination = locations[-1].path
    if len(sources) == 1 < len(words) - 1 and not destination.endswith("/"):
        # Several sources go into a folder, also where they turn out to be one.
        destination += "/"
    paths = tuple(location.path for location in locations[:-1])
    return Endpoints(hosts[0], paths, locations[-1].host, destination)


def _name(host: Host) -> str:
    return "this host" if isinstance(host, ThisHost) else str(host)


def working_folder() -> str:
    """The folder that this process is in, as text.

    Raises:
        SystemFailure: when it is gone.
    """
    try:
        return to_path_text(os.fsencode(Path.cwd()))
    except OSError as error:
        raise SystemFailure(f"the current folder: {error.strerror}") from None
