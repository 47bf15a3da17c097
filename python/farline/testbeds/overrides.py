"""What a command line or a caller says instead of a topology's own values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from farline.spec.links import LINK_OPTION_BY_KEY, RTT, LinkOption
from farline.spec.topology import HOST_CPUS, read_cpus
from farline.spec.values import read_value
from farline.testbeds.links import merged, set_rtt
from farline.testbeds.repeat import Parameters

_TOPOLOGY_FIELDS = ("seed", "mode", "interval_s", "main_link")
_EVERY_LINK = ("mtu_bytes",)
"""Options that hold for every link: a path is only as wide as its narrowest link."""


@dataclass
class Overrides:
    """Overrides by what they act on; `main` and `every` are parts of a `PipeSpec`."""

    parameters: dict[str, object] = field(default_factory=dict)
    topology: dict[str, object] = field(default_factory=dict)
    main: dict[str, Any] = field(default_factory=dict)
    every: dict[str, Any] = field(default_factory=dict)
    rtt_s: float | None = None
    host_cpus: list[object] | None = None


def sorted_out(given: Mapping[str, object], parameters: Parameters) -> Overrides:
    """Overrides by what they act on, their values read.

    Raises:
        ValueError: when a name is unknown, a value not allowed, or two contradict each other.
    """
    wanted = Overrides()
    for name, raw in given.items():
        if name in parameters.values:
            wanted.parameters[name] = raw
        elif name in _TOPOLOGY_FIELDS:
            wanted.topology[name] = raw
        elif name == HOST_CPUS:
            wanted.host_cpus = read_cpus(raw)
        elif name in LINK_OPTION_BY_KEY:
            _put(wanted, LINK_OPTION_BY_KEY[name], raw)
        else:
            known = ", ".join(
                [*parameters.values, *_TOPOLOGY_FIELDS, HOST_CPUS, *LINK_OPTION_BY_KEY]
            )
            raise ValueError(f"{name}: unknown option; allowed: {known}")
    if wanted.rtt_s is not None and "delay_s" in wanted.main:
        raise ValueError("rtt_s and delay_s cannot be combined: both set the delay")
    return wanted


def _put(wanted: Overrides, option: LinkOption, raw: object) -> None:
    try:
        value: Any = read_value(option, raw)
    except ValueError as error:
        raise ValueError(f"{option.key}: {error}") from None
    if option is RTT:
        wanted.rtt_s = float(value)
        return
    into = wanted.every if option.path in _EVERY_LINK else wanted.main
    section, _, name = option.path.rpartition(".")
    (into.setdefault(section, {}) if section else into)[name] = value


def apply(wanted: Overrides, topology: dict[str, Any], main_links: list[str]) -> None:
    """Puts the overrides into a topology: its hosts, both directions of the links they act on."""
    if wanted.host_cpus is not None:
        for host in topology["hosts"]:
            host["cpus"] = list(wanted.host_cpus)
    for link in topology["links"]:
        is_main = link.get("name") in main_links
        for direction in ("forward", "reverse"):
            if direction in link:
                link[direction] = merged(link[direction], wanted.every)
                if is_main:
                    link[direction] = merged(link[direction], wanted.main)
        if is_main and wanted.rtt_s is not None:
            set_rtt(link, wanted.rtt_s)
