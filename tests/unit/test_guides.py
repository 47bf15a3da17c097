"""Every fenced block of the guides is run by a test, or says why it is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from farline.cli.group import cli
from farline.formats import formats
from scripts.five_sites import files
from tests.support.guides import PAGES, REASONS, ROOT, SHOWN, blocks, check

IDS = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_a_block_is_typed_shown_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        if block.language == "console":
            reason = block.directive("not run")
            if reason is not None:
                assert reason.split(":")[0] in REASONS, f"{block.where}: {reason}"
            assert block.commands(), f"{block.where}: no command"
        elif not block.language.startswith("{"):
            assert block.language in SHOWN, f"{block.where}: write ```console, or one of {SHOWN}"
            typed = [line for line in block.lines if line.startswith(("$ ", "farline ", "make "))]
            assert not typed, f"{block.where}: {typed[0]}: commands belong in a console block"


def test_most_blocks_are_run() -> None:
    console = [block for page in PAGES for block in blocks(page) if block.language == "console"]
    left_out = [block for block in console if block.directive("not run") is not None]
    assert len(console) > 60
    assert len(left_out) < len(console) / 3


def test_a_page_is_compared_loosely_but_not_blindly() -> None:
    printed = "run 01M89XHG0012NNCX6SW90W6EEH: complete\nforward  3.56 Gbit/s total\nend\n"
    check(
        "",
        ("run 01M80V9EH5SBCEBM55J357MSZS: complete", "forward  912 Mbit/s total", "end"),
        printed,
    )
    check("", ("run ...: complete", "...", "end"), printed)
    for shown in (("forward 1 Gbit/s total",), ("...", "reverse ..."), ("...", "forward 1 Gbit/s")):
        with pytest.raises(AssertionError):
            check("", shown, printed)


def test_the_guide_to_logs_has_every_format() -> None:
    page = (ROOT / "docs" / "guide" / "ingest.md").read_text(encoding="utf-8")
    table = page.partition("## Supported formats")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == set(formats())


def test_the_sample_sites_are_what_their_script_makes() -> None:
    folder = ROOT / "examples" / "five-sites"
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == files()


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Spellings of the options of a command and of all below it."""
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            one = command.get_command(context, name)
            assert one is not None
            yield from options(one, click.Context(one, parent=context))


def test_every_option_that_the_guides_name_exists() -> None:
    known = set(options(cli, click.Context(cli)))
    of_other_tools = {"rsync.md", "ingest.md", "iperf3.md"}
    for page in PAGES:
        if page.name not in of_other_tools and page.parent.name != "from":
            named = set(
                re.findall(r"`(--[a-z][a-z0-9-]*[a-z0-9])", page.read_text(encoding="utf-8"))
            )
            assert named - known - {"--link"} == set(), page.name


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent.name == "from" and page.name != "index.md"],
    ids=lambda page: page.stem,
)
def test_a_page_from_another_tool_has_its_options_and_names_only_ours(page: Path) -> None:
    known = set(options(cli, click.Context(cli)))
    table = page.read_text(encoding="utf-8").partition("\n## Options\n")[2]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)
    theirs = {found for left, _ in rows for found in re.findall(r"`(--?[\w-]+)", left)}
    assert len(theirs) >= 20
    for left, right in rows:
        named = set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*[a-z0-9])", right))
        assert named <= known, f"{page.name}: {left}"
