"""The exit code of a copy, from its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farline.errors import InterruptedRun, from_failure
from farline.spec._failures import PARTIAL_EXIT_CODE, VANISHED_EXIT_CODE

VANISHED = ("disappeared", "vanished")
"""First word of the reason of a file that had gone: today's, and that of an older end."""

MOST_NAMED = 100
"""Names that failed of which a report tells the reason."""


def exit_code(record: Mapping[str, Any]) -> int:
    """0; 23 when some names failed, 24 when these had only vanished; else that of the failure."""
    error, report = record.get("error"), record.get("copy")
    if record["status"] != "complete":
        return from_failure(error).exit_code if error else InterruptedRun.exit_code
    if not report or not (failed := report["failed"]["files"]):
        return 0
    known = report["failures"]
    # What failed for another reason stands among them, however many disappeared.
    all_gone = len(known) == min(failed, MOST_NAMED) and all(
        (line.get("reason") or "").startswith(VANISHED) for line in known
    )
    # These count as failed too, but stand beside the names.
    all_gone = all_gone and not report.get("problems")
    return VANISHED_EXIT_CODE if all_gone else PARTIAL_EXIT_CODE
