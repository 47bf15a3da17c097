"""Texts with units into numbers, and numbers back into texts.

Sizes follow iperf3: bare K, M, G, T are powers of 1024. Rates are decimal bits
per second unless the text says bytes or binary. A time or a rate needs its unit:
one tool's bare 100 is seconds and the next one's milliseconds, so it is refused,
0 aside, except behind the letters of a peer whose users know what it means.
Numbers are read exactly (no binary fractions on the way), and what is not a whole
number of bytes or bits is refused, not rounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

Value = int | float | str | bool
"""What one option holds, lists aside."""

SWEEP_MAX_VALUES = 10_000
"""Values one sweep may name: more is a slip of the keyboard, not a plan."""

MOST_FILES = 10**12
"""Files of one copy: more is a slip of the keyboard, too."""

_NUMBER = r"(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<exponent>[eE][+-]?\d{1,2})?"
_SIZE = re.compile(rf"{_NUMBER}\s*(?P<prefix>[kKmMgGtTpPE]?)(?P<unit>iB|B|)")
_RATE = re.compile(
    rf"{_NUMBER}\s*(?P<prefix>[kKmMgGtT]?)(?P<binary>i?)(?P<unit>bits?|b|B|)(?P<per>/s|ps|)"
)
_FILES = re.compile(rf"{_NUMBER}\s*(?P<prefix>[kKmMgG]?)\s*(?:files?)?")
_TIME = re.compile(rf"{_NUMBER}\s*(?P<unit>us|ms|s|m|min|h|d|)")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_SIZE_UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_RATE_UNITS = (("Tbit/s", 10**12), ("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3))


def _number(match: re.Match[str]) -> Decimal:
    return Decimal(match["number"] + (match["exponent"] or ""))


def _whole(value: Decimal, text: str, unit: str) -> int:
    if value != value.to_integral_value():
        raise ValueError(f"{text!r} is not a whole number of {unit}")
    return int(value)


def parse_size(text: str) -> int:
    """Bytes from a text such as `64K`, `1.5MiB`, `10MB` or `2PB`.

    Bare K, M, G, T, P, E and KiB, MiB, ... are powers of 1024; KB, MB, ... of 1000.

    Raises:
        ValueError: when the text is no size or no whole number of bytes.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size: write bytes, or 64K, 1.5MiB, 10MB")
    base = 1000 if match["unit"] == "B" else 1024
    return _whole(_number(match) * base ** _POWERS[match["prefix"].lower()], text, "bytes")


def parse_rate(text: str, bare: str | None = None) -> int:
    """Bits per second from a text such as `10G`, `1.5Gbit/s` or `1GiB/s`.

    Decimal bits unless the text says `B/s` (bytes) or `i` (powers of 1024). `bare` is the unit
    of a number without one, where an option has it from a peer.

    Raises:
        ValueError: when the text is no rate, has no unit, or is no whole number of bits per second.
    """
    match = _RATE.fullmatch(text.strip())
    if match is None or (match["unit"] == "B" and match["per"] != "/s"):
        raise ValueError(
            f"{text!r} is not a rate: write it with its unit, such as 10G, 1.5Gbit/s, 1GiB/s"
        )
    if _lacks_unit(match, "prefix", "unit", "per"):
        if bare is None:
            raise ValueError(_two_readings(text, "bit/s", "Mbit/s"))
        return parse_rate(f"{text.strip()}{bare}")
    base = 1024 if match["binary"] else 1000
    bits = 8 if match["unit"] == "B" else 1
    scale = bits * base ** _POWERS[match["prefix"].lower()]
    return _whole(_number(match) * scale, text, "bits per second")


_BWLIMIT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kKmMgGtT]?)(i?B|)")


def parse_bwlimit(text: str) -> int:
    """Bits per second from a rate as rsync's `--bwlimit` has it; 0 is without limit.

    A bare number is KiB/s; `500K`, `1.5M`, `2G` and `2GiB` are bytes per second in powers of
    1024, `10MB` in powers of 1000. A unit per second (`100Mbit/s`, `1GiB/s`) is what it says.

    Raises:
        ValueError: when the text is no rate or no whole number of bits per second.
    """
    match = _BWLIMIT.fullmatch(text.strip())
    if match is None:
        return parse_rate(text)
    number, prefix, unit = match.groups()
    base = 1000 if unit == "B" and prefix else 1024
    power = _POWERS[prefix.lower()] if prefix or unit else 1
    return _whole(Decimal(number) * 8 * base**power, text, "bits per second")


def parse_duration(text: str, bare: str | None = None) -> float:
    """Seconds from a text such as `10s`, `100ms`, `2m` or `1h`; 0 needs no unit.

    `bare` is the unit of a number without one, where an option has it from a peer.

    Raises:
        ValueError: when the text is no duration or has no unit.
    """
    return float(_microseconds(text, bare) / 1_000_000)


