"""Names of files as text: the Python side of `crates/mover/src/path_text.rs`.

A name is bytes to a kernel and text in a document: UTF-8 in which a backslash is `\\\\`, and
every byte that is no UTF-8, or is a control character, is `\\xNN`.
"""

from __future__ import annotations

import re
import unicodedata

_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-fA-F]{2})|(.|$))", re.DOTALL)


def to_path_text(path: bytes) -> str:
    """`path` as text that fits one line and can be turned back."""
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_letter(letter) for letter in text)


def _letter(letter: str) -> str:
    if letter == "\\":
        return "\\\\"
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    if unicodedata.category(letter) == "Cc":
        return "".join(f"\\x{byte:02x}" for byte in letter.encode())
    return letter


def from_path_text(text: str) -> bytes:
    """The bytes that `text` stands for.

    Raises:
        ValueError: for a backslash followed by neither a backslash nor xNN, and for a zero byte.
    """

    def byte(match: re.Match[bytes]) -> bytes:
        if match.group(2) is not None:
            raise ValueError(f"{text!r}: a backslash must be followed by a backslash or xNN")
        return bytes([int(match.group(1), 16)]) if match.group(1) else b"\\"

    path = _ESCAPE.sub(byte, text.encode("utf-8"))
    if b"\0" in path:
        raise ValueError(f"{text!r}: a path cannot contain a zero byte")
    return path
