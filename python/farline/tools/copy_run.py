"""One session of a copy by farline's own engine, from its start to its record.

Samples stay columns of machine integers (`array`): a copy of many small files is over
before numpy could be imported.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farline.tools import Stop
from farline.tools.known_servers import KnownServers
from farline.tools.native import Target, checked, find_right, start_copy, with_mend

if TYPE_CHECKING:
    from farline import _native
    from farline._native import Contact
    from farline.spec._types import CopyProgress, RunRecord

Columns = Mapping[str, "array[int]"]
"""One array of 64-bit integers per column, all of one length."""


_OF_CIPHERS = ("files are sealed with ", "files go in clear text")
"""Notices that every session gives: the cipher stands in its record as well."""


@dataclass(frozen=True)
class CopyEvent:
    """Something that happened: `stage`, `server_key`, `notice`, `cipher`, `progress`, `samples`,
    `listening` or `done`.

    `text` is what it says, `progress` how far the copy is, `samples` the rows of the streams.
    """

    kind: str
    text: str = ""
    progress: CopyProgress | None = None
    samples: Columns | None = None


@dataclass(eq=False, repr=False)
class _Table:
    """Rows that come in parts."""

    columns: dict[str, array[int]] = field(default_factory=dict)

    def add(self, part: Columns) -> None:
        for name, values in part.items():
            self.columns.setdefault(name, array("q")).extend(values)


class CopyRun:
    """A session of a copy that goes on by itself; `poll` tells of it, `close` ends it."""

    def __init__(
        self,
        target: Target,
        spec: Mapping[str, Any],
        receipt: str | None = None,
        known: KnownServers | None = None,
        listen: str | None = None,
        contact: Contact | None = None,
    ) -> None:
        """Starts it; a line per name goes to the file `receipt`.

        With `listen` (`address:port`) the server is waited for there; `listening` tells the port.
        `contact` is a connection to it that is there already.

        Raises:
            FarlineError: when nothing could be started: a bad target or spec.
        """
        self._known = known or KnownServers()
        self._target, self._right = target, find_right(target, self._known)
        self._handle = start_copy(self._right, spec, receipt, listen, contact)
        self._asked = Stop.GO_ON
        self._samples, self._mover = _Table(), _Table()
        self._key: str | None = None
        self.record: RunRecord | None = None
        """The record, once `done` has come."""

    @property
    def samples(self) -> Columns:
        """Rows of the streams so far."""
        return self._samples.columns

    @property
    def mover(self) -> Columns:
        """Rows of both ends' files so far."""
        return self._mover.columns

    def ask(self, wanted: Stop) -> None:
        """Passes a wish to stop on, once."""
        if wanted > self._asked:
            self._asked = wanted
            (self._handle.abort if wanted is Stop.NOW else self._handle.stop)()

    def poll(self, timeout_s: float) -> CopyEvent | None:
        """The next event, or None after `timeout_s`."""
        event = checked(self._handle.poll, timeout_s)
        if event is None:
            return None
        kind, text, columns = event
        if columns is not None:
            return self._rows(kind, _arrays(columns))
        document = json.loads(text)
        if kind == "progress":
            return CopyEvent(kind, progress=document)
        if kind == "done":
            self.record = self._remembered(document)
            return CopyEvent(kind)
        told = document if isinstance(document, str) else ""
        if kind == "server_key":
            self._key = told
        elif kind == "notice" and told.startswith(_OF_CIPHERS):
            kind = "cipher"
        return CopyEvent(kind, told)

    def _rows(self, kind: str, rows: Columns) -> CopyEvent:
        if kind == "samples":
            self._samples.add(rows)
            return CopyEvent(kind, samples=rows)
        self._mover.add(rows)
        return CopyEvent(kind)

    def _remembered(self, record: RunRecord) -> RunRecord:
        if self._right.pin is None and self._key is not None:
            self._known.remember_key(self._target.address, self._key)
        if self._target.pin is None and self._key not in (None, self._right.pin):
            return with_mend(record, self._right)
        return record

    def close(self) -> None:
        """Ends it at once, if it still goes on."""
        self._handle.abort()


def _arrays(columns: _native.Columns) -> Columns:
    return {name: array("q", columns.column(name)) for name in columns.names()}
