"""How a page of the manual is written: for `--help`, and for `--help-all`."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import click

from farline.cli.manual.page import COMMON_EXITS, Options, Page
from farline.cli.manual.pages import command_groups, page_of
from farline.cli.manual.rows import Row, option_row, section_rows
from farline.cli.typed import command_words

_GENERAL = "General"
_GENERAL_FLAGS = frozenset(("--help", "--help-all", "--version"))
_COLUMN = 28
"""Widest column of spellings; a longer one has its text below it."""


def write_page(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter, everything: bool
) -> None:
    """Writes the help of a command: all of its options, or the common ones."""
    page = page_of(ctx)
    command.format_usage(ctx, formatter)
    command.format_help_text(ctx, formatter)
    _write_examples(page, formatter)
    if isinstance(command, click.Group):
        _write_commands(command, ctx, formatter, everything)
    hidden = _write_options(command, ctx, page, formatter, everything)
    if hidden:
        formatter.write_paragraph()
        formatter.write_text(_more_text(command, ctx))
    _write_exits(page, formatter)
    if page.see_also:
        with formatter.section("See also"):
            formatter.write_text(", ".join(page.see_also))


def _more_text(command: click.Command, ctx: click.Context) -> str:
    text = f"All options: {ctx.command_path} --help-all"
    sections = transport_sections(command)
    if len(sections) > 1:
        text += f". Those of one transport: {ctx.command_path} --transport {sections[-1]} --help"
    return text


def _write_examples(page: Page, formatter: click.HelpFormatter) -> None:
    if not page.examples:
        return
    with formatter.section("Examples"):
        for number, (what, line) in enumerate(page.examples):
            if number:
                formatter.write("\n")
            indent = " " * formatter.current_indent
            formatter.write(f"{indent}# {what}\n{indent}{line}\n")


def _write_commands(
    group: click.Group, ctx: click.Context, formatter: click.HelpFormatter, everything: bool
) -> None:
    for title, rows in command_groups(group, ctx, everything):
        with formatter.section(title):
            write_rows(formatter, rows)


def _write_options(
    command: click.Command,
    ctx: click.Context,
    page: Page,
    formatter: click.HelpFormatter,
    everything: bool,
) -> bool:
    """Writes the groups of options; whether `--help-all` has more of them."""
    chosen = chosen_transport(ctx)
    groups, left = grouped(command, ctx, page)
    hidden = False
    for group in groups:
        if group.title == _GENERAL:
            hidden = _write_transports(command, chosen, formatter, everything) or hidden
        common = [one for one in group.options if one in group.common]
        options = group.options if everything else common
        if everything or chosen:
            options = [one for one in options if not _is_of_transport(one, chosen)]
        hidden = hidden or len(options) < len(group.options)
        _write_rows(group.title, [option_row(one, ctx) for one in options], formatter)
    _write_rows("Other options", [option_row(one, ctx) for one in left], formatter)
    return hidden and not everything


def _write_transports(
    command: click.Command, chosen: str | None, formatter: click.HelpFormatter, everything: bool
) -> bool:
    """Writes the options of transports: of all, or of the one chosen; whether there are any."""
    sections = transport_sections(command)
    for section in sections:
        if everything or section == chosen:
            _write_rows(f"{section.upper()} options", section_rows(command, section), formatter)
    return bool(sections)


def _write_rows(title: str, rows: Sequence[Row], formatter: click.HelpFormatter) -> None:
    if rows:
        with formatter.section(title):
            write_rows(formatter, [(row.spelling, row.text) for row in rows])


def write_rows(formatter: click.HelpFormatter, rows: Sequence[tuple[str, str]]) -> None:
    """Writes two columns; click's own way to do so breaks lines within `--long-options`."""
    indent = formatter.current_indent
    column = indent + min(max(len(first) for first, _ in rows), _COLUMN) + 2
    for first, second in rows:
        lines = textwrap.wrap(second, formatter.width - column, break_on_hyphens=False)
        head = f"{'':{indent}}{first}"
        if len(head) > column - 2 or not lines:
            formatter.write(f"{head}\n")
        else:
            formatter.write(f"{head:<{column}}{lines.pop(0)}\n")
        formatter.write("".join(f"{'':{column}}{line}\n" for line in lines))


def _is_of_transport(option: click.Option, chosen: str | None) -> bool:
    """Whether it stands in the group of a transport that is shown."""
    if not getattr(option, "is_of_transports", False):
        return False
    sections: tuple[str, ...] = getattr(option, "sections", ())
    return chosen is None or chosen in sections


def transport_sections(command: click.Command) -> tuple[str, ...]:
    """Transports of which a command has options of their own; asks the table only where it may."""
    if not any(hasattr(option, "sections") for option in command.params):
        return ()
    from farline.spec.options import transport_sections as sections_of

    return sections_of(command)


@dataclass(frozen=True)
class Group:
    """A group of options as it is drawn."""

    title: str
    options: list[click.Option]
    common: list[click.Option]


def grouped(
    command: click.Command, ctx: click.Context, page: Page
) -> tuple[list[Group], list[click.Option]]:
    """The groups of a page, and visible options that stand in none of them."""
    options = visible_options(command, ctx)
    by_flag = {flag: one for one in options for flag in (*one.opts, *one.secondary_opts)}
    groups: list[Group] = []
    placed: list[click.Option] = []
    for group in page.options or (Options("Options", " ".join(one.opts[-1] for one in options)),):
        common = _found(group.shown, by_flag)
        listed = [*common, *_found(group.more, by_flag)]
        groups.append(Group(group.title, listed, common))
        placed += listed
    general = [one for one in options if _GENERAL_FLAGS.intersection(one.opts)]
    groups.append(Group(_GENERAL, [one for one in general if one not in placed], general))
    placed += general
    left = [one for one in options if one not in placed]
    return groups, [one for one in left if not _is_of_transport(one, None)]


def _found(flags: str, by_flag: dict[str, click.Option]) -> list[click.Option]:
    """The options with these spellings; a page may name some that a command of its kind lacks."""
    found = [by_flag[flag] for flag in flags.split() if flag in by_flag]
    return list(dict.fromkeys(found))


def visible_options(command: click.Command, ctx: click.Context) -> list[click.Option]:
    """Options that are shown, in the order in which they were declared."""
    params = command.get_params(ctx)
    return [one for one in params if isinstance(one, click.Option) and not one.hidden]


def chosen_transport(ctx: click.Context) -> str | None:
    """The transport that the command line names beside `--help`."""
    words = command_words(ctx)
    sections = transport_sections(ctx.command)
    chosen = None
    for at, word in enumerate(words):
        if word == "--transport":
            chosen = next(iter(words[at + 1 :]), None)
        elif word.startswith("--transport="):
            chosen = word.partition("=")[2]
        elif word in ("-u", "--udp"):
            chosen = "udp"
    return chosen if chosen in sections else None


def _write_exits(page: Page, formatter: click.HelpFormatter) -> None:
    rows = sorted((*COMMON_EXITS, *page.exits))
    with formatter.section("Exit status"):
        write_rows(formatter, [(str(code), meaning) for code, meaning in rows])


def description(command: click.Command) -> str:
    """What a command's help says first."""
    return inspect.cleandoc(command.help or "")
