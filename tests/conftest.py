"""Tiers of tests, and what becomes of a skip.

The folder of a test is its tier and its marker. A test that this machine cannot
run is skipped with a reason. In continuous integration (CI=true) the machine is
made to run everything, so a skip there is a failure unless its reason is listed
in `tests/skip-allowlist.txt`.

A test that is marked `alone` measures times. If it fails while a hypervisor gave the machine's
CPUs to others (more than is allowed in a run over an emulated path), that says nothing of farline:
the test runs again, at most twice, and the summary says so. Its bounds stay what they are. Before
it does, the machine is watched until its CPUs are its own again, for ten minutes of all the tests
at most.

Hypothesis draws the same examples in every run and has no clock, so that a slow machine is no
failure. With FARLINE_LONG=1 (`make test-long`) it draws new ones, and more where a test does not
say how many.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from farline.drivers.record import stolen_s
from farline.testbeds.fixture import testbed

__all__ = ["testbed"]

TESTS = Path(__file__).parent
TIERS = ("unit", "contract", "loopback", "netns", "interop", "browser")
ALLOWLIST = TESTS / "skip-allowlist.txt"
END = pytest.StashKey[float]()
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
RUNS_OF_ONE_TEST = 3
STEAL_SHARE = 0.03
"""Largest share of one CPU's time that others may have had, as in the stamp of an emulated path."""
AGAIN = pytest.StashKey[list[str]]()
PATIENCE_S = 600.0
"""How long all tests together wait for a hypervisor that gives the CPUs to others."""
WATCHED_S = 2.0
"""How long the CPUs are watched at a time."""
BUSY = "import sys, time\nwhile time.monotonic() < float(sys.argv[1]): pass"
WAITED = pytest.StashKey[float]()
LONG = os.environ.get("FARLINE_LONG") == "1"

settings.register_profile(
    "farline",
    deadline=None,
    derandomize=not LONG,
    max_examples=1000 if LONG else 100,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("farline")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--stop-after`, for `make check`."""
    about = "seconds after which no further test begins: what is left is skipped"
    parser.addoption("--stop-after", type=float, default=None, help=about)


def pytest_configure(config: pytest.Config) -> None:
    """Notes when the time is over."""
    config.stash[AGAIN], config.stash[WAITED] = [], 0.0
    seconds = config.getoption("--stop-after")
    config.stash[END] = float("inf") if seconds is None else time.monotonic() + seconds


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begins no test after the end."""
    if time.monotonic() > item.config.stash[END]:
        pytest.skip("left out: the time was over")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test that measures times again if it failed while others had the CPUs."""
    if item.get_closest_marker("alone") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for run in range(1, RUNS_OF_ONE_TEST + 1):
        began, stolen = time.monotonic(), stolen_s()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        wall, taken = time.monotonic() - began, stolen_s() - stolen
        passed = all(not report.failed for report in reports)
        if passed or run == RUNS_OF_ONE_TEST or taken <= STEAL_SHARE * wall:
            break
        item.config.stash[AGAIN].append(
            f"{item.nodeid}: others had {taken:.1f} s of CPU time in {wall:.1f} s"
        )
        _wait_for_own_cpus(item.config)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _wait_for_own_cpus(config: pytest.Config) -> None:
    """Returns when a busy machine has its CPUs to itself, or when all patience is used up."""
    cpus = len(os.sched_getaffinity(0))
    while config.stash[WAITED] < PATIENCE_S and time.monotonic() < config.stash[END]:
        began, stolen = time.monotonic(), stolen_s()
        # A hypervisor takes nothing from CPUs that are idle.
        command = [sys.executable, "-c", BUSY, str(began + WATCHED_S)]
        for one in [subprocess.Popen(command) for _ in range(cpus)]:
            one.wait()
        wall, taken = time.monotonic() - began, stolen_s() - stolen
        config.stash[WAITED] += wall
        if taken <= STEAL_SHARE * wall * cpus:
            return


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Names each test that ran again, and why."""
    for line in config.stash[AGAIN]:
        terminalreporter.write_line(f"ran again: {line}")
    if waited := config.stash[WAITED]:
        terminalreporter.write_line(f"waited {waited:.1f} s for CPUs that others had")


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
