"""Snakemake's storage plugin for farline: inputs and outputs of rules behind tickets.

A query is `farline://HOST:PORT#path`; a ticket in it works too, and is not printed. Tickets are
lines of a file, one to read and one to write for each server, named by the setting `tickets` of
the provider (`--storage-farline-tickets FILE`, or `SNAKEMAKE_STORAGE_FARLINE_TICKETS`); without it
farline uses those that `farline trust` remembers. It runs the command `farline`, which the setting
`command` may name, and needs nothing else of farline.

See docs/guide/snakemake.md; Snakemake: `snakemake_interface_storage_plugins` (version 4).
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_storage_plugins.common import Operation
from snakemake_interface_storage_plugins.io import (
    IOCacheStorageInterface,
    Mtime,
    get_constant_prefix,
)
from snakemake_interface_storage_plugins.settings import StorageProviderSettingsBase
from snakemake_interface_storage_plugins.storage_object import (
    StorageObjectGlob,
    StorageObjectRead,
    StorageObjectWrite,
)
from snakemake_interface_storage_plugins.storage_provider import (
    ExampleQuery,
    QueryType,
    StorageProviderBase,
    StorageQueryValidationResult,
)

SCHEME = "farline://"
_GONE = "no such file or folder"


def right_of(ticket: str) -> tuple[str, str]:
    """The server `HOST:PORT` of a ticket, and what it is for: `read`, `write`, `profile`."""
    server, _, rest = ticket.removeprefix(SCHEME).partition("/")
    claims = rest.partition("?")[0].split(".")[1]
    document = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    return server, document["scope"]["may"]


def bare(server: str) -> str:
    """A server's URL without its ticket."""
    return SCHEME + re.split(r"[/?#]", server.removeprefix(SCHEME), maxsplit=1)[0]


@dataclass
class StorageProviderSettings(StorageProviderSettingsBase):  # type: ignore[misc]
    """Settings of the provider."""

    tickets: Path | None = field(
        default=None,
        metadata={
            "help": "File of tickets, one on a line: for each server one to read, one to write",
            "env_var": True,
            "required": False,
        },
    )
    command: str = field(
        default="farline",
        metadata={"help": "Command that runs farline", "env_var": True, "required": False},
    )


class StorageProvider(StorageProviderBase):  # type: ignore[misc]
    """Servers of farline."""

    @cached_property
    def known(self) -> dict[tuple[str, str], str]:
        """The tickets of the file, by server and right."""
        path = self.settings.tickets if self.settings else None
        if path is None:
            return {}
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
            tickets = [line.strip().partition("#")[0] for line in lines]
            return {right_of(one): one for one in tickets if one.startswith(SCHEME)}
        except (OSError, ValueError, LookupError) as error:
            raise WorkflowError(f"{path}: no file of farline's tickets: {error}") from error

    @classmethod
    def example_queries(cls) -> list[ExampleQuery]:
        """What people write."""
        query = f"{SCHEME}dtn.example.org:5470#runs/{{sample}}.csv"
        return [ExampleQuery(query, "A file below the folder of a ticket", QueryType.ANY)]

    def rate_limiter_key(self, query: str, operation: Operation) -> Any:
        """The server."""
        return bare(query)

    def default_max_requests_per_second(self) -> float:
        """A server of farline takes more; each is a process here."""
        return 20.0

    def use_rate_limiter(self) -> bool:
        """The server has limits of its own, and says when it is busy."""
        return False

    @classmethod
    def is_valid_query(cls, query: str) -> StorageQueryValidationResult:
        """A server, and a path behind a #; wildcards may be in it."""
        server, _, path = query.partition("#")
        if not server.startswith(SCHEME) or len(server) == len(SCHEME):
            return StorageQueryValidationResult(bare(query), False, f"must begin with {SCHEME}HOST")
        if not path.strip("/"):
            return StorageQueryValidationResult(bare(query), False, "the path behind # is missing")
        return StorageQueryValidationResult(query, True)

    def safe_print(self, query: str) -> str:
        """Without the ticket, which is a secret."""
        return f"{bare(query)}#{query.partition('#')[2]}"

    def run(self, right: str, server: str, *words: str) -> str:
        """What farline prints. A ticket goes in the environment: others see words.

        Raises:
            FileNotFoundError: where farline says that a name does not exist.
            WorkflowError: for whatever else it says.
        """
        environment = dict(os.environ)
        ticket = server if "?" in server else self.known.get((bare(server)[len(SCHEME) :], right))
        if ticket is not None:
            environment["FARLINE_TICKET"] = ticket
        command = [*shlex.split(self.settings.command if self.settings else "farline"), *words]
        try:
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, check=False,
            )  # fmt: skip
        except OSError as error:
            raise WorkflowError(f"{command[0]}: {error.strerror}") from error
        if done.returncode == 0:
            return done.stdout
        lines = done.stderr.strip().splitlines()
        text = lines[-1].removeprefix("farline: ") if lines else f"exit code {done.returncode}"
        if _GONE in text:
            raise FileNotFoundError(text)
        raise WorkflowError(f"farline: {text}")


