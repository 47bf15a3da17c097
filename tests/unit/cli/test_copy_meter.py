"""How fast a copy is, how far, how long it will take; and the lines that say so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.cli.copy.bar import bar_row
from farline.cli.copy.end import clock_text
from farline.cli.copy.progress_text import details, progress_line
from farline.copying.meter import Meter
from farline.spec.units import size_human
from tests.support.copies import progress

MIB = 1 << 20


def fed(*reports: Any) -> Meter:
    meter = Meter()
    for report in reports:
        meter.add(report.report)
    return meter


def steady(seconds: int, total: int = 100 * MIB, all_found: bool = True) -> Meter:
    """A copy at 1 MiB/s of files of 1 MiB, a report each tenth of a second."""
    return fed(
        *(
            progress(
                tenth / 10,
                found_files=100,
                found_bytes=total,
                all_found=all_found,
                settled_files=tenth // 10,
                settled_bytes=tenth * MIB // 10,
                moved_bytes=tenth * MIB // 10,
            )
            for tenth in range(1, 10 * seconds + 1)
        )
    )


def test_rates_and_time_left_of_a_steady_copy() -> None:
    meter = steady(20)
    assert meter.rate_now_bps() == pytest.approx(8 * MIB, rel=0.01)
    assert meter.rate_mean_bps() == pytest.approx(8 * MIB, rel=0.01)
    assert meter.share() == pytest.approx(0.2)
    assert meter.left_s() == pytest.approx(80, rel=0.02)


def test_no_percent_and_no_time_left_before_all_is_found() -> None:
    meter = steady(20, all_found=False)
    assert meter.share() is None and meter.left_s() is None
    line = progress_line(meter)
    assert "%" not in line and "left" not in line and "100 MiB+" in line


def test_the_rate_of_now_forgets_what_was() -> None:
    slow = [progress(n / 10, moved_bytes=n * 1000) for n in range(1, 100)]
    fast = [progress(9.9 + n / 10, moved_bytes=99_000 + n * MIB) for n in range(1, 31)]
    meter = fed(*slow, *fast)
    assert meter.rate_now_bps() == pytest.approx(80 * MIB, rel=0.05)
    assert meter.rate_mean_bps() < meter.rate_now_bps() / 2


def test_what_earlier_sessions_moved_counts_on() -> None:
    meter = fed(progress(10.0, moved_bytes=10 * MIB))
    meter.begin(paused_s=5.0)
    meter.add(progress(5.0, moved_bytes=10 * MIB).report)
    assert (meter.elapsed_s, meter.moved_bytes) == (20.0, 20 * MIB)
    assert meter.rate_mean_bps() == pytest.approx(8 * MIB)


def test_a_tree_without_bytes_has_its_share_by_names() -> None:
    meter = fed(progress(1.0, all_found=True, found_files=4, settled_files=2, failed_files=1))
    assert meter.share() == pytest.approx(0.75)
    assert fed(progress(1.0, all_found=True)).share() == 1.0


@given(
    st.integers(0, 10**9), st.integers(0, 10**15), st.integers(0, 10**15), st.booleans(),
    st.integers(0, 10**7), st.floats(0.001, 10**6),
)  # fmt: skip
def test_a_line_fits_80_columns_whatever_the_figures(
    files: int, settled: int, found: int, all_found: bool, failed: int, elapsed_s: float
) -> None:
    meter = fed(
        progress(
            elapsed_s,
            found_files=files,
            found_bytes=found,
            all_found=all_found,
            settled_files=files // 2,
            settled_bytes=settled,
            failed_files=failed,
            moved_bytes=settled,
        )
    )
    for line in (progress_line(meter), details(meter, 80)):
        assert "\n" not in line and len(line) <= 80
    assert size_human(settled) in details(meter, 40)


def test_the_bar_says_all_of_it() -> None:
    from rich.console import Console

    console = Console(width=80, record=True, file=None, force_terminal=False)
    meter = steady(20)
    with console.capture() as shown:
        console.print(bar_row(meter))
        console.print(details(meter, 80))
    text = shown.get()
    assert "20.0 %" in text and "1:20 left" in text
    assert "20.0 MiB of 100 MiB" in text and "20/100 files" in text and "1 stream busy" in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (65, "1:05"), (3599.6, "1:00:00"), (3723, "1:02:03")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


def test_what_needed_no_sending_says_nothing_of_the_rest() -> None:
    spared = {"found_files": 2, "found_bytes": 1000 * MIB, "all_found": True}
    again = [progress(0.1, **spared, settled_bytes=500 * MIB, spared_bytes=500 * MIB)]
    again += [
        progress(
            seconds, **spared, spared_bytes=500 * MIB, moved_bytes=seconds * MIB,
            settled_bytes=(500 + seconds) * MIB,
        )
        for seconds in range(1, 11)
    ]  # fmt: skip
    assert fed(*again).left_s() == pytest.approx(490, rel=0.05)


def test_a_small_file_that_was_quick_does_not_make_a_large_one_so() -> None:
    facts = {"found_files": 2, "found_bytes": 1000 * MIB, "all_found": True}
    meter = fed(
        progress(0.1, **facts, settled_files=1),
        progress(10.0, **facts, settled_files=1, moved_bytes=10 * MIB),
    )
    assert meter.left_s() == pytest.approx(1000)
    assert fed(progress(0.1, **facts, settled_files=1)).left_s() is None
