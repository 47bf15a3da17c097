"""Plans of fairness measurements.

```toml
[fairness]
name = "one-cubic-flow"       # letters, digits, '-', '_'
loads = "10%..100%+10%"       # applied background: shares of the line, or rates ("20Mbit")
repetitions = 3
duration_s = "6s"             # of each transfer
omit_s = "2s"                 # left out at its start
lead_s = "2s"                 # the background runs alone for this long before the transfer
reference = "cubic"           # a subject that others are compared with; absent: none
capacity_bps = "10Gbit"       # rate of the line; an emulated one is known
[background]                  # who is there first: options of a run, and `tool`
tcp.congestion_control = "cubic"
[subject.NAME]                # the transfers that are judged: the same options
streams = 4
[path]                        # the emulated network; absent: HOST on the command line
testbed = "dumbbell"
rate_bps = "100Mbit"
rtt_s = "10ms"
subject_hosts = ["source", "sink"]
background_hosts = ["background-source", "background-sink"]
background_rtt_s = "50ms"     # where the background comes from further away
[expect.NAME]                 # what is asserted of a subject: see expected.py
knee = { at_least = 0.4, at_most = 0.7 }
```

Every key that is not known is refused with the keys that are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from farline.campaign.contention.expected import Bounds, read_expected
from farline.campaign.path_table import read_link_option
from farline.campaign.plan_file import name_of, read_plan_file
from farline.campaign.plan_values import nest, read_option, read_section
from farline.errors import SpecError
from farline.spec.near import unknown
from farline.spec.units import counted, parse_duration, parse_rate

NATIVE = "native"
"""farline itself, as the tool of a side."""

LOADS = "10%..100%+10%"
"""Loads unless stated: those of Yu et al. 2014, Fig. 3."""

DUMBBELL = "dumbbell"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")
_PARTS = ("fairness", "background", "subject", "path", "expect")
_RANGE = re.compile(r"(?P<first>[^.]+)\.\.(?P<last>[^+]+)\+(?P<step>.+)")
_MOST_LOADS = 100
_NEEDS_RATE = ("rbudp", "udp")
"""Transports that do not find a rate themselves: they send at that of the line unless told."""
_PACING = 1.1
"""Pace of a load over its rate: room for headers, and to catch up after losses."""
_PAYLOAD_SHARE = 0.94
"""Part of a line's rate that is payload: datagrams of 1500 bytes with headers and Ethernet's 38."""


@dataclass(frozen=True)
class Contender:
    """One side: its name, the tool that runs it, options of a run by dotted path."""

    name: str
    tool: str = NATIVE
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def transport(self) -> str:
        """The transport that it is asked to use."""
        return str(self.options.get("transport", "tcp"))

    @property
    def streams(self) -> int:
        """Flows that it has."""
        return int(self.options.get("streams", 1))

    def spec(
        self, duration_s: float, rate_bps: float | None, capacity_bps: float
    ) -> dict[str, Any]:
        """A spec document that runs for so long; `rate_bps` is of all its streams together.

        Without a rate, a transport that finds none itself sends at the rate of the line. A rate of
        TCP is paced by the kernel as well: a block of 128 KiB at once overflows short queues.
        """
        named = {} if self.tool == NATIVE else {"tool": self.tool}
        options = {**named, **self.options, "duration_s": duration_s}
        if rate_bps is not None:
            options["rate_bps"] = max(1, round(rate_bps / self.streams))
            if self.tool == NATIVE and self.transport == "tcp":
                pace = round(_PACING * rate_bps / self.streams)
                options.setdefault("tcp.pacing_rate_bps", max(1, pace))
        elif self.transport in _NEEDS_RATE and "rate_bps" not in options:
            options["rate_bps"] = round(_PAYLOAD_SHARE * capacity_bps / self.streams)
        return nest(options)

    def document(self) -> dict[str, Any]:
        """As a table of a plan has it."""
        tool = {} if self.tool == NATIVE else {"tool": self.tool}
        return {**tool, **nest(self.options)}


@dataclass(frozen=True)
class Network:
    """The emulated network: preset, file or running testbed, hosts of both sides, its main link."""

    testbed: str = DUMBBELL
    link: str | None = None
    host_cpus: str | None = None
    subject_hosts: tuple[str, str] = ("source", "sink")
    background_hosts: tuple[str, str] = ("background-source", "background-sink")
    background_rtt_s: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the main link, by key."""

    def document(self) -> dict[str, Any]:
        """As the table has it."""
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        pairs = {name: list(value) for name, value in own.items() if isinstance(value, tuple)}
        plain = {name: value for name, value in own.items() if value is not None}
        return {**{n: v for n, v in plain.items() if n != "options"}, **pairs, **self.options}


