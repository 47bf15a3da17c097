"""A headless browser, and pages of the report opened from files."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from farline.plots.report import write_report
from tests.support.campaigns import (
    CAMPAIGN,
    KIB,
    fill_store,
    made_campaign,
    made_udt_samples,
)

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Opened:
    """A page, and what it asked for and complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium of the system; tests/conftest.py skips this tier where there is none."""
    path = next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of campaigns: a grid with failures, both directions, one setting, UDT's samples."""
    runs = {
        "grid": made_campaign(
            (1, 4),
            (64 * KIB, 256 * KIB, 1024 * KIB),
            failing={3: "failed", 9: "partial", 20: "failed"},
            duration_s=2.0,
        ),
        "both-ways": made_campaign(
            (1, 2, 4), (128 * KIB,), ("bbr",), 2, direction="bidirectional", duration_s=1.0
        ),
        "single": made_campaign((4,), (128 * KIB,), ("bbr",), repetitions=4, duration_s=1.0),
    }
    udt = made_campaign((2,), (128 * KIB,), ("bbr",), repetitions=2, duration_s=2.0)
    runs["udt"] = [replace(run, samples=made_udt_samples()) for run in udt]
    pages = {}
    for name, made in runs.items():
        folder = tmp_path_factory.mktemp(name)
        fill_store(folder / "store", made)
        pages[name] = write_report(folder / "store", CAMPAIGN, folder / "out", ())
    return pages


@contextlib.contextmanager
def opening(browser: Browser, pages: Mapping[str, Path]) -> Iterator[Open]:
    """Opens pages from their files, offline, and waits until each has drawn itself."""
    contexts = []

    def opened(name: str, width: int = 1200, scheme: str = "light") -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
            offline=True,
        )
        contexts.append(context)
        seen = Opened(context.new_page())
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("console", lambda message: seen.complaints.append(message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.goto(pages[name].as_uri())
        seen.page.wait_for_selector("body[data-ready]", timeout=20_000)
        return seen

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def open_report(browser: Browser, reports: dict[str, Path]) -> Iterator[Open]:
    """Opens a report."""
    with opening(browser, reports) as opened:
        yield opened


@pytest.fixture
def browser_without_scripts(browser: Browser) -> Iterator[Page]:
    """A page of a browser in which scripts are switched off."""
    context = browser.new_context(java_script_enabled=False, offline=True)
    yield context.new_page()
    context.close()
