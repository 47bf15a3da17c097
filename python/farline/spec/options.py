"""Command-line options of `probe`, `profile` and `copy`, made from the generated option table.

`run_options` decorates a command with every option of a run, iperf3's letters
among them; `copy_options` with those of a copy, where one-letter flags belong to
the options of files, as people know them from rsync and scp. `spec_from_options`
turns what click parsed into a spec document, `grid_from_options` into a fixed part
and axes. iperf3's letters mean what they mean in iperf3: with UDP, `-l` is the size
of a datagram; `-w` sets both buffers; `-b RATE/BURST` also sets how many datagrams go
back to back; `-Z` is sendfile. Behind its spellings of a time or a rate a bare number is what
it is there; farline's own spellings of the same option need a unit.
A flag that several transports share goes to the section of the one chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import click

from farline.spec.draft import reads_differ, settings_of
from farline.spec.letters import LETTERS, PEER_FLAGS, PEER_PREFIX, Letter
from farline.spec.option_help import option_help, with_note
from farline.spec.table import COPY, OPTIONS, TRANSPORT_SECTIONS, Option
from farline.spec.units import parse_bwlimit, parse_modify_window
from farline.spec.values import read_sweep, read_value

_Command = TypeVar("_Command", bound=Callable[..., Any])
_LETTER_FLAGS = {flag for letter in LETTERS for flag in letter.flags}
_METAVARS = {
    "size": "SIZE",
    "rate": "RATE",
    "seconds": "DURATION",
    "ms": "DURATION",
    "integer": "N",
    "number": "SHARE",
    "string": "TEXT",
    "array": "N,N,...",
}

_BARE_METAVARS = {"seconds": "SECONDS", "rate": "RATE"}
_BARE_NOTES = {
    "seconds": "a bare number is seconds, as in iperf3",
    "rate": "a bare number is bits per second, as in iperf3",
}

NOT_OF_COPIES = frozenset(
    (
        "block_bytes",  # chunks are the unit: copy.chunk_bytes
        "direction",  # follows from which end is the remote one
        "duration_s",
        "extra_data",
        "omit_s",
        "rbudp.file",
        "seed",  # there is no payload to make up
        "tcp.receive_mode",  # files are received by read alone
        "tcp.send_mode",  # files have copy.read_engine
        "title",  # a copy's is --label
        "total_bytes",
    )
)
"""Options of a run that a copy has not, by path."""

_COPY_CHOICES = {
    "transport": ("tcp", "udt", "rbudp", "quic"),
    "rbudp.receiver": ("naive", "gather"),
}
"""Words that a copy takes, where a run takes more."""

_COPY_HELP = {
    "rbudp.loss_bound": "Reduce the rate while more than this share of packets is lost, then raise"
    " it again up to --rate (default 0.01 without --rate, never with it).",
    "streams": "Use this many parallel streams (default: as tuned, or by RTT and buffers).",
    "rate_bps": "Limit each stream's payload rate; 0 means no limit (default: no limit; RBUDP"
    " starts at the interface's rate and yields to loss).",
    "copy.modify_window_s": "Treat modification times this close as equal; a bare number is"
    " seconds, -1 means exactly equal (default: what the destination can store).",
    "copy.total_rate_bps": "Limit the rate over all streams, as in rsync: a bare number is KiB/s,"
    " 10M is MiB/s, 100Mbit/s is as written; 0 means no limit (default: no limit).",
}

_COPY_DEFAULTS = {"interval_s": 0.5}
"""Defaults that a copy has of its own."""

_AS_RSYNC: dict[str, Callable[[str], object]] = {
    "copy.total_rate_bps": parse_bwlimit,
    "copy.modify_window_s": parse_modify_window,
}
"""Options of a copy that rsync has too, read as rsync reads them."""

_COPY_FLAGS = {"rbudp.checksum": ("--blast-checksum",)}
"""Flags that mean something else in a copy (`--checksum` compares files)."""

_COPY_LETTERS = ("window", "affinity", "bind", "version4", "version6", "dscp")
_COPY_SHORT = ("-4", "-6")

_PAIR = "SOURCE[%DEVICE][=DESTINATION]"


@dataclass(frozen=True)
class Grid:
    """What a command line or a plan asks for: a spec document, and the axes to vary over it.

    `fixed` is a spec document; `axes` has the alternatives of each dotted path,
    in the order given. An axis of a section (`tcp.…`, `udt.…`) applies to runs
    of that transport only.
    """

    fixed: dict[str, Any] = field(default_factory=dict)
    axes: dict[str, tuple[Any, ...]] = field(default_factory=dict)


class TableOption(click.Option):
    """A flag, with the options of the table that it stands for."""

    def __init__(
        self,
        *args: Any,
        options: Sequence[Option] = (),
        bare: bool = False,
        peer: str | None = None,
        **more: Any,
    ) -> None:
        """`bare`: a number needs no unit behind it; `peer`: a peer's spelling of the same."""
        super().__init__(*args, **more)
        self.options = tuple(options)
        self.bare = bare
        self.peer = peer

    @property
    def sections(self) -> tuple[str, ...]:
        """Sections of its options: transports, `copy` or `run`."""
        return tuple(option.section for option in self.options)

    @property
    def is_of_transports(self) -> bool:
        """Whether only some transports have it."""
        return all(section in TRANSPORT_SECTIONS for section in self.sections)


