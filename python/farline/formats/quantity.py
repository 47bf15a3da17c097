"""Quantities as tools print them for people: `381 MBytes`, `3.20 Gbits/sec`, `28.6 MiB`.

What a prefix stands for is the tool's choice, so the caller says it: 1000 or 1024.
"""

from __future__ import annotations

import re

from farline.formats.reading import Reading

NUMBER = r"\d{1,18}(?:[.,]\d{1,12})?"
"""A figure; some locales write a comma before the fraction."""

_PREFIXES = "KMGTPE"
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")


def scaled(figure: str, prefix: str | None, base: int) -> float:
    """A figure times `base` for each step of its prefix (`k`, `M`, `Gi`, or none)."""
    letter = (prefix or "").strip()[:1].upper()
    power = _PREFIXES.index(letter) + 1 if letter else 0
    return float(figure.replace(",", ".")) * float(base**power)


def ungrouped(figure: str) -> float:
    """A figure whose digits are grouped in threes: `30,009,489`, `6.149,71`, `20 006 364.00`.

    The last mark is that of the fraction, unless it is followed by three digits, as groups are,
    and is the only kind of mark there is.
    """
    digits = re.sub(r"[\s'\u00a0\u202f\u2019]", "", figure)
    head, mark, tail = _last_mark(digits)
    if not mark:
        return float(digits)
    grouped = len(tail) == 3 and not (set(head) & {",", "."} - {mark})
    return float(re.sub(r"[.,]", "", head) + ("" if grouped else ".") + tail)


def _last_mark(digits: str) -> tuple[str, str, str]:
    at = max(digits.rfind(","), digits.rfind("."))
    return (digits, "", "") if at < 0 else (digits[:at], digits[at], digits[at + 1 :])


def other_line(reading: Reading, number: int, line: str) -> None:
    """Counts a line that is no result: a message, or no text at all."""
    if _NO_TEXT.search(line):
        reading.malformed(number, line, "no text")
    else:
        reading.skip("message")
