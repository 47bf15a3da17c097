"""The socket by which a running copy is changed from outside, and who calls there.

A Unix socket named after the run, in a folder that only its owner may enter, itself of mode 0600:

```text
$XDG_STATE_HOME/farline/copies/RUN.sock
-> {"schema": 1, "streams": 8, "concurrency": 4, "total_rate_bps": 2000000000}
<- {"schema": 1, "run_id": RUN, "changes": [Adjustment, ...]}   or   {"schema": 1, "error": FAILURE}
```

One line each way, bounded, then it is closed. A process that was killed leaves its socket behind:
nobody listens there any more, and whoever comes next removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.copying.adjusting import Adjusting, request_of
from farline.errors import (
    AuthError,
    FarlineError,
    ProtocolError,
    SystemFailure,
    TimeoutFailure,
    UsageError,
    from_failure,
)
from farline.logs import Log
from farline.spec.user_folders import needed, user_folder

if TYPE_CHECKING:
    from farline.spec._types import Adjustment, AdjustRequest

_LOG = Log(__name__)

SCHEMA = 1
SUFFIX = ".sock"
MOST_BYTES = 65_536
"""Longest line either way."""
READ_S = 2.0
"""Time that a caller has for its line."""
CHANGE_S = 30.0
"""Time that a change may take before the caller is told that nothing was heard."""
ANSWER_S = CHANGE_S + 10.0
_LOOK_S = 0.2
_LONGEST_PATH = 100
"""Longest path that the kernel takes for a Unix socket, with some to spare."""


def folder() -> Path:
    """`$XDG_STATE_HOME/farline/copies`.

    Raises:
        UsageError: when the user has no home folder, and the environment names none.
    """
    state = user_folder("XDG_STATE_HOME", ".local/state")
    return needed(state, "control socket", "XDG_STATE_HOME") / "farline" / "copies"


class ControlSocket:
    """Listens for wishes about one session of a copy, in a thread of its own, until closed."""

    def __init__(self, run_id: str, adjusting: Adjusting, place: Path | None = None) -> None:
        """Listens.

        Raises:
            SystemFailure: when the socket cannot be made.
            UsageError: when there is no folder for it.
        """
        self.path = (place or folder()) / f"{run_id}{SUFFIX}"
        self._run_id, self._adjusting = run_id, adjusting
        self._is_closed = False
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._listener = _bound(self.path)
        except OSError as error:
            raise SystemFailure(f"control socket {self.path}: {error.strerror or error}") from None
        self._thread = threading.Thread(target=self._serve, name="farline adjust", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with self._listener:
            while not self._is_closed:
                self._serve_one()

    def _serve_one(self) -> None:
        try:
            caller, _ = self._listener.accept()
        except TimeoutError:
            return
        except OSError:
            # No descriptor is left, say: there may be one a moment later.
            time.sleep(_LOOK_S)
            return
        with caller:
            caller.settimeout(READ_S)
            # A caller that goes away in the middle is its own affair.
            with contextlib.suppress(OSError):
                self._answer(caller)

    def _answer(self, caller: socket.socket) -> None:
        try:
            _check_peer(caller)
            changes = self._adjusting.change(_request(_line(caller)), CHANGE_S)
            answer: dict[str, Any] = {"run_id": self._run_id, "changes": changes}
        except FarlineError as error:
            _LOG.debug("change from outside refused", reason=error.message)
            answer = {"error": error.failure()}
        caller.sendall(_encoded({"schema": SCHEMA, **answer}))

    def close(self) -> None:
        """Removes the socket, and ends it a moment later; harmless when done twice."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self.path.unlink()