def transport_sections(command: click.Command) -> tuple[str, ...]:
    """Transports of which a command has options of their own, in the order of the table."""
    options = [one for one in command.params if isinstance(one, TableOption)]
    found = {section for one in options if one.is_of_transports for section in one.sections}
    return tuple(section for section in TRANSPORT_SECTIONS if section in found)


def section_metavar(flag: TableOption, section: str) -> str | None:
    """What stands for the value of a flag where it is the option of one transport."""
    option = next(one for one in flag.options if one.section == section)
    if option.kind == "flag":
        return None
    return _BARE_METAVARS[option.kind] if flag.bare else _metavar(option)


def section_help(flag: TableOption, section: str) -> str:
    """The help of a flag where it is the option of one transport."""
    if flag.peer is not None:
        return flag.help or ""
    option = next(one for one in flag.options if one.section == section)
    text = option_help(option)
    return with_note(text, _BARE_NOTES[option.kind]) if flag.bare else text


class OptionType(click.ParamType[object]):
    """Reads one option of a table, or several alternatives of it."""

    name = "value"

    def __init__(self, read: Callable[[str], object]) -> None:
        """Reads a text by `read`, which refuses with a ValueError."""
        self.read = read

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """The value in the option's unit, or a tuple of values."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def run_options(sweep: bool, tools: bool = True) -> Callable[[_Command], _Command]:
    """Adds every option of a run to a command.

    With `sweep`, lists and ranges are values too; without `tools`, farline's own engine is the only
    one.
    """

    def decorate(command: _Command) -> _Command:
        for letter in reversed(LETTERS):
            if letter.sweeps or not sweep:
                command = _letter_option(letter, sweep)(command)
        is_wanted = _is_of_runs if tools else _is_of_own_runs
        for name, options in reversed(_by_name(is_wanted).items()):
            command = _spelled_options(name, options, sweep, options[0].flags)(command)
        return _sweep_option(command) if sweep else command

    return decorate


def copy_options(command: _Command) -> _Command:
    """Adds every option that a copy has to a command; one-letter flags are those of files."""
    for letter in reversed(LETTERS):
        if letter.name in _COPY_LETTERS:
            flags = [flag for flag in letter.flags if flag in _COPY_SHORT or flag[:2] == "--"]
            command = _letter_option(replace(letter, flags=tuple(flags)), sweep=False)(command)
    named = sorted(_by_name(_is_of_copies).items(), key=lambda one: one[1][0].section != COPY)
    for name, all_options in reversed(named):
        options = [_in_copies(option) for option in all_options]
        if options[0].path != "copy.delete":
            command = _spelled_options(name, options, False, _copy_flags(options[0]))(command)
    return command


def _is_of_runs(option: Option) -> bool:
    return option.section != COPY


def _is_of_own_runs(option: Option) -> bool:
    return _is_of_runs(option) and option.path.split("_")[0] != "tool"


def _is_of_copies(option: Option) -> bool:
    return option.path not in NOT_OF_COPIES and option.section != "udp"


def _in_copies(option: Option) -> Option:
    """The option as a copy takes it."""
    choices = _COPY_CHOICES.get(option.path, option.choices)
    if option.path == "copy.write_engine":
        # One type has the words of both ends.
        choices = tuple(word for word in choices if word != "sendfile")
    return replace(
        option,
        choices=choices,
        help=_COPY_HELP.get(option.path, option.help),
        default=_COPY_DEFAULTS.get(option.path, option.default),
    )


def _copy_flags(option: Option) -> tuple[str, ...]:
    """Its flags in a copy: the letters of a run's options are other options there."""
    if option.section == COPY:
        return option.flags
    long = tuple(flag for flag in option.flags if flag.startswith("--"))
    return _COPY_FLAGS.get(option.path, long)


def _sweep_option(command: _Command) -> _Command:
    return click.option(
        "--sweep",
        "sweep",
        multiple=True,
        metavar="PATH=VALUES",
        help="Vary any option, by its name in a plan, such as tcp.no_delay=on,off.",
    )(command)


def _by_name(wanted: Callable[[Option], bool]) -> dict[str, list[Option]]:
    """Wanted options with flags by name: those that share a flag share the name."""
    named: dict[str, list[Option]] = {}
    for option in OPTIONS:
        if option.flags and wanted(option):
            named.setdefault(option.name, []).append(option)
    return named


def _spelled_options(
    name: str, options: list[Option], sweep: bool, spellings: Sequence[str]
) -> Callable[[_Command], _Command]:
    """An option; as two where a peer spells it too and reads a bare number its own way."""
    peers = [flag for flag in spellings if flag in PEER_FLAGS]
    own = [flag for flag in spellings if flag not in PEER_FLAGS]

    def decorate(command: _Command) -> _Command:
        if own:
            command = _table_option(name, options, sweep, own)(command)
        if peers:
            named = PEER_PREFIX + name if own else name
            command = _table_option(named, options, sweep, peers, bare=True)(command)
        return command

    return decorate


