"""The options of `farline copy`: those of the spec, and the letters of rsync and scp."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import click

from farline.cli.command import Command
from farline.cli.copy.filters import FILTERS, rules_of
from farline.cli.copy.habits import habit_options, notes, refuse_letters, refuse_words
from farline.cli.words import Words
from farline.spec.draft import Draft, settings_of
from farline.spec.letters import LETTERS
from farline.spec.options import OptionType, copy_options, nested
from farline.spec.units import parse_duration

_Command = TypeVar("_Command", bound=Callable[..., Any])

_ORDER = "farline.copy.filters"

_Set = tuple[tuple[str, Any], ...]
_SHORTHANDS: dict[str, tuple[str, _Set]] = {
    "archive": (
        "-a",
        (
            ("copy.recursive", True),
            ("copy.links", "keep"),
            ("copy.modes", True),
            ("copy.times", True),
        ),
    ),
    "keep_times": ("-t", (("copy.times", True),)),
    "keep_modes": ("--perms", (("copy.modes", True),)),
    "no_modes": ("--no-perms", (("copy.modes", False),)),
    "keep_holes": ("-S", (("copy.sparse", True),)),
    "ignore_times": ("-I", (("copy.overwrite", "always"),)),
    "preserve": ("-p", (("copy.modes", True), ("copy.times", True))),
    "update": ("-u", (("copy.overwrite", "older"),)),
    "by_checksum": ("-c", (("copy.sync_level", "checksum"),)),
    "size_only": ("--size-only", (("copy.sync_level", "size"),)),
    "ignore_existing": (
        "--ignore-existing",
        (("copy.sync_level", "exists"), ("copy.overwrite", "never")),
    ),
    "copy_links": ("-L", (("copy.links", "follow"),)),
    "no_encrypt": ("--no-encrypt", (("copy.cipher", "none"),)),
}
"""Flags that stand for options of the spec: what is shown in a contradiction, and what they set."""


class CopyCommand(Command):
    """A command whose `--delete` may have a count, and whose filters keep their order."""

    sets: ClassVar[Mapping[str, Sequence[str]]] = {
        **{letter.name: letter.sets for letter in LETTERS},
        **{name: [path for path, _ in settings] for name, (_, settings) in _SHORTHANDS.items()},
        **dict.fromkeys(FILTERS, ("copy.filters",)),
        "label": ("title",),
        "source_list": ("copy.source_list",),
        "delete": ("copy.delete",),
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses `args`; click would take the word behind a bare `--delete` for its count."""
        refuse_words(args)
        words = _without_bundled_help(_spelled(args), self.get_params(ctx))
        if any(word.startswith(("--include", "--exclude", "--filter", "-f")) for word in words):
            # click gathers each flag's values, but not how flags stood between each other.
            ctx.meta[_ORDER] = self._filter_order(ctx, words)
        return super().parse_args(ctx, words)

    def _filter_order(self, ctx: click.Context, words: Sequence[str]) -> list[str]:
        try:
            _, _, order = self.make_parser(ctx).parse_args(list(words))
        except click.NoSuchOption as error:
            raise self.no_such_option(ctx, error.option_name) from None
        return [param.name for param in order if param.name in FILTERS]


_DELETES = ("--delete", "--delete-after", "--delete-delay")
"""Deletion comes last here, so all of them are one."""


def _spelled(args: Sequence[str]) -> list[str]:
    end = args.index("--") if "--" in args else len(args)
    head = ["--delete-asked" if word in _DELETES else word for word in args[:end]]
    return [*head, *args[end:]]


