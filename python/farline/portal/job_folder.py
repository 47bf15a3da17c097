"""The folder of a transfer: what the service and the process that copies leave for each other.

```text
order.json     what to copy, between which locations; may hold a ticket, and is removed at the end
lock           held by the process that copies, for as long as it lives
stop           is there when the process is to stop in good order
events.jsonl   what happened, a JSON line each: {"event", "data"}; those of all attempts
end-N.json     what attempt N came to; written whole, once
receipt.jsonl  what became of each name
keeper.log     what the process printed: nothing, unless it broke down
```

Nothing here depends on who started whom: after a restart of either the folder says how things are.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farline.store.disk import locked, publish_text

LOCK_TRIES, LOCK_WAIT_S = 20, 0.1
"""A look whether somebody holds the lock may itself hold it for a moment."""

LAST_BYTES = 64 << 10
"""How far from the end of the events the newest of a kind is looked for."""

_TICKET = re.compile(r"farline://([^\s/#?]*)[^\s#]*")


@dataclass(frozen=True)
class JobFolder:
    """One transfer's folder."""

    path: Path

    @property
    def events(self) -> Path:
        """The file of events."""
        return self.path / "events.jsonl"

    @property
    def receipt(self) -> Path:
        """The file with a line per name."""
        return self.path / "receipt.jsonl"

    @property
    def log(self) -> Path:
        """What the process printed."""
        return self.path / "keeper.log"

    def make(self) -> None:
        """Makes it, for its owner alone; harmless where it is."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def give_order(self, order: Mapping[str, Any]) -> None:
        """Writes what to copy, and takes back an earlier wish to stop."""
        self.stop_file.unlink(missing_ok=True)
        publish_text(self.path, self.order_file, json.dumps(order))

    def order(self) -> dict[str, Any]:
        """What to copy."""
        found: dict[str, Any] = json.loads(self.order_file.read_text("utf-8"))
        return found

    def forget_order(self) -> None:
        """Removes what may hold a ticket; the process has read it, or never will."""
        self.order_file.unlink(missing_ok=True)

    @property
    def order_file(self) -> Path:
        """The file with what to copy."""
        return self.path / "order.json"

    @property
    def stop_file(self) -> Path:
        """The file that is there when the process is to stop."""
        return self.path / "stop"

    def ask_to_stop(self) -> None:
        """Asks the process to stop in good order."""
        self.stop_file.touch()

    def end(self, attempt: int) -> dict[str, Any] | None:
        """What an attempt came to; None while it has not ended."""
        try:
            found: dict[str, Any] = json.loads(self._end_file(attempt).read_text("utf-8"))
        except FileNotFoundError:
            return None
        return found

    def write_end(self, attempt: int, document: Mapping[str, Any]) -> None:
        """Says what it came to: durable when this returns."""
        publish_text(self.path, self._end_file(attempt), redacted(json.dumps(document)))

    def _end_file(self, attempt: int) -> Path:
        return self.path / f"end-{attempt}.json"

    def is_alive(self) -> bool:
        """Whether a process works on it."""
        if not (self.path / "lock").exists():
            return False
        with locked(self.path / "lock", exclusive=True, wait=False) as is_free:
            return not is_free

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        """Holds the lock while the block runs; gives whether it was got."""
        for _ in range(LOCK_TRIES):
            with locked(self.path / "lock", exclusive=True, wait=False) as is_got:
                if is_got:
                    yield True
                    return
            time.sleep(LOCK_WAIT_S)
        yield False

    def newest(self, name: str) -> dict[str, Any] | None:
        """Data of the newest event of a name, if it is near the end of the events."""
        try:
            with self.events.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
                lines = file.read().splitlines()
        except FileNotFoundError:
            return None
        mark = f'{{"event": "{name}", '.encode()
        for line in reversed(lines):
            if line.startswith(mark) and line.endswith(b"}"):
                found: dict[str, Any] = json.loads(line)["data"]
                return found
        return None


def redacted(text: str) -> str:
    """A text in which tickets' URLs name their server alone."""
    return _TICKET.sub(r"farline://\1", text)
