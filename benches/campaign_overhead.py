"""What a campaign costs per run besides the run: it must be under 3 ms.

The bookkeeping of a run is all wall time of the campaign (session, exchange, summary, verdict,
store, machine, estimate, merging at the end) less the time in which data could flow. Rows:

- short runs of the null transport towards a server process, whole sessions over one connection;
- the samples of a one-second run, kept over and over, without the session.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _contract import RESULTS, finish, interleave, row
from _program import program
from farline.campaign.behind import Behind
from farline.campaign.machine import Machine
from farline.campaign.measure import measure
from farline.campaign.plan import plan_from_document
from farline.campaign.settings import make_campaign
from farline.campaign.shell import Shell
from farline.spec._types import RunRecord, RunSpec
from farline.store import Store
from farline.store.entry import RunBundle
from farline.tools import (
    Capabilities,
    EventSink,
    RunResult,
    StopQuestion,
    Tool,
    ignore_event,
    never_stop,
)
from farline.tools.native import NativeTool, connection_keeper, resolve_spec

FARLINE = Path(sys.executable).with_name("farline")
BUDGET_MS = 3.0
APPEND_BUDGET_MS = 3.0
RUNS = 200
SHORT_S = 0.01


@contextmanager
def serving() -> Iterator[str]:
    """A server process on loopback; gives a ticket to it."""
    with tempfile.TemporaryDirectory() as state_dir:
        command = [str(FARLINE), "serve", "--listen", "127.0.0.1", "--port", "0", "--json"]
        server = subprocess.Popen(
            [*command, "--state-dir", state_dir], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            yield str(json.loads(server.stdout.readline())["ticket"])
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=15)


class Replayed:
    """A tool that returns one finished run again and again, under new names."""

    def __init__(self, result: RunResult) -> None:
        """Keeps the run."""
        self.result, self.count = result, 0

    def capabilities(self) -> Capabilities:
        """None is asked for."""
        return Capabilities("replayed", ("null",), ("forward",), samples=True)

    def run(
        self, target: str, spec: RunSpec, on_event: EventSink, should_stop: StopQuestion
    ) -> RunResult:
        """The run, as if it had just ended."""
        self.count += 1
        run_id = f"R{self.count:025d}"
        record: RunRecord = {**self.result.record, "run_id": run_id, "spec": spec}
        return RunResult(record, self.result.samples)


def bookkeeping_ms(target: str, tool: Tool, duration_s: float) -> float:
    """Milliseconds per run of a campaign of `RUNS` runs, less the time data could flow."""
    plan = plan_from_document(
        {
            "campaign": {"repetitions": RUNS // 10, "reference": "none", "seed": 1},
            "fixed": {"transport": "null", "duration_s": duration_s},
            "grid": {"streams": [1], "block_bytes": "1K..512K*2"},
        }
    )
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        store = Store(Path(folder))
        keeper = Behind(store)
        campaign = make_campaign(plan, lambda spec: dict(resolve_spec(spec)))
        flowed_s: list[float] = []

        def one(
            spec: Mapping[str, Any], labels: Mapping[str, Any], should_stop: Callable[[], bool]
        ) -> Mapping[str, Any]:
            record = measure(
                target, spec, keeper, tool=tool, campaign=campaign.id, labels=labels
            ).record
            if record["status"] != "complete":
                raise RuntimeError(f"a run failed: {record.get('error')}")
            flowed_s.append(record["run_s"] if isinstance(tool, NativeTool) else 0.0)
            return record

        started_at = time.perf_counter()
        with keeper:
            Shell(Machine(campaign), one, lambda _progress: None, lambda: False).run()
        store.compact()
        spent_s = time.perf_counter() - started_at - sum(flowed_s)
    return spent_s / len(flowed_s) * 1000


def append_ms(result: RunResult) -> float:
    """Milliseconds of one append of a one-second run, synced to the disk."""
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        store, tool = Store(Path(folder)), Replayed(result)
        runs = [tool.run("", result.record["spec"], ignore_event, never_stop) for _ in range(RUNS)]
        started_at = time.perf_counter()
        for run in runs:
            store.append(RunBundle(run.record, run.samples))
        return (time.perf_counter() - started_at) / RUNS * 1000


def main() -> int:
    """Measures, prints, writes."""
    RESULTS.mkdir(exist_ok=True)
    with serving() as target:
        tool = NativeTool(keeper=connection_keeper())
        spec = resolve_spec({"transport": "null", "duration_s": 1.0, "interval_s": 0.01})
        second = measure(target, spec, tool=tool)
        long_run = RunResult(second.record, second.samples)
        bookkeeping_ms(target, tool, SHORT_S)  # imports and first sessions are nobody's run
        whole = interleave(lambda: bookkeeping_ms(target, tool, SHORT_S), lambda: BUDGET_MS)
        kept = interleave(
            lambda: bookkeeping_ms(target, Replayed(long_run), 1.0), lambda: BUDGET_MS
        )
        appended = interleave(lambda: append_ms(long_run), lambda: APPEND_BUDGET_MS)
    rows = [
        row("null 0.01 s, whole session", "ms/run", whole, less_is_better=True),
        row("samples of 1 s, no session", "ms/run", kept, less_is_better=True),
        row("store append alone, samples of 1 s", "ms", appended, less_is_better=True),
    ]
    return finish("campaign-overhead", rows)


if __name__ == "__main__":
    program(main)
