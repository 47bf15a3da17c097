"""The lines of a receipt while the engine writes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TAIL_BYTES = 4 << 20


@dataclass(eq=False, repr=False)
class ReceiptTail:
    """Lines of a receipt as they are written."""

    path: Path
    _offset: int = 0
    _rest: bytes = b""

    def lines(self) -> list[Any]:
        """Whole lines since the last time."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                more = file.read(_TAIL_BYTES)
        except FileNotFoundError:
            return []
        self._offset += len(more)
        *whole, self._rest = (self._rest + more).split(b"\n")
        return [json.loads(line) for line in whole if line]
