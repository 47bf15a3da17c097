"""What a format of logs is: a name, how its logs are recognised, how they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from farline.formats.reading import Reading


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of log.

    `detect` answers for the text a log starts with (64 KiB at most, line ends already `\\n`).
    `read` gives tables of `rows.arrow_schema()` and counts in the reading's tally.
    """

    name: str
    title: str
    detect: Callable[[str], bool]
    read: Callable[[Reading], Iterator[pa.Table]]
    version: int = 1
    """Raised when a reader makes other rows of the same log: a store then reads it anew."""


def found_by(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """A format's `detect`: whether the pattern is anywhere in the text."""
    return lambda start: pattern.search(start) is not None