def parse_modify_window(text: str) -> float:
    """Seconds of rsync's `--modify-window`: a bare number is seconds there; -1 is no window.

    Raises:
        ValueError: when the text is no duration.
    """
    return 0.0 if text.strip() == "-1" else parse_duration(text, bare="s")


def parse_rtt_ms(text: str) -> float:
    """Milliseconds from a text such as `11.8ms` or `0.2s`.

    Raises:
        ValueError: when the text is no duration or has no unit.
    """
    return float(_microseconds(text, None) / 1000)


def _microseconds(text: str, bare: str | None) -> Decimal:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"{text!r} is not a duration: write it with its unit, such as 100ms, 10s, 2m, 1h"
        )
    if bare is None and _lacks_unit(match, "unit"):
        raise ValueError(_two_readings(text, "ms", "s"))
    return _number(match) * _MICROSECONDS[match["unit"] or bare or "s"]


def _lacks_unit(match: re.Match[str], *groups: str) -> bool:
    """Whether a number stands alone that needs a unit; 0 is the same in all."""
    return not any(match[group] for group in groups) and _number(match) != 0


def _two_readings(text: str, one: str, other: str) -> str:
    number = text.strip()
    could = f"{number} could be {number}{one} or {number}{other}"
    return f"{text!r} has no unit: {could}; write the unit"


def parse_milliseconds(text: str) -> int:
    """Whole milliseconds from a text such as `500ms` or `3s`.

    Raises:
        ValueError: when the text is no duration, has no unit or is no whole number of milliseconds.
    """
    return _whole(_microseconds(text, None) / 1000, text, "milliseconds")


def parse_integer(text: str) -> int:
    """A whole number, decimal or `0x` hexadecimal.

    Raises:
        ValueError: when the text is none.
    """
    try:
        return int(text.strip(), 16 if text.strip().lower().startswith("0x") else 10)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def parse_number(text: str) -> float:
    """A finite decimal number.

    Raises:
        ValueError: when the text is none.
    """
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a number") from None
    if not value.is_finite():
        raise ValueError(f"{text!r} is not a number")
    return float(value)


