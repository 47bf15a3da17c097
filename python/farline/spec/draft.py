"""From parsed command-line values to settings by dotted path, contradictions refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from farline.spec.letters import PEER_FLAGS, PEER_PREFIX, dscp_value
from farline.spec.table import OPTIONS, TRANSPORT_SECTIONS, Option
from farline.spec.values import option_at, read_pair, read_sweep, read_value

TRANSPORT_DEFAULT = "tcp"


@dataclass
class Draft:
    """Settings so far, and the flag that made each."""

    sweep: bool
    settings: dict[str, Any] = field(default_factory=dict)
    made_by: dict[str, str] = field(default_factory=dict)

    def put(self, path: str, value: object, flag: str) -> None:
        """Settles `path`; two flags may not say two things about one option."""
        if path in self.settings and self.settings[path] != value:
            raise click.UsageError(f"{flag} and {self.made_by[path]} both set {path}: use one")
        self.settings[path] = value
        self.made_by[path] = flag

    def read(self, path: str, text: str, flag: str, bare: bool = False) -> object:
        """A value (with `sweep`, a tuple of them) of the option at `path`."""
        option = option_at(path)
        try:
            read = read_sweep if self.sweep else read_value
            return read(option, text, bare)
        except ValueError as error:
            raise click.UsageError(f"{flag}: {error}") from None

    def transports(self) -> tuple[str, ...]:
        """The transport chosen, or the several that are compared."""
        chosen = self.settings.get("transport", TRANSPORT_DEFAULT)
        return chosen if isinstance(chosen, tuple) else (chosen,)

    def sections(self) -> list[str]:
        """Sections that a flag which transports share goes to."""
        known = [name for name in self.transports() if name in TRANSPORT_SECTIONS]
        return known or [TRANSPORT_DEFAULT]


def settings_of(values: Mapping[str, Any], sweep: bool) -> Draft:
    """Settings from what click parsed, iperf3's letters resolved.

    Raises:
        click.UsageError: when a letter cannot be read or options contradict each other.
    """
    draft = Draft(sweep)
    _put_transport(draft, values)
    _put_table(draft, values)
    _put_direction(draft, values)
    _put_sizes(draft, values)
    _put_places(draft, values)
    _put_modes(draft, values)
    for text in values.get("sweep", ()):
        _put_sweep(draft, text)
    return draft


def _put_transport(draft: Draft, values: Mapping[str, Any]) -> None:
    if values.get("transport") is not None:
        draft.put("transport", values["transport"], "--transport")
    if values.get("udp"):
        draft.put("transport", ("udp",) if draft.sweep else "udp", "-u")


def _put_table(draft: Draft, values: Mapping[str, Any]) -> None:
    """Options of the table: click has read their value, unless options that share a flag differ."""
    for option in OPTIONS:
        if option.path in ("transport", "rate_bps", "pairs"):
            continue
        if _belongs_elsewhere(draft, option):
            continue
        for name, flags in _spellings(option).items():
            value = values.get(name)
            if value is None or not flags:
                continue
            if isinstance(value, str) and reads_differ(sharing(option)):
                value = draft.read(option.path, value, flags[0])
            draft.put(option.path, value, flags[0])


def _spellings(option: Option) -> dict[str, list[str]]:
    """The flags of an option by the name that click has their value under."""
    peers = [flag for flag in option.flags if flag in PEER_FLAGS]
    own = [flag for flag in option.flags if flag not in PEER_FLAGS]
    if not (peers and own):
        return {option.name: list(option.flags)}
    return {PEER_PREFIX + option.name: peers, option.name: own}


def sharing(option: Option) -> list[Option]:
    """The options that have its flag, of which the transport chosen says which is meant."""
    return [other for other in OPTIONS if other.flags and other.name == option.name]


def reads_differ(options: Sequence[Option]) -> bool:
    """Whether one text would be read in more than one way."""
    kinds = {(each.kind, each.choices, each.minimum, each.maximum) for each in options}
    return len(kinds) > 1


def _belongs_elsewhere(draft: Draft, option: Option) -> bool:
    """Whether another option has its flag and is the one that is meant.

    Where none fits the transport the first stands for all: the spec then refuses its section.
    """
    others = sharing(option)
    if len(others) < 2:
        return False
    meant = [other for other in others if other.section in draft.sections()]
    return option not in (meant or others[:1])


def _put_direction(draft: Draft, values: Mapping[str, Any]) -> None:
    for name, flag, word in (("reverse", "-R", "reverse"), ("bidir", "--bidir", "bidirectional")):
        if values.get(name):
            draft.put("direction", (word,) if draft.sweep else word, flag)


def _put_sizes(draft: Draft, values: Mapping[str, Any]) -> None:
    if values.get("length") is not None:
        path = _length_path(draft)
        draft.put(path, draft.read(path, values["length"], "-l"), "-l")
    if values.get("window") is not None:
        for section in draft.sections():
            # RBUDP and QUIC have no buffers but those of their sockets.
            own = "udp_" if section in ("rbudp", "quic") else ""
            for end in ("send", "receive"):
                path = f"{section}.{own}{end}_buffer_bytes"
                draft.put(path, draft.read(path, values["window"], "-w"), "-w")
    if values.get("blocks") is not None:
        draft.put("total_bytes", _blocks_bytes(draft, values["blocks"]), "-k")
    for name, flag, bare in ((f"{PEER_PREFIX}rate_bps", "-b", True), ("rate_bps", "--rate", False)):
        if values.get(name) is not None:
            _put_rate(draft, str(values[name]), flag, bare)


def _length_path(draft: Draft) -> str:
    transports = draft.transports()
    if len(transports) > 1 and "udp" in transports:
        raise click.UsageError(
            "-l is a block with TCP and a datagram with UDP: use --block and --packet"
        )
    return "udp.packet_bytes" if "udp" in transports else "block_bytes"


def _blocks_bytes(draft: Draft, text: str) -> int:
    size = draft.settings.get(_length_path(draft))
    if size is None:
        raise click.UsageError("-k counts blocks: set the block size with -l")
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise click.UsageError(f"-k: {text!r} is not a whole number above 0")
    return count * int(size)


def _put_rate(draft: Draft, text: str, flag: str, bare: bool) -> None:
    """`RATE`, or iperf3's `RATE/BURST`; a slash before `s` belongs to the unit."""
    rate, slash, burst = text.rpartition("/")
    if draft.sweep or not (slash and burst.isdigit()):
        draft.put("rate_bps", draft.read("rate_bps", text, flag, bare), flag)
        return
    if draft.sections() != ["udp"]:
        raise click.UsageError(f"{flag} RATE/BURST counts datagrams: it needs -u")
    draft.put("rate_bps", draft.read("rate_bps", rate, flag, bare), flag)
    draft.put("udp.batch_packets", draft.read("udp.batch_packets", burst, flag), flag)


