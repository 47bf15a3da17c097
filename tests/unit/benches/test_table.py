"""The page's table: between its marks, from whole measurements alone."""

from __future__ import annotations

from typing import Any

import pytest

from _emulator.table import BEGIN, END, line, placed, table_of

ROW: dict[str, Any] = {
    "case": "shared idle 10 ms",
    "group": "rtt",
    "note": "mean RTT",
    "ours": 10.05,
    "peer": 10.0,
    "unit": "ms",
    "allowed": "± 0.25",
    "ratio": 5.0,
    "measured": [10.02, 10.05, 10.07],
    "reached": True,
    "valid": True,
    "short": False,
    "complete": True,
    "measured_at": "2026-11-22T02:00:00Z",
}
HOST = {"cpu": {"online": 2, "model": "A CPU"}, "memory_bytes": 25 * 2**30, "kernel": "6.18.44-x"}


def document(*rows: dict[str, Any], groups: tuple[str, ...] = ("rtt",)) -> dict[str, Any]:
    """Results of a bench."""
    return {
        "name": "emulator-accuracy",
        "host": HOST,
        "groups": list(groups),
        "rows": list(rows),
    }


def test_a_row_has_the_median_and_the_range() -> None:
    expected = (
        "| shared idle 10 ms; mean RTT | 10 | 10.05 (10.02 to 10.07) | ms | ± 0.25 | 5.00 | yes |"
    )
    assert line(ROW) == expected


def test_a_row_that_fell_short_says_no_and_an_invalid_one_why() -> None:
    assert line({**ROW, "reached": False}).endswith("| **no** |")
    assert line({**ROW, "reached": False, "valid": False}).endswith("| **no: not valid** |")


def test_groups_stand_in_the_bench_s_order_whatever_ran_last() -> None:
    rows = ({**ROW, "group": "rate"}, ROW)
    text = table_of([document(*rows, groups=("rtt", "rate"))])
    assert text.index("#### rtt") < text.index("#### rate")
    assert "2 rows, 0 short" in text


@pytest.mark.parametrize("flaw", [{"short": True}, {"complete": False}])
def test_what_is_not_whole_is_refused(flaw: dict[str, bool]) -> None:
    with pytest.raises(ValueError, match="rtt"):
        table_of([document({**ROW, **flaw})])


def test_a_group_that_was_never_run_is_refused() -> None:
    with pytest.raises(ValueError, match="loss"):
        table_of([document(ROW, groups=("rtt", "loss"))])


def test_only_what_is_between_the_marks_changes() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = placed(page, "new")
    assert once == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert placed(once, "new") == once


@pytest.mark.parametrize("page", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{END}{END}"])
def test_a_page_without_both_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        placed(page, "new")
