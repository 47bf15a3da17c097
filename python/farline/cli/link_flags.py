"""Command-line options of an emulated link, made from the generated table of link options.

`testbed up` has them as they are (`--rate`, `--loss`), `profile` with `link` in front, since its
own `--rate` is a run's (`--link-rate`, `--link-loss`); `--rtt` is the same word everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import click

from farline.spec.links import LINK_OPTIONS, RTT, LinkOption
from farline.spec.option_help import option_help
from farline.spec.options import OptionType
from farline.spec.values import read_sweep, read_value

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PREFIX = "link_"
_METAVARS = {
    "size": "SIZE", "rate": "RATE", "seconds": "DURATION", "integer": "N", "number": "X",
}  # fmt: skip

host_cpus_option = click.option(
    "--host-cpus",
    metavar="LIST",
    help="Run the hosts' programs on these CPUs and the emulator on the others, such as 0,2-3.",
)


def link_flags(
    options: Iterable[LinkOption] = LINK_OPTIONS, *, prefix: str = "", sweep: bool = False
) -> Callable[[_Command], _Command]:
    """Adds `options` to a command, their flags behind `prefix`; with `sweep`, lists are values."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(list(options)):
            command = _flag(option, prefix, sweep)(command)
        return command

    return decorate


def _flag(option: LinkOption, prefix: str, sweep: bool) -> Callable[[_Command], _Command]:
    flag = option.flags[0]
    if option is not RTT:
        flag = f"--{prefix}{flag[2:]}"
    name = f"{_PREFIX}{option.key}"
    about = option_help(option).replace("--reorder-", f"--{prefix}reorder-")
    if option.kind == "flag":
        switch = f"{flag}/--{prefix}no-{option.flags[0][2:]}"
        return click.option(switch, name, default=None, is_flag=True, help=about)
    read = read_sweep if sweep else read_value
    return click.option(
        flag,
        name,
        type=OptionType(partial(read, option)),
        metavar=_METAVARS.get(option.kind, "|".join(option.choices)),
        default=None,
        help=about,
    )


def take_link_values(options: dict[str, Any]) -> dict[str, Any]:
    """Takes the values of link options out of what click parsed; by their keys, those stated."""
    names = [name for name in options if name.startswith(_PREFIX)]
    taken = {name.removeprefix(_PREFIX): options.pop(name) for name in names}
    return {key: value for key, value in taken.items() if value is not None}
