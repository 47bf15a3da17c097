"""Topologies from presets and TOML files, with overrides of the main link.

```toml
name = "dumbbell"
main_link = "bottleneck"            # what --rate, --rtt and their like mean; the first if absent
routers = ["left", "right"]
[parameters]
k = 2                               # `farline testbed up FILE --set k=8`
[defaults.host]                     # what every host and link has unless it says otherwise
sysctls = { "net.ipv4.tcp_congestion_control" = "cubic" }
[defaults.link]
both = { rate_bps = "10Gbit" }
[[hosts]]
name = "source-{i}"
repeat = "k"                        # source-1 to source-k; a number works too
[[links]]
name = "bottleneck"
a = "left"
b = "right"
rtt_s = "100ms"                     # delay_s of both directions is half of it
both = { queue = { capacity_bdp = 1 } }      # forward (a to b) and reverse go before it
```

The fields of hosts and links are those of `crates/spec/src/topology.rs`, with units as in plans.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import FarlineError, SpecError, UsageError
from farline.spec.toml_reading import read_toml
from farline.spec.topology import fields_of, read_document
from farline.testbeds import overrides as override
from farline.testbeds.links import merged, read_link
from farline.testbeds.native import validate_topology
from farline.testbeds.repeat import Parameters, read_parameters, repeated

if TYPE_CHECKING:
    from farline.spec._types import Topology

_PRESETS = Path(__file__).with_name("presets")
_OWN_KEYS = ("parameters", "defaults", "hosts", "links")


@dataclass(frozen=True)
class Preset:
    """A topology that comes with farline, and the parameters it takes with their defaults."""

    name: str
    description: str
    parameters: Mapping[str, int]


def presets() -> dict[str, Preset]:
    """Presets by name."""
    found = {}
    for path in sorted(_PRESETS.glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        name = path.stem
        found[name] = Preset(name, document["description"], document.get("parameters", {}))
    return found


def load(source: str | Path, **overrides: object) -> Topology:
    """A whole topology from a preset's name, a TOML file, or TOML text (anything with a line end).

    Overrides are parameters of the topology by name, `seed`, `mode`, `interval_s`, `host_cpus`
    (CPUs of every host, such as `0,2-3`; the emulator keeps to the others), and options of a link
    by name (`rate_bps`, `loss`, `capacity_bdp`, `mtu_bytes`, ...) besides `rtt_s`: they act on
    both directions of the main link, and where that is one of several copies, on all of them;
    `mtu_bytes` on every link. `main_link` names another main link, and then they act on that one
    alone. Values are numbers or texts with units.

    Raises:
        UsageError: when there is no such preset or file, or it is not TOML.
        SpecError: when something in it is unknown or not allowed; the line says where.
    """
    where, text = _read_source(source)
    try:
        document = read_toml(text)
    except ValueError as error:
        raise UsageError(f"{where}: not TOML: {error}") from None
    try:
        return topology_from_document(document, overrides)
    except (ValueError, FarlineError) as error:
        raise SpecError(f"{where}: {error}") from None


def topology_from_document(
    document: Mapping[str, Any], overrides: Mapping[str, object] | None = None
) -> Topology:
    """A whole topology from a document in the shape of a topology file; see `load`.

    Raises:
        ValueError: when something is unknown or cannot be read; the line says where.
        SpecError: when the whole does not hold together.
    """
    _known_keys(document)
    parameters = read_parameters(document.get("parameters", {}))
    wanted = override.sorted_out(overrides or {}, parameters)
    parameters = parameters.with_values(wanted.parameters)
    defaults = _defaults(document.get("defaults", {}))
    plain = {name: value for name, value in document.items() if name not in _OWN_KEYS}
    whole = read_document("Topology", {**plain, **wanted.topology}, "")
    whole["hosts"] = _hosts(document, parameters, defaults.get("host", {}))
    whole["links"] = _links(document, parameters, defaults.get("link", {}))
    override.apply(wanted, whole, _main_links(document, parameters, wanted.topology))
    return validate_topology(whole)


def _read_source(source: str | Path) -> tuple[str, str]:
    """What refusals call the source, and its text."""
    if isinstance(source, str) and "\n" in source:
        return "topology", source
    path = Path(source)
    if isinstance(source, str) and path.suffix != ".toml" and len(path.parts) == 1:
        return _read_preset(source)
    try:
        return str(path), path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from None


def _read_preset(name: str) -> tuple[str, str]:
    known = presets()
    if name not in known:
        raise UsageError(
            f"{name!r} is not a preset; allowed: {', '.join(known)}, or a file that ends in .toml"
        )
    return name, (_PRESETS / f"{name}.toml").read_text(encoding="utf-8")


def _known_keys(document: Mapping[str, Any]) -> None:
    allowed = [*fields_of("Topology"), "parameters", "defaults"]
    for key in document:
        if key not in allowed:
            raise ValueError(f"{key}: unknown field; allowed: {', '.join(allowed)}")


def _defaults(raw: object) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise ValueError(f"defaults: {raw!r} is not a table")
    for key in raw:
        if key not in ("host", "link"):
            raise ValueError(f"defaults.{key}: unknown table; allowed: host, link")
    return raw


def _hosts(
    document: Mapping[str, Any], parameters: Parameters, defaults: Mapping[str, Any]
) -> list[dict[str, Any]]:
    common = read_document("HostSpec", defaults, "defaults.host")
    entries = repeated("hosts", document.get("hosts", []), parameters)
    return [merged(common, read_document("HostSpec", entry.raw, entry.place)) for entry in entries]


def _links(
    document: Mapping[str, Any], parameters: Parameters, defaults: Mapping[str, Any]
) -> list[dict[str, Any]]:
    entries = repeated("links", document.get("links", []), parameters)
    return [read_link(entry.raw, defaults, entry.place) for entry in entries]


def _main_links(
    document: Mapping[str, Any], parameters: Parameters, overrides: Mapping[str, object]
) -> list[str]:
    """Names of the main link and of the other copies of its entry; only one that is named anew."""
    entries = repeated("links", document.get("links", []), parameters)
    if not entries:
        return []
    named = overrides.get("main_link")
    main = named or document.get("main_link", entries[0].raw.get("name"))
    origins = [entry.origin for entry in entries if entry.raw.get("name") == main]
    if not origins:
        known = ", ".join(str(entry.raw.get("name")) for entry in entries[:8])
        raise ValueError(f"main_link: {main!r} is not a link; allowed: {known}")
    if named is not None:
        return [str(main)]
    copies = [entry for entry in entries if entry.origin == origins[0]]
    for entry in copies:
        if not isinstance(entry.raw.get("name"), str):
            raise ValueError(f"{entry.place}: it has no name, which every link needs")
    return [entry.raw["name"] for entry in copies]
