"""Every link of the pages that stays in the repository leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import farline

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "site" not in page.parts),
]
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")
_FENCED = re.compile(r"^(`{3,})[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")


def anchors(page: Path) -> set[str]:
    """Names that headings of a page have, as GitHub and Sphinx make them."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.add(name if name not in found else f"{name}-1")
    return found


def broken(page: Path) -> list[str]:
    """Links of a page to files or headings that do not exist."""
    text = _CODE.sub("", _FENCED.sub("", page.read_text(encoding="utf-8")))
    wrong = []
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        to_page = anchor and target.suffix == ".md"
        if not target.exists() or (to_page and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n[a](#a-title) [b](#b) [c](none.md) [d](https://example.org/none)\n"
        "`[e](none)`\n```text\n[f](none)\n```\n",
        encoding="utf-8",
    )
    assert broken(page) == ["#b", "none.md"]


def test_every_page_stands_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        if page.is_relative_to(ROOT / "docs" / "guide"):
            name = str(page.relative_to(ROOT / "docs").with_suffix(""))
            assert re.search(rf"^{name}$", index, re.MULTILINE), name


def test_the_python_page_has_every_public_name() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. auto(?:function|class):: farline\.(\w+)$", page, re.MULTILINE)
    assert sorted(named) == sorted(farline.__all__)


def test_no_page_fetches_anything_from_the_net() -> None:
    for page in PAGES:
        text = _CODE.sub("", _FENCED.sub("", page.read_text(encoding="utf-8")))
        assert not re.search(r"!\[[^]]*\]\(https?:|<(script|img|link|iframe)\b", text), page.name
