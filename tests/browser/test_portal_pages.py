"""The service's pages as a person meets them: by mouse and keyboard, light, dark and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from farline.store import Store
from tests.browser.conftest import Opened
from tests.browser.test_report_page import INK
from tests.support.contending import made_measurement
from tests.support.portals import Process, made_store, portal_command, portal_process, sites_text

ESTIMATE = "/estimate?source=ANL&destination=CERN&size=12TB&files=4000&deadline=36h"
PAGES = ("/", "/paths/ANL/BNL", ESTIMATE, "/transfers", "/transfers/new?source=src&destination=dst",
         "/reservations", "/campaigns", "/fairness", "/learn", "/learn/loss",
         "/learn/instructor", "/plans/new", "/plans/fairness")  # fmt: skip
SERIOUS = ("serious", "critical")

Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service over a made store, with two folders."""
    folder = tmp_path_factory.mktemp("portal")
    for name in ("src/runs", "dst"):
        (folder / name).mkdir(parents=True)
    (folder / "src" / "runs" / "a.bin").write_bytes(b"a" * 3_000_000)
    for name in ("src", "dst"):
        portal_command(folder, "endpoint", "add", name, str(folder / name))
    (folder / "sites.toml").write_text(sites_text())
    store = made_store(folder)
    made_measurement(Store(store))
    with portal_process(
        folder, "--store", str(store), "--sites", str(folder / "sites.toml")
    ) as made:
        yield made


