"""Rucio's RSE protocol for farline://: get, put, stat, exists, rename, delete.

Set `impl` of the protocol of an RSE to `farline_rucio.Default`, its scheme to `farline`, hostname
and port to those of `farline serve`, and the prefix to the folder of the RSE below the folder of
the tickets. Rucio's checksums (Adler-32, MD5) are computed at the server.

Tickets are lines of a file, one to read and one to write for each server: the file is named by the
extended attribute `tickets` of the protocol, or by `FARLINE_TICKETS`; without either, farline uses
those that `farline trust` remembers. They are in no PFN. It runs the command `farline`, which
`FARLINE` may name, and needs nothing else of farline.

See docs/guide/rucio.md; Rucio: `rucio.rse.protocols.protocol` (version 41).
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from rucio.common import exception
from rucio.rse.protocols.protocol import RSEProtocol

SCHEME = "farline://"
_GONE = "no such file or folder"
_USAGE, _SYSTEM, _AUTH = 1, 2, 4


def right_of(ticket: str) -> tuple[str, str]:
    """The server `HOST:PORT` of a ticket, and what it is for: `read`, `write`, `profile`."""
    server, _, rest = ticket.removeprefix(SCHEME).partition("/")
    claims = rest.partition("?")[0].split(".")[1]
    document = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    return server, document["scope"]["may"]


def tickets_in(path: Path) -> dict[tuple[str, str], str]:
    """The tickets of a file, by server and right; lines that are none are passed over."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        ticket = line.strip().partition("#")[0]
        if ticket.startswith(SCHEME):
            found[right_of(ticket)] = ticket
    return found


class Default(RSEProtocol):  # type: ignore[misc]
    """An RSE behind `farline serve`."""

    def connect(self) -> None:
        """Reads the tickets; a connection is made for each request."""
        more = self.attributes.get("extended_attributes") or {}
        path = more.get("tickets") or os.environ.get("FARLINE_TICKETS")
        try:
            self._tickets = tickets_in(Path(path)) if path else {}
        except (OSError, ValueError, LookupError) as error:
            raise exception.RSEAccessDenied(f"tickets of farline: {error}") from error

    def close(self) -> None:
        """Nothing is open."""

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        try:
            self._run("read", ["stat", self._location(path)])
        except exception.SourceNotFound:
            return False
        return True

    def stat(self, path: str) -> dict[str, Any]:
        """Size and Adler-32 of a file, computed at the server."""
        words = ["stat", self._location(path), "--sum", "adler32", "--json"]
        found = json.loads(self._run("read", words))
        return {"filesize": found["bytes"], "adler32": found["sums"]["adler32"]}

    def get(self, path: str, dest: str, transfer_timeout: int | None = None) -> None:
        """Copies a file here; what was cut off is gone on with the next time."""
        words = ["copy", "-q", "--overwrite", "always", self._location(path), here(dest)]
        self._run("read", words, transfer_timeout)

    def put(
        self,
        source: str,
        target: str,
        source_dir: str | None = None,
        transfer_timeout: int | None = None,
    ) -> None:
        """Copies a file there and makes the folders above it."""
        local = os.path.join(source_dir or "", source)  # noqa: PTH118
        if not Path(local).exists():
            raise exception.SourceNotFound(f"{local}: {_GONE}")
        self._make_above(target)
        words = ["copy", "-q", "--overwrite", "always", here(local), self._location(target)]
        self._run("write", words, transfer_timeout)

    def rename(self, path: str, new_path: str) -> None:
        """Gives a file its last name; nothing that has it already is replaced."""
        words = ["rename", "-p", self._location(path), self._path(new_path)]
        self._run("write", words)

    def delete(self, path: str) -> None:
        """Removes a file."""
        self._run("write", ["rm", self._location(path)])

    def _make_above(self, pfn: str) -> None:
        above = self._path(pfn).rpartition("/")[0]
        if above:
            self._run("write", ["mkdir", "-p", f"{self._server()}#{above}"])

    def _server(self) -> str:
        return f"{SCHEME}{self.attributes['hostname']}:{self.attributes['port']}"

    def _path(self, pfn: str) -> str:
        """Below the folder of the ticket."""
        parts = next(iter(self.parse_pfns(pfn).values()))
        whole = "/".join((parts["prefix"], parts["path"], parts["name"]))
        return "/".join(part for part in whole.split("/") if part)

    def _location(self, pfn: str) -> str:
        return f"{self._server()}#{self._path(pfn)}"

    def _run(self, right: str, words: list[str], timeout: int | None = None) -> str:
        """What farline prints. A ticket goes in the environment: others see words."""
        server = self._server().removeprefix(SCHEME)
        environment = dict(os.environ)
        if (ticket := self._tickets.get((server, right))) is not None:
            environment["FARLINE_TICKET"] = ticket
        command = [*shlex.split(environment.get("FARLINE", "farline")), *words]
        try:
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, check=False, timeout=timeout,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise exception.ServiceUnavailable(f"farline: not done in {timeout} s") from error
        except OSError as error:
            raise exception.ServiceUnavailable(f"{command[0]}: {error.strerror}") from error
        if done.returncode:
            raise failure(done.returncode, done.stderr)
        return done.stdout


def here(path: str) -> str:
    """A path on this host that is not taken for one on another."""
    return os.path.abspath(path)  # noqa: PTH100


def failure(code: int, said: str) -> Exception:
    """Rucio's exception for what farline says at its end."""
    lines = said.strip().splitlines()
    text = lines[-1].removeprefix("farline: ") if lines else f"farline: exit code {code}"
    kind: type[Exception] = exception.ServiceUnavailable
    if _GONE in text or "no such source" in text:
        kind = exception.SourceNotFound
    elif "exists already" in text:
        kind = exception.FileReplicaAlreadyExists
    elif code == _AUTH:
        kind = exception.RSEAccessDenied
    elif code in (_USAGE, _SYSTEM):
        kind = exception.DestinationNotAccessible
    return kind(text)
