"""Keeping a copy: its record, samples and receipt in the store; a copy of the receipt for the user.

A copy of a second or less is summed up by light means: what the full analysis needs takes longer
to import than such a copy takes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import FarlineError, SystemFailure
from farline.logs import Log
from farline.spec.extras import has_analysis
from farline.tools.events import Notice, NoticeKind
from farline.tools.temporary_state import remove_folder

if TYPE_CHECKING:
    from farline.copying.locations import Endpoints
    from farline.copying.look_back import LookBack
    from farline.copying.receipt_file import ReceiptFile
    from farline.copying.session import Attempt
    from farline.spec._types import CopyReport, RunRecord

_LOG = Log(__name__)

TEMPORARY = "/var/tmp"
"""Where a receipt is written: that of a million files is nothing for a /tmp in memory."""

RECEIPT = "receipt.jsonl"
PREFIX = "farline-copy-"

STALE_S = 7 * 86_400.0
"""Age from which a folder is one that a killed copy left behind."""

LIGHT_S = 1.0
"""Copies up to so long are judged by their report alone."""


@dataclass(eq=False, repr=False)
class RecordKeeper:
    """Keeps each session of a copy as a record; the last one's receipt is the copy's."""

    store_path: Path | None = None
    """None is the user's own store."""
    keeps: bool = True
    """Whether anything goes to the store."""
    receipt_copy: ReceiptFile | None = None
    always_receipt: bool = False
    spent_s: float = 0.0
    """What the command had taken before the job was made; its record counts it in."""
    labels: Mapping[str, object] = field(default_factory=dict)
    """Labels of every session's run, beside its own."""
    ends: Endpoints | None = None
    """Where files come from and go: what is known of the disks there stands beside a verdict."""
    _began_s: float = field(default_factory=time.monotonic, init=False)
    _folder: Path | None = field(default=None, init=False)
    _first: str | None = field(default=None, init=False)
    _count: int = field(default=0, init=False)
    _moving_us: int = field(default=0, init=False)
    last: RunRecord | None = field(default=None, init=False)
    """Record of the last session that began, with summary and verdict."""
    _heavy_s: float | None = field(default=None, init=False)
    """When a session that goes on has become one that is judged in full, until that is imported."""
    estimate: LookBack | None = field(default=None, init=False)
    """What had been estimated of a copy that was complete after one session, of over a second."""
    kept_run: str | None = field(default=None, init=False)
    """Run of the last session that is in the store."""
    receipt_error: FarlineError | None = field(default=None, init=False)
    """Why the user's copy of the last receipt could not be written."""

    def receipt(self) -> Path | None:
        """Where the engine writes its receipt; None where nobody wants one.

        Raises:
            SystemFailure: when there is no room for it.
        """
        if not self.keeps and self.receipt_copy is None and not self.always_receipt:
            return None
        if self._folder is None:
            # Not by tempfile, whose import takes longer than a small copy's first bytes.
            folder = Path(os.environ.get("TMPDIR") or TEMPORARY)
            self._folder = folder / f"{PREFIX}{os.getpid()}-{os.urandom(6).hex()}"
            try:
                self._folder.mkdir(mode=0o700)
            except OSError as error:
                raise SystemFailure(f"receipt: {self._folder}: {error.strerror}") from None
        return self._folder / RECEIPT

    def prepare(self) -> None:
        """Imports what keeping a short copy takes; a session has begun."""
        self._heavy_s = time.monotonic() + LIGHT_S
        from farline.findings import copy_verdict
        from farline.profiles import copy_summary

        assert copy_verdict and copy_summary
        if self.keeps:
            from farline.store import quick, receipts

            assert quick and receipts
        if self._folder is not None:
            sweep(self._folder.parent, time.time())

    def meanwhile(self) -> None:
        """Imports what keeping a longer copy takes, once it is one: at its end that is a wait."""
        if self._heavy_s is None or time.monotonic() < self._heavy_s:
            return
        self._heavy_s = None
        from farline.findings import verdict
        from farline.profiles import summary

        assert summary and verdict
        if self.keeps and has_analysis():
            from farline.copying import look_back

            assert look_back

    def keep(self, attempt: Attempt) -> Notice | None:
        """Keeps one session; a store that fails costs a notice, not the copy."""
        self._heavy_s = None
        self._count += 1
        if attempt.record is None:
            return None
        if not attempt.record["streams"]:
            # Nothing ran: that says nothing about the path, and takes no earlier session's place.
            self.last = self.last or self._timed(attempt.record)
            return None
        record = self._with_disks(self._timed(judged(attempt)))
        self.last = record
        self._first = self._first or record["run_id"]
        receipt = self._folder / RECEIPT if self._folder is not None else None
        if receipt is not None and receipt.exists() and self.receipt_copy is not None:
            self._copy_receipt(receipt, self.receipt_copy)
        try:
            if self.keeps:
                self.estimate = self._looked_back(record)
                self._put(record, attempt, receipt)
        except FarlineError as error:
            return Notice(NoticeKind.NOT_KEPT, f"the run is not kept: {error.message}")
        return None

    def _looked_back(self, record: RunRecord) -> LookBack | None:
        """What had been estimated; a history that cannot be read is no reason to lose the record.

        A shorter copy is over before numpy is imported: its score is found when one is needed.
        """
        if self._count > 1 or not record.get("copy") or record["run_s"] <= LIGHT_S:
            return None
        if not has_analysis():
            return None
        from farline.copying.look_back import look_back

        try:
            return look_back(record, self.store_path)
        except FarlineError as error:
            _LOG.warning("no estimate of the copy", reason=error.message)
            return None

    def _with_disks(self, record: RunRecord) -> RunRecord:
        """The record with what profiles say of disks that it is near the limit of."""
        verdict, summary = record.get("verdict"), record.get("summary")
        if self.ends is None or not verdict or not summary:
            return record
        from farline.copying.storage_limits import limits_of, near_limits
        from farline.profiles.copy_streams import payload_rate_bps
        from farline.store.default_folder import usual_path

        store = self.store_path or usual_path()
        limits = [] if store is None else limits_of(self.ends, store)
        lines = near_limits(limits, payload_rate_bps(record), verdict["limit"])
        if not lines:
            return record
        return {**record, "verdict": {**verdict, "evidence": [*verdict["evidence"], *lines]}}

    def _timed(self, record: RunRecord) -> RunRecord:
        """The record with what the whole command has taken until now."""
        if not (report := record.get("copy")):
            return record
        # Sessions that another host was ordered to begin again are in its own record.
        self._moving_us += max(round(1e6 * record["run_s"]), report.get("moving_us", 0))
        times: CopyReport = {
            **report,
            "attempts": max(self._count, report.get("attempts", 0)),
            "moving_us": self._moving_us,
            "command_us": round(1e6 * (self.spent_s + time.monotonic() - self._began_s)),
        }
        return {**record, "copy": times}

    def _copy_receipt(self, receipt: Path, wanted: ReceiptFile) -> None:
        """A receipt that cannot be written is told of at the end: the copy itself goes on."""
        self.receipt_error = None
        try:
            wanted.put(receipt)
        except FarlineError as error:
            self.receipt_error = error

    def _put(self, record: RunRecord, attempt: Attempt, receipt: Path | None) -> None:
        from farline.store.entry import RunBundle
        from farline.store.layout import Layout, default_path
        from farline.store.quick import spool
        from farline.store.receipts import keep_receipt

        store = self.store_path or default_path()
        labels = {"copy_attempt": self._count, "copy_first": self._first, **self.labels}
        if self.estimate is not None:
            labels["estimate"] = self.estimate.label
        spool(store, RunBundle(record, attempt.samples, labels=labels, mover=attempt.file_samples))
        self.kept_run = record["run_id"]
        if receipt is not None and receipt.exists():
            keep_receipt(Layout(store), record["run_id"], receipt)

    def close(self) -> None:
        """Removes what is left of temporary files."""
        if self._folder is not None:
            remove_folder(self._folder)


