"""Text that another program or host has printed, as one of our own lines may quote it."""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # operating system command: a window's title, colours
    r"|\x1b[PX^_].*?(?:\x1b\\|$)"  # device control, privacy message, application command
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # control sequence: colours, the cursor
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
"""Escape sequences of ECMA-48, also such as were cut off."""

QUOTED_CHARACTERS = 300
"""Most characters of a foreign text that one line quotes."""

_TICKET = re.compile(r"(farline://[^/\s\"]*/)[^\s\"#]+")
"""A ticket, which is as good as a password."""


def plain_lines(raw: bytes | str) -> list[str]:
    """The lines of `raw` without escape sequences, control characters and blank lines."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    text = _SEQUENCES.sub("", text)
    lines = (_plain(line) for line in re.split(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", text))
    return [line for line in lines if line]


def _plain(line: str) -> str:
    seen = "".join(letter if letter.isprintable() else " " for letter in line)
    return " ".join(seen.split())


def quoted(raw: bytes | str, most: int = QUOTED_CHARACTERS) -> str:
    """The end of `raw` in one printable line of at most `most` characters; "" if nothing shows."""
    text = _TICKET.sub(r"\1[...]", " / ".join(plain_lines(raw)))
    return text if len(text) <= most else f"[...] {text[len(text) - most :]}"