class StorageObject(StorageObjectRead, StorageObjectWrite, StorageObjectGlob):  # type: ignore[misc]
    """A file or folder behind a ticket."""

    provider: StorageProvider

    @property
    def server(self) -> str:
        """The URL up to the path."""
        server: str = self.query.partition("#")[0]
        return server

    @property
    def path(self) -> str:
        """The path there, with single slashes."""
        return "/".join(part for part in self.query.partition("#")[2].split("/") if part)

    def location(self, path: str | None = None) -> str:
        """As farline takes it, without the ticket."""
        text = (self.path if path is None else path).replace("\\", "\\\\")
        return f"{bare(self.server)}#{text or '.'}"

    def local_suffix(self) -> str:
        """Server and path: what tells files apart."""
        return f"{bare(self.server)[len(SCHEME) :].replace(':', '_')}/{self.path}"

    def get_inventory_parent(self) -> str | None:
        """Names are asked for one by one."""
        return None

    async def inventory(self, cache: IOCacheStorageInterface) -> None:
        """What one look at the name tells."""
        key = self.cache_key()
        if key in cache.exists_in_storage:
            return
        try:
            facts = self._facts()
        except FileNotFoundError:
            cache.exists_in_storage[key] = False
            return
        cache.exists_in_storage[key] = True
        cache.mtime[key] = Mtime(storage=facts["mtime_ns"] / 1e9)
        cache.size[key] = self._size(facts)

    def cleanup(self) -> None:
        """Nothing is kept but what was copied."""

    def exists(self) -> bool:
        """Whether anything has this name."""
        try:
            self._facts()
        except FileNotFoundError:
            return False
        return True

    def mtime(self) -> float:
        """Last change, seconds since 1970."""
        seconds: float = self._facts()["mtime_ns"] / 1e9
        return seconds

    def size(self) -> int:
        """Bytes; none of a folder."""
        return self._size(self._facts())

    def checksum(self) -> str | None:
        """MD5, computed at the server; none of a folder."""
        if self._facts()["kind"] == "folder":
            return None
        return f"md5:{self._facts('--sum', 'md5')['sums']['md5']}"

    def local_footprint(self) -> int:
        """Bytes here: of a folder, of all that is in it."""
        facts = self._facts()
        if facts["kind"] != "folder":
            return self._size(facts)
        words = ("ls", self.location(), "-R", "--json")
        lines = self.provider.run(self._looks(), self.server, *words).splitlines()
        return sum(self._size(json.loads(line)) for line in lines)

    def retrieve_object(self) -> None:
        """Copies it here; what was cut off is gone on with the next time."""
        source = self.location()
        if self._facts()["kind"] == "folder":
            self.local_path().mkdir(parents=True, exist_ok=True)
            source += "/"
        words = (
            "copy",
            "-q",
            "--overwrite",
            "different",
            source,
            str(self.local_path().absolute()),
        )
        self.provider.run("read", self.server, *words)

    def store_object(self) -> None:
        """Copies it there, with the folders above it; it has its name when all of it is there."""
        above = self.path.rpartition("/")[0]
        local = str(self.local_path().absolute())
        if self.local_path().is_dir():
            above, local = self.path, f"{local}/"
        if above:
            self.provider.run("write", self.server, "mkdir", "-p", self.location(above))
        words = ("copy", "-q", "--overwrite", "different", local, self.location())
        self.provider.run("write", self.server, *words)

    def remove(self) -> None:
        """Removes it, a folder with all that is in it."""
        self.provider.run("write", self.server, "rm", "-r", "-f", self.location())

    def list_candidate_matches(self) -> Iterable[str]:
        """Files below the part of the query that has no wildcards."""
        prefix = get_constant_prefix(self.path).rpartition("/")[0]
        words = ("ls", self.location(prefix), "-R", "--json")
        for line in self.provider.run(self._looks(), self.server, *words).splitlines():
            found = json.loads(line)
            if found["kind"] == "file" or found.get("target_kind") == "file":
                path = f"{prefix}/{found['path']}" if prefix else found["path"]
                yield f"{self.server}#{path}"

    def _facts(self, *more: str) -> dict[str, Any]:
        words = ("stat", "-L", self.location(), "--json", *more)
        facts: dict[str, Any] = json.loads(self.provider.run(self._looks(), self.server, *words))
        return facts

    def _looks(self) -> str:
        """Either kind of ticket tells what there is; an output has that to write alone."""
        server = bare(self.server)[len(SCHEME) :]
        return "read" if (server, "read") in self.provider.known else "write"

    @staticmethod
    def _size(facts: dict[str, Any]) -> int:
        return 0 if facts["kind"] == "folder" else int(facts["bytes"])
