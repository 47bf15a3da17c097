"""Which format a log has, by what stands in it; its name does not matter."""

from __future__ import annotations

from pathlib import Path

from farline.errors import SpecError
from farline.formats import table
from farline.formats.formats import formats
from farline.formats.reading import Reading
from farline.formats.tally import Tally

SAMPLE_CHARACTERS = 64 * 1024


def detect(path: str | Path) -> str:
    """Name of the format of the log at `path`.

    Raises:
        SpecError: when no format is recognised; it names them all.
        SystemFailure: when the file cannot be read.
    """
    start = Reading(Path(path), Tally()).start(SAMPLE_CHARACTERS)
    if not start.strip():
        raise SpecError(f"{path}: the file is empty, so its format is unknown; {_choice()}")
    for one in formats().values():
        if one.detect(start):
            return one.name
    if mapped := table.hint(start):
        raise SpecError(f"{path}: unknown log format; {mapped}; or {_choice()}")
    raise SpecError(f"{path}: unknown log format; {_choice()}, or map the columns of a table")


def _choice() -> str:
    return f"name the format: {', '.join(sorted(formats()))}"
