"""What the guides tell a reader to type works, and prints what they show."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.guides import PAGES, ROOT, Reader, blocks


def typed_here(page: Path) -> bool:
    """Whether the page has commands that need neither root nor another host."""
    return any(
        block.language == "console"
        and block.directive("not run") is None
        and block.directive("root") is None
        for block in blocks(page)
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if typed_here(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_guide_works_as_it_is_written(page: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        assert Reader(tmp_path, stack).read(page, root=False) > 0
