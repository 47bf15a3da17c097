"""The extension itself: forks, signals, threads, panics that do not happen."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from farline import _native
from farline.errors import FarlineError
from farline.tools import Stop, events, native, never_stop
from farline.tools.known_servers import KnownServers
from tests.support.serving import serving


def tool(tmp_path: Path) -> native.NativeTool:
    return native.NativeTool(KnownServers(tmp_path / "known.json"))


def test_a_forked_child_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        target = native.parse_target(server.ticket)
        run = _native.start_run(target.to_json(), '{"duration_s": 1.0}')
        child = os.fork()
        if child == 0:
            try:
                run.poll(0.1)
            except _native.NativeError as error:
                os._exit(0 if "forked child" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        kinds = []
        while "done" not in kinds:
            event = run.poll(5.0)
            assert event is not None
            kinds.append(event[0])
        assert "samples" in kinds


def test_other_python_threads_go_on_while_one_waits(tmp_path: Path) -> None:
    ticks = []
    going = True

    def tick() -> None:
        while going:
            ticks.append(time.monotonic())
            time.sleep(0.01)

    with serving(tmp_path) as server:
        thread = threading.Thread(target=tick)
        thread.start()
        spec: Any = {"duration_s": 1.0, "transport": "null"}
        tool(tmp_path).run(server.ticket, spec, lambda _event: None, never_stop)
        going = False
        thread.join()
    assert len(ticks) > 30


def test_signals_are_handled_while_it_waits(tmp_path: Path) -> None:
    def raise_timeout(_number: int, _frame: object) -> None:
        raise TimeoutError("alarm")

    before = signal.signal(signal.SIGALRM, raise_timeout)
    try:
        with serving(tmp_path) as server, pytest.raises(TimeoutError, match="alarm"):
            began = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            while True:
                tool(tmp_path).run(
                    server.ticket, {"duration_s": 30.0}, lambda _event: None, never_stop
                )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 10


def test_a_stopped_run_keeps_what_it_measured(tmp_path: Path) -> None:
    seen: list[events.Event] = []

    def enough() -> Stop:
        return (
            Stop.GRACEFULLY
            if any(isinstance(event, events.StreamSamples) for event in seen)
            else Stop.GO_ON
        )

    with serving(tmp_path) as server:
        spec: Any = {"duration_s": 30.0, "interval_s": 0.1}
        result = tool(tmp_path).run(server.ticket, spec, seen.append, enough)
    assert result.record["status"] == "partial"
    assert set(result.samples["end"].tolist()) == {0, 1}
    assert result.record["server"] is not None


def test_a_server_in_this_process_serves_and_ends(tmp_path: Path) -> None:
    server = native.Server(
        {"listen": ["127.0.0.1"], "port": 0, "state_dir": str(tmp_path), "anonymous": True}
    )
    try:
        spec: Any = {"duration_s": 0.2, "transport": "null"}
        result = tool(tmp_path).run(server.addresses()[0], spec, lambda _event: None, never_stop)
        assert result.record["status"] == "complete"
    finally:
        server.stop()
        server.join()
    with pytest.raises(FarlineError):
        native.Server({"port": 70_000})
