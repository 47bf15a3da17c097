"""Texts that come from elsewhere (names, what another host said) as a terminal may have them."""

from __future__ import annotations


def shown(text: str) -> str:
    """`text` with what changes direction, moves or cannot be seen as `\\xNN`.

    Such letters stand as their bytes in UTF-8, which is how a `PathText` may have them too.
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable()
        else "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogateescape"))
        for letter in text
    )