def _without_bundled_help(words: list[str], params: Sequence[click.Parameter]) -> list[str]:
    """`-ah` means sizes for people, as with rsync, which is so anyway; `-h` alone is help."""
    options = [param for param in params if isinstance(param, click.Option)]
    flags = {flag[1:] for one in options if one.is_flag for flag in one.opts if len(flag) == 2}
    flags.add("h")
    found: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            return [*found, *words[at:]]
        if len(word) < 3 or word[0] != "-" or word[1] == "-":
            found.append(word)
            continue
        # Behind a letter that takes a value stands its value.
        end = next((at for at, one in enumerate(word[1:], 1) if one not in flags), len(word))
        head = word[1:end].replace("h", "")
        rest = head + word[end:]
        found += [f"-{rest}"] if rest else []
        found += ["--human-readable"] if len(head) < end - 1 else []
    return found


def _read_port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text[:9]) <= 65535:
        raise ValueError(
            f"{text!r} is not a port: -P is the port of ssh, as in scp; for iperf3's parallel"
            " streams write --streams N; rsync's -P (--partial --progress) is on by default"
        )
    return int(text)


def _read_start(text: str) -> float:
    seconds = parse_duration(text)
    if seconds <= 0:
        raise ValueError(
            f"{text!r} is out of range; allow some time for farline to start, such as 2m"
        )
    return seconds


