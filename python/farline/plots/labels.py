"""Names, units and numbers as people read them: pure text, the same in figures and on the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farline.spec.units import rate_human

NOTHING = "\N{EN DASH}"
"""What stands where there is no figure."""

LEFT_OPEN = "auto"
"""What stands for a parameter that was left to the kernel or to farline."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A result that can be drawn against a parameter.

    `column` is its name in a run's row, `unit` the unit of the raw figure; `bit/s` is scaled to
    k, M, G, T for people. `higher_is_better` is None where neither way is better.
    """

    column: str
    label: str
    unit: str
    higher_is_better: bool | None


THROUGHPUT = Quantity("total_bps", "Throughput", "bit/s", True)
QUANTITIES: tuple[Quantity, ...] = (
    THROUGHPUT,
    Quantity("steady_bps", "Steady-state throughput", "bit/s", True),
    Quantity("cpu_s_per_gb", "CPU time", "s/GB", False),
    Quantity("retransmits", "Retransmissions", "", False),
    Quantity("lost_packets", "Lost packets", "", False),
    Quantity("mean_rtt_us", "Mean round-trip time", "µs", None),
    Quantity("blast_bps", "Throughput of a blast", "bit/s", True),
    Quantity("first_blast_loss", "Loss of the first blast", "%", False),
    Quantity("blast_passes", "Passes of a blast", "", False),
)

LIMIT_TEXT: Mapping[str, str] = {
    "receive-window": "receive window",
    "receive-buffer": "receive buffer",
    "send-buffer": "send buffer",
    "cwnd": "congestion window",
    "sender-cpu": "sender CPU",
    "receiver-cpu": "receiver CPU",
    "application": "application",
    "path": "path",
    "rate": "requested rate",
    "harness": "harness",
    "unknown": "not known",
    "not complete": "not complete",
}
"""Words of the verdicts as people read them; "not complete" stands for failed and partial runs."""

_WORDS = {
    "block_bytes": "Block size",
    "duration_s": "Duration",
    "omit_s": "Excluded warm-up",
    "interval_s": "Sample interval",
    "packet_bytes": "Packet size",
    "mss_bytes": "MSS",
    "rate_bps": "Rate per stream",
    "streams": "Parallel streams",
    "total_bytes": "Bytes to send",
    "client_cpus": "Client CPUs",
    "server_cpus": "Server CPUs",
    "ip_version": "IP version",
    "tos": "Type of service",
    "mptcp": "Multipath TCP",
    "gso": "Segmentation offload",
    "gro": "Receive offload",
    "pairs": "Address pairs",
    "udp_send_buffer_bytes": "UDP socket send buffer",
    "udp_receive_buffer_bytes": "UDP socket receive buffer",
    "payload_bytes": "Payload of a blast",
    "in_flight": "Blasts in flight",
    "early": "Early reports",
}
_PATH_WORDS = {
    "rtt_s": "Round-trip time of the path",
    "rate_bps": "Rate of the link",
    "delay_s": "Delay of the link",
    "loss": "Loss on the link",
    "capacity_bytes": "Queue of the link",
    "capacity_bdp": "Queue of the link (BDP)",
    "corrupt": "Corruption on the link",
    "duplicate": "Duplication on the link",
    "reorder": "Reordering on the link",
}
_SHARED = {"send_buffer_bytes", "receive_buffer_bytes"}
_UNIT_SUFFIXES = ("_bytes", "_bps", "_s", "_us", "_ms", "_packets")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_DECIMAL = ("", "k", "M", "G", "T", "P")
_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))


def parameter_label(name: str) -> str:
    """`tcp.congestion_control` as "Congestion control"; buffers say whose they are."""
    group, _, word = name.rpartition(".")
    if group == "path" and word in _PATH_WORDS:
        return _PATH_WORDS[word]
    if word in _SHARED and group:
        return f"{group.upper()} {_plain(word)}"
    if word in _WORDS:
        return _WORDS[word]
    text = _plain(word)
    return text[:1].upper() + text[1:]


def setting_text(name: str, value: Any) -> str:
    """Value of parameter `name` with its unit: "128 KiB", "10 Gbit/s", "bbr", "auto"."""
    if value is None:
        return LEFT_OPEN
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        value = tuple(value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_item_text(item) for item in value) or LEFT_OPEN
    if not isinstance(value, (int, float)):
        return str(value)
    return _number_text(name, value)


def settings_text(settings: Mapping[str, Any]) -> str:
    """A whole setting in one line: "streams 4, block 1 MiB, bbr"."""
    parts = []
    for name, value in settings.items():
        text = setting_text(name, value)
        if isinstance(value, str):
            parts.append(text)
        elif name == "streams":
            parts.append(f"{text} stream" + ("" if value == 1 else "s"))
        else:
            label = parameter_label(name)
            label = label if label[1:2].isupper() else label[:1].lower() + label[1:]
            parts.append(f"{label} {text}")
    return ", ".join(parts) or "one setting"


def rate_range_text(low_bps: float, high_bps: float) -> str:
    """Two rates in one unit: "37.5 to 38.9 Gbit/s"."""
    factor, unit = rate_unit([low_bps, high_bps])
    return f"{digits(low_bps / factor)} to {digits(high_bps / factor)} {unit}"


def rate_unit(rates_bps: Iterable[float]) -> tuple[float, str]:
    """Factor and unit that make the largest of the rates a number between 1 and 1000."""
    largest = max((abs(rate) for rate in rates_bps if math.isfinite(rate)), default=0.0)
    power = _power(largest, 1000.0, len(_DECIMAL))
    return 1000.0**power, f"{_DECIMAL[power]}bit/s"


def quantity_unit(quantity: Quantity, figures: Sequence[float]) -> tuple[float, str]:
    """Factor and unit to draw `quantity` with."""
    if quantity.unit == "bit/s":
        return rate_unit(figures)
    if quantity.unit == "µs":
        return time_unit(figures)
    return 1.0, quantity.unit


def time_unit(times_us: Iterable[float]) -> tuple[float, str]:
    """Factor and unit for times given in microseconds."""
    largest = max((abs(time) for time in times_us if math.isfinite(time)), default=0.0)
    return next(((factor, unit) for factor, unit in _TIMES if largest >= factor), (1.0, "µs"))


def size_unit(sizes_bytes: Iterable[float]) -> tuple[float, str]:
    """Factor and unit for sizes: powers of 1024, as buffers and windows are counted."""
    largest = max((abs(size) for size in sizes_bytes if math.isfinite(size)), default=0.0)
    power = _power(largest, 1024.0, len(_BINARY))
    return 1024.0**power, _BINARY[power]


def size_text(size_bytes: float) -> str:
    """A size in the largest unit that keeps it exact, or three digits: "8956 B", "1 MiB", "600 MB".

    Binary units, but for whole numbers of megabytes that are no such number of kibibytes.
    """
    whole = int(size_bytes)
    if whole == size_bytes and whole > 0:
        power = min((whole & -whole).bit_length() // 10, len(_BINARY) - 1)
        power = min(power, _power(whole, 1024.0, len(_BINARY)))
        scaled = whole // 1024**power
        if scaled < 10_000:
            return f"{scaled} {_BINARY[power]}"
        if whole % 10**6 == 0:
            return f"{whole // 10**9} GB" if whole % 10**9 == 0 else f"{whole // 10**6} MB"
    factor, unit = size_unit([size_bytes])
    return f"{digits(size_bytes / factor)} {unit}"


def digits(value: float, significant: int = 3) -> str:
    """`value` with so many significant digits and no exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "no figure"
    places = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}".replace(",", "\u202f")


def percent(confidence: float) -> str:
    """ "95 %"."""
    return f"{100 * confidence:g}\u202f%"


def plural(count: int, noun: str) -> str:
    """ "1 run", "3 runs"."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _plain(word: str) -> str:
    for suffix in _UNIT_SUFFIXES:
        word = word.removesuffix(suffix)
    return word.replace("_", " ")


def _item_text(item: Any) -> str:
    if isinstance(item, (list, tuple)):
        return " ".join(str(part) for part in item)
    return str(item)


def _number_text(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return size_text(value)
    if name.endswith("rate_bps"):
        return (
            "no limit" if value == 0 else rate_human(value).replace(".00", "").replace(".0 ", " ")
        )
    if name == "path.rtt_s":
        return f"{1000 * value:g} ms"
    for suffix, unit in (("_s", " s"), ("_ms", " ms"), ("_us", " µs")):
        if name.endswith(suffix):
            return f"{value:g}{unit}"
    return f"{value:g}"


def _power(value: float, base: float, count: int) -> int:
    if value < base:
        return 0
    return min(int(math.log(value, base) + 1e-9), count - 1)
