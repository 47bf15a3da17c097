"""Whose failure it is: what an engine calls the other end gets the name of its host."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.errors import FarlineError

if TYPE_CHECKING:
    from farline.spec._types import RunRecord

_OTHER = "the other end"
_OF_A_HOST = ("system", "usage")
"""Kinds of failures of one host alone: what its kernel refused, or what is not there."""
# As text: it is compiled where something fails.
_STREAM = r"stream \d+: "


@dataclass(frozen=True)
class HostNames:
    """What the two ends of a session are called in what its user reads."""

    other: str = _OTHER
    """The other end; nothing where it is this host, too."""
    own: str = ""
    """This one; nothing where it is the user's own host."""

    def message(self, message: str, kind: str) -> str:
        """`message` of a failure of `kind`, with the end that it speaks of."""
        is_of_host = kind in _OF_A_HOST
        if message.startswith(f"{_OTHER} failed: "):
            rest = message.removeprefix(f"{_OTHER} failed: ")
            return f"{self.other or 'this host'}: farline on that host failed: {rest}"
        who = self.own
        if message.startswith(f"{_OTHER}: "):
            message, who = message.removeprefix(f"{_OTHER}: "), self.other
        elif not is_of_host:
            return message
        if is_of_host:
            # A stream that met a full disk has nothing to do with it.
            message = re.sub(f"^{_STREAM}", "", message)
        return f"{who}: {message}" if who else message

    def error(self, error: FarlineError) -> FarlineError:
        """The error, in these names."""
        text = self.message(error.message, error.kind)
        return error if text == error.message else type(error)(text, error.retry_after_s)

    def record(self, record: RunRecord) -> RunRecord:
        """The record, its error in these names."""
        if (failure := record.get("error")) is None:
            return record
        text = self.message(failure["message"], failure["kind"])
        return {**record, "error": {**failure, "message": text}}
