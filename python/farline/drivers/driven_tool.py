"""A driven tool behind the `Tool` protocol: one run, from its server's start to the record."""

from __future__ import annotations

import os
import random
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.drivers.catalogue import find_driver, tool_of
from farline.drivers.destination import both_ends, kind_at, make_folder, prove, refuse_replacing
from farline.drivers.driver import Driver, FilePair, Task
from farline.drivers.outputs import figures_of
from farline.drivers.places import Here, InHost, OverSsh, Place, ServerPlace, Standing
from farline.drivers.processes import Server, ended, run_client
from farline.drivers.record import Course, Moved, result_of
from farline.errors import FarlineError, InterruptedRun, SpecError, SystemFailure, UsageError
from farline.logs import Log
from farline.spec.path_text import from_path_text
from farline.tools import Capabilities, EventSink, RunResult, Stop, StopQuestion
from farline.tools.events import SessionBegun
from farline.tools.native import parse_target

if TYPE_CHECKING:
    from farline.spec._types import RunSpec
    from farline.tools.events import Steps

_LOG = Log(__name__)
_START_TRIES = 3
_PORTS = (20_000, 29_999)
"""Below the ports that the kernel gives to who asks for none."""
_PORTS_EACH = 64
"""Servers may take some more behind the one they are told."""


