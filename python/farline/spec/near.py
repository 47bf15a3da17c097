"""Suggestions for a word that was mistyped."""

from __future__ import annotations

from collections.abc import Iterable

_CLOSE = 0.6
"""Least likeness of a suggestion, as difflib counts it: 1 is the same word."""
_MOST = 3


def near(word: str, known: Iterable[str]) -> list[str]:
    """The known words that `word` may stand for, the likeliest first; none is often the answer."""
    from difflib import get_close_matches

    by_small = {one.lower(): one for one in known}
    # A word is compared behind its dashes: they are alike in all options.
    bare = {name.lstrip("-"): one for name, one in by_small.items()}
    found = get_close_matches(word.lower().lstrip("-"), bare, n=_MOST, cutoff=_CLOSE)
    return [bare[one] for one in found]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean X?` with a blank behind it, or nothing where no known word is near."""
    found = near(word, known)
    return f"did you mean {' or '.join(found)}? " if found else ""


def unknown(word: str, known: Iterable[str]) -> str:
    """What is said of a word that is none of those known: `did you mean X? Allowed are ...`."""
    words = list(known)
    asked = did_you_mean(word, words)
    return f"{asked}{'Allowed' if asked else 'allowed'} are {', '.join(words)}"