def parse_probability(text: str) -> float:
    """A probability from a text such as `0.1%` or `0.001`; its range is not checked here.

    Raises:
        ValueError: when the text is none.
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = Decimal(number.strip())
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a probability: write 0.001 or 0.1%") from None
    if rest or not value.is_finite():
        raise ValueError(f"{text!r} is not a probability: write 0.001 or 0.1%")
    return float(value / 100 if percent else value)


def parse_file_count(text: str) -> int:
    """A number of files, as `40000`, `40,000`, `40k`, `1.5M` or `1e6`; `files` may stand behind it.

    Raises:
        ValueError: when it is not a whole number from 1 to `MOST_FILES`.
    """
    match = _FILES.fullmatch(text.replace(",", "").replace("_", "").strip())
    if match is None:
        raise ValueError(f"{text!r} is not a number of files: write 40000, 40k or 1e6")
    count = _number(match) * 1000 ** _POWERS[match["prefix"].lower()]
    if count != count.to_integral_value() or not 1 <= count <= MOST_FILES:
        raise ValueError(f"{text!r} is not a number of files: write a whole number from 1 on")
    return int(count)


def parse_switch(text: str) -> bool:
    """True from `on`, `yes`, `true`, `1`; false from `off`, `no`, `false`, `0`.

    Raises:
        ValueError: for any other word.
    """
    word = text.strip().lower()
    if word in ("on", "yes", "true", "1"):
        return True
    if word in ("off", "no", "false", "0"):
        return False
    raise ValueError(f"{text!r} is not on or off")


def size_text(size_bytes: int) -> str:
    """A size exactly: `128KiB`, `1500B`. [`parse_size`] reads it back to the same number."""
    return size_exact(size_bytes).replace(" bytes", "B").replace(" byte", "B").replace(" ", "")


def rate_text(rate_bps: int) -> str:
    """A rate exactly: `10Gbit/s`. [`parse_rate`] reads it back to the same number."""
    return rate_exact(rate_bps).replace(" ", "")


def size_exact(size_bytes: int) -> str:
    """`512 KiB`, `1500 bytes`: `size_text` for a sentence."""
    for unit, scale in _SIZE_UNITS:
        if size_bytes >= scale and size_bytes % scale == 0:
            return f"{size_bytes // scale} {unit}"
    return "1 byte" if size_bytes == 1 else f"{size_bytes} bytes"


def rate_exact(rate_bps: int) -> str:
    """`10 Gbit/s`: `rate_text` for a sentence."""
    for unit, scale in _RATE_UNITS:
        if rate_bps >= scale and rate_bps % (scale // 1000) == 0:
            return f"{_plain(Decimal(rate_bps) / scale)} {unit}"
    return f"{rate_bps} bit/s"


def duration_text(duration_s: float) -> str:
    """A duration exactly: `10s`, `2.5s`. [`parse_duration`] reads it back to the same number."""
    return f"{_plain(Decimal(repr(duration_s)))}s"


def _plain(value: Decimal) -> str:
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def rate_human(rate_bps: float) -> str:
    """A rate for people, to three digits: `9.41 Gbit/s`."""
    for unit, scale in _RATE_UNITS:
        if rate_bps >= scale:
            return f"{_three(rate_bps / scale)} {unit}"
    return f"{_three(rate_bps)} bit/s"


def size_human(size_bytes: float) -> str:
    """A size for people, to three digits: `119 MiB`."""
    for unit, scale in (("EiB", 1 << 60), ("PiB", 1 << 50), *_SIZE_UNITS):
        if size_bytes >= scale:
            return f"{_three(size_bytes / scale)} {unit}"
    return f"{size_bytes:.0f} B"


def time_human(time_us: float) -> str:
    """A time span for people, to three digits: `11.4 ms`."""
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if time_us >= scale:
            return f"{_three(time_us / scale)} {unit}"
    return f"{_three(time_us)} us"


def counted(amount: int, one: str, many: str | None = None) -> str:
    """`1 transfer`, `1,234 transfers`."""
    return f"{amount:,} {one if amount == 1 else many or f'{one}s'}"


def sentence(text: str) -> str:
    """A text with a capital at its start and a stop at its end."""
    stop = "" if text.endswith((".", "!", "?")) else "."
    return f"{text[:1].upper()}{text[1:]}{stop}"


def _three(value: float) -> str:
    """Three significant digits, without an exponent."""
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{decimals}f}"


def parse_sweep(text: str, parse: Callable[[str], Value]) -> list[Value]:
    """Values from a list and ranges: `1,2,4`, `1..16*2` (times), `10..100+10` (plus), or a mix.

    A range stops at the last value that is not beyond its end. Whole numbers
    stay whole: a fractional factor rounds to the nearest. Values keep their
    order; one that comes twice is taken once.

    Raises:
        ValueError: when an item cannot be read, a range lacks a step or runs
            backwards, or more than `SWEEP_MAX_VALUES` values come out.
    """
    values: list[Value] = []
    for item in text.split(","):
        values.extend(_range(item, parse) if ".." in item else [parse(item)])
        if len(values) > SWEEP_MAX_VALUES:
            raise ValueError(f"{text!r} has more than {SWEEP_MAX_VALUES} values")
    return list(dict.fromkeys(values))


_RANGE = re.compile(r"(?P<first>[^*+]+?)\.\.(?P<last>[^*+]+)(?P<kind>[*+])(?P<step>[^*+]+)")


def _range(item: str, parse: Callable[[str], Value]) -> list[Value]:
    match = _RANGE.fullmatch(item.strip())
    if match is None:
        raise ValueError(
            f"{item.strip()!r} is not a range: write FIRST..LAST*FACTOR or FIRST..LAST+STEP"
        )
    first, last = parse(match["first"]), parse(match["last"])
    if not isinstance(first, int | float) or not isinstance(last, int | float):
        raise ValueError(f"{item.strip()!r} is a range of words: list them with commas")
    whole = isinstance(first, int) and isinstance(last, int)
    if match["kind"] == "*":
        numbers = _geometric(item, first, last, parse_number(match["step"]))
    else:
        numbers = _arithmetic(item, first, last, float(parse(match["step"])))
    return [_as_kind(number, whole) for number in numbers]


def _as_kind(number: Decimal, whole: bool) -> Value:
    return int(number.to_integral_value()) if whole else float(number)


def _geometric(item: str, first: float, last: float, factor: float) -> list[Decimal]:
    if factor <= 1 or first <= 0 or last < first:
        raise ValueError(
            f"{item.strip()!r} does not increase: it needs a factor above 1 and 0 < FIRST <= LAST"
        )
    return _climb(item, first, last, lambda value: value * Decimal(repr(factor)))


def _arithmetic(item: str, first: float, last: float, step: float) -> list[Decimal]:
    if step <= 0 or last < first:
        raise ValueError(
            f"{item.strip()!r} does not increase: it needs a step above 0 and FIRST <= LAST"
        )
    return _climb(item, first, last, lambda value: value + Decimal(repr(step)))


def _climb(
    item: str, first: float, last: float, after: Callable[[Decimal], Decimal]
) -> list[Decimal]:
    value = Decimal(repr(first))
    values: list[Decimal] = []
    while value <= Decimal(repr(last)):
        if len(values) >= SWEEP_MAX_VALUES:
            raise ValueError(f"{item.strip()!r} has more than {SWEEP_MAX_VALUES} values")
        values.append(value)
        value = after(value)
    return values