def _bound(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _reachable(path) as address:
            listener.bind(address)
        # Before it listens, so that nobody else ever could connect.
        path.chmod(0o600)
        listener.listen(8)
        listener.settimeout(_LOOK_S)
    except OSError:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """A short name of `path`: the kernel takes about a hundred characters."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{parent}/{path.name}"
    finally:
        os.close(parent)


def _check_peer(caller: socket.socket) -> None:
    """Refuses another user: the folder and the mode keep them out, this is the second lock."""
    told = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, user, _group = struct.unpack("3i", told)
    if user not in (os.getuid(), 0):
        raise AuthError("this copy belongs to another user")


def _line(peer: socket.socket) -> bytes:
    """One line of `peer`'s.

    Raises:
        ProtocolError: for one that is too long, does not come or does not end.
    """
    got = b""
    while not got.endswith(b"\n"):
        try:
            more = peer.recv(4096)
        except TimeoutError:
            raise ProtocolError("control socket: the line did not come in time") from None
        if not more or len(got) + len(more) > MOST_BYTES:
            raise ProtocolError("control socket: a line that is too long or does not end")
        got += more
    return got


def _request(line: bytes) -> AdjustRequest:
    document = _document(line)
    known = {"streams": "streams", "concurrency": "concurrency", "total_rate_bps": "rate_bps"}
    unknown = set(document) - set(known)
    if unknown:
        raise UsageError(
            f"adjust: unknown: {', '.join(sorted(unknown))}; allowed: {', '.join(known)}"
        )
    for name, value in document.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"adjust: {name}: a whole number is needed")
    return request_of(**{known[name]: value for name, value in document.items()})


def _document(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except ValueError:
        raise ProtocolError("control socket: a line that is not JSON") from None
    if not isinstance(document, dict) or document.pop("schema", None) != SCHEMA:
        raise ProtocolError(f"control socket: a line of another version than {SCHEMA}")
    return document


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"


def adjust(
    run: str, request: AdjustRequest, place: Path | None = None
) -> tuple[str, list[Adjustment]]:
    """Asks the copy that `run` names for a change: its name, and what came of each thing.

    `run` is the name of a run, the beginning or end of it, or `last` for the newest copy that runs.

    Raises:
        UsageError: when no such copy runs; LimitError and others: as the copy answers.
    """
    with _connected(run, place or folder()) as peer:
        peer.settimeout(ANSWER_S)
        try:
            peer.sendall(_encoded({"schema": SCHEMA, **request}))
            answer = _document(_line(peer))
        except TimeoutError:
            raise TimeoutFailure(f"run {run}: the copy did not answer") from None
        except OSError as error:
            raise ProtocolError(f"run {run}: the copy ended meanwhile: {error.strerror}") from None
    if "error" in answer:
        raise from_failure(answer["error"])
    return answer["run_id"], answer["changes"]


def _connected(run: str, place: Path) -> socket.socket:
    """A connection to the newest copy that fits."""
    found = _named(run, place)
    for path in found:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _reachable(path) as address:
                peer.connect(address)
        except (ConnectionRefusedError, FileNotFoundError):
            peer.close()
            _remove_stale(path)
        except PermissionError:
            peer.close()
            raise AuthError(_of_another(path)) from None
        except OSError as error:
            peer.close()
            raise SystemFailure(f"control socket {path}: {error.strerror}") from None
        else:
            return peer
    if run == "last":
        raise UsageError("none of your copies is running; farline runs lists those that have ended")
    if found:
        raise UsageError(f"run {run}: the copy has ended: nothing can be changed")
    raise UsageError(
        f"run {run}: no running copy has this name: it has ended, has just started, or belongs"
        " to another user; farline runs lists those that have ended"
    )


def _named(run: str, place: Path) -> list[Path]:
    """Sockets of the copies that `run` names, the newest first.

    Raises:
        UsageError: when it names several.
        AuthError: when the folder is another user's.
    """
    try:
        all_names = sorted((one.name for one in place.iterdir()), reverse=True)
    except FileNotFoundError:
        return []
    except PermissionError:
        raise AuthError(_of_another(place)) from None
    names = [name.removesuffix(SUFFIX) for name in all_names if name.endswith(SUFFIX)]
    if run != "last":
        names = [name for name in names if name.startswith(run) or name.endswith(run)]
    if run != "last" and len(names) > 1:
        raise UsageError(f"run {run}: {len(names)} running copies match; give more of the name")
    return [place / f"{name}{SUFFIX}" for name in names]


def _remove_stale(path: Path) -> None:
    """A socket without a listener is what a killed copy left."""
    with contextlib.suppress(OSError):
        path.unlink()


def _of_another(path: Path) -> str:
    try:
        owner = pwd.getpwuid(path.stat().st_uid).pw_name
    except (OSError, KeyError):
        owner = "another user"
    return f"{path}: this copy belongs to {owner}; run farline adjust as that user"
