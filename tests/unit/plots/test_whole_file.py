"""Files of reports are whole under their names, or as they were."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from farline.plots.style import new_figure, paper_style, save
from farline.plots.whole_file import write_whole


def _full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes the first bytes of a file and no more."""
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        write(path, content[:10])
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)


def test_a_full_disk_leaves_what_was_there_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    write_whole(page, "ü before")
    _full(monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        write_whole(page, "a later page, of more than ten bytes")
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
    assert page.read_text("utf-8") == "ü before"


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_figure_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / f"run-1.5.{kind}"
    with paper_style():
        assert save(new_figure()[0], tmp_path / "run-1.5", [kind]) == [path]
    assert len(path.read_bytes()) > 500
    _full(monkeypatch)
    with paper_style(), pytest.raises(OSError, match="No space left"):
        save(new_figure()[0], tmp_path / "other", [kind])
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "page.html").symlink_to("web/page.html")
    write_whole(tmp_path / "page.html", "text")
    assert (tmp_path / "page.html").is_symlink()
    assert (tmp_path / "web" / "page.html").read_text() == "text"
