"""The page of an analysis as a person meets it: in a browser, from a file, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from farline.plots.analysis import write_analysis_page
from tests.browser.conftest import Open, opening
from tests.browser.test_report_page import INK, PICTURE, choices, choose
from tests.support.analyses import (
    SITES,
    made_analysis,
    made_bars,
    made_empty,
    made_grids,
    made_pairs,
    made_single,
    made_streams,
)

NAMES = {
    "analysis": made_analysis,
    "streams": made_streams,
    "single": made_single,
    "empty": made_empty,
}
CONTROLS, CHIPS, CHART = "#profiles-controls", "#profiles-chips", "#profiles-chart canvas"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Everything at once, streams over a log axis, one measurement, and none."""
    folder = tmp_path_factory.mktemp("analyses")
    for name, made in NAMES.items():
        write_analysis_page(made(), folder / f"{name}.html", ())
    return {name: folder / f"{name}.html" for name in NAMES}


@pytest.fixture
def open_analysis(browser: Browser, pages: dict[str, Path]) -> Iterator[Open]:
    """Opens a page of an analysis."""
    with opening(browser, pages) as opened:
        yield opened


def tip_at(page: Page, chart: str, share: float) -> str:
    """What the tip says at this share of the chart's width."""
    over = page.locator(f"{chart} .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
    return page.locator(f"{chart} .tip").inner_text()


@pytest.mark.parametrize("name", list(NAMES))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_a_complaint_or_a_request(
    open_analysis: Open, pages: dict[str, Path], name: str, scheme: str
) -> None:
    seen = open_analysis(name, scheme=scheme)
    assert seen.complaints == []
    assert seen.requests == [pages[name].as_uri()]


def test_every_chart_has_ink(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    charts = ("profiles-chart", "running-chart", "compared-both", "compared-values", "io-chart")
    for chart in charts:
        (colours,) = page.evaluate(INK, f"#{chart} .uplot canvas")
        assert colours > 3, chart
    assert page.locator("#use-bars .bar").count() == len(made_bars())


@pytest.mark.parametrize("width", [360, 768, 1200])
def test_it_fits_the_screen(open_analysis: Open, width: int) -> None:
    page = open_analysis("analysis", width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#profiles-chart .uplot").bounding_box()["width"] <= width  # type: ignore[index]


def test_findings_and_causes_stand_above_the_curves(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    assert page.locator(".lead").inner_text().startswith("Windows hold back the long paths")
    order = [page.locator(s).bounding_box() for s in (".lead", "#causes", "#profiles-chart")]
    tops = [box["y"] for box in order if box is not None]
    assert len(tops) == 3 and tops == sorted(tops)
    assert page.locator(".cause h3").first.inner_text() == "Windows and buffers"
    assert page.locator(".cause meter").first.get_attribute("value") == "93"


def test_sites_can_be_chosen_and_drawn_on_either_axis(open_analysis: Open) -> None:
    seen = open_analysis("analysis")
    page = seen.page
    pictures = {page.evaluate(PICTURE, CHART)}
    choose(page, CONTROLS, "Show", "by site, memory to memory")
    assert page.locator(f"{CHIPS} label").all_inner_texts() == ["All sites", *SITES]
    assert page.locator(f"{CHIPS} input:checked").count() == 5
    pictures.add(page.evaluate(PICTURE, CHART))
    choose(page, CONTROLS, "RTT axis", "logarithmic")
    pictures.add(page.evaluate(PICTURE, CHART))
    running = page.evaluate(PICTURE, "#running-chart canvas")
    page.locator(f"{CHIPS} label", has_text="NERSC").locator("input").check()
    pictures.add(page.evaluate(PICTURE, CHART))
    assert page.evaluate(PICTURE, "#running-chart canvas") != running
    assert len(pictures) == 4 and seen.complaints == []


def test_all_and_none_can_be_chosen_at_once(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    choose(page, CONTROLS, "Show", "by site, memory to memory")
    page.locator(f"{CHIPS} button").click()
    assert page.locator(f"{CHIPS} input:checked").count() == 1 + len(SITES)
    page.locator(f"{CHIPS} button").click()
    assert page.locator("#profiles-chart canvas").count() == 0
    assert "No profile is chosen" in page.locator("#profiles-chart").inner_text()


def test_the_tip_says_what_was_measured(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    profile = made_analysis().profiles[0].profile
    said = tip_at(page, "#profiles-chart", 0.0)
    assert said.startswith("RTT 0.4000 ms")
    assert f"All sites: {profile.mean_bps[0] / 1e9:.2f} Gbit/s" in said and "n = 10" in said
    running = made_analysis().profiles[0].running
    assert running is not None
    assert f"All sites: {running.c_uc[-1]:.3f}" in tip_at(page, "#running-chart", 0.999)


def test_rates_can_be_shown_as_shares_of_capacity(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    choose(page, CONTROLS, "Rates as", "share of capacity")
    profile = made_analysis().profiles[0].profile
    assert f"All sites: {profile.mean_bps[0] / 1e8:.1f} %" in tip_at(page, "#profiles-chart", 0.0)


def test_failed_transfers_are_counted_once_however_many_sites_are_shown(
    open_analysis: Open,
) -> None:
    page = open_analysis("analysis").page
    note = page.locator("#profiles-note")
    # Each profile has 2 that failed: the whole's are those of its sites.
    choose(page, CONTROLS, "Show", "by site, memory to memory")
    assert "2 failed transfers" in note.inner_text()
    page.locator(f"{CHIPS} label", has_text="All sites").locator("input").uncheck()
    assert "failed" not in note.inner_text()
    streams = open_analysis("streams").page
    assert "10 failed transfers" in streams.locator("#profiles-note").inner_text()


def test_model_and_shape_are_those_of_the_profile_that_is_chosen(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    key = page.locator("#profiles-key")
    assert "model: window" in key.inner_text()
    assert "then a window of 107 MiB over RTT" in page.locator("#profiles-note").inner_text()
    before = page.evaluate(PICTURE, CHART)
    choose(page, CONTROLS, "Model and shape of", "none")
    assert key.inner_text() == "" and page.evaluate(PICTURE, CHART) != before


def test_the_matrix_holds_the_rates_and_marks_what_failed(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    cells = page.locator("#sites-matrix tbody tr")
    assert cells.count() == len(SITES)
    names = page.locator("#sites-matrix thead th").all_inner_texts()[1:]
    assert names == sorted(SITES)
    for pair in made_pairs()[:20]:
        row = cells.nth(names.index(pair.from_site)).locator("td")
        cell = row.nth(names.index(pair.to_site)).inner_text()
        assert cell == ("failed" if pair.mean_bps is None else f"{pair.mean_bps / 1e9:.2f}")
    choose(page, "#sites-controls", "as", "round-trip time")
    pair = made_pairs()[1]
    row = cells.nth(names.index(pair.from_site)).locator("td")
    assert row.nth(names.index(pair.to_site)).inner_text() == f"{pair.rtt_ms:.1f}"
    choose(page, "#sites-controls", "Show", "file to file")
    assert page.locator("#sites-matrix tbody tr").count() == 5


def test_the_heat_map_holds_what_was_measured(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    rates = made_grids()[0].values
    rows = page.locator("#heat table").first.locator("tbody tr")
    assert rows.last.locator("td").first.inner_text() == f"{rates[0, 0] / 1e9:.2f}"
    assert rows.first.locator("td").last.inner_text() == "failed"
    assert rows.last.locator("td").nth(3).inner_text() == ""


def test_bars_say_what_their_parts_hide(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    said = page.locator("#use-bars").inner_text()
    bar = made_bars()[1]
    assert bar.file is not None and bar.network is not None
    assert f"{bar.file.c_uc.value:.3f}, mean {100 * bar.file.mean.value:.1f} % of capacity" in said
    assert page.locator("#use-bars .bad").all_inner_texts() == [
        "memory to memory is below file to file: these measurements do not fit together"
    ]


def test_comparisons_can_be_chosen(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    before = page.evaluate(PICTURE, "#compared-values canvas")
    assert "what the transfer tool keeps" in page.locator("#compared-note").inner_text()
    found = choices(page, "#compared-controls", "Compare")
    assert found == ["File transfer method (ratio)", "Memory less file (difference)"]
    choose(page, "#compared-controls", "Compare", found[1])
    assert page.evaluate(PICTURE, "#compared-values canvas") != before


def test_the_coefficients_sort_and_keep_their_index(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    heading = page.locator("#coefficients-table th").nth(10)
    assert heading.locator("button").inner_html() == "C<sub>UC</sub>"
    heading.locator("button").click()
    values = page.locator("#coefficients-table tbody td:nth-child(11)").all_inner_texts()
    figures = [float(text) for text in values]
    assert len(figures) == 14 and figures == sorted(figures)


def test_an_rtt_of_zero_stands_on_the_log_axis(open_analysis: Open) -> None:
    seen = open_analysis("streams")
    assert choices(seen.page, CONTROLS, "RTT axis") == ["linear", "logarithmic"]
    assert seen.page.locator(f"{CONTROLS} select").first.input_value() == "log"
    assert tip_at(seen.page, "#profiles-chart", 0.0).startswith("RTT 0 ms")
    assert seen.complaints == []


def test_dark_and_light_differ_and_print_is_light(open_analysis: Open) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = open_analysis("analysis").page, open_analysis("analysis", scheme="dark").page
    assert light.evaluate(background) != dark.evaluate(background)
    assert light.evaluate(PICTURE, CHART) != dark.evaluate(PICTURE, CHART)
    dark.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert dark.evaluate(background) == light.evaluate(background)
    dark.evaluate("dispatchEvent(new Event('afterprint'))")
    assert dark.evaluate(background) != light.evaluate(background)


def test_pictures_have_words_and_controls_have_labels(open_analysis: Open) -> None:
    page = open_analysis("analysis").page
    named = page.locator(".uplot canvas").evaluate_all(
        "all => all.every(c => c.getAttribute('role') === 'img' && c.getAttribute('aria-label'))"
    )
    labelled = page.locator("select, input, meter").evaluate_all(
        "all => all.every(c => c.labels.length === 1 && c.labels[0].textContent.trim())"
    )
    assert named and labelled
    assert page.locator("h1").count() == 1


def test_without_scripts_the_tables_are_there(
    browser_without_scripts: Page, pages: dict[str, Path]
) -> None:
    page = browser_without_scripts
    page.goto(pages["analysis"].as_uri())
    assert "The curves need JavaScript" in page.locator("noscript").inner_text()
    assert page.locator("#coefficients-table tbody tr").count() == 14
    assert page.locator("#pairs-table tbody tr").count() > 100
