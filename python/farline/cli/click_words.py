"""What click says of a command line, in the words of all other errors: `FLAG: what is wrong`."""

from __future__ import annotations

import re

import click

from farline.cli.typed import typed_flag

_WORDS = (
    (
        re.compile(r"^(.*) is not in the range (\S+)<=x<=(\S+?)\.?$", re.DOTALL),
        r"\1 is out of range; allowed: \2 to \3",
    ),
    (
        re.compile(r"^(.*?)(?:\.0)? is not in the range (\S+)<x<(\S+?)\.?$", re.DOTALL),
        r"\1 is out of range; allowed: above \2, below \3",
    ),
    (
        re.compile(r"^(.*) is not in the range x>=(\S+?)\.?$", re.DOTALL),
        r"\1 is out of range; allowed: \2 or more",
    ),
    (
        re.compile(r"^(.*) is not a valid (?:integer|integer range)\.?$", re.DOTALL),
        r"\1 is not a whole number",
    ),
    (
        re.compile(r"^(.*) is not a valid (?:float|float range)\.?$", re.DOTALL),
        r"\1 is not a number",
    ),
    (
        re.compile(r"^(?:Directory|Path) ('.*') does not exist\.?$", re.DOTALL),
        r"\1: no such folder",
    ),
    (re.compile(r"^File ('.*') does not exist\.?$", re.DOTALL), r"\1: no such file"),
    (
        re.compile(r"^(?:Directory|Path) ('.*') is a file\.?$", re.DOTALL),
        r"\1 is a file, not a folder",
    ),
    (
        re.compile(r"^(?:File|Path) ('.*') is a directory\.?$", re.DOTALL),
        r"\1 is a folder, not a file",
    ),
    (
        re.compile(r"^(?:Directory|File|Path) ('.*') is not (readable|writable)\.?$", re.DOTALL),
        r"\1 is not \2",
    ),
    (
        re.compile(r"^Got unexpected extra arguments? \((.*)\)$", re.DOTALL),
        r"unexpected argument: \1",
    ),
    (re.compile(r"^Option ('.*') requires an argument\.?$", re.DOTALL), r"\1 needs a value"),
    (re.compile(r"^Option ('.*') does not take a value\.?$", re.DOTALL), r"\1 takes no value"),
)
"""What click says, and what is said instead."""


def plain_message(error: click.ClickException) -> str:
    """One line without click's own way to put it."""
    if isinstance(error, click.MissingParameter):
        return f"{_name_of(error) or 'an argument'} is missing"
    name = _name_of(error) if isinstance(error, click.BadParameter) else None
    text = error.message if name else error.format_message()
    for said, better in _WORDS:
        text = said.sub(better, text)
    return f"{name}: {text}" if name else text


def _name_of(error: click.BadParameter) -> str | None:
    """The flag as it was typed, or the name of the argument."""
    if isinstance(error.param, click.Option) and error.ctx is not None:
        return typed_flag(error.ctx, error.param)
    if isinstance(error.param, click.Argument):
        return error.param.human_readable_name
    return error.param_hint if isinstance(error.param_hint, str) else None
