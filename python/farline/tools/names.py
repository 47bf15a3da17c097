"""Names below the folder of a ticket: one session with its server, one request at a time.

Paths are text as in copies (`farline.spec.path_text`), below the folder of the ticket. What is
refused is an error that names the path; those that Python's own files know are theirs as well
(`FileNotFoundError` and others).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farline import _native
from farline.errors import AuthError, FarlineError, LimitError, SystemFailure, UsageError
from farline.tools.native import checked

if TYPE_CHECKING:
    from farline.tools.native import Target

SUMS = ("blake3", "adler32", "md5")
"""Sums that a server computes of a file on demand."""

MOST_READ_BYTES = 512 << 10
"""Most bytes of a file that one answer has."""

CONNECT_S = 30.0

_POLL_S = 3600.0


class NoSuchName(UsageError, FileNotFoundError):
    """Nothing has this name."""


class NameExists(UsageError, FileExistsError):
    """Something has this name already."""


class NoFolder(UsageError, NotADirectoryError):
    """It is no folder."""


class IsFolder(UsageError, IsADirectoryError):
    """It is a folder."""


class NotEmpty(UsageError, OSError):
    """The folder has something in it."""


class NotAllowed(AuthError, PermissionError):
    """The ticket does not allow it, or the path leads outside its folder."""


class NoPermission(SystemFailure, PermissionError):
    """The system of the server does not permit it."""


_ERRORS: Mapping[str, type[FarlineError]] = {
    "not_found": NoSuchName,
    "exists": NameExists,
    "not_a_folder": NoFolder,
    "is_a_folder": IsFolder,
    "not_empty": NotEmpty,
    "outside": NotAllowed,
    "not_allowed": NotAllowed,
    "limit": LimitError,
    "no_permission": NoPermission,
    "invalid": UsageError,
    "system": SystemFailure,
}
"""The error for each reason of a refusal."""


@dataclass(frozen=True)
class Name:
    """What a name stands for."""

    name: str
    """The last part of its path; empty for the folder of the ticket."""
    kind: str
    """`file`, `folder`, `link` or `other`."""
    bytes: int
    """Length of its content."""
    mtime_ns: int
    """Last change of its content, nanoseconds since 1970."""
    mode: int
    """Permission bits."""
    target: str | None = None
    """Of a link: where it leads, as it is written."""
    target_kind: str | None = None
    """Of a link: what is there, if it can be reached."""
    sums: Mapping[str, str] = field(default_factory=dict)
    """The sums that were wanted, in hexadecimal."""

    @property
    def is_folder(self) -> bool:
        """Whether there are names below it; a link that leads to a folder counts."""
        return "folder" in (self.kind, self.target_kind)

    def document(self) -> dict[str, Any]:
        """As JSON has it; what is absent is left out."""
        known = {
            "name": self.name, "kind": self.kind, "bytes": self.bytes,
            "mtime_ns": self.mtime_ns, "mode": f"{self.mode:04o}", "target": self.target,
            "target_kind": self.target_kind, "sums": dict(self.sums) or None,
        }  # fmt: skip
        return {name: value for name, value in known.items() if value is not None}


class NameSession:
    """A session with the server of a ticket. It ends by `close`, or after a minute of silence."""

    def __init__(self, target: Target, ip_version: str = "any") -> None:
        """Connects and shows the ticket.

        Raises:
            FarlineError: when the server cannot be reached, or does not take the ticket.
        """
        self._native = checked(_native.NameSession, target.to_json(), ip_version, CONNECT_S)

    def list(self, path: str) -> Iterator[Name]:
        """What is in a folder, sorted by name."""
        after: dict[str, str] = {}
        more = True
        while more:
            answer, _ = self._ask({"verb": "list", "path": path, **after})
            names = [_name(document) for document in answer["names"]]
            yield from names
            more = answer["more"] and bool(names)
            after = {"after": names[-1].name} if names else {}

    def stat(self, path: str, follow: bool = False, sums: Sequence[str] = ()) -> Name:
        """What a name stands for; with sums of all of its content."""
        request = {"verb": "stat", "path": path, "follow": follow, "sums": list(sums)}
        return _name(self._ask(request)[0]["facts"])

    def make_folder(self, path: str, parents: bool = False) -> int:
        """Makes a folder; how many were made."""
        return self._change({"verb": "make_folder", "path": path, "parents": parents})

    def rename(self, path: str, to: str, replace: bool = False, parents: bool = False) -> int:
        """Gives a file or folder another name."""
        request = {"verb": "rename", "path": path, "to": to}
        return self._change({**request, "replace": replace, "parents": parents})

    def remove(self, path: str, recursive: bool = False) -> int:
        """Removes a file, a link or a folder; how many names are gone."""
        return self._change({"verb": "remove", "path": path, "recursive": recursive})

    def read(self, path: str, offset: int, count: int) -> bytes:
        """Bytes of a file: fewer than `count` at its end only."""
        parts = []
        while count > 0:
            wanted = min(count, MOST_READ_BYTES)
            request = {"verb": "read", "path": path, "offset": offset, "bytes": wanted}
            _, data = self._ask(request)
            parts.append(data)
            offset, count = offset + len(data), count - len(data)
            if len(data) < wanted:
                break
        return b"".join(parts)

    def close(self) -> None:
        """Ends it."""
        checked(self._native.close)

    def _change(self, request: Mapping[str, Any]) -> int:
        count: int = self._ask(request)[0]["count"]
        return count

    def _ask(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        checked(self._native.ask, json.dumps(request))
        while (found := checked(self._native.poll, _POLL_S)) is None:
            pass
        answer: dict[str, Any] = json.loads(found[0])
        if answer["answer"] == "refused":
            raise _ERRORS.get(answer["reason"], SystemFailure)(answer["message"])
        return answer, found[1] or b""


def _name(document: Mapping[str, Any]) -> Name:
    return Name(**document)
