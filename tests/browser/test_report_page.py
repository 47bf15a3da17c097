"""The report as a person meets it: in a browser, from a file, without a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Open

INK = """selector => [...document.querySelectorAll(selector)].map(canvas => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let i = 0; i < pixels.length; i += 4)
    if (pixels[i + 3] > 200) colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
  return colours.size;
})"""

PICTURE = """selector => {
  const canvas = document.querySelector(selector);
  return canvas.toDataURL();
}"""


def choose(page: Page, box: str, label: str, text: str) -> None:
    page.locator(f"{box} label", has_text=label).locator("select").select_option(label=text)


def choices(page: Page, box: str, label: str) -> list[str]:
    options = page.locator(f"{box} label", has_text=label).locator("option")
    return options.all_inner_texts()


@pytest.mark.parametrize("name", ["grid", "both-ways", "single"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_a_complaint_or_a_request(
    open_report: Open, reports: dict[str, Path], name: str, scheme: str
) -> None:
    seen = open_report(name, scheme=scheme)
    assert seen.complaints == []
    assert seen.requests == [reports[name].as_uri()]


@pytest.mark.parametrize("name", ["grid", "both-ways", "single"])
def test_every_chart_has_ink(open_report: Open, name: str) -> None:
    page = open_report(name).page
    for chart in ("response-chart", "cpu-chart", "time-rate", "time-rtt", "time-cwnd"):
        (colours,) = page.evaluate(INK, f"#{chart} .uplot canvas")
        assert colours > 3, chart
    assert page.locator("#spread-strips svg circle").count() > 0
    assert page.locator("#limits-bars .bar span").count() > 0


def test_a_run_has_a_chart_for_each_thing_known_of_it(open_report: Open) -> None:
    page = open_report("udt").page
    for chart in ("time-rtt", "time-cwnd", "time-flight", "time-period", "time-lost"):
        (colours,) = page.evaluate(INK, f"#{chart} .uplot canvas")
        assert colours > 3, chart
    page = open_report("grid").page
    for chart in ("time-flight", "time-period", "time-lost"):
        assert page.locator(f"#{chart} canvas").count() == 0


@pytest.mark.parametrize("width", [360, 390, 768, 1200])
@pytest.mark.parametrize("name", ["grid", "both-ways"])
def test_it_fits_the_screen(open_report: Open, name: str, width: int) -> None:
    page = open_report(name, width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#response-chart .uplot").bounding_box()["width"] <= width  # type: ignore[index]


def test_findings_stand_above_the_curves(open_report: Open) -> None:
    page = open_report("grid").page
    assert "The best of 12 settings reached" in page.locator(".lead").inner_text()
    lead, chart = (page.locator(s).bounding_box() for s in (".lead", "#response-chart"))
    assert lead is not None and chart is not None and lead["y"] < chart["y"]
    assert "2 runs failed (2 timeout)" in page.locator(".findings .bad").first.inner_text()


def test_curves_can_be_drawn_over_any_parameter(open_report: Open) -> None:
    seen = open_report("grid")
    page, box = seen.page, "#response-controls"
    pictures = {page.evaluate(PICTURE, "#response-chart canvas")}
    for label in ("Parallel streams", "Congestion control", "Block size"):
        choose(page, box, "over", label)
        pictures.add(page.evaluate(PICTURE, "#response-chart canvas"))
        assert label in (page.locator("#response-table th").nth(1).text_content() or "")
    assert len(pictures) >= 3
    assert seen.complaints == []


def test_the_table_holds_what_the_curves_show(open_report: Open) -> None:
    page = open_report("grid").page
    choose(page, "#response-controls", "over", "Block size")
    choose(page, "#response-controls", "one curve per", "Parallel streams")
    page.locator("#response-details summary").click()
    rows = page.locator("#response-table tbody tr")
    assert rows.count() == 6
    assert "n = " in rows.first.inner_text() and "Gbit/s" in rows.first.inner_text()
    held = choices(page, "#response-controls", "Congestion control at")
    assert held == ["bbr", "cubic"]
    before = page.locator("#response-table").inner_text()
    choose(page, "#response-controls", "Congestion control at", "bbr")
    assert page.locator("#response-table").inner_text() != before


def test_the_heat_map_has_a_cell_for_each_pair(open_report: Open) -> None:
    page = open_report("grid").page
    choose(page, "#response-controls", "over", "Block size")
    choose(page, "#response-controls", "one curve per", "Parallel streams")
    assert page.locator("#heat tbody td").count() == 6
    colours = page.locator("#heat tbody td").evaluate_all(
        "cells => new Set(cells.map(cell => cell.style.backgroundColor)).size"
    )
    assert colours == 6
    choose(page, "#response-controls", "one curve per", "nothing")
    assert page.locator("#heat td").count() == 0


def test_other_quantities_can_be_shown(open_report: Open) -> None:
    page = open_report("grid").page
    before = page.evaluate(PICTURE, "#response-chart canvas")
    choose(page, "#response-controls", "Show", "CPU time")
    assert page.evaluate(PICTURE, "#response-chart canvas") != before
    assert page.locator("#cpu-chart canvas").count() == 0
    assert "s/GB" in (page.locator("#response-table td").nth(2).text_content() or "")


def test_a_point_leads_to_its_run(open_report: Open) -> None:
    page = open_report("grid").page
    over = page.locator("#response-chart .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.06 * box["width"], box["y"] + box["height"] - 4)
    tip = page.locator("#response-chart .tip")
    assert tip.is_visible() and "n = " in tip.inner_text()
    before = page.locator("#time-controls select").first.input_value()
    page.mouse.click(box["x"] + 0.06 * box["width"], box["y"] + box["height"] - 4)
    assert page.locator("#time-controls select").first.input_value() != before


def test_a_failed_run_says_why_and_draws_nothing(open_report: Open) -> None:
    seen = open_report("grid")
    page = seen.page
    failed = page.evaluate("report.data.runs.find(run => run.status === 'failed')")
    page.locator("#time-controls select").first.select_option(value=str(failed["point"]))
    page.locator("#time-controls select").nth(1).select_option(value=failed["id"])
    note = page.locator("#time-note").inner_text()
    assert note.startswith("This run failed: nothing came from the server")
    assert page.locator("#time-rate canvas").count() == 0
    assert "has no samples" in page.locator("#time-rate").inner_text()
    assert seen.complaints == []


def test_both_directions_are_named(open_report: Open) -> None:
    key = open_report("both-ways").page.locator("#time-key").inner_text()
    assert "client to server" in key and "server to client" in key


def test_streams_can_be_left_out(open_report: Open) -> None:
    page = open_report("grid").page
    before = page.evaluate(PICTURE, "#time-rate canvas")
    page.locator("#time-controls input[type=checkbox]").uncheck()
    assert page.evaluate(PICTURE, "#time-rate canvas") != before


def test_the_table_sorts_both_ways_and_says_so(open_report: Open) -> None:
    page = open_report("grid").page
    heading = page.locator("#settings-table th", has_text="CPU s/GB")
    column = page.locator("#settings-table thead th").all_inner_texts().index("CPU s/GB")

    def figures() -> list[float]:
        cells = page.locator(f"#settings-table tbody td:nth-child({column + 1})")
        return [float(text) for text in cells.all_inner_texts()]

    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending" and figures() == sorted(figures())
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert figures() == sorted(figures(), reverse=True)


def test_verdicts_split_by_parameter_and_count_every_run(open_report: Open) -> None:
    page = open_report("grid").page
    total = page.evaluate("report.data.points.reduce((n, p) => n + p.n + p.failed + p.partial, 0)")
    first = page.locator("#limits-bars .bar").first.locator("span").all_inner_texts()
    assert sum(map(int, first)) == total
    choose(page, "#limits-controls", "One bar per", "Congestion control")
    assert page.locator("#limits-bars .bar").count() == 3


def test_dark_and_light_differ_and_print_is_light(open_report: Open) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = open_report("grid").page, open_report("grid", scheme="dark").page
    assert light.evaluate(background) != dark.evaluate(background)
    dark.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert dark.evaluate(background) == light.evaluate(background)
    dark.evaluate("dispatchEvent(new Event('afterprint'))")
    assert dark.evaluate(background) != light.evaluate(background)


def test_pictures_have_words_and_controls_have_labels(open_report: Open) -> None:
    page = open_report("grid").page
    named = page.locator(".uplot canvas").evaluate_all(
        "all => all.every(c => c.getAttribute('role') === 'img' && c.getAttribute('aria-label'))"
    )
    labelled = page.locator("select, input").evaluate_all(
        "all => all.every(c => c.labels.length === 1 && c.labels[0].textContent.trim())"
    )
    assert named and labelled
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1").count() == 1


def test_without_scripts_the_tables_are_there(
    browser_without_scripts: Page, reports: dict[str, Path]
) -> None:
    page = browser_without_scripts
    page.goto(reports["grid"].as_uri())
    assert "The curves need JavaScript" in page.locator("noscript").inner_text()
    assert page.locator("#settings-table tbody tr").count() == 12
