"""Real time over a hostile link: a few seconds of it.

`test_long` has ten minutes; `hostile.py` is also a program.
"""

from __future__ import annotations

import pytest

from farline.testbeds import needs
from farline.testbeds.fixture import SKIP_REASON
from tests.interop.conftest import Programs
from tests.interop.hostile import (
    FILLING_KB,
    ROOM_KB,
    first_sequence,
    hostile_link,
    report,
    run,
)

pytestmark = pytest.mark.skipif(needs.missing() is not None, reason=SKIP_REASON)


def check(
    programs: Programs,
    sender: str,
    receiver: str,
    seconds: float,
    period_s: float,
    room_kb: int = ROOM_KB,
) -> None:
    """Every byte arrived, neither end grew, and the link was as bad as it was meant to be."""
    outcome = run(
        hostile_link(period_s=period_s),
        programs[sender],
        programs[receiver],
        seconds,
        *first_sequence(sender),
    )
    assert outcome.is_whole, report(outcome)
    assert outcome.is_level(room_kb), report(outcome)
    assert min(outcome.hurts.values()) > 0, report(outcome)


def test_every_byte_arrives_over_a_hostile_link(programs: Programs) -> None:
    check(programs, "farline", "farline", seconds=6, period_s=2.5, room_kb=FILLING_KB)