@dataclass(frozen=True)
class ContentionPlan:
    """A whole measurement. Loads are texts, so that shares of an unknown line can be written."""

    background: Contender
    subjects: tuple[Contender, ...]
    name: str = "fairness"
    loads: tuple[str, ...] = ()
    repetitions: int = 3
    duration_s: float = 6.0
    omit_s: float = 2.0
    lead_s: float = 2.0
    reference: str | None = None
    seed: int | None = None
    capacity_bps: int | None = None
    confidence: float = 0.95
    count_invalid: bool = False
    network: Network | None = None
    expect: Mapping[str, Mapping[str, Bounds]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses what makes no sense, naming the key and what is allowed."""
        if not _NAME.fullmatch(self.name):
            raise _refusal("name", f"{self.name!r} is not 1 to 48 letters, digits, '_' or '-'")
        _check_range("repetitions", self.repetitions, 1, 1000)
        _check_range("duration_s", self.duration_s, 0.5, 86_400)
        _check_range("lead_s", self.lead_s, 0.2, 3600)
        _check_range("omit_s", self.omit_s, 0, self.duration_s - 0.3)
        _check_range("confidence", self.confidence, 0.5, 0.999)
        if not self.subjects:
            raise SpecError("[subject]: no transfer to judge: add a table [subject.NAME]")
        names = [subject.name for subject in self.subjects]
        for part, wanted in (("reference", [self.reference]), ("expect", list(self.expect))):
            for name in wanted:
                if name is not None and name not in names:
                    raise SpecError(f"{part}: no subject {name!r}; {unknown(name, names)}")
        self._check_sides()

    def _check_sides(self) -> None:
        for side in (self.background, *self.subjects):
            place = f"[{side.name}]"
            if side.options.get("direction", "forward") != "forward":
                raise SpecError(
                    f"{place} direction: allowed: forward, from the client to the server"
                )
            for name in ("duration_s", "total_bytes", "omit_s"):
                if name in side.options:
                    raise SpecError(
                        f"{place} {name}: the plan sets the time: use [fairness] {name}"
                    )
        if "rate_bps" in self.background.options:
            raise SpecError("[background] rate_bps: the loads are its rate: use [fairness] loads")

    def subject(self, name: str) -> Contender:
        """The transfer of that name."""
        return next(subject for subject in self.subjects if subject.name == name)

    def load_rates(self, capacity_bps: float | None) -> tuple[float, ...]:
        """The loads as rates, ascending; shares are of `capacity_bps`.

        Raises:
            SpecError: when a load is a share and the capacity is not known.
        """
        loads = self.loads or tuple(expanded(LOADS))
        rates = {round(load_rate(load, capacity_bps)) for load in loads}
        return tuple(float(rate) for rate in sorted(rates))

    def document(self) -> dict[str, Any]:
        """The plan as a document that `plan_from_document` reads to the same plan."""
        apart = ("background", "subjects", "network", "expect")
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in apart}
        own["loads"] = list(self.loads)
        expect = {
            name: {key: bounds.document() for key, bounds in wanted.items()}
            for name, wanted in self.expect.items()
        }
        return {
            "fairness": {key: value for key, value in own.items() if value not in (None, [])},
            "background": self.background.document(),
            "subject": {subject.name: subject.document() for subject in self.subjects},
            **({"path": self.network.document()} if self.network else {}),
            **({"expect": expect} if expect else {}),
        }


def load_plan(path: Path) -> ContentionPlan:
    """Reads a plan file.

    Raises:
        UsageError: when there is no such file or it is not TOML.
        SpecError: when something in it is unknown or not allowed; the line says where.
    """
    default = name_of(path, 48) or ContentionPlan.name
    return read_plan_file(path, lambda document: plan_from_document(document, default))


def plan_from_document(
    document: Mapping[str, Any], default_name: str = ContentionPlan.name
) -> ContentionPlan:
    """A plan from a document in the shape of a plan file.

    Raises:
        SpecError: when something in it is unknown or not allowed; the line says where.
    """
    _known("table", document, _PARTS)
    settings = _settings(_table(document, "fairness"))
    subjects = _table(document, "subject")
    return ContentionPlan(
        **{"name": default_name, **settings},
        background=read_contender("background", _table(document, "background")),
        subjects=tuple(
            read_contender(_checked_name(name), _table(subjects, name), part=f"subject.{name}")
            for name in subjects
        ),
        network=_network(document["path"]) if "path" in document else None,
        expect={
            name: read_expected(name, bounds) for name, bounds in _table(document, "expect").items()
        },
    )


def read_contender(name: str, table: Mapping[str, Any], part: str | None = None) -> Contender:
    """One side from its table.

    Raises:
        SpecError: when something in it is unknown or not allowed.
    """
    tool = table.get("tool", NATIVE)
    if not isinstance(tool, str) or not tool:
        raise SpecError(f"[{part or name}] tool: {tool!r} is not a name of a tool")
    rest = {key: value for key, value in table.items() if key != "tool"}
    return Contender(name, tool, dict(read_section(part or name, rest)))


def parse_contender(name: str, text: str, tools: tuple[str, ...]) -> Contender:
    """One side from `[TOOL/]TRANSPORT[:CONTROL][,OPTION=VALUE]`, as a command line has it.

    `tools` are the names of tools: a tool by itself means its TCP.

    Raises:
        SpecError: when something in it is unknown or not allowed.
    """
    first, *rest = [item.strip() for item in text.split(",")]
    kind, _, control = first.partition(":")
    tool, slash, transport = kind.rpartition("/")
    if not slash and kind in tools:
        tool, transport = kind, "tcp"
    try:
        options = {"transport": read_option(name, "transport", transport)}
    except SpecError as error:
        beside = "" if slash else f", or a tool: {', '.join(tools)}"
        # The word is not the option of that name, which is the transfer's.
        why = str(error).rpartition("transport: ")[2]
        raise SpecError(f"{name} {text!r}: {why}{beside}") from None
    if control:
        path = f"{transport}.congestion_control"
        options[path] = read_option(name, path, control)
    for item in rest:
        path, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise SpecError(f"{name} {item!r}: write OPTION=VALUE, such as streams=4")
        options[path] = read_option(name, path, value)
    return Contender(name, tool or NATIVE, options)


def expanded(text: str) -> list[str]:
    """Loads from a list of shares and rates, or a range FIRST..LAST+STEP of either.

    Raises:
        SpecError: when one cannot be read.
    """
    found: list[str] = []
    for item in (part.strip() for part in text.split(",")):
        match = _RANGE.fullmatch(item)
        found += _steps(match) if match else [item]
    for item in found:
        load_rate(item, 1e9)
    if len(found) > _MOST_LOADS:
        raise _refusal("loads", f"{counted(len(found), 'value')}; allowed: at most {_MOST_LOADS}")
    return found


def _steps(match: re.Match[str]) -> list[str]:
    """The loads of a range, all of one kind."""
    kind = "%" if match["first"].endswith("%") else "bit/s"
    whole = 1e9 if kind == "%" else 1.0
    first, last, step = (
        load_rate(match[name].strip(), 1e9 if match[name].strip().endswith("%") else None) / whole
        for name in ("first", "last", "step")
    )
    if not 0 < step <= last or first > last or (last - first) / step > _MOST_LOADS:
        raise _refusal("loads", f"{match[0]!r} is not FIRST..LAST+STEP, such as {LOADS}")
    count = int((last - first) / step + 1e-9) + 1
    values = [first + index * step for index in range(count)]
    return [f"{100 * value:g}%" if kind == "%" else f"{value:.0f}bit/s" for value in values]


def load_rate(text: str, capacity_bps: float | None) -> float:
    """One load as a rate.

    Raises:
        SpecError: for what is neither share nor rate, and a share of an unknown capacity.
    """
    try:
        if not text.endswith("%"):
            rate = float(parse_rate(text))
        elif capacity_bps is None:
            raise _refusal("loads", f"{text} of an unknown line: state its rate (capacity_bps)")
        else:
            rate = capacity_bps * float(text[:-1]) / 100
    except ValueError:
        raise _refusal("loads", f"{text!r} is not a load: write 50% or 20Mbit") from None
    if not 1 <= rate <= 1e12:
        raise _refusal("loads", f"{text} is out of range; allowed: above 0, at most 1 Tbit/s")
    return rate


def _settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of [fairness], read."""
    apart = ("background", "subjects", "network", "expect")
    known = tuple(item.name for item in fields(ContentionPlan) if item.name not in apart)
    _known("[fairness]", table, known)
    return {key: _setting(key, value) for key, value in table.items()}


def _setting(key: str, value: object) -> Any:
    if key == "loads":
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
            raise _refusal(key, f"{value!r} is not a text or a list of texts, such as {LOADS!r}")
        return tuple(load for text in texts for load in expanded(text))
    if isinstance(value, str) and (key.endswith("_s") or key.endswith("_bps")):
        try:
            return parse_rate(value) if key.endswith("_bps") else parse_duration(value)
        except ValueError as error:
            raise _refusal(key, str(error)) from None
    wanted = _KINDS.get(key, (int, float))
    if isinstance(value, bool) != (wanted is bool) or not isinstance(value, wanted):
        raise _refusal(key, f"{value!r} is not {_KIND_TEXT[wanted]}")
    return value


_KINDS: dict[str, Any] = {
    "name": str,
    "reference": str,
    "repetitions": int,
    "seed": int,
    "count_invalid": bool,
    "capacity_bps": int,
}
_KIND_TEXT = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    (int, float): "a number",
}


