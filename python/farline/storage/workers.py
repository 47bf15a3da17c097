"""Processes that read and write side by side: started once, given a load each at one time."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from farline.errors import InternalError, InterruptedRun, SystemFailure, from_failure
from farline.tools import Stop, StopQuestion

if TYPE_CHECKING:
    from farline.spec._types import StorageLoad
    from farline.tools.events import Steps

MODULE = "farline.tools.storage_load"
_POLL_S = 0.1
_PATIENCE_S = 60.0
"""Time after which storage that does not answer is given up, beyond what it was allowed."""
_CHUNK_BYTES = 1 << 16

Answer = dict[str, Any]


class Worker:
    """One process; out of reach of a Ctrl-C on the terminal."""

    def __init__(self) -> None:
        """Starts it.

        Raises:
            SystemFailure: when the machine has no room for it.
        """
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                bufsize=0, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise SystemFailure(f"starting a process that measures: {error.strerror}") from None
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self.output = self._process.stdin, self._process.stdout
        self._read = b""

    def send(self, load: StorageLoad) -> None:
        """Gives it a load.

        Raises:
            SystemFailure: when it has ended meanwhile.
        """
        try:
            self._input.write(json.dumps(load).encode() + b"\n")
        except OSError:
            raise self._ended() from None

    def take(self) -> Answer | None:
        """Its answer, if it is whole.

        Raises:
            SystemFailure: when it has ended: something on this machine ended it.
        """
        more = self.output.read(_CHUNK_BYTES)
        if not more:
            raise self._ended()
        self._read += more
        if not self._read.endswith(b"\n"):
            return None
        answer: Answer = json.loads(self._read)
        self._read = b""
        return answer

    def _ended(self) -> SystemFailure:
        """Something on this machine ended it."""
        code = self._process.wait()
        return SystemFailure(f"a process that measures ended with code {code}: out of memory?")

    def kill(self) -> None:
        """Ends it at once; what it waits for in the kernel may hold it a little longer."""
        self._process.kill()
        self._input.close()
        self.output.close()

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended by then."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True


class Workers:
    """As many processes as any setting needs; ended with the block."""

    def __init__(self, should_stop: StopQuestion) -> None:
        """None yet: they are started as they are needed."""
        self._should_stop = should_stop
        self._workers: list[Worker] = []

    def __enter__(self) -> Workers:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends all: what they write to is removed next."""
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.wait(2.0)
        self._workers.clear()

    def prepare(self, count: int) -> None:
        """Starts what is missing of `count` processes."""
        while len(self._workers) < count:
            self._workers.append(Worker())

    def run(self, loads: Sequence[StorageLoad], allowed_s: float) -> Steps[list[Answer]]:
        """Has each process do one load; their answers, in order.

        Raises:
            FarlineError: what the first that failed failed with.
            InterruptedRun: when somebody wants the end.
            SystemFailure: when storage does not answer for a minute beyond the time allowed.
        """
        self.prepare(len(loads))
        busy = self._workers[: len(loads)]
        for worker, load in zip(busy, loads, strict=True):
            worker.send(load)
        answers: dict[Worker, Answer] = {}
        until = time.monotonic() + allowed_s + _PATIENCE_S
        while len(answers) < len(busy):
            if self._should_stop() is not Stop.GO_ON:
                raise InterruptedRun("stopped; what was measured until then is not kept")
            if time.monotonic() > until:
                raise SystemFailure(
                    f"the storage has not answered for {_PATIENCE_S:.0f} s beyond the "
                    f"{allowed_s:.0f} s that a measurement takes; given up"
                )
            for worker in _ready([one for one in busy if one not in answers]):
                if (answer := worker.take()) is not None:
                    answers[worker] = _checked(answer)
            yield None
        return [answers[worker] for worker in busy]


def _ready(workers: Sequence[Worker]) -> list[Worker]:
    """Those that have said something; poll, for select knows no file beyond the 1024th."""
    poll = select.poll()
    by_file = {worker.output.fileno(): worker for worker in workers}
    for file in by_file:
        poll.register(file, select.POLLIN)
    return [by_file[file] for file, _ in poll.poll(1e3 * _POLL_S)]


def _checked(answer: Answer) -> Answer:
    if (failed := answer.get("failed")) is not None:
        raise from_failure(failed)
    if "report" not in answer:
        raise InternalError(f"a process that measures answered {answer!r}")
    return answer
