"""What sums are called in texts for people."""

from __future__ import annotations


def sum_name(word: str | None) -> str:
    """The name of a sum by its word of `--hash`; records of versions that had one say none."""
    return "XXH3" if word == "xxh3" else "BLAKE3"
