"""Suggestions for a word that was mistyped."""

from __future__ import annotations

from collections.abc import Iterable

_CLOSE = 0.6
"""Least likeness of a suggestion, as difflib counts it: 1 is the same word."""
_AS_GOOD = 0.05
"""Two suggestions are made only where they are about as like."""
_CLOSE_FROM_OTHER_LETTER = 0.85
"""The same where the first letters differ: few mistype that one."""
_MOST = 2
_LISTED = 16
"""Most words that are listed beside a suggestion."""


def near(word: str, known: Iterable[str]) -> list[str]:
    """The known words that `word` may stand for, the likeliest first; none is often the answer."""
    from difflib import SequenceMatcher

    by_small = {one.lower(): one for one in known}
    # A word is compared behind its dashes: they are alike in all options.
    bare = {name.lstrip("-"): one for name, one in by_small.items()}
    matcher = SequenceMatcher()
    asked = word.lower().lstrip("-")
    matcher.set_seq2(asked)
    likeness = {}
    for name in bare:
        matcher.set_seq1(name)
        likeness[name] = matcher.ratio()
    best = max(likeness.values(), default=0.0)
    least = max(_CLOSE, best - _AS_GOOD)
    found = sorted(likeness, key=lambda name: -likeness[name])[:_MOST]
    close = [name for name in found if likeness[name] >= least]
    return [
        bare[name]
        for name in close
        if name[:1] == asked[:1] or likeness[name] >= _CLOSE_FROM_OTHER_LETTER
    ]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean X?`, or nothing where no known word is near, or only the word itself."""
    found = [one for one in near(word, known) if one != word]
    return f"did you mean {' or '.join(found)}?" if found else ""


def unknown(word: str, known: Iterable[str]) -> str:
    """What is said of a word that is none of those known: `allowed: ...; did you mean X?`.

    A long list stands there only where no known word is near.
    """
    words = list(known)
    asked = did_you_mean(word, words)
    if asked and len(words) > _LISTED:
        return asked
    allowed = f"allowed: {', '.join(words)}"
    return f"{allowed}; {asked}" if asked else allowed