def _read_delete(text: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise ValueError(f"{text!r} is not a number of names: write --delete=COUNT")
    return int(text)


def login_options(command: _Command) -> _Command:
    """How ssh is called."""
    for decorate in reversed(
        (
            click.option(
                "-e", "--rsh", metavar="CMD", help="Connect with this command (default ssh)."
            ),
            click.option(
                "-P",
                "--port",
                type=OptionType(_read_port),
                metavar="PORT",
                help="Connect to this port with ssh, as scp's -P.",
            ),
            click.option("-i", "--identity", metavar="FILE", help="Use this private key with ssh."),
            click.option(
                "-o",
                "--ssh-option",
                multiple=True,
                metavar="OPTION",
                help="Pass this option to ssh, such as ConnectTimeout=5; repeat for several.",
            ),
            click.option(
                "-F", "--ssh-config", metavar="FILE", help="Use this configuration file with ssh."
            ),
            click.option(
                "-J", "--jump", metavar="HOST", help="Connect with ssh through this host."
            ),
            click.option(
                "--start-timeout",
                type=OptionType(_read_start),
                metavar="DURATION",
                help="Give up when farline has not started on the other host in this time (default"
                " 60s; 180s while ssh may be asking for a password).",
            ),
        )
    ):
        command = decorate(command)
    return command


remote_farline_option = click.option(
    "--remote-farline",
    metavar="CMD",
    help="Run this command as farline on the other host (default farline in the PATH there, or in"
    " the usual folders).",
)


def ssh_options(command: _Command) -> _Command:
    """How hosts are reached over ssh, and what is started there."""
    for decorate in reversed(
        (
            login_options,
            remote_farline_option,
            click.option(
                "--bootstrap",
                is_flag=True,
                help="Send a program for this copy to the other host if farline is not installed"
                " there; kept in ~/.cache/farline there (see farline bootstrap).",
            ),
            click.option(
                "--bootstrap-program",
                type=click.Path(path_type=Path, exists=True, dir_okay=False),
                metavar="FILE",
                help="Send this program with --bootstrap, not one that comes with farline.",
            ),
            click.option(
                "--tunnel",
                is_flag=True,
                help="Send the data through ssh, where firewalls leave no other way.",
            ),
            click.option(
                "--connect-back",
                type=click.IntRange(0, 65535),
                metavar="PORT",
                help="Have the other host connect to PORT of this one; 0 means any port.",
            ),
            click.option(
                "--single-port",
                is_flag=True,
                help="Use one port of the other host for control and data.",
            ),
            click.option(
                "--data-ports",
                metavar="FIRST-LAST",
                help="Use these ports of the other host for data streams.",
            ),
        )
    ):
        command = decorate(command)
    return command


def letter_options(command: _Command) -> _Command:
    """What people know from rsync and scp."""
    command = filter_options(command)
    for decorate in reversed(
        (
            _flag("-a", "--archive", help="No-op: on by default."),
            _flag("-p", "--preserve", help="No-op: on by default."),
            _flag("-t", "keep_times", help="No-op: on by default."),
            _flag("--perms", "keep_modes", help="No-op: on by default."),
            _flag(
                "--no-perms",
                "no_modes",
                help="Set permission bits by the umask: same as --no-modes.",
            ),
            _flag("-S", "keep_holes", help="No-op: on by default."),
            _flag(
                "-I", "--ignore-times", help="Copy every file again: same as --overwrite always."
            ),
            _flag(
                "-u",
                "--update",
                help="Replace what differs and is not newer: same as --overwrite older.",
            ),
            _flag(
                "-c",
                "--checksum",
                "by_checksum",
                help="Compare files by checksum: same as --sync-level checksum.",
            ),
            _flag("--size-only", help="Compare files by size only: same as --sync-level size."),
            _flag(
                "--ignore-existing",
                help="Skip files that exist at the destination: same as --sync-level exists.",
            ),
            _flag(
                "-L",
                "--copy-links",
                help="Copy what symbolic links point at: same as --links follow.",
            ),
            _flag("--no-encrypt", help="Send the data unencrypted: same as --cipher none."),
            _flag("-z", "--compress", help="Not supported: data are not compressed."),
        )
    ):
        command = decorate(command)
    return habit_options(command)


def filter_options(command: _Command) -> _Command:
    """Which names are copied, and which are deleted."""
    for decorate in reversed(
        (
            click.option(
                "--include", multiple=True, metavar="PATTERN", help="Include files that match."
            ),
            click.option(
                "--exclude", multiple=True, metavar="PATTERN", help="Exclude files that match."
            ),
            click.option(
                "--include-from",
                multiple=True,
                metavar="FILE",
                help="Include files that match a line of FILE.",
            ),
            click.option(
                "--exclude-from",
                multiple=True,
                metavar="FILE",
                help="Exclude files that match a line of FILE.",
            ),
            click.option(
                "-f",
                "--filter",
                "filters",
                multiple=True,
                metavar="RULE",
                help="Include with '+ PATTERN', exclude with '- PATTERN', read rules with '. FILE';"
                " the first rule that matches applies.",
            ),
            _flag(
                "-0",
                "--from0",
                help="Read names and patterns that end with a zero byte from files.",
            ),
            click.option(
                "--files-from",
                "source_list",
                metavar="FILE",
                help="Copy only the names listed in FILE, relative to the source; - is standard"
                " input.",
            ),
            click.option(
                "--delete",
                type=OptionType(_read_delete),
                metavar="[=COUNT]",
                help="Delete what the sources do not have, after asking; scripts state the COUNT.",
            ),
            click.option("--delete-asked", is_flag=True, hidden=True),
        )
    ):
        command = decorate(command)
    return command


def _flag(*names: str, help: str) -> Callable[[_Command], _Command]:
    return click.option(*names, is_flag=True, help=help)


def node_options(command: _Command) -> _Command:
    """What concerns an end of several nodes."""
    for decorate in reversed(
        (
            click.option(
                "--nodes",
                metavar="N|SETTING",
                help="Use at most N nodes of each end that has several, or a setting such as"
                " 4stm-1str-2n-1str-2n: 4 streams, 1 stripe (pair of processes), 2 nodes a side.",
            ),
            click.option(
                "--own-disks",
                type=Words(["source", "destination", "both"]),
                help="The nodes of this end have disks of their own: put each file whole on one"
                " node, or send what each node has, and say on which node each file is.",
            ),
            click.option(
                "--place-streams",
                type=Words(["auto", "off"]),
                help="Run the streams of each node on the CPUs beside the network interface that"
                " carries them, where a node has several NUMA nodes (auto), or leave them to the"
                " kernel (off) (default auto; needs an end with several nodes).",
            ),
        )
    ):
        command = decorate(command)
    return command


def manner_options(command: _Command) -> _Command:
    """How a copy is repeated, shown and kept."""
    for decorate in reversed(
        (
            click.option(
                "--retries",
                type=click.IntRange(0, 1_000_000),
                metavar="N",
                help="Retry at most N times (default: no limit but --retry-for).",
            ),
            click.option(
                "--retry-for",
                type=OptionType(parse_duration),
                metavar="DURATION",
                default=600.0,
                help="Give up when no byte has moved for this long (default 10m).",
            ),
            click.option(
                "--tune",
                type=Words(["auto", "stored", "off"]),
                help="Without --streams: use what was found for the path and change the number of"
                " streams while a long copy runs (auto), only use what was found (stored), or"
                " neither (off) (default auto).",
            ),
            click.option(
                "--max-harm",
                type=click.FloatRange(0, 1, min_open=True, max_open=True),
                metavar="SHARE",
                help="Slow down before others on the path lose more than this share of their rate,"
                " such as 0.2, by what this copy sees of queues and losses.",
            ),
            node_options,
            click.option(
                "--receipt", metavar="FILE", help="Write one JSON line for each name to FILE."
            ),
            click.option("--label", metavar="TEXT", help="Store this title with the record."),
            click.option("-v", "--verbose", is_flag=True, help="Print each file and each step."),
            click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
            click.option(
                "--progress/--no-progress",
                default=None,
                help="Show progress (default on: a bar on a terminal, lines elsewhere).",
            ),
            click.option("--stats", is_flag=True, help="Print where the time went at the end."),
            click.option(
                "--json", "as_json", is_flag=True, help="Print the record as one JSON document."
            ),
            click.option(
                "--json-stream", "as_stream", is_flag=True, help="Print JSON events as they happen."
            ),
        )
    ):
        command = decorate(command)
    return copy_options(command)


@dataclass(frozen=True)
class CopySettings:
    """What a command line asks of the engine: a spec document without the two ends."""

    document: dict[str, Any]
    delete_asked: bool
    notes: tuple[str, ...] = ()
    """What was asked for and is so anyway."""


def read_settings(values: Mapping[str, Any], order: Sequence[str]) -> CopySettings:
    """The settings from what click parsed; `order` has the filter flags as they stood.

    Raises:
        click.UsageError: when options contradict each other, or compression is asked for.
    """
    if values.get("compress"):
        raise click.UsageError(
            "-z: compression is not supported: data that fill a fast path are usually compressed "
            "already, and compressing the rest takes longer than sending it; leave -z out"
        )
    refuse_letters(values)
    draft = settings_of(values, sweep=False)
    for name, (flag, settings) in _SHORTHANDS.items():
        if values.get(name):
            for path, value in settings:
                draft.put(path, value, flag)
    if values.get("label") is not None:
        draft.put("title", draft.read("title", values["label"], "--label"), "--label")
    _put_filters(draft, values, order)
    _put_delete(draft, values)
    if draft.settings.get("copy.total_rate_bps") == 0:
        # rsync's word for no limit.
        del draft.settings["copy.total_rate_bps"]
    asked = bool(values.get("delete_asked"))
    return CopySettings(nested(draft.settings), asked, tuple(notes(values)))


def _put_filters(draft: Draft, values: Mapping[str, Any], order: Sequence[str]) -> None:
    rules = rules_of(values, order)
    if rules:
        draft.put("copy.filters", rules, "--filter")


def _put_delete(draft: Draft, values: Mapping[str, Any]) -> None:
    deletes = values.get("delete_asked") or values.get("delete") is not None
    if values.get("delete_asked") and values.get("delete") is not None:
        raise click.UsageError("--delete and --delete=COUNT cannot be combined")
    if values.get("max_delete") is not None and not deletes:
        raise click.UsageError("--max-delete: needs --delete; alone it deletes nothing")


def filter_order(context: click.Context) -> list[str]:
    """Names of the filter flags in the order in which they stood."""
    order: list[str] = context.meta.get(_ORDER, [])
    return order
