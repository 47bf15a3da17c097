"""Names for where data are: a folder here, one on a host that ssh reaches, or a ticket's.

Who operates the service registers them; others say `archive` and a path below it, and never see a
ticket. A path cannot leave the endpoint: `..`, absolute paths and, in folders here, links that lead
out are refused.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from farline.copying.locations import (
    Location,
    SshHost,
    StandingServer,
    ThisHost,
    read_endpoints,
    read_location,
)
from farline.copying.pools import NodePool
from farline.errors import SpecError, UsageError
from farline.portal.database import Database, Row
from farline.spec.path_text import from_path_text, to_path_text
from farline.spec.user_folders import expanded

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
MOST_LISTED = 2000
"""Names of a folder that are listed."""


@dataclass(frozen=True)
class Endpoint:
    """A registered place. Its location may be a secret: it has no text of its own."""

    name: str
    location: Location
    created_s: float

    @property
    def kind(self) -> str:
        """`folder`, `ssh`, `server` or `nodes`."""
        kinds = {ThisHost: "folder", SshHost: "ssh", StandingServer: "server", NodePool: "nodes"}
        return kinds[type(self.location.host)]

    @property
    def host(self) -> str:
        """The host's name without a ticket."""
        if isinstance(self.location.host, ThisHost):
            import platform

            return platform.node()
        if isinstance(self.location.host, SshHost):
            return self.location.host.host
        if isinstance(self.location.host, NodePool):
            return self.location.host.text
        from farline.tools.native import parse_target

        return parse_target(self.location.host.url).host

    def host_names(self) -> frozenset[str]:
        """All names of the host, as runs may have kept it."""
        from farline.copying.estimates import host_names

        return host_names(self.location.host)

    def source(self, path: str) -> str:
        """The location of what is copied: with a slash at its end, what is in the folder.

        Of the endpoint itself always that: its own name is nobody's business.

        Raises:
            SpecError: when the path would leave the endpoint.
        """
        whole = self.below(path.removesuffix("/"))
        return f"{whole.rstrip('/')}/" if not path or path.endswith("/") else whole

    def below(self, path: str) -> str:
        """The location of `path` below this endpoint, as a copy takes it: it may hold a ticket.

        Raises:
            SpecError: when the path would leave the endpoint.
        """
        inner = checked_path(path)
        root = self.location.path
        joined = f"{root.rstrip('/')}/{inner}" if inner else root
        host = self.location.host
        if isinstance(host, ThisHost):
            _refuse_links(Path(os.fsdecode(from_path_text(root))), inner, self.name)
            return os.fsdecode(from_path_text(joined))
        mark = "#" if isinstance(host, StandingServer) else ":"
        head = host.url if isinstance(host, StandingServer) else str(host)
        return f"{head}{mark}{os.fsdecode(from_path_text(joined))}"


@dataclass(frozen=True)
class Listed:
    """A name in a folder; `bytes` are those of a file."""

    name: str
    kind: str
    bytes: int | None
    modified_s: float


class Endpoints:
    """The registered endpoints."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database, self._now = database, now

    def add(self, name: str, location: str) -> Endpoint:
        """Registers a location under a name; what had the name is replaced.

        Raises:
            UsageError: for a name or a location that cannot be.
        """
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a name of an endpoint: use small letters, digits, dots, hyphens"
            )
        place = read_location(location)
        if isinstance(place.host, ThisHost):
            folder = expanded(location)
            if not folder.is_dir():
                raise UsageError(f"{location}: no such folder")
            location = str(folder.resolve())
        _ = Endpoint(name, place, 0.0).host  # refuses a ticket that is damaged
        with self._database.write() as write:
            write.execute(
                "INSERT OR REPLACE INTO endpoints VALUES (?, ?, ?)", (name, location, self._now())
            )
        return self.get(name)

    def remove(self, name: str) -> None:
        """Forgets an endpoint; transfers that have begun continue.

        Raises:
            UsageError: when there is none of that name.
        """
        with self._database.write() as write:
            if write.execute("DELETE FROM endpoints WHERE name = ?", (name,)).rowcount != 1:
                raise UsageError(f"{name!r} is not an endpoint")

    def get(self, name: str) -> Endpoint:
        """An endpoint by its name.

        Raises:
            SpecError: when there is none of that name.
        """
        found = self.find(name)
        if found is None:
            known = ", ".join(one.name for one in self.all()) or "none yet"
            raise SpecError(f"endpoint {name[:80]!r} is unknown; endpoints: {known}")
        return found

    def all(self) -> Sequence[Endpoint]:
        """All of them, by name."""
        rows = self._database.rows("SELECT * FROM endpoints ORDER BY name")
        return [_of_row(row) for row in rows]

    def locations(self, source: str, source_path: str, destination: str, path: str) -> list[str]:
        """Both locations of a copy between two endpoints, which may hold tickets.

        Raises:
            SpecError: for an unknown endpoint, or a path that would leave it.
        """
        found = [self.get(source).source(source_path), self.get(destination).below(path)]
        read_endpoints(found)
        return found

    def find(self, name: str) -> Endpoint | None:
        """An endpoint by its name; None where there is none."""
        row = self._database.row("SELECT * FROM endpoints WHERE name = ?", (name,))
        return None if row is None else _of_row(row)


def _of_row(row: Row) -> Endpoint:
    return Endpoint(row["name"], read_location(row["location"]), row["created_s"])


def list_folder(endpoint: Endpoint, path: str) -> Sequence[Listed]:
    """Names in a folder of an endpoint that is a folder here: folders first, then by name.

    Raises:
        SpecError: when the path would leave the endpoint, is no folder or cannot be read.
    """
    if endpoint.kind != "folder":
        raise SpecError(f"{endpoint.name}: only endpoints that are folders here can be listed")
    place = endpoint.below(path)
    try:
        with os.scandir(place) as entries:
            found = [_listed(one) for _, one in zip(range(MOST_LISTED), entries, strict=False)]
    except OSError as error:
        raise SpecError(f"{endpoint.name}: {path[:200]}: {error.strerror}") from None
    return sorted(found, key=lambda one: (one.kind != "folder", one.name))


def checked_path(path: str) -> str:
    """A relative path that stays where it is, without its ends' slashes.

    Raises:
        SpecError: when it would leave the folder that it is below.
    """
    if len(path) > 4096:
        raise SpecError("path: longer than 4096 characters")
    if not path.isprintable():
        raise SpecError("path: control characters are not allowed; write them as \\xNN")
    try:
        raw = from_path_text(path)
    except ValueError as error:
        raise SpecError(f"path: {error}") from None
    # Parts are judged as bytes: an escaped dot or slash is one, too.
    parts = raw.rstrip(b"/").split(b"/") if raw else []
    if any(part in (b"..", b".", b"") for part in parts):
        raise SpecError(
            f"path {path[:200]!r}: write a relative path without '.', '..' and empty parts"
        )
    return to_path_text(b"/".join(parts))


def _refuse_links(root: Path, inner: str, name: str) -> None:
    place = root / os.fsdecode(from_path_text(inner)) if inner else root
    if not place.resolve().is_relative_to(root.resolve()):
        raise SpecError(f"{name}: {inner[:200]}: a link leads out of the endpoint")


def _listed(entry: os.DirEntry[str]) -> Listed:
    name = to_path_text(os.fsencode(entry.name))
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return Listed(name, "other", None, 0.0)
    kind = "folder" if stat.S_ISDIR(facts.st_mode) else "other"
    kind = "file" if stat.S_ISREG(facts.st_mode) else kind
    return Listed(name, kind, facts.st_size if kind == "file" else None, facts.st_mtime)
