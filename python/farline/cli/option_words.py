"""Options in the words of the command line: what the engine refuses names them by their path.

Engine, plans and library call an option by its path in a spec: `tcp.congestion_control`. Whoever
typed `-C` reads `-C`; of what was not typed, the command's own flag. With a plan, what was not
typed stands in the plan, and keeps the plan's name. The table of options, which made the flags, is
what leads back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import click
from click.core import ParameterSource

from farline.cli.typed import Sets, long_flag, own_sets, typed_flag
from farline.errors import AuthError, FarlineError, LimitError, SpecError
from farline.spec.options import TableOption
from farline.spec.table import OPTIONS, TRANSPORT_SECTIONS

_BY_PATH = {option.path: option for option in OPTIONS}
_WORDS: Mapping[str, str] = {
    "copy.sources": "SRC",
    "copy.destination": "DST",
    "copy.direction": "SRC and DST",
    "copy.filters": "--filter",
    "copy.source_list": "--files-from",
    "copy.transport": "--transport",
    "duration_s": "--duration",
    "tool_args": "--",
}
"""What is no flag, or none of the copy's."""

_PATH = r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*(?:\[\d+\])?(?:\.[a-z][a-z0-9_]*(?:\[\d+\])?)*"
_NAMED = re.compile(rf"(?<![^\s(])(?P<path>{_PATH})(?P<tail>=|(?=[:;,)\s])|$)")
_AT_THE_HEAD = re.compile(r"(?:^|: |\] )$")


def in_flags(error: FarlineError) -> FarlineError:
    """The error with options as the command that runs has them; one of a file is left alone.

    Only what is not allowed speaks of options.
    """
    # --where calls options as columns do.
    is_where = error.message.startswith("--where ")
    if is_where or not isinstance(error, SpecError | LimitError | AuthError):
        return error
    text = spoken(error.message)
    return error if text == error.message else error.reworded(text)


def spoken(text: str) -> str:
    """`text` with each option in it as the command that runs has it."""
    context = click.get_current_context(silent=True)
    if context is None:
        return text
    flags = _Flags(context)

    def flag(found: re.Match[str]) -> str:
        path, tail = found["path"], found["tail"]
        is_head = text[found.end() : found.end() + 1] == ":"
        is_place = is_head and _AT_THE_HEAD.search(text[: found.start()]) is not None
        # `streams` and its like are words of any sentence, unless a line begins with them.
        if not (is_place or tail or "." in path or "_" in path):
            return found[0]
        name = flags.of(path)
        return found[0] if name is None else f"{name} " if tail else name

    # A flag stands in no table of a plan.
    return re.sub(r"\[[a-z]+\] (?=--?[a-zA-Z])", "", _NAMED.sub(flag, text))


class _Flags:
    """Flags by the paths of what they set, in the command of a context."""

    def __init__(self, context: click.Context) -> None:
        self._context = context
        params = [one for one in context.command.params if isinstance(one, click.Option)]
        typed = [one for one in params if self._is_typed(one)]
        self._typed = _by_path(context.command, typed, own_sets(context))
        # With a plan, what was not typed is the plan's.
        has_plan = bool(context.params.get("plan_path"))
        self._known = {} if has_plan else _by_path(context.command, params, own_sets(context))
        self._has_plan = has_plan

    def of(self, path: str) -> str | None:
        """The flag of `path`, of which what stands behind the option's own path is left out."""
        bare = self._whole(re.sub(r"\[\d+\]", "", path))
        while bare:
            if found := self._typed.get(bare):
                return typed_flag(self._context, found)
            if found := self._known.get(bare):
                return long_flag(found.opts)
            if bare in TRANSPORT_SECTIONS:
                return self._of_section(bare)
            if not self._has_plan and (word := _elsewhere(bare)):
                return word
            bare = bare.rpartition(".")[0]
        return None

    def _whole(self, name: str) -> str:
        """The path of an option that is called by its last word, `payload_bytes`."""
        if "_" not in name or "." in name or name in _BY_PATH:
            return name
        paths = [option.path for option in OPTIONS if option.name == name]
        return next((path for path in paths if path in self._typed), (*paths, name)[0])

    def _is_typed(self, option: click.Option) -> bool:
        name = option.name or ""
        source = self._context.get_parameter_source(name)
        return source is ParameterSource.COMMANDLINE

    def _of_section(self, section: str) -> str | None:
        """What was typed that only this transport has."""
        chosen = self._context.params.get("transport") or "tcp"
        chosen = "udp" if self._context.params.get("udp") else chosen
        flags = [
            typed_flag(self._context, option)
            for path, option in self._typed.items()
            if path.startswith(f"{section}.")
            and not (isinstance(option, TableOption) and chosen in option.sections)
        ]
        return ", ".join(dict.fromkeys(flags)) or None


def _by_path(
    command: click.Command, options: Sequence[click.Option], sets: Sets
) -> dict[str, click.Option]:
    """The option that sets each path: of the table, of the command, or by a flag in common."""
    found: dict[str, click.Option] = {}
    # Of what a peer spells too, farline's own spelling comes first.
    for option in sorted(options, key=lambda one: isinstance(one, TableOption) and one.bare):
        for path in chain(_table_paths(option), sets.get(option.name or "", ())):
            found.setdefault(path, option)
    covered = {path for one in command.params for path in _table_paths(one)}
    for option in options:
        for path in _shared_paths(option):
            if path not in covered:
                found.setdefault(path, option)
        # The rules of a campaign have one name on the command line and in a plan.
        name = option.name or ""
        if "_" in name or name in ("confidence", "repetitions"):
            found.setdefault(name, option)
    return found


def _table_paths(param: click.Parameter) -> tuple[str, ...]:
    return tuple(one.path for one in param.options) if isinstance(param, TableOption) else ()


def _shared_paths(option: click.Option) -> Iterator[str]:
    """Paths of the table's options that have a long flag of this one."""
    own = {flag for flag in option.opts if flag.startswith("--")}
    return (known.path for known in OPTIONS if own.intersection(known.flags))


def _elsewhere(path: str) -> str | None:
    """The word for what the command itself has no flag for."""
    if path in _WORDS:
        return _WORDS[path]
    option = _BY_PATH.get(path)
    return long_flag(option.flags) if option is not None and option.flags else None
