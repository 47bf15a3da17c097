"""Values of options: text or plain JSON in, a value in the option's unit and range out.

One reader for the command line and for plan files, driven by the generated
option table. Every refusal is one line that names what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from farline.spec import units
from farline.spec.near import unknown
from farline.spec.table import OPTIONS, Option
from farline.spec.units import Value

_BY_PATH = {option.path: option for option in OPTIONS}

_READERS: dict[str, Callable[[str], Value]] = {
    "size": units.parse_size,
    "rate": units.parse_rate,
    "seconds": units.parse_duration,
    "ms": units.parse_milliseconds,
    "integer": units.parse_integer,
    "number": units.parse_number,
    "flag": units.parse_switch,
}

_BARE_READERS: dict[str, Callable[[str], Value]] = {
    "rate": partial(units.parse_rate, bare="bit/s"),
    "seconds": partial(units.parse_duration, bare="s"),
}
"""What a number without a unit is behind iperf3's letters."""


def option_at(path: str) -> Option:
    """The option with the dotted path `path`, such as `tcp.mss_bytes`.

    Raises:
        ValueError: when there is none; the line lists the paths there are.
    """
    if path not in _BY_PATH:
        section = path.rpartition(".")[0]
        known = [other for other in sorted(_BY_PATH) if other.rpartition(".")[0] == section]
        raise ValueError(f"{path!r} is not an option; {unknown(path, known or sorted(_BY_PATH))}")
    return _BY_PATH[path]


def read_value(option: Option, raw: object, bare: bool = False) -> object:
    """A value of `option` from `raw`: a text with units, or plain JSON in the option's unit.

    With `bare`, a text needs no unit either: a peer's letter stands before it.

    Raises:
        ValueError: when `raw` cannot be read or is out of range.
    """
    if option.kind == "array":
        return read_list(option, raw) if isinstance(raw, str) else raw
    value = read_text(option, raw, bare) if isinstance(raw, str) else _plain(option, raw)
    _check_range(option, value)
    return value


def read_text(option: Option, text: str, bare: bool = False) -> Value:
    """A scalar from a text with units, its range not yet checked; see `read_value`."""
    if option.kind == "word":
        return _word(option, text)
    if option.unit in ("probability", "share"):
        return units.parse_probability(text)
    if bare and option.kind in _BARE_READERS:
        return _BARE_READERS[option.kind](text)
    return _READERS[option.kind](text) if option.kind in _READERS else text


def _word(option: Option, text: str) -> str:
    if text not in option.choices:
        raise ValueError(f"{text!r} is not allowed; {unknown(text, option.choices)}")
    return text


def _plain(option: Option, raw: object) -> Value:
    if option.kind in ("word", "string"):
        raise ValueError(f"{raw!r} is not a string")
    if isinstance(raw, bool) or option.kind == "flag":
        if isinstance(raw, bool) and option.kind == "flag":
            return raw
        raise ValueError(f"{raw!r} is not a {'switch' if option.kind == 'flag' else 'number'}")
    real = option.kind in ("seconds", "number")
    if isinstance(raw, int) or (isinstance(raw, float) and real and math.isfinite(raw)):
        return raw
    raise ValueError(f"{raw!r} is not a {'' if real else 'whole '}number")


def _check_range(option: Option, value: Value) -> None:
    if isinstance(value, bool) or (isinstance(value, str) and option.kind == "word"):
        return
    if isinstance(value, str):
        _check_length(option, value)
        return
    low, high = option.minimum, option.maximum
    if (low is not None and value < low) or (high is not None and value > high):
        given = f"{value:.12g}" if isinstance(value, float) else value
        raise ValueError(f"{given} is out of range; allowed: {_range_text(low, high, option.unit)}")


_NO_PLURALS = ("CPU number", "label", "octet", "port", "probability", "share")


def _range_text(low: float | None, high: float | None, unit: str | None) -> str:
    """`64 KiB to 16 MiB`, `88 to 32767 bytes`, `0 to 255`: as `crates/spec/src/unit.rs` has it."""
    if low is None or high is None:
        return f"{_bound_text(low, unit)} or more" if high is None else _bound_text(high, unit)
    first, last = (_bound_text(bound, unit) for bound in (low, high))
    number, _, of_first = first.partition(" ")
    return f"{number if of_first == last.partition(' ')[2] else first} to {last}"


def _bound_text(bound: float | None, unit: str | None) -> str:
    if unit == "bytes" and isinstance(bound, int):
        return units.size_exact(bound)
    if unit == "bit/s" and isinstance(bound, int):
        return units.rate_exact(bound)
    number = f"{bound:.12g}" if isinstance(bound, float) else f"{bound}"
    return f"{number} {unit}" if unit and unit not in _NO_PLURALS else number


def _check_length(option: Option, text: str) -> None:
    low, high = option.minimum or 0, option.maximum
    if len(text) < low or (high is not None and len(text) > high):
        raise ValueError(f"{units.counted(len(text), 'character')}; allowed: {low} to {high}")


def read_list(option: Option, text: str) -> list[object]:
    """A list from its comma-separated text: address pairs or whole numbers."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    if option.item == "AddressPair":
        return [read_pair(item) for item in items]
    numbers = [number for item in items for number in _numbers(item)]
    for number in numbers:
        _check_range(option, number)
    return list(numbers)


def _numbers(item: str) -> list[int]:
    """`3`, or `0-3` as taskset writes ranges of CPUs."""
    first, dash, last = item.partition("-")
    if not dash:
        return [units.parse_integer(item)]
    low, high = units.parse_integer(first), units.parse_integer(last)
    if high < low or high - low > 4095:
        raise ValueError(f"{item!r} is not a range of whole numbers")
    return list(range(low, high + 1))


def read_pair(text: str) -> dict[str, str]:
    """One NIC-to-NIC connection from `[SOURCE][%DEVICE][=DESTINATION]`.

    Raises:
        ValueError: when a part is no address, or nothing is there.
    """
    near, _, destination = text.partition("=")
    source, _, device = near.partition("%")
    pair = {
        "source": _address(source, text) if source else "",
        "source_device": device,
        "destination": _address(destination, text) if destination else "",
    }
    if not any(pair.values()):
        raise ValueError(f"{text!r} is not a pair: write SOURCE[%DEVICE][=DESTINATION]")
    return {key: value for key, value in pair.items() if value}


def _address(text: str, pair: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        raise ValueError(
            f"{text!r}{'' if text == pair else f' in {pair!r}'} is not an IP address: write "
            "SOURCE[%DEVICE][=DESTINATION]"
        ) from None


def read_sweep(option: Option, text: str, bare: bool = False) -> tuple[object, ...]:
    """Alternatives of one option: `1,2,4` and ranges for scalars, `0,1;2,3` for lists.

    With `bare`, numbers need no unit; see `read_value`.

    Raises:
        ValueError: when one cannot be read or is out of range.
    """
    if option.kind == "array":
        return tuple(read_list(option, part) for part in text.split(";"))
    if option.kind == "string":
        words = tuple(word.strip() for word in text.split(","))
        for word in words:
            _check_length(option, word)
        return words
    values = units.parse_sweep(text, lambda item: read_text(option, item.strip(), bare))
    for value in values:
        _check_range(option, value)
    return tuple(values)
