"""Files held against the receipt of their copy: each is read, and its sum made once more.

A line of a receipt says which sum it has: `blake3` is what `b3sum` prints, `xxh3_tree` is XXH3-128
over pieces of 64 KiB and over pairs of their sums (docs/decisions/0011-sums.md). Either says
whether a file is still what was copied; only BLAKE3 where somebody may have meant to deceive.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from farline.errors import SpecError, SystemFailure, UsageError
from farline.spec.path_text import from_path_text
from farline.tools.native import file_sum

SUMS = {"blake3": "blake3", "xxh3_tree": "xxh3"}
"""Fields of a receipt line that are sums, with the word of `--hash` for each."""

_THERE = ("copied", "present", "updated")
_DIGITS = {"blake3": 64, "xxh3": 32}
_AHEAD = 1_000


class Noted(NamedTuple):
    """A file that a receipt speaks of."""

    path: str
    """Below the destination, as text."""

    size: int
    hash: str
    """The word of `--hash`: which sum it is; `none` where the receipt has none."""

    digits: str | None


@dataclass(frozen=True)
class Found:
    """What came of one file."""

    noted: Noted
    problem: str | None
    """Why it is not what the receipt says; None where it is."""


def noted_files(receipt: Path) -> Iterator[Noted]:
    """The files in a receipt (`ReceiptLine` as JSON lines) that the destination had at its end.

    Raises:
        SystemFailure: when it cannot be read.
        SpecError: when a line of it is none of a receipt.
    """
    try:
        with receipt.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                noted = _noted(receipt, number, line)
                if noted is not None:
                    yield noted
    except OSError as error:
        raise SystemFailure(f"receipt {receipt}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SpecError(f"receipt {receipt}: is not text; name a file of --receipt") from None


def _noted(receipt: Path, number: int, line: str) -> Noted | None:
    try:
        row = json.loads(line)
        if row["kind"] != "file" or row["status"] not in _THERE:
            return None
        path, size = str(row["path"]), int(row["bytes"])
    except (ValueError, KeyError, TypeError):
        raise SpecError(
            f"receipt {receipt}, line {number}: is not a receipt line; name a file that farline "
            "copy --receipt wrote"
        ) from None
    for name, word in SUMS.items():
        if (digits := row.get(name)) is not None:
            if not _is_sum(digits, word):
                raise SpecError(
                    f"receipt {receipt}, line {number}: {name} is not {_DIGITS[word]} "
                    "hexadecimal digits"
                )
            return Noted(path, size, word, digits)
    return Noted(path, size, "none", None)


def _is_sum(digits: object, word: str) -> bool:
    allowed = set("0123456789abcdef")
    return isinstance(digits, str) and len(digits) == _DIGITS[word] and set(digits) <= allowed


def check_files(noted: Iterator[Noted], destination: Path) -> Iterator[Found]:
    """Each file that has a sum, read and held against it; as many at a time as there are CPUs.

    `destination` is the folder that the copy went to, or the file itself where it was one. The
    results come in the order in which files are done.
    """
    is_over = threading.Event()

    def goes_on() -> bool:
        return not is_over.is_set()

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        waiting: set[Future[Found]] = set()
        try:
            for one in noted:
                place = _place(destination, one.path)
                waiting.add(pool.submit(_checked, one, place, goes_on))
                while len(waiting) >= _AHEAD:
                    yield from _done(waiting)
            while waiting:
                yield from _done(waiting)
        finally:
            is_over.set()
            pool.shutdown(cancel_futures=True)


def _done(waiting: set[Future[Found]]) -> Iterator[Found]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    waiting -= done
    for one in done:
        yield one.result()


def _place(destination: Path, text: str) -> Path:
    if destination.is_file():
        return destination
    path = from_path_text(text)
    names = path.split(b"/")
    if path.startswith(b"/") or b".." in names:
        raise UsageError(
            f"{text}: leads outside the destination; this is not the receipt of a copy"
        )
    return destination / os.fsdecode(path)


def _checked(noted: Noted, place: Path, goes_on: Callable[[], bool]) -> Found:
    try:
        size = place.stat().st_size
        if size != noted.size:
            return Found(noted, f"has {size} bytes instead of {noted.size}")
        found = file_sum(place, noted.hash, goes_on)
    except FileNotFoundError:
        return Found(noted, "is missing")
    except OSError as error:
        return Found(noted, f"cannot be read: {error.strerror}")
    except SystemFailure as failure:
        return Found(noted, f"cannot be read: {failure.message}")
    return Found(noted, None if found == noted.digits else "has different content")