class DrivenTool:
    """A tool of another maker, driven as farline's own engine is.

    `server` is where its server is to run or that it runs already, `client` where its client is
    to run; `target` of a run is the server's address as the client sees it.
    """

    def __init__(
        self, name: str, server: ServerPlace | None = None, client: Here | InHost | None = None
    ) -> None:
        """Nothing is started. Without `server` one that runs already is meant.

        Raises:
            SpecError: when there is no such driver, or it cannot be used like that.
        """
        self._driver = find_driver(name)
        self._server: ServerPlace = server if server is not None else Standing()
        self._client: Here | InHost = client if client is not None else Here()
        if not isinstance(self._server, self._driver.abilities.places):
            raise SpecError(
                f"tool_server: {name} cannot have its server on {self._server}; start it there "
                "yourself and name it, or use another tool"
            )

    @property
    def driver(self) -> Driver:
        """What drives it."""
        return self._driver

    def capabilities(self) -> Capabilities:
        """What a campaign asks before it plans."""
        able = self._driver.abilities
        return Capabilities(self._driver.name, able.transports, able.directions, samples=False)

    def run(
        self, target: str, spec: RunSpec, on_event: EventSink, should_stop: StopQuestion
    ) -> RunResult:
        """One run; the record of a failed or stopped run comes back like any other.

        `spec` is resolved, with the driver's defaults (`words.resolve_driven`).

        Raises:
            SpecError: when the spec is of another tool, or cannot be done with these two ends.
        """
        steps = self.steps(target, spec, should_stop)
        try:
            while True:
                if (event := next(steps)) is not None:
                    on_event(event)
        except StopIteration as end:
            result: RunResult = end.value
            return result

    def steps(self, target: str, spec: RunSpec, should_stop: StopQuestion) -> Steps[RunResult]:
        """The same run, told event by event: there is but one, for tools tell nothing."""
        if tool_of(spec) != self._driver.name:
            raise SpecError(f"tool: the spec is for {tool_of(spec)}, not for {self._driver.name}")
        begun, course = time.monotonic(), Course()
        with tempfile.TemporaryDirectory(prefix="farline-tool-") as folder:
            task = self._task(target, spec, Path(folder))
            yield SessionBegun()
            try:
                task = self._done(task, course, should_stop)
            except FarlineError as error:
                course.error = error
            address = self._address(target, task)
            return result_of(self._driver, task, course, time.monotonic() - begun, address)

    def _address(self, target: str, task: Task) -> str:
        """The server as it was named: ports of servers that farline starts change every time."""
        where = parse_target(target)
        if isinstance(self._server, Standing) and self._server.port is not None:
            return f"{task.host}:{self._server.port}"
        if isinstance(self._server, OverSsh):
            return f"{task.host}:{self._server.ssh.port or 22}"
        return where.address if where.address in target else f"{task.host}:{task.port}"

    def _task(self, target: str, spec: RunSpec, folder: Path) -> Task:
        where = parse_target(target)
        port = 0
        if isinstance(self._server, Standing):
            port = self._server.port or self._driver.usual_port
        return Task(
            spec, where.host, port, self._server, self._client, folder,
            secret=secrets.token_hex(12),
        )  # fmt: skip

    def _done(self, task: Task, course: Course, should_stop: StopQuestion) -> Task:
        """Does it, and notes in `course` how far it came; gives the task as it was done."""
        known, place = self._driver, self._client
        program = known.find(place)
        if program is None:
            raise known.missing(place, known.program)
        course.version = known.version(place)
        task = replace(task, files=self._pairs(task))
        known.check(task)
        self._refuse_unproved(task)
        self._make_room(task)
        try:
            with self._serving(task, course, should_stop) as (server, task):
                words = [*known.client_words(task, program), *_own_words(task)]
                course.client_words = words
                course.ended = run_client(
                    known.name, place, words, known.client_environment(task), task.folder,
                    should_stop, limit_s=known.limit_s(task), stall_s=_stall_s(known, task),
                )  # fmt: skip
                if course.ended.stopped is not Stop.GO_ON:
                    raise InterruptedRun(f"{known.name} was stopped")
                course.figures = figures_of(known, task, course.ended)
            course.server_cpu = server.cpu if server is not None else None
            course.moved = self._moved(task, course)
        finally:
            known.clean_up(task)
        return task

    @contextmanager
    def _serving(
        self, task: Task, course: Course, should_stop: StopQuestion
    ) -> Iterator[tuple[Server | None, Task]]:
        """The server, listening, and the task with its port; it ends with the block."""
        place = task.server
        if isinstance(place, Standing) or not self._has_server(place):
            self._driver.prepare(task)
            yield None, task
            return
        program = self._driver.find_server(place, task)
        if program is None:
            raise self._driver.missing(place, str(self._driver.server_program))
        server, task, lease = self._started(place, task, program, course, should_stop)
        with lease, ended(server), ended(self._helper(task, program, should_stop)):
            yield server, task

    def _helper(self, task: Task, program: str, should_stop: StopQuestion) -> Server | None:
        """The second server of a third-party transfer, listening."""
        words = self._driver.helper_words(task, program)
        if not words:
            return None
        helper = Server(self._client, words, {}, "tcp", self._driver.helper_port(task))
        try:
            helper.wait_ready(should_stop, self._driver.ready_s)
        except BaseException:
            helper.end()
            raise
        return helper

    def _has_server(self, place: Place) -> bool:
        return self._driver.server_program is not None and self._driver.starts_at(place)

    def _started(
        self, place: Place, task: Task, program: str, course: Course, should_stop: StopQuestion
    ) -> tuple[Server, Task, socket.socket]:
        """A server on a leased port; one that finds it taken is started on another."""
        failure: SystemFailure | None = None
        for _ in range(_START_TRIES):
            with ExitStack() as undone:
                port, lease = _leased_port(place, task.address)
                undone.enter_context(lease)
                task = replace(task, port=port)
                self._driver.prepare(task)
                words = self._driver.server_words(task, program)
                course.server_words = words
                server = Server(
                    place, words, self._driver.server_environment(task), self._driver.listens,
                    task.port,
                )  # fmt: skip
                undone.callback(server.end)
                try:
                    server.wait_ready(should_stop, self._driver.ready_s)
                except SystemFailure as error:
                    failure = error
                    continue
                if should_stop() is not Stop.GO_ON:
                    raise InterruptedRun(f"{self._driver.name} was stopped before it began")
                undone.pop_all()
            return server, task, lease
        assert failure is not None
        raise failure

    def _ends(self, task: Task) -> tuple[Place, Place]:
        """The places of the sources and of the destination."""
        server: Any = task.server
        return (task.client, server) if task.forward else (server, task.client)

    def _pairs(self, task: Task) -> tuple[FilePair, ...]:
        """The files of the task with the exact names that they get."""
        copy = task.spec.get("copy")
        if not copy:
            return ()
        if self._driver.both_ends_far:
            (source,) = (os.fsdecode(from_path_text(text)) for text in copy["sources"])
            destination = os.fsdecode(from_path_text(copy["destination"]))
            return (FilePair(source, destination, source.endswith("/")),)
        source_place, destination_place = self._ends(task)
        sources = [_whole_path(source_place, text) for text in copy["sources"]]
        destination = _whole_path(destination_place, copy["destination"])
        if len(sources) > 1 and not self._driver.abilities.several_sources:
            raise SpecError(
                f"copy.sources: {self._driver.name} takes one source at a time, not "
                f"{len(sources)}; copy the folder that holds them, or run it for each"
            )
        places = source_place, destination_place
        return tuple(_pair(source, destination, len(sources), *places) for source in sources)

    def _refuse_unproved(self, task: Task) -> None:
        """A destination that nobody here sees proves nothing."""
        if not task.files or not isinstance(task.server, Standing):
            return
        if task.get("copy.verify", "tree") != "none" and not self._driver.verifies_itself:
            raise SpecError(
                f"copy.verify: the files of a running {self._driver.name} server cannot be seen "
                "from here, so nothing would be proved; use tool_server ssh or here, or verify none"
            )

    def _make_room(self, task: Task) -> None:
        """What is at the destination stays unless it may be replaced; folders are made."""
        if not task.files or isinstance(task.server, Standing):
            return
        source, destination = both_ends(task.files, *self._ends(task))
        if task.get("copy.overwrite", "never") == "never":
            refuse_replacing(self._driver.name, task.files, source, destination)
        for pair in task.files:
            folder = pair.destination if pair.is_folder else str(Path(pair.destination).parent)
            make_folder(destination.place, folder)

    def _moved(self, task: Task, course: Course) -> Moved | None:
        """What lies at the destination, proved."""
        if not task.files:
            return None
        own = course.figures.flows.get(task.way) if course.figures is not None else None
        if isinstance(task.server, Standing):
            bytes_sent = own.bytes if own is not None else None
            return None if bytes_sent is None else Moved(len(task.files), bytes_sent, "none")
        ends = both_ends(task.files, *self._ends(task))
        with_hashes = task.get("copy.verify", "tree") == "tree"
        files, size_bytes = prove(self._driver.name, task.files, *ends, with_hashes)
        if self._driver.skips_present and own is not None and own.bytes is not None:
            size_bytes = own.bytes
        return Moved(files, size_bytes, "hash" if with_hashes else "size")


