"""farline's own engine as a tool that runs on a host of a testbed, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import InternalError, InterruptedRun, from_failure
from farline.testbeds.run_here import ASK, ERROR, RECORD, SAMPLES
from farline.tools import Capabilities, EventSink, RunResult, Stop, StopQuestion
from farline.tools.native import NativeTool

if TYPE_CHECKING:
    from farline.spec._types import RunSpec
    from farline.testbeds.host import Host

_POLL_S = 0.02
_GRACE_S = 5.0
"""Time for a run that was asked to end at once."""


class HostTool:
    """Runs from one host. Events of a run stay in its process; record and samples come back."""

    def __init__(self, host: Host) -> None:
        """Runs start on `host`."""
        self._host = host

    def capabilities(self) -> Capabilities:
        """Those of the engine."""
        return NativeTool().capabilities()

    def run(
        self, target: str, spec: RunSpec, on_event: EventSink, should_stop: StopQuestion
    ) -> RunResult:
        """One run from the host, to its end or until `should_stop` says so.

        Raises:
            FarlineError: when nothing could be started there.
        """
        with tempfile.TemporaryDirectory(prefix="farline-run-") as name:
            folder = Path(name)
            ask = json.dumps({"target": target, "spec": spec})
            (folder / ASK).write_text(ask, encoding="utf-8")
            command = [sys.executable, "-m", "farline.testbeds.run_here", name]
            process = self._host.popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, process_group=0,
            )  # fmt: skip
            try:
                _wait(process, should_stop)
            finally:
                process.kill()
                said = process.communicate()[1]
            return _result(folder, said, should_stop)


def _wait(process: subprocess.Popen[str], should_stop: StopQuestion) -> None:
    """Waits for its end; passes a wish to stop on, and waits no longer than that takes."""
    passed = Stop.GO_ON
    until: float | None = None
    while process.poll() is None and (until is None or time.monotonic() < until):
        wanted = should_stop()
        if wanted > passed:
            for _ in range(wanted - passed):
                process.terminate()
                time.sleep(_POLL_S)
            passed = wanted
            if wanted is Stop.NOW:
                until = time.monotonic() + _GRACE_S
        time.sleep(_POLL_S)


def _result(folder: Path, said: str, should_stop: StopQuestion) -> RunResult:
    import numpy as np

    if (folder / ERROR).exists():
        raise from_failure((folder / ERROR).read_text(encoding="utf-8"))
    if not (folder / RECORD).exists():
        if should_stop() is not Stop.GO_ON:
            raise InterruptedRun("stopped before its run began")
        lines = said.strip().splitlines()
        raise InternalError(f"a run on a testbed's host left no record: {(lines or [''])[-1]}")
    with np.load(folder / SAMPLES) as samples:
        columns = {column: samples[column] for column in samples.files}
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return RunResult(record, columns)
