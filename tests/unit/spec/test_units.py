"""Units: what is read, what is refused, and that texts and numbers go both ways."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.spec import units


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("1500", 1500),
        ("64K", 65536),
        ("64k", 65536),
        ("1.5M", 1_572_864),
        ("1 GiB", 1 << 30),
        ("10MB", 10_000_000),
        ("10B", 10),
        ("1e3", 1000),
        (".5K", 512),
        ("2PB", 2 * 10**15),
        ("1 PiB", 1 << 50),
        ("1.5E", 3 << 59),
    ],
)
def test_sizes_are_binary_unless_they_say_otherwise(text: str, size_bytes: int) -> None:
    assert units.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "rate_bps"),
    [
        ("0", 0),
        ("10G", 10_000_000_000),
        ("10Gbit", 10_000_000_000),
        ("10Gbit/s", 10_000_000_000),
        ("10Gbps", 10_000_000_000),
        ("1.5m", 1_500_000),
        ("1GB/s", 8_000_000_000),
        ("1GiB/s", 8 << 30),
        ("1Gibit/s", 1 << 30),
    ],
)
def test_rates_are_decimal_bits_unless_they_say_otherwise(text: str, rate_bps: int) -> None:
    assert units.parse_rate(text) == rate_bps


@pytest.mark.parametrize(
    ("text", "duration_s"),
    [
        ("0", 0.0),
        ("10s", 10.0),
        ("100ms", 0.1),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("250us", 0.00025),
        ("1.5 s", 1.5),
    ],
)
def test_durations_have_their_unit(text: str, duration_s: float) -> None:
    assert units.parse_duration(text) == duration_s


def test_milliseconds_are_whole() -> None:
    assert units.parse_milliseconds("250ms") == 250
    assert units.parse_milliseconds("1.5s") == 1500
    with pytest.raises(ValueError, match="whole number of milliseconds"):
        units.parse_milliseconds("1.5ms")


@pytest.mark.parametrize("text", ["100", "1.5", ".5", "1e2", " 7 "])
@pytest.mark.parametrize(
    ("parse", "one", "other"),
    [
        (units.parse_duration, "ms", "s"),
        (units.parse_milliseconds, "ms", "s"),
        (units.parse_rtt_ms, "ms", "s"),
        (units.parse_rate, "bit/s", "Mbit/s"),
    ],
)
def test_a_bare_time_or_rate_is_refused_with_its_two_readings(
    parse: Callable[[str], float], one: str, other: str, text: str
) -> None:
    number = text.strip()
    with pytest.raises(ValueError, match="has no unit") as refusal:
        parse(text)
    assert f"{number} could be {number}{one} or {number}{other}; write the unit" in str(
        refusal.value
    )
    assert parse("0") == parse("0.0") == 0


def test_a_bare_number_behind_a_peers_letter_is_what_it_is_there() -> None:
    assert units.parse_duration("10", bare="s") == 10.0
    assert units.parse_duration("10ms", bare="s") == 0.01
    assert units.parse_rate("1000", bare="bit/s") == 1000
    assert units.parse_rate("1k", bare="bit/s") == 1000
    assert units.parse_bwlimit("1000") == 8 * 1024 * 1000


@pytest.mark.parametrize("text", ["", "ten", "-1", "1KX", "1.2.3", "nan", "inf", "1e999", "0x10"])
@pytest.mark.parametrize("parse", [units.parse_size, units.parse_rate, units.parse_duration])
def test_what_is_no_quantity_is_refused_in_one_line(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(ValueError, match="is not a") as refusal:
        parse(text)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("text", ["10GB", "1GB"])
def test_bytes_are_no_rate_without_a_time(text: str) -> None:
    with pytest.raises(ValueError, match="is not a rate"):
        units.parse_rate(text)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("40000", 40_000), ("40,000", 40_000), ("40k", 40_000), ("40k files", 40_000),
        ("1.5M", 1_500_000), ("1e6", 10**6), ("2G", 2 * 10**9), ("1 file", 1),
    ],
)  # fmt: skip
def test_numbers_of_files_are_decimal(text: str, files: int) -> None:
    assert units.parse_file_count(text) == files


@pytest.mark.parametrize("text", ["", "0", "2.5", "many", "-1", "nan", "1e13", "40KiB", "k"])
def test_what_is_no_number_of_files_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number of files"):
        units.parse_file_count(text)


def test_sizes_for_people_go_up_to_what_projects_move() -> None:
    assert units.size_human(12 << 40) == "12.0 TiB"
    assert units.size_human(2 << 50) == "2.00 PiB"
    assert units.size_human((1 << 63) - 1) == "8.00 EiB"


def test_fractions_of_a_byte_or_bit_are_refused() -> None:
    with pytest.raises(ValueError, match="whole number of bytes"):
        units.parse_size("1.3K")
    with pytest.raises(ValueError, match="whole number of bits"):
        units.parse_rate("1.5bit/s")


@given(st.integers(0, 1 << 60))
def test_size_texts_read_back(size_bytes: int) -> None:
    assert units.parse_size(units.size_text(size_bytes)) == size_bytes


@given(st.integers(0, 10**13))
def test_rate_texts_read_back(rate_bps: int) -> None:
    assert units.parse_rate(units.rate_text(rate_bps)) == rate_bps


@given(st.floats(0.00001, 604_800.0))
def test_duration_texts_read_back(duration_s: float) -> None:
    assert units.parse_duration(units.duration_text(duration_s)) == duration_s


@given(st.floats(1, 1e13))
def test_human_rates_keep_three_digits(rate_bps: float) -> None:
    text = units.rate_human(rate_bps).replace(" ", "")
    value, unit = text.rstrip("abcdefghijklmnopqrstuvwxyzGMT/"), text.lstrip("0123456789.")
    scale = {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}[unit]
    assert float(value) * scale == pytest.approx(rate_bps, rel=0.006)


def test_lists_and_ranges() -> None:
    assert units.parse_sweep("1,2,4", units.parse_integer) == [1, 2, 4]
    assert units.parse_sweep("1..16*2", units.parse_integer) == [1, 2, 4, 8, 16]
    assert units.parse_sweep("1..10*2", units.parse_integer) == [1, 2, 4, 8]
    assert units.parse_sweep("10..40+10,5", units.parse_integer) == [10, 20, 30, 40, 5]
    assert units.parse_sweep("64K..1M*4", units.parse_size) == [65536, 262144, 1048576]
    assert units.parse_sweep("0.1s..0.3s+100ms", units.parse_duration) == [0.1, 0.2, 0.3]
    assert units.parse_sweep("1G..4G*2", units.parse_rate) == [10**9, 2 * 10**9, 4 * 10**9]
    assert units.parse_sweep("1,1,2", units.parse_integer) == [1, 2]


@pytest.mark.parametrize(
    "text", ["1..4", "4..1+1", "1..4*1", "0..4*2", "1..4+0", "1..4*x", "1..", "..4+1", "1..1e9+1"]
)
def test_ranges_without_an_end_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|increase|more than|not a") as refusal:
        units.parse_sweep(text, units.parse_integer)
    assert "\n" not in str(refusal.value)


@given(st.integers(1, 1000), st.integers(2, 10), st.integers(0, 6))
def test_geometric_ranges_are_powers(first: int, factor: int, count: int) -> None:
    values = units.parse_sweep(f"{first}..{first * factor**count}*{factor}", units.parse_integer)
    assert values == [first * factor**power for power in range(count + 1)]
