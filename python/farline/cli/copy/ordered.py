"""The end of a copy between two hosts that gets the order: see `farline.copying.order`."""

from __future__ import annotations

import json
import select
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from farline.cli.copy.output import Output
from farline.cli.copy.show_job import show
from farline.cli.copy.view import StreamView
from farline.copying.event_lines import ALIVE, ORDER_SCHEMA, READY
from farline.copying.order import ordered_job, read_order
from farline.errors import FarlineError, TimeoutFailure
from farline.tools.start_mark import mark_of

if TYPE_CHECKING:
    from farline.copying.live_tuning import MakeTuner

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
    """Carries out the order on standard input; events go to standard output, behind the mark.

    Raises:
        FarlineError: when no session came about.
    """
    out = Output() if nonce is None else MarkedOutput(mark_of(nonce))
    ended = threading.Event()
    try:
        if nonce is not None:
            _say(out, READY, {"schema": ORDER_SCHEMA})
            threading.Thread(target=_keep_alive, args=(out, ended), daemon=True).start()
        job = ordered_job(_awaited_order(), make_tuner)
        _cancel_at_end_of_input(job.cancel)
        return show(job, StreamView(every_file=True, out=out))
    except FarlineError as error:
        if nonce is not None:
            _say(out, "error", error.failure())
        raise
    finally:
        ended.set()


def _say(out: Output, name: str, data: object) -> None:
    out.line(json.dumps({"event": name, "data": data}))


def _keep_alive(out: Output, ended: threading.Event) -> None:
    while not ended.wait(ALIVE_S):
        _say(out, ALIVE, {})


def _awaited_order() -> dict[str, Any]:
    if not select.select([sys.stdin], [], [], WAIT_S)[0]:
        raise TimeoutFailure(f"--order: no order arrived on standard input within {WAIT_S:g} s")
    return read_order(sys.stdin.readline(MAX_ORDER_BYTES))


def _cancel_at_end_of_input(cancel: Callable[[], None]) -> None:
    """Who ordered the copy keeps standard input open as long as it is wanted."""

    def watch() -> None:
        while sys.stdin.readline():
            pass
        cancel()

    threading.Thread(target=watch, daemon=True).start()
