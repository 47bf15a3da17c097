"""Server keys and tickets remembered between runs, one JSON file readable by its owner alone.

A server met for the first time without a ticket is trusted as it comes and its
key kept; from then on another key is refused. A ticket names its server's key,
so remembering a ticket remembers both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from farline.errors import SystemFailure
from farline.spec.json_text import read_object
from farline.spec.user_folders import needed, user_folder

_FILE_SCHEMA = 1


@dataclass(frozen=True)
class KnownServer:
    """What is remembered about one `host:port`."""

    fingerprint: str | None = None
    ticket: str | None = None


TESTBED_SOCKET = "FARLINE_TESTBED_SOCKET"
"""Set on a testbed's hosts; beside the socket is what ends with the testbed."""


def default_path() -> Path | None:
    """`$XDG_CONFIG_HOME/farline/known_servers.json`; on a testbed's hosts, the testbed's own.

    Every testbed has the same addresses, and servers with other keys behind them. None for a user
    without a folder of settings.
    """
    testbed = os.environ.get(TESTBED_SOCKET)
    if testbed:
        return Path(testbed).parent / "known_servers.json"
    config = user_folder("XDG_CONFIG_HOME", ".config")
    return None if config is None else config / "farline" / "known_servers.json"


class KnownServers:
    """The file of known servers; every change is written whole and at once."""

    def __init__(self, path: Path | None = None) -> None:
        """Uses `path`, or the default one; neither need exist."""
        self._path = path or default_path()

    @property
    def is_kept(self) -> bool:
        """Whether there is a place for the file; without one no server is known."""
        return self._path is not None

    @property
    def path(self) -> Path:
        """The file.

        Raises:
            UsageError: when there is no place for it.
        """
        return needed(self._path, "known servers", "XDG_CONFIG_HOME")

    def all(self) -> dict[str, KnownServer]:
        """Every known server by `host:port`.

        Raises:
            SystemFailure: when the file cannot be read or is not what farline wrote.
        """
        if not self.is_kept:
            return {}
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SystemFailure(f"{self.path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise SystemFailure(
                f"{self.path}: not a list of known servers ({error.reason} at byte "
                f"{error.start}); move it away to start with an empty list"
            ) from None
        return _parse(self.path, text)

    def get(self, address: str) -> KnownServer:
        """What is known about `address`; nothing if it was never met."""
        return self.all().get(address, KnownServer())

    def remember_key(self, address: str, fingerprint: str) -> None:
        """Keeps the key of `address`."""
        self._put(address, replace(self.get(address), fingerprint=fingerprint))

    def remember_ticket(self, address: str, ticket: str, fingerprint: str | None) -> None:
        """Keeps a ticket, and the key it names, for `address`."""
        self._put(address, KnownServer(fingerprint, ticket))

    def forget(self, address: str) -> bool:
        """Forgets `address`; says whether it was known."""
        servers = self.all()
        if servers.pop(address, None) is None:
            return False
        self._write(servers)
        return True

    def _put(self, address: str, server: KnownServer) -> None:
        self._write({**self.all(), address: server})

    def _write(self, servers: Mapping[str, KnownServer]) -> None:
        document = {
            "schema": _FILE_SCHEMA,
            "servers": {address: _known(server) for address, server in sorted(servers.items())},
        }
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace_file(self.path, json.dumps(document, indent=2) + "\n")
        except OSError as error:
            raise SystemFailure(f"{self.path}: {error.strerror}") from None


def _known(server: KnownServer) -> dict[str, str]:
    return {name: value for name, value in asdict(server).items() if value is not None}


def _read(known: Mapping[str, Any]) -> KnownServer:
    for name, value in known.items():
        if not isinstance(value, str):
            raise ValueError(f"{name}: {value!r} is not a string")
    return KnownServer(**known)


def _parse(path: Path, text: str) -> dict[str, KnownServer]:
    try:
        document: Any = read_object(text)
        if document["schema"] != _FILE_SCHEMA:
            raise ValueError(f"unknown schema {document['schema']}, expected {_FILE_SCHEMA}")
        return {address: _read(known) for address, known in document["servers"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemFailure(
            f"{path}: not a list of known servers ({error}); move it away to start with an "
            "empty list"
        ) from None


def _replace_file(path: Path, text: str) -> None:
    """Writes a new file beside `path` (mode 0600) and renames it over."""
    import tempfile

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
