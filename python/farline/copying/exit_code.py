"""The exit code of a copy, from its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farline.errors import InterruptedRun, from_failure
from farline.spec._failures import PARTIAL_EXIT_CODE, VANISHED_EXIT_CODE

_VANISHED = ("disappeared", "vanished")
"""First word of the reason of a file that had gone: today's, and that of an older end."""


def exit_code(record: Mapping[str, Any]) -> int:
    """0; 23 when some names failed, 24 when these had only vanished; else that of the failure."""
    error, report = record.get("error"), record.get("copy")
    if record["status"] != "complete":
        return from_failure(error).exit_code if error else InterruptedRun.exit_code
    if not report or not (failed := report["failed"]["files"]):
        return 0
    # What went wrong besides names counts among what failed, and not among what had gone.
    return VANISHED_EXIT_CODE if _vanished(report) == failed else PARTIAL_EXIT_CODE


def has_vanished(line: Mapping[str, Any]) -> bool:
    """Whether a line of a receipt is of a file that had gone."""
    return line["status"] == "failed" and (line.get("reason") or "").startswith(_VANISHED)


def _vanished(report: Mapping[str, Any]) -> int:
    """How many names had gone; of a report without that number, of those that it names."""
    if (count := report.get("vanished")) is not None:
        return int(count)
    return 0 if report.get("problems") else sum(map(has_vanished, report["failures"]))
