"""Rates from timestamps: exact for an exact sender, and over whole windows only."""

from __future__ import annotations

import numpy as np
import pytest

from _emulator.delivery import rates_bps, sampled_rates_bps, wire_bytes


def test_every_datagram_carries_its_headers_and_framing() -> None:
    found = wire_bytes(np.array([44 * 1472, 100]), np.array([44, 1]))
    assert found.tolist() == [44 * 1538, 166]


def test_an_exact_sender_has_its_exact_rate_in_every_window() -> None:
    at_ns = np.arange(0, 3_500_000_000, 500_000, dtype=np.int64)
    sizes = np.full(len(at_ns), 62_500, np.int64)
    found = rates_bps(at_ns, sizes, 0.4, 3.45)
    assert found == pytest.approx([1e9, 1e9, 1e9])


def test_bunched_arrivals_do_not_count_twice() -> None:
    at_ns = np.repeat(np.arange(0, 2_100_000_000, 1_000_000, dtype=np.int64), 2)
    sizes = np.full(len(at_ns), 1000, np.int64)
    assert rates_bps(at_ns, sizes, 0.1, 2.0)[0] == pytest.approx(16e6, rel=1e-3)


def test_a_window_beyond_the_end_is_left_out() -> None:
    at_ns = np.arange(0, 1_400_000_000, 1_000_000, dtype=np.int64)
    assert rates_bps(at_ns, np.ones(len(at_ns), np.int64), 0.5, 1.4) == []


def test_a_rate_off_by_one_in_a_thousand_is_seen() -> None:
    at_ns = np.arange(0, 2_600_000_000, 1_000_000, dtype=np.int64)
    sizes = np.full(len(at_ns), 125_125, np.int64)
    found = rates_bps(at_ns, sizes, 0.5, 2.6)
    assert found == pytest.approx([1.001e9, 1.001e9], rel=1e-6)


def test_samples_before_the_first_byte_do_not_count() -> None:
    end_us = np.arange(100_000, 3_100_000, 100_000, dtype=np.int64)
    out = np.where(end_us > 500_000, 12_500_000, 0)
    found = sampled_rates_bps(end_us, out, 0.3, 2.4)
    assert found == pytest.approx([1e9, 1e9])
    assert sampled_rates_bps(end_us, np.zeros(len(end_us), np.int64), 0.3, 2.4) == []
