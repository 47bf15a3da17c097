"""Nodes that come after a copy has begun: asked of the engine beside it, until there are enough."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from farline.errors import FarlineError, InterruptedRun
from farline.logs import Log
from farline.tools.events import Notice

if TYPE_CHECKING:
    from farline.cluster.nodes import Nodes
    from farline.tools import StopQuestion

_LOG = Log(__name__)


class Growth:
    """Of one end, that has `nodes` now; `take` is given what comes, in a thread of its own."""

    def __init__(
        self, nodes: Nodes, take: Callable[[Nodes], None], should_stop: StopQuestion
    ) -> None:
        """Begins to ask, where any are missing."""
        self._nodes, self._take, self._should_stop = nodes, take, should_stop
        self._said: list[str] = []
        self._thread = threading.Thread(target=self._grow, daemon=True)
        self._thread.start()

    def _grow(self) -> None:
        try:
            while self._nodes.more is not None:
                steps = self._nodes.more(self._should_stop)
                while True:
                    try:
                        event = next(steps)
                    except StopIteration as end:
                        self._nodes = end.value
                        break
                    if isinstance(event, Notice):
                        self._said.append(event.text)
                self._take(self._nodes)
        except InterruptedRun:
            return
        except FarlineError as error:
            _LOG.debug("no further nodes", reason=error.message)
            self._said.append(f"no further nodes: {error.message}")

    def said(self) -> list[str]:
        """What is to be told since this was asked last."""
        told, self._said = self._said, []
        return told

    def join(self) -> None:
        """Waits for its end: soon, once it should stop."""
        self._thread.join()
