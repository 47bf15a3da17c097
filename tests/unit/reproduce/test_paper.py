"""The report of all results: its numbers are those of the results, and nothing is left unsaid."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from farline.cli.reproduce import command
from farline.errors import SystemFailure
from farline.plots.gallery import Curve, Picture
from farline.reproduce.budget import Budget
from farline.reproduce.evidence import Check
from farline.reproduce.items import items_named
from farline.reproduce.paper import paper_lines, write_paper
from farline.reproduce.results import Result, write_result
from scripts.paper_pdf import page, print_pdf

ITEMS = items_named(["rbudp-fig4", "rbudp-text-window", "tpg-fig6", "rbudp-table1"])
PICTURE = Picture("rates", "Rates|of it", "Streams", "Gb/s", [Curve("here", [1, 2], [3, 4])])
RESULTS = [
    Result("rbudp-fig4", "agrees", "quick", "2026-01-02T03:04:05Z",
           checks=[Check("rate", True, "9 | Gb/s", "10 Gb/s", 9.0, 0.01)], pictures=[PICTURE],
           budget=Budget(0.03, 0.04, 0.12).document(), instead="It is paced.",
           facts=[["Host", "2 CPUs"], ["Emulator in rbudp", "99 % at most 5 µs late"]]),
    Result("rbudp-text-window", "differs", "quick", "2026-01-03T03:04:05Z", reason="Another unit.",
           checks=[Check("holds", True, "1 MB"), Check("size", False, "18.75 MB", "19.2 MB")]),
    Result("rbudp-table1", "not possible here", "quick", "2026-01-03T03:04:05Z", reason="Hosts."),
]  # fmt: skip


def _text() -> str:
    by_item = {result.item: result for result in RESULTS}
    pairs = [(item, by_item[item.id]) for item in ITEMS if item.id in by_item]
    return "\n".join(paper_lines(pairs, ["tpg-fig6"]))


def test_counts_are_those_of_the_results() -> None:
    text = _text()
    assert "was compared with 4 figures, tables and sentences" in text
    assert "3 have a result; verdicts: agrees 1, differs 1, not possible here 1." in text
    assert "Of 3 checks 2 hold." in text
    assert "All results are of 2026-01-02 to 2026-01-03, at quick scale." in text
    assert "| all together | 13 % | 13 % |" in text


def test_what_differs_and_what_is_missing_is_named() -> None:
    text = _text()
    assert "`rbudp-text-window` (He et al. 2002, section 2, text): Another unit." in text
    assert "size: 18.75 MB; paper: 19.2 MB" in text
    assert "`rbudp-table1`: not possible here. Hosts." in text
    assert "No result yet: `tpg-fig6`." in text
    assert "`rbudp-fig4`: It is paced." in text


def test_a_cell_stays_one_cell() -> None:
    row = next(line for line in _text().splitlines() if line.startswith("| rate |"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 5


def test_every_picture_of_the_text_is_there(tmp_path: Path) -> None:
    path = write_paper(ITEMS, RESULTS, tmp_path)
    named = re.findall(r"\]\((figures/[^)]+)\)", path.read_text("utf-8"))
    assert named == ["figures/rbudp-fig4-1.svg"]
    assert all((tmp_path / name).read_bytes().startswith(b"<?xml") for name in named)


def test_how_to_repeat_it_names_the_scale_of_the_results() -> None:
    (item,) = items_named(["rbudp-fig4"])
    result = Result("rbudp-fig4", "agrees", "full", "2026-01-02T03:04:05Z")
    text = "\n".join(paper_lines([(item, result)], []))
    assert "--all --scale full\n$ farline reproduce --paper --scale full" in text


def test_without_results_it_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(SystemFailure, match="farline reproduce --all"):
        write_paper(ITEMS, [], tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command_writes_it_of_what_the_folder_keeps(tmp_path: Path) -> None:
    write_result(tmp_path, RESULTS[1])
    done = CliRunner().invoke(command, ["--paper", "-o", str(tmp_path)], standalone_mode=False)
    assert done.return_value == 0
    assert done.output == f"paper: {tmp_path}/paper/paper.md\n"
    both = CliRunner().invoke(command, ["--paper", "--all"])
    assert both.exit_code == 2


def test_the_page_shows_tables_and_no_markup_of_results() -> None:
    text = page("# A title\n\n| a | b |\n|---|---|\n| x \\| \\<b\\> | y |\n")
    assert "<title>A title</title>" in text
    assert "<td>x | &lt;b&gt;</td>" in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_a_pdf_is_printed(tmp_path: Path) -> None:
    source = tmp_path / "paper.html"
    source.write_text(page("# A title"), encoding="utf-8")
    print_pdf(source, tmp_path / "paper.pdf")
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")
