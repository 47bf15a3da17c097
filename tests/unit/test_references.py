"""Every source that the project cites is on docs/references.md and in its BibTeX file."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
BIBTEX = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
ENDINGS = (".py", ".rs", ".md", ".toml", ".c", ".j2")
CITATION = re.compile(r"\b([A-Z][a-z]+) (?:et al\.|and [A-Z][a-z]+),? \(?((?:19|20)\d\d)\b")
DRAFT = re.compile(r"\bdraft-[a-z]+-[a-z]+(?:-[a-z]+)*")


@cache
def texts() -> dict[str, str]:
    """Text of every tracked source and page but the changelog, by its path."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [name for name in listed.stdout.splitlines() if name.endswith(ENDINGS)]
    return {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in paths
        if name not in ("CHANGELOG.md", "docs/references.md") and (ROOT / name).is_file()
    }


def cited(pattern: re.Pattern[str]) -> dict[str, str]:
    """What the pattern finds, each with one file that has it."""
    return {
        " ".join(found.groups()) or found.group(): name
        for name, text in texts().items()
        for found in pattern.finditer(text)
    }


def test_every_rfc_that_is_cited_is_listed() -> None:
    found = cited(re.compile(r"\bRFC ?(\d{3,5})\b"))
    assert len(found) > 30
    assert {number: name for number, name in found.items() if f"| RFC {number} |" not in PAGE} == {}


def test_every_author_and_year_that_is_cited_is_listed() -> None:
    found = cited(CITATION)
    assert {"Yun 2015", "He 2002", "Rao 2018", "Yu 2014", "Yildirim 2011"} <= set(found)
    missing = {
        source: name
        for source, name in found.items()
        if not re.search(rf"{source.split()[0]}[^|\n]*{source.split()[1]}", PAGE)
    }
    assert missing == {}


def test_every_draft_that_is_cited_is_listed() -> None:
    found = cited(DRAFT)
    assert {draft: name for draft, name in found.items() if draft not in PAGE} == {}


def test_no_paper_is_cited_by_a_number() -> None:
    assert [name for name, text in texts().items() if re.search(r"papers[/][1-5]\b", text)] == []


def test_bibtex_has_every_source_of_the_page_but_the_rfcs() -> None:
    titles = re.findall(r"^\s+title\s+=\s+\{(.*)\},?$", BIBTEX, re.MULTILINE)
    plain = {re.sub(r"[{}`']", "", title).casefold() for title in titles}
    on_page = {
        re.sub(r"[{}`']", "", title).casefold() for title in re.findall(r"\*([^*\n]+)\*", PAGE)
    }
    assert len(plain) == len(titles)
    assert on_page == plain
