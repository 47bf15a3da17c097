"""The end of a copy between two hosts that gets the order: see `farline.copying.order`.

An order that says `more` may be followed by others: a node of several carries one part of a copy
after the other. Before that it may be asked what it sees (`farline.copying.node_look`). A line that
is a change goes to the copy under way. The end of standard input cancels what runs.
"""

from __future__ import annotations

import json
import queue
import select
import sys
import threading
from typing import TYPE_CHECKING, Any

from farline.cli.copy.output import Output
from farline.cli.copy.show_job import show
from farline.cli.copy.view import StreamView
from farline.copying.adjusting import refused_by, taken_by
from farline.copying.event_lines import ALIVE, ORDER_SCHEMA, OVER, READY
from farline.copying.node_look import LOOKED, NodeLook
from farline.copying.order import ordered_job, read_change, read_order
from farline.errors import FarlineError, TimeoutFailure
from farline.tools.start_mark import mark_of

if TYPE_CHECKING:
    from farline.copying.job import CopyJob
    from farline.copying.live_tuning import MakeTuner
    from farline.spec._types import AdjustRequest

ALIVE_S = 10.0
"""Seconds between two words that it goes on; the other host waits `SILENT_S` for one."""

WAIT_S = 60.0
"""So long the order is waited for."""

MAX_ORDER_BYTES = 1 << 20


class MarkedOutput(Output):
    """Lines of standard output behind a mark; two threads may print."""

    def __init__(self, mark: str) -> None:
        """Nothing is printed yet."""
        super().__init__()
        self._mark = mark
        self._lock = threading.Lock()

    def line(self, text: str, err: bool = False) -> None:
        """As in `Output`."""
        with self._lock:
            super().line(text if err else self._mark + text, err)


def carry_out(nonce: str | None, make_tuner: MakeTuner) -> int:
    """Carries out the order on standard input, and those that follow it; events go to standard
    output, behind the mark.

    Raises:
        FarlineError: when no session of the last order came about.
    """
    out = Output() if nonce is None else MarkedOutput(mark_of(nonce))
    ended = threading.Event()
    look = NodeLook()
    try:
        if nonce is not None:
            _say(out, READY, {"schema": ORDER_SCHEMA, "adjusts": True, "looks": True})
            threading.Thread(target=_keep_alive, args=(out, ended), daemon=True).start()
        orders = _Orders(out)
        order = orders.first()
        while order.get("more") or "look" in order:
            if "look" in order:
                _say(out, LOOKED, look.answer(dict(order["look"])))
            else:
                _one_of_several(orders, order, out, make_tuner)
            if (line := orders.next()) is None:
                return 0
            order = read_order(line)
        return orders.carry_out(order, out, make_tuner)
    except FarlineError as error:
        if nonce is not None:
            _say(out, "error", error.failure())
        raise
    finally:
        look.close()
        ended.set()


def _one_of_several(
    orders: _Orders, order: dict[str, Any], out: Output, make_tuner: MakeTuner
) -> None:
    """An order that others may follow: one that fails does not end the command."""
    try:
        orders.carry_out(order, out, make_tuner)
    except FarlineError as error:
        _say(out, "error", error.failure())
        _say(out, OVER, {})


class _Orders:
    """Reads standard input for as long as the copies are wanted: its end cancels what runs."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._job: CopyJob | None = None
        self._is_over = False
        self._lock = threading.Lock()

    def first(self) -> dict[str, Any]:
        """The first order.

        Raises:
            FarlineError: when none comes, or one that makes no sense.
        """
        if not select.select([sys.stdin], [], [], WAIT_S)[0]:
            raise TimeoutFailure(f"--order: no order arrived on standard input within {WAIT_S:g} s")
        line = sys.stdin.readline(MAX_ORDER_BYTES)
        threading.Thread(target=self._read, daemon=True).start()
        return read_order(line)

    def next(self) -> str | None:
        """The line of the next order; None when there are no more."""
        return self._lines.get()

    def carry_out(self, order: dict[str, Any], out: Output, make_tuner: MakeTuner) -> int:
        """One order, to its end."""
        job = ordered_job(order, make_tuner)
        with self._lock:
            self._job = job
            if self._is_over:
                job.cancel()
        try:
            return show(job, StreamView(every_file=True, out=out))
        finally:
            with self._lock:
                self._job = None

    def _read(self) -> None:
        while line := sys.stdin.readline(MAX_ORDER_BYTES):
            if (request := read_change(line)) is None:
                self._lines.put(line)
            else:
                self._change(request)
        with self._lock:
            self._is_over = True
            if self._job is not None:
                self._job.cancel()
        self._lines.put(None)

    def _change(self, request: AdjustRequest) -> None:
        """Passes a change on; what the session does not tell of itself is told here."""
        with self._lock:
            job = self._job
        if job is None or job.adjusting.is_over:
            # Whoever sent it knows by the end of the copy before that it came too late for that.
            return
        try:
            told = [] if job.adjusting.want(request) else taken_by(request)
        except FarlineError as error:
            told = [] if job.adjusting.is_over else refused_by(request, error.message)
        for change in told:
            _say(self._out, "adjusted", change)


def _say(out: Output, name: str, data: object) -> None:
    out.line(json.dumps({"event": name, "data": data}))


def _keep_alive(out: Output, ended: threading.Event) -> None:
    while not ended.wait(ALIVE_S):
        _say(out, ALIVE, {})