@pytest.fixture
def open_page(browser: Browser, portal: Process) -> Iterator[Open]:
    """Opens pages of the service, logged in, and notes requests and complaints."""
    contexts = []

    def opened(path: str, width: int = 1240, scheme: str = "light") -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        contexts.append(context)
        seen = Opened(context.new_page())
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("console", lambda message: seen.complaints.append(message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.goto(f"{portal.url}/login#{portal.token}")
        seen.page.wait_for_url(f"{portal.url}/")
        seen.page.goto(portal.url + path)
        seen.page.wait_for_selector("body[data-ready]")
        return seen

    yield opened
    for context in contexts:
        context.close()


def faults(page: Page) -> list[str]:
    """What axe-core finds serious, a line each."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['html'][:150]}"
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_whole_and_open_to_all(open_page: Open, portal: Process, path: str) -> None:
    for scheme, width in (("light", 1240), ("dark", 390)):
        seen = open_page(path, width, scheme)
        assert seen.complaints == []
        assert all(url.startswith((portal.url, "data:")) for url in seen.requests)
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert faults(seen.page) == []


def test_the_one_time_address_logs_in_and_leaves_no_trace(
    browser: Browser, portal: Process
) -> None:
    context = browser.new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    once = portal.login.partition("#")[2]
    page.goto(portal.login)
    page.wait_for_url(f"{portal.url}/")
    assert not any(once in url for url in asked)
    assert page.evaluate("document.cookie") == "", "scripts cannot read it"
    (cookie,) = context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    page.go_back()
    assert once not in page.url
    context.close()


def test_charts_of_a_path_have_ink(open_page: Open) -> None:
    page = open_page("/paths/ANL/BNL").page
    page.wait_for_selector("body[data-charts]")
    for chart in ("history", "profile"):
        (colours,) = page.evaluate(INK, f"#{chart} .uplot canvas")
        assert colours > 3, chart


def test_from_the_matrix_to_an_estimate_and_a_reservation(open_page: Open, portal: Process) -> None:
    page = open_page("/").page
    page.get_by_role("link", name=re.compile("^ANL to CERN: ")).first.click()
    page.get_by_role("link", name="Estimate a transfer").click()
    page.get_by_label("Size").fill("2TB")
    page.get_by_role("button", name="Estimate").click()
    assert "8 in 10 such transfers" in page.locator(".answer").inner_text()
    page.get_by_role("button", name="Hold this reservation").click()
    row = page.locator("tbody tr").first
    assert "Held" in row.inner_text() and "ANL to CERN" in row.inner_text()
    row.get_by_role("button", name="Commit").click()
    assert "Active" in page.locator("tbody tr").first.inner_text()
    page.locator("tbody tr").first.get_by_role("button", name="Release").click()
    assert "Released" in page.locator("tbody tr").first.inner_text()


def test_a_transfer_by_keyboard_alone(open_page: Open, portal: Process) -> None:
    page = open_page("/transfers").page
    page.get_by_role("link", name="New transfer").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/transfers/new*")
    page.get_by_label("Endpoint").first.select_option("src")
    page.wait_for_url("**source=src**")
    page.get_by_role("link", name="runs/").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**source_path=runs**")
    assert page.get_by_label("Path below it").first.input_value() == "runs"
    page.get_by_label("Endpoint").nth(1).select_option("dst")
    page.wait_for_url("**destination=dst**")
    page.get_by_role("button", name="Start the transfer").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Complete", exact=True).wait_for(timeout=30_000)
    assert "2.86 MiB of 2.86 MiB" in page.locator("#live").inner_text()
    assert (portal.folder / "dst" / "runs" / "a.bin").stat().st_size == 3_000_000
    page.wait_for_selector("#log li")
    assert faults(page) == []


def test_a_running_transfer_moves_before_the_eyes(open_page: Open, portal: Process) -> None:
    body = {
        "source": {"endpoint": "src"}, "destination": {"endpoint": "dst", "path": "slow"},
        "options": {"total_rate_bps": 2_000_000},
    }  # fmt: skip
    name = portal.ask("/v1/transfers", body)["id"]
    portal.until(f"/v1/transfers/{name}", "running")
    page = open_page(f"/transfers/{name}", 390, "dark").page
    # Not by a script that is asked again and again: the page lets none be evaluated.
    page.locator("[data-live=rate]").filter(has_text="bit/s").first.wait_for(timeout=30_000)
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Paused", exact=True).wait_for(timeout=30_000)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled", exact=True).wait_for(timeout=30_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_without_scripts_pages_say_the_same(browser: Browser, portal: Process) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{portal.url}/login")
    page.get_by_label("Token").fill(portal.token)
    page.get_by_role("button", name="Log in").click()
    assert "Throughput between sites" in page.locator("h1").inner_text()
    page.goto(portal.url + ESTIMATE)
    assert page.locator("figure rect").count() == 3
    context.close()


def test_a_fairness_measurement_opens_from_the_list(open_page: Open) -> None:
    for scheme, width in (("light", 1240), ("dark", 390)):
        page = open_page("/fairness", width, scheme).page
        page.locator("tbody th a").first.click()
        page.wait_for_url("**/fairness/*")
        page.get_by_text("Each trial of TCP cubic").click()
        assert page.get_by_role("region", name="Trials of TCP cubic").is_visible()
        loaded = "Array.from(document.images).every((one) => one.complete && one.naturalWidth > 0)"
        assert page.locator("img.paper").count() == 3 and page.evaluate(loaded)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert faults(page) == []


def test_a_lab_by_keyboard_from_prediction_to_explanation(open_page: Open) -> None:
    page = open_page("/learn", 390, "dark").page
    page.get_by_role("link", name="The window limits you").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/learn/window")
    page.get_by_label("Your prediction (Mbit/s)").fill("5.2")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Show the recorded measurement").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Your prediction holds.").wait_for()
    assert page.locator("table.bars rect.bar").count() == 4
    box = page.locator("table.bars rect.predicted").bounding_box()
    assert box is not None and box["width"] > 0, "the prediction is drawn beside the bar"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults(page) == []
    page.goto(page.url.replace("/learn/window", "/learn/instructor"))
    assert "right: 5.2" in page.locator("tbody").inner_text()


def test_a_plan_is_written_from_the_fields_and_checked(open_page: Open) -> None:
    page = open_page("/plans/new").page
    page.get_by_label("Streams").fill("1, 2, 4")
    page.get_by_role("button", name="Write the plan").click()
    assert "6 settings" in page.locator("#checked").inner_text()
    assert faults(page) == []


def test_a_fairness_plan_is_written_and_corrected_by_keyboard_alone(open_page: Open) -> None:
    page = open_page("/fairness", 390, "dark").page
    page.get_by_role("link", name="Plan a fairness measurement").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/plans/fairness")
    page.get_by_label("Transfer", exact=True).focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("tcp:cubic,streams=4")
    page.keyboard.press("Enter")
    page.wait_for_selector("#checked")
    checked = page.locator("#checked").inner_text()
    assert "2 transfers, 33 trials" in checked and "TCP cubic, 4 streams" in checked
    page.get_by_label("Text of the plan").focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("colour = 1")
    page.get_by_role("button", name="Check").focus()
    page.keyboard.press("Enter")
    assert "[path] colour: unknown" in page.get_by_role("alert").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults(page) == []


def test_a_fairness_plan_is_saved_without_scripts(browser: Browser, portal: Process) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{portal.url}/login")
    page.get_by_label("Token").fill(portal.token)
    page.get_by_role("button", name="Log in").click()
    page.goto(f"{portal.url}/plans/fairness")
    page.get_by_role("button", name="Write the plan").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as a file").click()
    assert saved.value.suggested_filename == "udt-beside-cubic.toml"
    assert "[subject.transfer]" in saved.value.path().read_text()
    context.close()
