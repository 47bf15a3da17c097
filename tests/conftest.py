"""Tiers of tests, and what becomes of a skip.

The folder of a test is its tier and its marker. A test that this machine cannot
run is skipped with a reason. In continuous integration (CI=true) the machine is
made to run everything, so a skip there is a failure unless its reason is listed
in `tests/skip-allowlist.txt`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from farline.testbed.fixture import testbed

__all__ = ["testbed"]

TESTS = Path(__file__).parent
TIERS = ("unit", "contract", "loopback", "netns", "interop", "browser")
ALLOWLIST = TESTS / "skip-allowlist.txt"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test with its tier, and skips pictures where there is no browser."""
    no_browser = _why_no_browser()
    for item in items:
        tier = tier_of(item.path)
        if tier is None:
            raise pytest.UsageError(f"{item.path}: tests live in one of {', '.join(TIERS)}")
        item.add_marker(getattr(pytest.mark, tier))
        if tier == "browser" and no_browser is not None:
            item.add_marker(pytest.mark.skip(reason=no_browser))


def tier_of(path: Path) -> str | None:
    """Name of the tier that the test file belongs to."""
    parts = path.relative_to(TESTS).parts
    return parts[0] if parts[0] in TIERS else None


def _why_no_browser() -> str | None:
    if any(shutil.which(name) for name in CHROMIUM_NAMES):
        return None
    return "looking at pages needs a browser: install chromium"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turns a skip that nobody allowed into a failure, where CI is true."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole file that skips itself."""
    report = yield
    if report.skipped:
        _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = skip_reason(report.longrepr)
    if os.environ.get("CI") == "true" and not is_allowed(reason):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, and {ALLOWLIST.name} does not allow it: {reason}"


def skip_reason(longrepr: object) -> str:
    """Reason of a skip, from what pytest keeps of it."""
    text = longrepr[2] if isinstance(longrepr, tuple) else longrepr
    return str(text).removeprefix("Skipped: ")


def is_allowed(reason: str) -> bool:
    """Whether a line of the list, with `*` for anything, matches the reason."""
    lines = ALLOWLIST.read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    return any(fnmatch(reason, pattern) for pattern in patterns)
