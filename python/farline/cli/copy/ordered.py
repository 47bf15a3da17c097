"""The end of a copy between two hosts that gets the order: see `third`."""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from farline.cli.common import interruptible
from farline.cli.copy.blame import Names
from farline.cli.copy.keep import Keeper
from farline.cli.copy.options import Wish
from farline.cli.copy.output import Output
from farline.cli.copy.place import Ends, Here
from farline.cli.copy.retry import Retry
from farline.cli.copy.session import Direct
from farline.cli.copy.third import ALIVE, ALIVE_S, ORDER_S, ORDER_SCHEMA, READY, read_order
from farline.cli.copy.view import StreamView
from farline.errors import FarlineError, ProtocolError, TimeoutFailure
from farline.spec.path_text import from_path_text, to_path_text
from farline.tools import Stop, StopQuestion
from farline.tools.native import Target
from farline.tools.start_mark import mark_of


@dataclass
class OrderedWay:
    """A way to the server that the order names."""

    target: Target
    called: Names

    def open(self, should_stop: StopQuestion) -> Target:
        """That server."""
        return self.target

    def path(self, path: str) -> str:
        """As ordered."""
        return path

    def names(self) -> Names:
        """As whoever ordered the copy calls the two hosts."""
        return self.called

    def buffers(self) -> None:
        """Not known here."""

    def advice(self, error: FarlineError) -> str:
        """That the two hosts do not see each other, which the one who ordered may not know."""
        return f" (from {_own_name()})" if error.fault == "path" else ""

    def close(self) -> None:
        """Nothing was started."""


def _own_name() -> str:
    import socket

    return socket.gethostname()


@dataclass
class InputWatch:
    """Whether standard input is still open: who ordered the copy keeps it so."""

    closed: threading.Event = field(default_factory=threading.Event)

    def start(self, read: Callable[[], object]) -> None:
        """Watches from now on; `read` returns nothing when the input has ended."""

        def watch() -> None:
            while read():
                pass
            self.closed.set()

        threading.Thread(target=watch, daemon=True).start()


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


def _say(out: Output, name: str, data: object) -> None:
    out.line(json.dumps({"event": name, "data": data}))


def _keep_alive(out: Output, ended: threading.Event) -> None:
    while not ended.wait(ALIVE_S):
        _say(out, ALIVE, {})


def carry_out(nonce: str | None) -> int:
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
        return _carry_out(out)
    except FarlineError as error:
        if nonce is not None:
            _say(out, "error", error.failure())
        raise
    finally:
        ended.set()


def _awaited_order() -> dict[str, Any]:
    if not select.select([sys.stdin], [], [], ORDER_S)[0]:
        raise TimeoutFailure(f"--order: no order came on standard input within {ORDER_S:g} s")
    return read_order()


def _carry_out(out: Output) -> int:
    from farline.cli.copy.command import Copy

    mover, document, retry = _read(_awaited_order())
    watch = InputWatch()
    watch.start(sys.stdin.readline)
    view = StreamView(every_file=True, out=out)
    keeper = Keeper(None, True, None, view.out, always_receipt=True)
    try:
        with interruptible(quiet=True) as asked:

            def should_stop() -> Stop:
                return max(asked(), Stop.GRACEFULLY if watch.closed.is_set() else Stop.GO_ON)

            ends = Ends(Here(), mover.sources, Here(), mover.destination)
            copy = Copy(mover, Wish(document, False), ends, view, keeper, retry)
            return copy.run(should_stop)
    finally:
        keeper.close()


def _names(order: Mapping[str, Any]) -> Names:
    """None are in an order of the first farlines."""
    names = order.get("names")
    return Names(str(names["other"]), str(names["own"])) if isinstance(names, dict) else Names()


def _expanded(sources: Sequence[str]) -> tuple[str, ...]:
    """Patterns among sources of this host that another one named; what fits nothing is itself."""
    from glob import glob

    found: list[str] = []
    for source in sources:
        path = from_path_text(source)
        # Not by pathlib: names may be any bytes.
        names = [] if os.path.lexists(path) else sorted(glob(path))  # noqa: PTH207
        found += [to_path_text(name) for name in names] or [source]
    return tuple(found)


def _read(order: Mapping[str, Any]) -> tuple[Direct, dict[str, Any], Retry]:
    try:
        there = order["target"]
        target = Target(there["host"], there["port"], there.get("ticket"), there.get("pin"))
        sources = _expanded(order["sources"]) if order["pushes"] else tuple(order["sources"])
        mover = Direct(
            OrderedWay(target, _names(order)), sources, order["destination"], order["pushes"],
            most_streams=order.get("most_streams"),
        )  # fmt: skip
        retry = Retry(float(order["retry_for_s"]), order["retries"])
        return mover, dict(order["document"]), retry
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"--order: {error} is missing or makes no sense") from None