def _network(table: object) -> Network:
    """The table [path]."""
    if not isinstance(table, Mapping):
        raise SpecError("path: must be a table [path]")
    own = {item.name for item in fields(Network)} - {"options"}
    places: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, raw in table.items():
        if key in own:
            places[key] = _place(key, raw)
        else:
            options[key] = read_link_option(f"[path] {key}", key, raw)
    return Network(**places, options=options)


def _place(key: str, raw: object) -> Any:
    if key.endswith("_hosts"):
        if not isinstance(raw, list) or len(raw) != 2 or not all(isinstance(n, str) for n in raw):
            raise SpecError(f"[path] {key}: {raw!r} is not a list of two hosts, client and server")
        return tuple(raw)
    if key == "background_rtt_s":
        return read_link_option(f"[path] {key}", "rtt_s", raw)
    if not isinstance(raw, str) or not raw:
        raise SpecError(f"[path] {key}: {raw!r} is not a text")
    return raw


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, Mapping):
        raise SpecError(f"{name}: must be a table [{name}]")
    return table


def _known(place: str, table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            raise SpecError(f"{place} {key}: unknown; {unknown(key, allowed)}")


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name == "background":
        raise SpecError(
            f"[subject.{name}]: a name is 1 to 48 letters, digits, '_' or '-', not 'background'"
        )
    return name


def _check_range(key: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise _refusal(key, f"{value:g} is out of range; allowed: {low:g} to {high:g}")


def _refusal(key: str, why: str) -> SpecError:
    return SpecError(f"[fairness] {key}: {why}")
