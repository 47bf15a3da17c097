"""Every error of farline: one class per kind, grouped by who has to act.

```text
FarlineError                                  exit  retry
├── CallerError        the one who asked
│   ├── UsageError         the command was put together wrongly          1
│   ├── SpecError          a value or a document is not allowed          1
│   ├── LimitError         more was asked for than limits allow          8
│   └── InterruptedRun     someone stopped the run                     130
├── PeerError          the other end
│   ├── AuthError          no ticket, a bad one, or a wrong server key   4
│   ├── BusyError          the server has no room now                    5  yes
│   ├── VersionError       no protocol version in common                 7
│   └── ProtocolError      it broke the protocol, or vanished inside it  7  yes
├── PathError          what lies between
│   ├── UnreachableError   no way to the other end                       5  yes
│   └── TimeoutFailure     nothing came in the time allowed             30  yes
├── SystemFailure      this machine: kernel, disk, memory, permission    2
└── InternalError      a defect in farline                              70
```

Kinds, faults and exit codes are those of `crates/spec/src/failure.rs`; this
file is the lowest room and imports none, so a test compares it with the
generated table `farline.spec._failures`. `from_failure` turns a failure that
came up from below into its class; `FarlineError.failure` turns it back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar


class FarlineError(Exception):
    """One thing that went wrong, in one line."""

    kind: ClassVar[str]
    fault: ClassVar[str]
    exit_code: ClassVar[int]
    may_retry: ClassVar[bool] = False
    permanent = False
    """Whether this one will not pass, though others of its kind may."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        """Keeps `message` as one line, and after how many seconds it is worth trying again."""
        super().__init__(" ".join(message.split()))
        self.retry_after_s = retry_after_s

    @property
    def message(self) -> str:
        """What was wrong, where, and what is allowed: one line."""
        return str(self.args[0])

    def failure(self) -> dict[str, Any]:
        """The failure document, as records and wire carry it."""
        document: dict[str, Any] = {"kind": self.kind, "message": self.message}
        if self.retry_after_s is not None:
            document["retry_after_s"] = self.retry_after_s
        if self.permanent:
            document["permanent"] = True
        return document

    def reworded(self, message: str) -> FarlineError:
        """The same failure in other words."""
        other = type(self)(message, self.retry_after_s)
        other.permanent = self.permanent
        return other


class CallerError(FarlineError):
    """The one who asked has to act."""

    fault = "caller"


class UsageError(CallerError):
    """The command was put together wrongly."""

    kind = "usage"
    exit_code = 1


class SpecError(CallerError):
    """A value or a document is not allowed."""

    kind = "spec"
    exit_code = 1


class LimitError(CallerError):
    """More was asked for than the other side's limits allow."""

    kind = "limit"
    exit_code = 8


class InterruptedRun(CallerError):
    """Someone stopped the run."""

    kind = "interrupted"
    exit_code = 130


class PeerError(FarlineError):
    """The other end has to act."""

    fault = "peer"


class AuthError(PeerError):
    """No ticket, or one that is wrong, expired or out of scope; or not the pinned server key."""

    kind = "auth"
    exit_code = 4


class BusyError(PeerError):
    """The server has no room now."""

    kind = "busy"
    exit_code = 5
    may_retry = True


class VersionError(PeerError):
    """The two ends have no protocol version in common."""

    kind = "version"
    exit_code = 7


class ProtocolError(PeerError):
    """The other end broke the protocol, vanished inside it or failed by itself."""

    kind = "protocol"
    exit_code = 7
    may_retry = True


class PathError(FarlineError):
    """What lies between the two ends."""

    fault = "path"


class UnreachableError(PathError):
    """No way to the other end: name, route, port."""

    kind = "unreachable"
    exit_code = 5
    may_retry = True


class TimeoutFailure(PathError):
    """Nothing came in the time allowed."""

    kind = "timeout"
    exit_code = 30
    may_retry = True


class SystemFailure(FarlineError):
    """This machine refused: kernel, disk, memory, permission."""

    kind = "system"
    fault = "system"
    exit_code = 2


class InternalError(FarlineError):
    """A defect in farline."""

    kind = "internal"
    fault = "internal"
    exit_code = 70


KINDS: dict[str, type[FarlineError]] = {
    cls.kind: cls
    for cls in (
        UsageError,
        SpecError,
        LimitError,
        InterruptedRun,
        AuthError,
        BusyError,
        VersionError,
        ProtocolError,
        UnreachableError,
        TimeoutFailure,
        SystemFailure,
        InternalError,
    )
}
"""Class of every kind."""


def from_failure(failure: str | Mapping[str, Any]) -> FarlineError:
    """The exception for a failure document, given as JSON text or as a mapping.

    A kind that this version does not know becomes `InternalError` with the kind in its line.
    """
    document = json.loads(failure) if isinstance(failure, str) else failure
    kind, message = str(document["kind"]), str(document["message"])
    retry_after_s = document.get("retry_after_s")
    if kind not in KINDS:
        return InternalError(f"failure of unknown kind {kind!r}: {message}", retry_after_s)
    error = KINDS[kind](message, retry_after_s)
    error.permanent = bool(document.get("permanent", False))
    return error
