"""The keeper: the process that is a testbed while it lives.

`python -m farline.testbeds.keeper FOLDER READY_FD` is started by `start.start`. It makes a user
namespace of its own if it must, starts the emulator, says on READY_FD what became of that, and
answers requests on the bed's socket until it is told to stop, is sent SIGTERM, or its owner's
process ends. Then it removes what the bed has left on the machine.

One thread serves everyone: requests take microseconds to milliseconds, and the emulator has
threads of its own.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farline import _native
from farline.errors import FarlineError, InternalError, UsageError
from farline.logs import Log, start_from_environment
from farline.testbeds import control, kernel, processes, state
from farline.testbeds.history import History
from farline.testbeds.native import checked, start_emulator

_LOG = Log(__name__)

START_FILE = "start.json"
_POLL_S = 0.5


@dataclass(frozen=True)
class Start:
    """What a keeper is told at its start.

    `owner_pid` is the process whose end is the bed's end; 0 if the bed stays. `host_groups` are
    the control groups that each host's programs go to.
    """

    topology: dict[str, Any]
    owner_pid: int
    user_namespace: bool
    host_groups: dict[str, list[str]]
    warnings: list[str]


class Keeper:
    """A running emulator and what is known about its bed."""

    def __init__(self, folder: Path, start: Start) -> None:
        """Starts the emulator and writes down its namespaces.

        Raises:
            FarlineError: when the machine lacks what the emulator needs.
        """
        self.folder = folder
        self.start = start
        known = _noted(folder)
        topology = json.dumps(start.topology)
        allowed = os.sched_getaffinity(0)
        # The emulator's threads have the CPUs of the thread that starts them.
        os.sched_setaffinity(0, own_cpus(start.topology["hosts"], allowed))
        self.emulator = start_emulator(topology, str(folder / known.hosts_file))
        os.sched_setaffinity(0, allowed)
        self.layout = json.loads(checked(self.emulator.layout))
        self.namespaces = {
            host["name"]: json.loads(checked(self.emulator.namespaces, host["name"]))
            for host in self.layout["hosts"]
        }
        self.history = History()
        self.stopping = False
        self.warnings = list(start.warnings)
        self.asking: object = None
        """The connection whose request is being answered."""
        self.captures: dict[str, object] = {}
        """Links that are captured, and the connections that asked for it."""
        numbers = [Path(paths["net"]).stat().st_ino for paths in self.namespaces.values()]
        self.state = replace(known, namespaces=tuple(numbers))
        state.write(folder, self.state)

    def poll(self) -> None:
        """Takes the samples that have come; a failed emulator has none, and `describe` says why."""
        if self.emulator.failure() is not None:
            return
        columns = checked(self.emulator.poll_samples)
        data = {name: columns.column(name) for name in columns.names()}
        self.history.append(len(columns), data)

    def answer(self, request: Any, asking: object = None) -> dict[str, Any]:
        """The answer to one request, which came over the connection `asking`."""
        self.asking = asking
        answer = self._answer(request)
        failure = answer.get("failed") or {}
        what = request.get("do") if isinstance(request, dict) else None
        _LOG.debug("request answered", request=what, reason=failure.get("message"))
        return answer

    def _answer(self, request: Any) -> dict[str, Any]:
        try:
            if not isinstance(request, dict) or request.get("do") not in _ANSWERS:
                allowed = ", ".join(_ANSWERS)
                raise UsageError(f"testbed: unknown request {request!r}; allowed: {allowed}")
            arguments = {name: value for name, value in request.items() if name != "do"}
            return {"ok": _ANSWERS[request["do"]](self, **arguments)}
        except FarlineError as error:
            return {"failed": error.failure()}
        except TypeError as error:
            return {"failed": UsageError(f"testbed: {request!r}: {error}").failure()}
        except Exception as error:
            # A defect behind one request must not end the bed.
            return {"failed": InternalError(f"testbed: {request!r}: {error!r}").failure()}

    def raise_memory(self) -> None:
        """Raises TCP memory if the links can come to need more than they did."""
        needed = kernel.tcp_memory_bytes(json.loads(checked(self.emulator.topology)))
        if needed <= self.state.tcp_memory_bytes:
            return
        self.state = replace(self.state, tcp_memory_bytes=needed)
        state.write(self.folder, self.state)
        for line in state.settle_kernel(self.folder.parent):
            if line not in self.warnings:
                self.warnings.append(line)

    def let_go(self, connection: object) -> None:
        """Ends the captures of a connection that has ended."""
        for link in [link for link, of in self.captures.items() if of is connection]:
            del self.captures[link]
            with suppress(FarlineError):  # a failed emulator has ended them
                checked(self.emulator.stop_capture, link)

    def end(self) -> None:
        """Ends programs inside, the emulator, and everything the bed has left.

        The directory is where the bed's folder is: in a user namespace this process is root, and
        would take root's for its own.
        """
        with state.locked(self.folder.parent):
            state.remove(self.folder, self.state, held=True)
            self.emulator.stop()


def _describe(keeper: Keeper) -> dict[str, Any]:
    failure = keeper.emulator.failure()
    known = keeper.state
    return {
        "name": known.name,
        "topology": known.topology,
        "pid": known.pid,
        "start_ticks": known.start_ticks,
        "started_unix_s": known.started_unix_s,
        "owner_pid": keeper.start.owner_pid or None,
        "user_namespace": keeper.start.user_namespace,
        "warnings": keeper.warnings,
        "layout": keeper.layout,
        "namespaces": keeper.namespaces,
        "host_groups": keeper.start.host_groups,
        "failure": None if failure is None else json.loads(failure),
    }


def _change(keeper: Keeper, change: dict[str, Any]) -> None:
    checked(keeper.emulator.change, json.dumps(change))
    keeper.raise_memory()


def _mark(keeper: Keeper) -> int:
    return checked(keeper.emulator.mark)


def _stamp(keeper: Keeper, mark: int) -> Any:
    return json.loads(checked(keeper.emulator.stamp, mark))


def _samples(keeper: Keeper, since: int | None = None) -> dict[str, Any]:
    keeper.poll()
    return keeper.history.since(keeper.history.end if since is None else since)


def _counters(keeper: Keeper) -> Any:
    return json.loads(checked(keeper.emulator.counters))


def _topology(keeper: Keeper) -> Any:
    return json.loads(checked(keeper.emulator.topology))


def _path(keeper: Keeper, client: str, server: str) -> Any:
    return json.loads(checked(keeper.emulator.path, client, server))


def _capture(keeper: Keeper, link: str, direction: str, path: str, snap_bytes: int) -> None:
    checked(keeper.emulator.capture, link, direction, path, snap_bytes)
    keeper.captures[link] = keeper.asking


def _stop_capture(keeper: Keeper, link: str) -> Any:
    keeper.captures.pop(link, None)
    return json.loads(checked(keeper.emulator.stop_capture, link))


def _stop(keeper: Keeper) -> None:
    keeper.stopping = True


_ANSWERS: dict[str, Callable[..., Any]] = {
    "describe": _describe,
    "change": _change,
    "mark": _mark,
    "stamp": _stamp,
    "samples": _samples,
    "counters": _counters,
    "topology": _topology,
    "path": _path,
    "capture": _capture,
    "stop_capture": _stop_capture,
    "stop": _stop,
}


def _noted(folder: Path) -> state.BedState:
    """The bed's state, in which this process is its keeper from now on.

    Raises:
        InternalError: when there is none: who started it has died, and it was removed.
    """
    known = state.read(folder)
    if known is None:
        raise InternalError(f"testbed: {folder} has no state")
    own = os.getpid()
    known = replace(known, pid=own, start_ticks=processes.start_ticks(own) or 0)
    state.write(folder, known)
    return known


class Service:
    """The keeper's loop over its socket, its owner and signals."""

    def __init__(self, keeper: Keeper, listener: socket.socket, owner: int | None) -> None:
        """Serves on `listener`; `owner` is a pidfd that ends the bed when it is readable."""
        self._keeper = keeper
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        if owner is not None:
            self._selector.register(owner, selectors.EVENT_READ, self.end_soon)

    def run(self) -> None:
        """Serves until the bed is to end, then removes what it has left."""
        try:
            self._serve_all()
        finally:
            self._close()
            self._keeper.end()

    def _close(self) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()

    def _serve_all(self) -> None:
        due = time.monotonic() + _POLL_S
        while not self._keeper.stopping:
            for key, _ in self._selector.select(max(0.0, due - time.monotonic())):
                key.data()
            if time.monotonic() >= due:
                self._keeper.poll()
                due = time.monotonic() + _POLL_S

    def end_soon(self, *_: object) -> None:
        """Lets `run` return: SIGTERM came, or the owner has ended."""
        self._keeper.stopping = True

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(control.ANSWER_TIMEOUT_S)
        lines = control.LineReader(control.REQUEST_MAX_BYTES)
        self._selector.register(
            connection, selectors.EVENT_READ, lambda: self._serve(connection, lines)
        )

    def _serve(self, connection: socket.socket, lines: control.LineReader) -> None:
        """Answers what has come; an end that has gone or breaks the rules is let go."""
        try:
            data = connection.recv(1 << 16)
            requests = lines.feed(data)
            for line in requests:
                answer = self._keeper.answer(_document(line), connection)
                connection.sendall(control.encode(answer))
        except (OSError, FarlineError):
            data = b""
        if not data:
            self._selector.unregister(connection)
            connection.close()
            self._keeper.let_go(connection)