def sweep(folder: Path, now_s: float) -> None:
    """Removes what copies of this user that were killed have left in `folder` long ago."""
    for path in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            receipt = path / RECEIPT
            # A copy that goes on for weeks writes to its receipt all the while.
            facts = (receipt if receipt.exists() else path).lstat()
            if facts.st_uid == os.getuid() and now_s - facts.st_mtime > STALE_S:
                receipt.unlink(missing_ok=True)
                path.rmdir()


def judged(attempt: Attempt) -> RunRecord:
    """The record with its summary and its verdict."""
    record = attempt.record
    assert record is not None
    if not record.get("copy") or (record.get("summary") and record.get("verdict")):
        return record
    if record["run_s"] <= LIGHT_S:
        return _lightly(record, attempt)
    from farline.findings.verdict import verdict
    from farline.profiles.series import plain
    from farline.profiles.summary import summarise

    rows = plain(attempt.samples)
    return {**record, "summary": summarise(record, rows), "verdict": verdict(record, rows)}


def _lightly(record: RunRecord, attempt: Attempt) -> RunRecord:
    from farline.findings.copy_verdict import quick_verdict
    from farline.profiles.copy_summary import light_summary

    light: RunRecord = {**record, "summary": light_summary(record, attempt.samples)}
    found = quick_verdict(light)
    return light if found is None else {**light, "verdict": found}
