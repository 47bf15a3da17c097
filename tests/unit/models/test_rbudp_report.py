"""Sizes of reports against reports that are really encoded, and slow start's rounds."""

from __future__ import annotations

import numpy as np
import pytest

from farline.models.rbudp_corrected import (
    HEADER_BYTES,
    bitmap_bytes,
    report_bytes,
    runs_bytes,
    tcp_rounds,
)

Places = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def leb128_bytes(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def encoded_bitmap_bytes(missing: Places) -> int:
    """The form, the first number at a whole byte, a bit for each packet from there to the last."""
    base = int(missing[0]) // 8 * 8
    return 1 + leb128_bytes(base) + -(-(int(missing[-1]) + 1 - base) // 8)


def encoded_runs_bytes(missing: Places) -> int:
    """The form; for each run the gap before it, less 1 but for the first, and its length less 1."""
    breaks = np.flatnonzero(np.diff(missing) > 1)
    firsts = missing[np.append(0, breaks + 1)]
    lasts = missing[np.append(breaks, len(missing) - 1)]
    after = np.append(0, lasts[:-1] + 2)
    return 1 + sum(
        leb128_bytes(int(first - since)) + leb128_bytes(int(last - first))
        for first, last, since in zip(firsts, lasts, after, strict=True)
    )


def drawn_sizes(packets: int, share: float) -> tuple[float, float, float]:
    """Mean sizes of bitmap, runs and the smaller of both, of losses that were drawn."""
    chance = np.random.default_rng(12)
    count = max(8, int(4000 / (packets * share)))
    draws = [np.flatnonzero(chance.random(packets) < share) for _ in range(count)]
    both = [(encoded_bitmap_bytes(m), encoded_runs_bytes(m)) for m in draws if len(m)]
    bitmaps, runs = np.array(both).T
    return float(bitmaps.mean()), float(runs.mean()), float(np.minimum(bitmaps, runs).mean())


@pytest.mark.parametrize("packets", [20_000, 200_000])
@pytest.mark.parametrize("share", [0.002, 0.01, 0.03, 0.07, 0.12, 0.33, 0.6, 0.9, 0.97])
def test_sizes_are_those_of_real_reports(packets: int, share: float) -> None:
    missing = np.array([share])
    bitmap, runs, smaller = drawn_sizes(packets, share)
    assert bitmap_bytes(packets, missing)[0] == pytest.approx(bitmap, rel=0.03)
    assert runs_bytes(packets, missing)[0] == pytest.approx(runs, rel=0.04)
    assert report_bytes(packets, missing)[0] == pytest.approx(HEADER_BYTES + smaller, rel=0.04)


def test_runs_are_shorter_up_to_some_7_percent_and_bitmaps_from_there_on() -> None:
    shares = np.array([0.01, 0.05, 0.1, 0.33])
    runs, bitmap = runs_bytes(400_000, shares), bitmap_bytes(400_000, shares)
    assert (runs < bitmap).tolist() == [True, True, False, False]
    assert (report_bytes(400_000, shares) == HEADER_BYTES + np.minimum(runs, bitmap)).all()


def test_a_report_of_nothing_or_of_one_packet_is_small() -> None:
    assert (report_bytes(1_000_000, np.array([0.0, 1e-6])) <= HEADER_BYTES + 6).all()


@pytest.mark.parametrize(
    ("size", "window", "rounds"),
    [
        (50_000, 10, 3), (50_000, 2, 5), (1, 10, 1), (14_480, 10, 1), (14_481, 10, 2),
        (43_440, 10, 2), (43_441, 10, 3), (0, 10, 1), (10**9, 10, 17),
    ],
)  # fmt: skip
def test_slow_start_sends_a_window_then_twice_as_much(size: int, window: int, rounds: int) -> None:
    assert tcp_rounds(np.array([size]), window)[0] == rounds


def test_the_smallest_number_of_rounds_that_sends_everything() -> None:
    sizes = np.arange(1, 400_000, 701)
    segments = -(-sizes // 1448)
    rounds = tcp_rounds(sizes.astype(np.float64), 10)
    assert (10 * (2**rounds - 1) >= segments).all()
    assert (10 * (2 ** (rounds - 1) - 1) < segments).all()
