"""What the guides tell root to type on emulated networks works, and prints what they show."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.support.guides import PAGES, ROOT, HeldUpError, Reader, blocks

KEEPS_TIME = ("testbed.md",)


def typed_by_root(page: Path) -> bool:
    """Whether the page has commands for root."""
    return any(block.directive("root") is not None for block in blocks(page))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page",
    [
        # Runs over a path that is held to its times count only on a host that keeps them.
        pytest.param(page, marks=pytest.mark.alone) if page.name in KEEPS_TIME else page
        for page in PAGES
        if typed_by_root(page)
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_guide_works_as_it_is_written(page: Path, tmp_path: Path) -> None:
    own = {
        "FARLINE_TESTBED_DIR": str(tmp_path / "testbeds"),
        "FARLINE_TESTBED_KERNEL_FILE": str(tmp_path / "kernel.json"),
    }
    (tmp_path / "testbeds").mkdir(mode=0o700)
    with suppress(HeldUpError), ExitStack() as stack:
        assert Reader(tmp_path, stack, own).read(page, root=True) > 0
