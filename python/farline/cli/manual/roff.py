"""Pages of the manual as man(1) shows them, from what `--help-all` is made of.

The macros are those of man(7), with `.TP` for lists and `.EX` for examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from farline.cli.manual.page import COMMON_EXITS, Page
from farline.cli.manual.pages import command_groups, page_of
from farline.cli.manual.rows import Row, option_row, section_rows
from farline.cli.manual.writing import description, grouped, transport_sections

VARIABLES = (
    ("FARLINE_STORE", "Folder of the run store, where no --store is given."),
    ("FARLINE_TICKET", "Ticket for the server, where none is given."),
    ("FARLINE_LOG", "What is logged, as --log-level."),
    ("NO_COLOR", "If set, nothing is printed in colour."),
    ("XDG_CONFIG_HOME", "Folder of known servers (default ~/.config)."),
    ("XDG_STATE_HOME", "Folder of the server's key (default ~/.local/state)."),
)
"""Variables of the environment, and what they are for."""

_FLAG = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


def man_name(ctx: click.Context) -> str:
    """The name of a command's page, such as `farline-testbed-up`."""
    return ctx.command_path.replace(" ", "-")


def man_page(ctx: click.Context, version: str) -> str:
    """The page of a command, section 1."""
    page, command = page_of(ctx), ctx.command
    lines = [
        f'.TH "{man_name(ctx).upper()}" 1 "" "farline {version}" "User Commands"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{_text(man_name(ctx))} \\- {_text(_summary(ctx))}",
        ".SH SYNOPSIS",
        f".B {_text(ctx.command_path)}",
        _text(" ".join(command.collect_usage_pieces(ctx))),
        ".SH DESCRIPTION",
        *_paragraphs(description(command)),
        *_commands(ctx),
        *_options(ctx, page),
        *_examples(page),
        ".SH EXIT STATUS",
        *_entries([(str(code), what) for code, what in sorted((*COMMON_EXITS, *page.exits))]),
        ".SH ENVIRONMENT",
        *_entries(VARIABLES),
        *_see_also(ctx, page),
    ]
    return "\n".join(lines) + "\n"


def contexts(
    command: click.Command, parent: click.Context | None = None
) -> Iterator[click.Context]:
    """A context for `command` and for every command below it."""
    ctx = click.Context(
        command, parent=parent, info_name="farline" if parent is None else command.name
    )
    yield ctx
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            below.name = name
            yield from contexts(below, ctx)


def _summary(ctx: click.Context) -> str:
    text = ctx.command.short_help or description(ctx.command).split("\n")[0]
    return (text[:1].lower() + text[1:]).rstrip(".")


def _commands(ctx: click.Context) -> Iterator[str]:
    if isinstance(ctx.command, click.Group):
        for title, rows in command_groups(ctx.command, ctx, True):
            yield f".SH {_text(title.upper())}"
            yield from _entries(rows)


def _options(ctx: click.Context, page: Page) -> Iterator[str]:
    groups, left = grouped(ctx.command, ctx, page)
    yield ".SH OPTIONS"
    for group in groups:
        yield from _rows(group.title, [option_row(one, ctx) for one in group.options])
    for section in transport_sections(ctx.command):
        yield from _rows(f"{section.upper()} options", section_rows(ctx.command, section))
    yield from _rows("Other options", [option_row(one, ctx) for one in left])


def _rows(title: str, rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield f".SS {_text(title)}"
        for row in rows:
            yield ".TP"
            yield _FLAG.sub(lambda found: rf"\fB{found[0]}\fR", row.spelling).replace("-", "\\-")
            yield _text(row.text)


def _entries(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, what in rows:
        yield from (".TP", f".B {_text(name)}", _text(what))


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a help text; those behind a `\\b` keep their lines."""
    for number, one in enumerate(text.split("\n\n")):
        if number:
            yield ".PP"
        is_kept = one.startswith("\b")
        lines = [_text(line.strip("\b").strip()) for line in one.splitlines() if line.strip("\b")]
        yield from (".nf", *lines, ".fi") if is_kept else lines


def _examples(page: Page) -> Iterator[str]:
    if page.examples:
        yield ".SH EXAMPLES"
    for what, line in page.examples:
        yield from (".PP", _text(f"{what}:"), ".PP", ".in +4n", ".EX", _text(line), ".EE", ".in")


def _see_also(ctx: click.Context, page: Page) -> Iterator[str]:
    commands = [one for one in page.see_also if one.startswith("farline")]
    others = [one for one in page.see_also if one not in commands]
    if ctx.parent is not None:
        commands = [
            ctx.parent.command_path,
            *(one for one in commands if one != ctx.parent.command_path),
        ]
    named = [f"\\fB{_text(one.replace(' ', '-'))}\\fR(1)" for one in commands]
    if named or others:
        yield ".SH SEE ALSO"
        yield ",\n".join([*named, *map(_text, others)])


def _text(text: str) -> str:
    """`text` as roff prints it: nothing in it is a request or an escape."""
    for sign, escape in (
        ("\\", "\\e"),
        ("-", "\\-"),
        ("'", "\\(aq"),
        ("`", "\\(ga"),
        ("^", "\\(ha"),
        ("~", "\\(ti"),
    ):
        text = text.replace(sign, escape)
    return f"\\&{text}" if text.startswith(".") else text
