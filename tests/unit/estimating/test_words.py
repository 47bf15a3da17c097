"""Spans of time for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.estimating.words import span_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "less than 1 ms"),
        (0.0421, "42 ms"),
        (3.42, "3.4 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (75, "1 min 15 s"),
        (599, "9 min 59 s"),
        (601, "10 min"),
        (6720, "1 h 52 min"),
        (3599, "1 h"),
        (12 * 3600 + 61, "12 h"),
        (20 * 3600 + 1600, "20 h 30 min"),
        (50 * 3600, "2 days 2 h"),
        (47.9 * 3600, "47 h 50 min"),
        (700 * 86_400, "700 days"),
        (5e8, "16 years"),
        (1e11, "3,169 years"),
    ],
)
def test_a_span_has_two_units_at_most(seconds: float, words: str) -> None:
    assert span_words(seconds) == words


@given(st.floats(1e-6, 1e14), st.floats(1.0, 3.0))
def test_a_longer_span_is_never_shown_as_shorter(seconds: float, factor: float) -> None:
    assert _seconds(span_words(seconds)) <= _seconds(span_words(seconds * factor)) * 1.0001


def _seconds(words: str) -> float:
    if words == "less than 1 ms":
        return 0.0
    unit = {"ms": 1e-3, "s": 1, "min": 60, "h": 3600, "day": 86400, "days": 86400,
            "years": 365.25 * 86400}  # fmt: skip
    parts = words.replace(",", "").split()
    return sum(
        float(count) * unit[name] for count, name in zip(parts[::2], parts[1::2], strict=True)
    )
