"""Writes highspeed_table.h: a(w) and b(w) of RFC 3649 at the windows of its appendix B.

Between (Low_Window, Low_P) and (High_Window, High_P) the response function is a line on logarithmic
scales, w = 0.12 / p^0.835. From it follow (section 5), for a window of w packets,

    b(w) = (High_Decrease - 0.5) (ln w - ln Low_Window) / (ln High_Window - ln Low_Window) + 0.5
    p(w) = 0.078 / w^1.2
    a(w) = w^2 p(w) 2 b(w) / (2 - b(w))

The table has a row wherever a(w) has grown by more than one packet since the row before, as the
RFC's has, up to the window at which that ends; larger windows keep the last row. The RFC's rows
hold whole packets, a third less than the formula just before 118; these hold the formula's own
value, and the program takes what lies between two rows from both.
"""

from __future__ import annotations

import math
from pathlib import Path

LOW_WINDOW = 38
HIGH_WINDOW = 83_000
HIGH_DECREASE = 0.1
TABLE_END = 100_000
FIXED_POINT = 1 << 16
LENGTH = 128
"""Of the array: a power of two, so that an index is kept within it by a mask."""


def decrease(window: float) -> float:
    """b(w): the part of its window that a flow gives up at a congestion event."""
    share = math.log(window / LOW_WINDOW) / math.log(HIGH_WINDOW / LOW_WINDOW)
    return (HIGH_DECREASE - 0.5) * share + 0.5


def increase(window: float) -> float:
    """a(w): packets by which the window grows per round trip."""
    loss = 1 / (12.8 * window**1.2)
    b = decrease(window)
    return window**2 * loss * 2 * b / (2 - b)


def rows() -> list[tuple[int, float, float]]:
    """Window, a, b."""
    table = [(LOW_WINDOW, 1.0, 0.5)]
    for window in range(LOW_WINDOW, TABLE_END):
        if increase(window) > table[-1][1] + 1:
            table.append((window, increase(window), decrease(window)))
    return table


def header() -> str:
    """Text of highspeed_table.h."""
    table = rows()
    lines = [
        "/* SPDX-License-Identifier: GPL-2.0-or-later */",
        "/* Written by highspeed_table.py, which says where the figures come from. */",
        "#pragma once",
        "",
        f"#define HIGHSPEED_ROWS {len(table)}",
        f"#define HIGHSPEED_LENGTH {LENGTH}",
        "",
        "/* At a window: increase in packets per round trip and decrease, both times 65536. */",
        "struct row {",
        "\t__u32 window, increase_q16, decrease_q16;",
        "};",
        "static const struct row highspeed_table[HIGHSPEED_LENGTH] = {",
    ]
    for window, a, b in table:
        values = (window, round(a * FIXED_POINT), round(b * FIXED_POINT))
        lines.append("\t{ " + ", ".join(map(str, values)) + " },")
    return "\n".join([*lines, "};", ""])


if __name__ == "__main__":
    Path(__file__).with_name("highspeed_table.h").write_text(header(), encoding="utf-8")
