"""Names and numbers as people read them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.plots.labels import (
    digits,
    parameter_label,
    percent,
    plural,
    rate_range_text,
    rate_unit,
    setting_text,
    settings_text,
    size_text,
    time_unit,
)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("block_bytes", 131_072, "128 KiB"),
        ("block_bytes", 8956, "8956 B"),
        ("rate_bps", 10_000_000_000, "10 Gbit/s"),
        ("rate_bps", 0, "no limit"),
        ("duration_s", 2.5, "2.5 s"),
        ("tcp.congestion_control", "bbr", "bbr"),
        ("tcp.congestion_control", None, "auto"),
        ("tcp.no_delay", True, "on"),
        ("tcp.user_timeout_ms", 5000, "5000 ms"),
        ("streams", 16, "16"),
        ("client_cpus", (0, 2), "0, 2"),
    ],
)
def test_a_setting_is_written_with_its_unit(name: str, value: Any, text: str) -> None:
    assert setting_text(name, value) == text


def test_a_whole_setting_reads_as_a_line() -> None:
    settings = {"streams": 1, "block_bytes": 65_536, "tcp.congestion_control": "bbr"}
    assert settings_text(settings) == "1 stream, block size 64 KiB, bbr"
    assert settings_text({"tcp.mss_bytes": 1400}) == "MSS 1400 B"


def test_labels_come_from_names() -> None:
    assert parameter_label("tcp.congestion_control") == "Congestion control"
    assert parameter_label("tcp.send_buffer_bytes") == "TCP send buffer"
    assert parameter_label("udp.packet_bytes") == "Packet size"


def test_units_follow_the_largest_figure() -> None:
    assert rate_unit([9.1e9, 2e6]) == (1e9, "Gbit/s")
    assert rate_unit([]) == (1.0, "bit/s")
    assert time_unit([1500.0]) == (1e3, "ms")
    assert rate_range_text(9.5e9, 1.05e10) == "9.50 to 10.5 Gbit/s"


def test_small_words() -> None:
    assert plural(1, "run") == "1 run" and plural(3, "run") == "3 runs"
    assert percent(0.95) == "95\N{NARROW NO-BREAK SPACE}%"
    assert digits(0) == "0" and digits(0.0123) == "0.0123" and digits(33.49) == "33.5"


@given(st.integers(1, 2**50))
def test_sizes_are_exact_or_say_three_digits(size_bytes: int) -> None:
    number, unit = size_text(size_bytes).split(" ")
    binary = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
    factor = {"B": 1, **binary, "MB": 10**6, "GB": 10**9}[unit]
    number = number.replace("\N{NARROW NO-BREAK SPACE}", "")
    assert float(number) * factor == pytest.approx(size_bytes, rel=0.006)