def _table_option(
    name: str, options: list[Option], sweep: bool, spellings: Sequence[str], bare: bool = False
) -> Callable[[_Command], _Command]:
    option = options[0]
    flags = [flag for flag in spellings if flag not in _LETTER_FLAGS]
    peer = None if bare else _peer_spelling(option)
    more: dict[str, Any] = {"cls": TableOption, "options": options, "bare": bare, "peer": peer}
    if option.kind == "flag":
        switch = _switch(flags)
        return click.option(*switch, name, default=None, is_flag=True, help=_help(options), **more)
    return click.option(
        *flags,
        name,
        type=(
            click.STRING
            if reads_differ(options)
            else _type_of(option, sweep and option.sweep, bare)
        ),
        metavar=_BARE_METAVARS[option.kind] if bare else _flag_metavar(options),
        multiple=option.path == "pairs",
        default=None,
        help=_flag_help(options, bare, peer),
        **more,
    )


def _peer_spelling(option: Option) -> str | None:
    """A peer's long spelling of an option, if one has it."""
    found = [flag for flag in option.flags if flag in PEER_FLAGS and flag[:2] == "--"]
    return found[0] if found else None


def _flag_help(options: Sequence[Option], bare: bool, peer: str | None) -> str:
    if peer is not None:
        return f"Same as {peer}, with a unit."
    return with_note(_help(options), _BARE_NOTES[options[0].kind]) if bare else _help(options)


def _flag_metavar(options: Sequence[Option]) -> str:
    """One metavar for all that share a flag: their words together."""
    if options[0].path == "tool":
        return "TOOL"
    if all(option.choices for option in options):
        return "|".join(dict.fromkeys(word for one in options for word in one.choices))
    return _metavar(options[0])


def _metavar(option: Option) -> str:
    if option.path == "pairs":
        return _PAIR
    return _METAVARS.get(option.kind, "|".join(option.choices))


def _type_of(option: Option, sweep: bool, bare: bool) -> click.ParamType[Any]:
    """`-b` and `--pair` are read by `draft`: one may say two things, one comes several times."""
    if option.path in _AS_RSYNC:
        return OptionType(_AS_RSYNC[option.path])
    by_hand = option.path in ("rate_bps", "pairs")
    return (
        click.STRING
        if by_hand
        else OptionType(partial(read_sweep if sweep else read_value, option, bare=bare))
    )


def _switch(flags: list[str]) -> list[str]:
    """`--gso` becomes `--gso/--no-gso`; short spellings stay as they are."""
    long = next(flag for flag in flags if flag.startswith("--"))
    off = f"--no-{long[2:]}" if not long.startswith("--no-") else f"--{long[5:]}"
    return [flag if flag != long else f"{long}/{off}" for flag in flags]


def _help(options: Sequence[Option]) -> str:
    """The help of a flag; of options that share it, what each transport makes of it."""
    sections: dict[str, list[str]] = {}
    for option in options:
        sections.setdefault(option_help(option), []).append(option.section)
    if len(sections) == 1:
        return next(iter(sections))
    return " ".join(f"{_section_names(names)}: {text}" for text, names in sections.items())


def _section_names(names: Sequence[str]) -> str:
    return ", ".join(name.upper() for name in names)


def _letter_option(letter: Letter, sweep: bool) -> Callable[[_Command], _Command]:
    if letter.metavar is None:
        return click.option(*letter.flags, letter.name, is_flag=True, help=letter.help)
    return click.option(
        *letter.flags, letter.name, metavar=letter.metavar, default=None, help=letter.help
    )


def spec_from_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """A spec document from what click parsed for `run_options(sweep=False)`.

    Raises:
        click.UsageError: when options contradict each other.
    """
    return nested(settings_of(values, sweep=False).settings)


def grid_from_options(values: Mapping[str, Any]) -> Grid:
    """Fixed part and axes from what click parsed for `run_options(sweep=True)`.

    Raises:
        click.UsageError: when options contradict each other.
    """
    draft = settings_of(values, sweep=True)
    fixed = {path: value for path, value in draft.settings.items() if not _varies(value)}
    axes = {path: value for path, value in draft.settings.items() if _varies(value)}
    return Grid(nested({path: _single(value) for path, value in fixed.items()}), axes)


def _varies(value: object) -> bool:
    return isinstance(value, tuple) and len(value) > 1


def _single(value: object) -> object:
    return value[0] if isinstance(value, tuple) else value


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`{"tcp.mss_bytes": 1400}` becomes `{"tcp": {"mss_bytes": 1400}}`."""
    document: dict[str, Any] = {}
    for path, value in settings.items():
        section, dot, name = path.partition(".")
        if dot:
            document.setdefault(section, {})[name] = value
        else:
            document[path] = value
    return document
