"""How many examples Hypothesis draws: few by day, many at night."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hypothesis import HealthCheck, settings

FACTOR = 20 if os.environ.get("FARLINE_LONG") == "1" else 1
"""So many times as many examples with FARLINE_LONG=1."""

SAME_FOLDER = (HealthCheck.function_scoped_fixture,)
"""Of a test whose examples share what a fixture made."""


def draws(count: int, allowed: Sequence[HealthCheck] = ()) -> settings:
    """So many examples; `allowed` are health checks that do not hold for this test."""
    return settings(
        max_examples=count * FACTOR,
        suppress_health_check=[*settings().suppress_health_check, *allowed],
    )