def _document(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line.decode(errors="replace")


def _owner(pid: int) -> int | None:
    """A pidfd of the owner, which must be this process's parent still; None without an owner.

    Raises:
        UsageError: when the owner has ended already.
    """
    if not pid:
        return None
    descriptor = os.pidfd_open(pid) if os.getppid() == pid else -1
    if descriptor < 0 or os.getppid() != pid:
        raise UsageError("testbed: the process that started it has already ended")
    return descriptor


def _say(ready: int, failure: dict[str, Any] | None) -> None:
    """Tells who waits for the bed what became of it."""
    with os.fdopen(ready, "w", encoding="utf-8") as pipe:
        json.dump({"failed": failure} if failure else {"ok": None}, pipe)


def own_cpus(hosts: Iterable[Mapping[str, Any]], allowed: set[int]) -> set[int]:
    """CPUs of the emulator: those that no host may use, or all where that leaves none.

    It goes before every program on its CPU, so a host's program that shares one waits for it, and
    so would this process.
    """
    given = [set(host.get("cpus") or allowed) for host in hosts]
    return allowed.difference(*given) or allowed


def _begin(folder: Path) -> Service:
    document = json.loads((folder / START_FILE).read_text(encoding="utf-8"))
    start = Start(**document)
    owner = _owner(start.owner_pid)
    if start.user_namespace:
        checked(_native.make_user_namespace)
    keeper = Keeper(folder, start)
    return Service(keeper, control.listen(folder), owner)


def main(arguments: list[str]) -> int:
    """Keeps the bed in a folder; see the module."""
    folder, ready = Path(arguments[0]), int(arguments[1])
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        start_from_environment()
        service = _begin(folder)
    except FarlineError as error:
        _LOG.error("testbed not started", kind=error.kind, reason=error.message)
        _say(ready, error.failure())
        return error.exit_code
    _LOG.info("testbed is up", folder=folder)
    signal.signal(signal.SIGTERM, service.end_soon)
    _say(ready, None)
    service.run()
    _LOG.info("testbed is down", folder=folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