def _own_words(task: Task) -> list[str]:
    words: list[str] = task.get("tool_args", [])
    return list(words)


def _stall_s(known: Driver, task: Task) -> float | None:
    if known.abilities.kind == "tester" or not known.watches_stalls:
        return None
    return float(task.get("copy.stall_timeout_s", 30.0))


def _whole_path(place: Place, text: str) -> str:
    """A path as the place has it: on this machine from the root, its last slash kept."""
    path = os.fsdecode(from_path_text(text))
    if isinstance(place, Standing) or not place.shares_files:
        return path
    whole = str(Path(path).absolute())
    return f"{whole}/" if path.endswith("/") and whole != "/" else whole


def _pair(
    source: str, destination: str, count: int, source_place: Place, destination_place: Place
) -> FilePair:
    """As with rsync: a slash behind a source means what is in it."""
    kind = "" if isinstance(source_place, Standing) else kind_at(source_place, source)
    if not kind and not isinstance(source_place, Standing):
        raise UsageError(f"{source}: there is no such file or folder on {source_place}")
    is_folder = kind == "folder" or source.endswith("/")
    if is_folder and source.endswith("/"):
        return FilePair(source.rstrip("/") or "/", destination.rstrip("/") or "/", True)
    there = (
        "" if isinstance(destination_place, Standing) else kind_at(destination_place, destination)
    )
    if destination.endswith("/") or count > 1 or there == "folder":
        destination = f"{destination.rstrip('/')}/{Path(source).name}"
    return FilePair(source, destination, is_folder)


def _leased_port(place: Place, address: str) -> tuple[int, socket.socket]:
    """A port that is likely to be free, and what keeps other farlines of this user off it.

    The lease is a name among the abstract Unix sockets of this network; it ends when the socket
    is closed. Elsewhere than here the server finds out whether its port is free.

    Raises:
        SystemFailure: when none is free.
    """
    first, last = _PORTS
    for _ in range(100):
        port = random.randrange(first, last, _PORTS_EACH)
        lease = socket.socket(socket.AF_UNIX)
        if isinstance(place, Here) and not (
            _is_bound(lease, f"\0farline-tool-port-{port}") and _is_free(address, port)
        ):
            lease.close()
            continue
        return port, lease
    raise SystemFailure(f"no free port between {first} and {last} on {place}")


def _is_free(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as one:
        return _is_bound(one, (address, port))


def _is_bound(one: socket.socket, name: str | tuple[str, int]) -> bool:
    """Binds a socket to a name; false if that is taken."""
    try:
        one.bind(name)
    except OSError:
        return False
    return True