def _put_places(draft: Draft, values: Mapping[str, Any]) -> None:
    pairs = values.get("pairs") or ()
    if pairs:
        draft.put("pairs", draft.read("pairs", ",".join(pairs), "--pair"), "--pair")
    if values.get("bind") is not None:
        draft.put("pairs", _alone(draft, [_pair("-B", values["bind"])]), "-B")
    if values.get("affinity") is not None:
        client, _, server = values["affinity"].partition(",")
        for path, text in (("client_cpus", client), ("server_cpus", server)):
            if text:
                draft.put(path, draft.read(path, text, "-A"), "-A")
    for name, flag, word in (("version4", "-4", "v4"), ("version6", "-6", "v6")):
        if values.get(name):
            draft.put("ip_version", _alone(draft, word), flag)


def _pair(flag: str, text: str) -> dict[str, str]:
    try:
        if "=" in text:
            raise ValueError(f"{text!r} includes a destination: use --pair for that")
        return read_pair(text)
    except ValueError as error:
        raise click.UsageError(f"{flag}: {error}") from None


def _alone(draft: Draft, value: object) -> object:
    return (value,) if draft.sweep else value


def _put_modes(draft: Draft, values: Mapping[str, Any]) -> None:
    if values.get("zerocopy"):
        draft.put("tcp.send_mode", _alone(draft, "sendfile"), "-Z")
    if values.get("skip_rx_copy"):
        draft.put("tcp.receive_mode", _alone(draft, "discard"), "--skip-rx-copy")
    if values.get("gsro"):
        for section in [name for name in draft.sections() if name != "tcp"] or ["udp"]:
            draft.put(f"{section}.gso", True, "--gsro")
            draft.put(f"{section}.gro", True, "--gsro")
    if values.get("dscp") is not None:
        try:
            draft.put("tos", _alone(draft, dscp_value(values["dscp"]) << 2), "--dscp")
        except ValueError as error:
            raise click.UsageError(f"--dscp: {error}") from None


def _put_sweep(draft: Draft, text: str) -> None:
    path, equals, alternatives = text.partition("=")
    if not equals:
        raise click.UsageError(f"--sweep: {text!r} has no values: write PATH=VALUES")
    try:
        option = option_at(path.strip())
        if not option.sweep:
            raise ValueError(f"{option.path} cannot vary within a campaign")
    except ValueError as error:
        raise click.UsageError(f"--sweep: {error}") from None
    draft.put(option.path, draft.read(option.path, alternatives, "--sweep"), "--sweep")
