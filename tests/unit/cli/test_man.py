"""The manual pages: one for each command, of which man(1) has nothing to complain."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from farline.cli.group import cli, run
from farline.cli.manual.roff import contexts, man_name, man_page

PAGES = {man_name(ctx): ctx for ctx in contexts(cli)}


def printed(pages: list[str]) -> subprocess.CompletedProcess[str]:
    """What groff makes of pages, and what it says of them."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed: install groff-base")
    text = "\n".join(pages)
    words = ["groff", "-man", "-Tutf8", "-ww", "-P-cbou"]
    return subprocess.run(words, input=text, capture_output=True, text=True, check=True)


def test_groff_takes_every_page_without_a_warning() -> None:
    said = printed([man_page(ctx, "1.2.3") for ctx in PAGES.values()])
    assert said.stderr == ""
    assert len(PAGES) > 40


@pytest.mark.parametrize("name", ["farline", "farline-copy", "farline-testbed-up", "farline-probe"])
def test_a_page_has_what_the_help_has(name: str) -> None:
    text = printed([man_page(PAGES[name], "1.2.3")]).stdout
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT"):
        assert f"\n{heading}\n" in text
    ctx = PAGES[name]
    flat = " ".join(text.split())
    for option in ctx.command.get_params(ctx):
        if option.param_type_name == "option" and not getattr(option, "hidden", False):
            assert max(option.opts, key=len).removeprefix("--no-").lstrip("-") in flat, option


def test_lines_that_roff_would_take_for_requests_are_text() -> None:
    from farline.cli.manual.roff import _paragraphs, _text

    assert _text(".hidden 'file' \\n -x") == "\\&.hidden \\(aqfile\\(aq \\en \\-x"
    kept = list(_paragraphs("One\ntwo.\n\n\b\nthree\nfour"))
    assert kept == ["One", "two.", ".PP", ".nf", "three", "four", ".fi"]


def test_pages_are_written_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["man", "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{len(PAGES)} pages in {tmp_path}/man1\n"
    assert sorted(PAGES) == sorted(path.stem for path in (tmp_path / "man1").iterdir())
    assert run(["man", "testbed", "up"]) == 0
    assert capsys.readouterr().out == (tmp_path / "man1" / "farline-testbed-up.1").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "no such command: nosuch"),
        (["prob"], "did you mean probe?"),
        (["--output", "/proc/nosuch"], "/proc/nosuch"),
        (["--output", ".", "copy"], "--output writes every page"),
    ],
)
def test_what_cannot_be_shown_is_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["man", *words]) in (1, 2)
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
