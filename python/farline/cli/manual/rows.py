"""An option as a row of two columns: its spellings with what to write behind them, and its help."""

from __future__ import annotations

from dataclasses import dataclass

import click

_UNIT_METAVARS = {
    "rate": "RATE", "time": "DURATION", "rtt": "DURATION", "size": "SIZE", "share": "SHARE",
}  # fmt: skip
_NUMBER = (click.types.IntParamType, click.types.FloatParamType)


@dataclass(frozen=True)
class Row:
    """Both columns."""

    spelling: str
    text: str


def option_row(option: click.Option, ctx: click.Context) -> Row:
    """The row of an option, for all transports that have it."""
    return Row(_spelling(option, metavar_of(option, ctx)), option.help or "")


def section_rows(command: click.Command, section: str) -> list[Row]:
    """The rows of the options that belong to transports, as one of them has them."""
    from farline.spec.options import TableOption, section_help, section_metavar

    options = [one for one in command.params if isinstance(one, TableOption)]
    return [
        Row(_spelling(one, section_metavar(one, section)), section_help(one, section))
        for one in options
        if one.is_of_transports and section in one.sections
    ]


def metavar_of(option: click.Option, ctx: click.Context) -> str | None:
    """What stands for the value of an option; None for a flag."""
    if option.is_flag:
        return None
    if option.metavar is not None:
        return option.metavar
    kind = option.type
    if kind.name in _UNIT_METAVARS:
        return _UNIT_METAVARS[kind.name]
    if isinstance(kind, click.Choice):
        return "|".join(str(word) for word in kind.choices)
    if isinstance(kind, click.Path):
        return "FILE" if kind.file_okay else "FOLDER"
    return "N" if isinstance(kind, _NUMBER) else "TEXT"


def _spelling(option: click.Option, metavar: str | None) -> str:
    flags = sorted(option.opts, key=len)
    short = [flag for flag in flags if len(flag) == 2]
    long = [flag for flag in option.opts if len(flag) > 2]
    names = ", ".join([*short, *_switches(long, option.secondary_opts)])
    if metavar is None:
        return names
    return f"{names}{metavar}" if metavar.startswith("[=") else f"{names} {metavar}"


def _switches(long: list[str], off: list[str]) -> list[str]:
    """`--modes` and `--no-modes` as `--[no-]modes`; other opposites one behind the other."""
    if not off:
        return long
    opposite = off[0].replace("--no-", "--")
    merged = [f"--[no-]{flag[2:]}" if flag == opposite else flag for flag in long]
    return merged if merged != long else [*long[:-1], f"{long[-1]} / {off[0]}"]
