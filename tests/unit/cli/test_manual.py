"""What `--help` and `--help-all` print: every page as in `help/`, every option and example.

Reworded a help text? `make help-pages` writes `help/` anew; look at the difference before you
commit it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from farline.cli.command import full_help
from farline.cli.group import cli
from farline.cli.manual.pages import page_of
from farline.cli.manual.rows import metavar_of
from farline.cli.manual.writing import chosen_transport, description, grouped, visible_options
from farline.cli.verbs import COMMANDS
from farline.spec.options import TableOption, transport_sections

PAGES = Path(__file__).parent / "help"
WIDTH = 80
_SENTENCE = re.compile(r"[A-Z][^.]{5,}.*[.]$", re.DOTALL)
_METAVAR = re.compile(r"[^ ]+")
_RIDDLES = ("unasked", "take what", "so many", "so long", "makes no", "is so ", "such runs")


def contexts(
    command: click.Command = cli, parent: click.Context | None = None, name: str = "farline"
) -> Iterator[click.Context]:
    """A context for every command, groups included."""
    context = command.context_class(command, parent=parent, info_name=name, terminal_width=WIDTH)
    yield context
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            found = command.get_command(context, one)
            assert found is not None
            yield from contexts(found, context, one)


ALL = list(contexts())
NAMES = [context.command_path for context in ALL]


def printed(verb: str) -> str:
    """Both pages of a verb and of the commands below it."""
    mine = [one for one in ALL if one.command_path.split()[1:2] == ([verb] if verb else [])]
    parts = []
    for context in mine:
        parts.append(f"$ {context.command_path} --help\n\n{context.get_help()}\n")
        parts.append(f"$ {context.command_path} --help-all\n\n{full_help(context)}\n")
    return "\n".join(parts)


@pytest.mark.parametrize("verb", ["", *COMMANDS])
def test_what_is_printed_is_what_was_reviewed(verb: str) -> None:
    file = PAGES / f"{verb or 'farline'}.txt"
    now = printed(verb)
    if os.environ.get("FARLINE_WRITE_HELP"):
        PAGES.mkdir(exist_ok=True)
        file.write_text(now)
    reviewed = file.read_text() if file.exists() else ""
    assert now == reviewed, f"{file.name} differs: look at it, then run `make help-pages`"


def test_no_page_is_of_a_verb_that_there_is_not() -> None:
    assert {file.stem for file in PAGES.glob("*.txt")} == {"farline", *COMMANDS}


@pytest.mark.parametrize("context", ALL, ids=NAMES)
def test_every_command_and_option_is_told_of_in_a_sentence(context: click.Context) -> None:
    assert _SENTENCE.match(description(context.command)), "the command"
    for option in visible_options(context.command, context):
        text = option.help or ""
        assert _SENTENCE.match(text), (option.opts, text)
        riddles = [word for word in _RIDDLES if word in text.lower()]
        assert not riddles, (option.opts, text)
        # Defaults are told as (default 10m), ranges by the error, click's own marks nowhere.
        assert "[" not in text.replace("[no-]", ""), (option.opts, text)
        assert not option.show_default, option.opts


@pytest.mark.parametrize("context", ALL, ids=NAMES)
def test_what_stands_for_a_value_says_what_it_is(context: click.Context) -> None:
    for option in visible_options(context.command, context):
        metavar = metavar_of(option, context)
        assert metavar is None or _METAVAR.fullmatch(metavar), (option.opts, metavar)


@pytest.mark.parametrize("context", ALL, ids=NAMES)
def test_every_option_stands_in_one_group_of_its_page(context: click.Context) -> None:
    groups, left = grouped(context.command, context, page_of(context))
    assert [one.opts for one in left] == []
    found = [one.name for group in groups for one in group.options]
    assert len(found) == len(set(found)), found


@pytest.mark.parametrize("context", ALL, ids=NAMES)
def test_a_page_names_only_options_that_there_are(context: click.Context) -> None:
    known = {
        flag
        for path in NAMES
        if path.split()[1:2] == context.command_path.split()[1:2]
        for one in ALL
        if one.command_path == path
        for option in visible_options(one.command, one)
        for flag in (*option.opts, *option.secondary_opts)
    }
    known |= {"-t", "-n", "-P", "-k", "--blockcount", "--connect-timeout"}
    for group in page_of(context).options:
        named = set(f"{group.shown} {group.more}".split())
        assert named <= known, (group.title, named - known)


def examples() -> list[tuple[str, str]]:
    return [
        (context.command_path, line) for context in ALL for _, line in page_of(context).examples
    ]


@pytest.mark.parametrize(("of", "line"), examples())
def test_every_example_is_a_command_line_that_farline_takes(
    of: str, line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "incoming").mkdir()
    words = shlex.split(line.rpartition("&& ")[2].partition(" > ")[0])
    assert words[0] == "farline", of
    context, rest = click.Context(cli, info_name="farline"), words[1:]
    while isinstance(context.command, click.Group):
        assert rest, line
        name, found, rest = context.command.resolve_command(context, rest)
        assert found is not None
        if isinstance(found, click.Group):
            context = click.Context(found, parent=context, info_name=name)
        else:
            found.make_context(name, rest, parent=context)
            return


@pytest.mark.parametrize("transport", ["tcp", "udp", "udt", "rbudp"])
def test_a_transport_on_the_command_line_shows_its_options_and_no_others(transport: str) -> None:
    probe = next(one for one in ALL if one.command_path == "farline probe")
    probe.meta["farline.words"] = ["--transport", transport]
    try:
        text = probe.get_help()
        assert chosen_transport(probe) == transport
    finally:
        probe.meta.clear()
    headings = text.splitlines()
    sections = transport_sections(probe.command)
    shown = [one for one in sections if f"{one.upper()} options:" in headings]
    assert shown == [transport]
    options = [one for one in probe.command.params if isinstance(one, TableOption)]
    for option in options:
        if option.is_of_transports and transport in option.sections:
            assert option.opts[-1].removeprefix("--") in text, option.opts


@pytest.mark.parametrize("words", [["probe", "--help-all"], ["probe", "-h"], ["--help-all"]])
def test_help_is_printed_and_ends_well(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from farline.cli.group import run

    assert run(words) == 0
    out = capsys.readouterr().out
    assert "Exit status:" in out and "See also:" in out
