"""The page of an analysis as text: whole, closed to the network, with the numbers it was given."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from farline.errors import SystemFailure
from farline.plots.analysis import write_analysis_figures, write_analysis_page
from farline.plots.analysis_page import render_analysis
from farline.plots.analysis_payload import document, payload, shown_names
from farline.plots.analysis_tables import (
    candidates_table,
    coefficients_table,
    knots_table,
    models_table,
    pairs_table,
    ranks_table,
    tallies_table,
    warnings,
)
from farline.plots.analysis_values import AnalysisData, LogTally, OddLine
from farline.plots.page_parts import symbols
from tests.support.analyses import (
    RTT_MS,
    MadeModel,
    made_analysis,
    made_choice,
    made_empty,
    made_explanation,
    made_line,
    made_profile,
    made_single,
    made_streams,
    made_tallies,
    made_view,
)
from tests.unit.plots.test_page import Tags


class OtherModel(MadeModel):
    """Another by name."""

    name: ClassVar[str] = "other"


EVIL = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def data() -> AnalysisData:
    return made_analysis()


@pytest.fixture(scope="module")
def html(data: AnalysisData) -> str:
    return render_analysis(data, ["profile-t-all-sites.png"])


def tags_of(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    return tags


def test_nothing_in_it_can_be_fetched(html: str) -> None:
    for tag, attributes in tags_of(html).tags:
        assert tag not in ("img", "iframe", "object", "embed", "form", "base")
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        href = attributes.get("href") or "#"
        assert href.startswith("#") or href == "data:,"


def test_the_policy_allows_exactly_what_is_in_the_page(html: str) -> None:
    tags = tags_of(html)
    policy = next(a["content"] for t, a in tags.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "http" not in policy
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    digests = (hashlib.sha256(text.encode()).digest() for _, text in tags.inline)
    assert allowed == {base64.b64encode(digest).decode() for digest in digests}


def test_every_name_within_the_page_leads_somewhere_and_stands_once(html: str) -> None:
    attributes = [a for _, a in tags_of(html).tags]
    names = [a["id"] for a in attributes if "id" in a]
    assert len(set(names)) == len(names)
    leads = {str(a["href"])[1:] for a in attributes if str(a.get("href", "")).startswith("#")}
    assert leads <= set(names)


def test_findings_come_before_what_they_stand_on(html: str) -> None:
    order = ("Windows hold back the long paths", "What holds throughput back",
             "What to measure next", "Throughput over round-trip time", 'id="coefficients"',
             'id="use"', 'id="running"', 'id="sites"', 'id="sources"', 'id="method"')  # fmt: skip
    places = [html.index(text) for text in order]
    assert places == sorted(places)


def test_evidence_remedies_and_commands_are_in_the_text_without_scripts(html: str) -> None:
    for cause in made_explanation().causes:
        for line in (*cause.evidence, *cause.remedies):
            assert line.replace("'", "&#39;") in html
    assert "farline profile cern --streams 1,4,16" in html
    assert "farline analyze report gridftp.log" in html
    assert "the largest RTT weighs 0.0003" in html


def test_lines_that_were_no_records_are_shown_as_they_are(html: str) -> None:
    assert "duration is negative: -3 s" in html
    assert "START=20260102 &lt;script&gt;" in html
    assert "The first 2 of 5 are shown." in html


def test_a_hostile_name_stays_text(data: AnalysisData) -> None:
    first = replace(data.profiles[0], name=EVIL)
    tally = LogTally(EVIL, EVIL, 1, 0, 0, 1, {EVIL: 1}, (OddLine(1, EVIL, EVIL),))
    pairs = (replace(data.pairs[1], from_site=EVIL),)
    evil = replace(
        data, title=EVIL, profiles=(first,), tallies=(tally,), pairs=pairs, notes=(EVIL,),
        command=EVIL, made=EVIL,
    )  # fmt: skip
    html = render_analysis(evil)
    assert EVIL not in html and "<script>alert" not in html
    assert sum(tag == "script" for tag, _ in tags_of(html).tags) == 9


def test_the_payload_is_json_without_a_way_out_of_its_element(data: AnalysisData) -> None:
    evil = replace(data, profiles=(replace(data.profiles[0], name=EVIL),))
    text = payload(evil)
    assert "<" not in text
    assert json.loads(text)["profiles"][0]["name"] == EVIL


def test_the_payload_holds_the_figures_it_was_given(data: AnalysisData) -> None:
    made = document(data)
    assert len(made["profiles"]) == len(data.profiles)
    for entry, view in zip(made["profiles"], data.profiles, strict=True):
        assert entry["rtt"] == view.profile.rtt_ms.tolist()
        assert entry["mean"] == pytest.approx(view.profile.mean_bps.tolist(), rel=1e-4)
        assert view.running is not None
        assert entry["running"]["v"] == pytest.approx(view.running.c_uc.tolist(), rel=1e-4)
    cells = made["matrices"][0]["cells"]
    rates = [pair.mean_bps for pair in data.pairs if pair.modality == "T"]
    assert rates[0] is None
    assert [cell["mean"] for cell in cells[1:]] == pytest.approx(rates[1:], rel=1e-4)
    assert cells[0] == {
        "f": 0, "t": 1, "rtt": 12.0, "n": 0, "mean": None, "sd": None,
        "capacity": 10e9, "share": None, "failed": 6,
    }  # fmt: skip


def test_what_is_no_number_is_null() -> None:
    single = made_single().profiles[0]
    (entry,) = document(AnalysisData("", (single,)))["profiles"]
    assert entry["low"] == [None] and entry["high"] == [None] and entry["capacity"] is None


def test_sites_are_shown_beside_the_whole_of_their_own_modality(data: AnalysisData) -> None:
    found = {group["text"]: group["members"] for group in document(data)["groups"]}
    assert found["the whole infrastructure, everything"] == [0, 1]
    assert found["the whole infrastructure, file to file"] == [1]
    assert found["by site, memory to memory"] == [0, *range(2, 14)]


def test_profiles_of_one_name_are_told_apart_by_what_was_measured() -> None:
    views = [
        made_view("all", made_profile()),
        made_view("all", made_profile(modality="E")),
        made_view("ANL", made_profile(), "site"),
    ]
    assert shown_names(views) == ["all, memory to memory", "all, file to file", "ANL"]


def test_coefficients_stand_beside_mean_ends_and_shape(data: AnalysisData) -> None:
    table = coefficients_table(data)
    found = data.profiles[0].coefficients
    assert found is not None
    texts = [column.text for column in table.columns]
    cells = dict(zip(texts, table.rows[0].cells, strict=True))
    assert cells["C_UC"].text == f"{found.c_uc.value:.3f}"
    assert cells["Mean m"].text == f"{found.mean.value:.3f}"
    assert cells["C_CC"].text == f"\N{MINUS SIGN}{-found.c_cc.value:.3f}"
    assert cells["At the left"].text == f"{found.left:.3f}"
    assert cells["Profile"].badge == "1 warning"


def test_every_knot_has_a_row_with_its_figures(data: AnalysisData) -> None:
    table = knots_table(data)
    assert len(table.rows) == sum(len(view.profile.n) for view in data.profiles)
    profile = data.profiles[0].profile
    cells = table.rows[0].cells
    assert cells[2].sort == "0.4" and cells[3].text == "10"
    assert float(cells[4].sort) == pytest.approx(profile.mean_bps[0])
    assert float(cells[9].sort) == pytest.approx(profile.mean_bps[0] / 1e8)


def test_one_measurement_has_no_deviation_in_its_row() -> None:
    cells = knots_table(made_single()).rows[0].cells
    assert cells[5].text == "\N{EN DASH}" and cells[9].text == "\N{EN DASH}"


def test_candidates_say_their_error_or_why_there_is_none(data: AnalysisData) -> None:
    table = candidates_table(data)
    assert [row.cells[5].text for row in table.rows] == ["3.10\u202f%", "none"]
    assert table.rows[1].cells[3].text == "too few RTTs: 28 of 40 needed"


def test_the_chosen_model_is_shown_for_each_profile_that_has_one(data: AnalysisData) -> None:
    (first, second) = candidates_table(data).rows
    other = replace(made_choice().candidates[1], model=OtherModel())
    choice = replace(made_choice(), candidates=(made_choice().candidates[0], other))
    one = replace(data, profiles=(replace(data.profiles[0], choice=choice),))
    (chosen,) = models_table(one).rows
    assert chosen.cells[2].text == "window" and chosen.cells[6].text == made_choice().rule
    assert [row.best for row in candidates_table(one).rows] == [True, False]
    assert first.cells[0].text == second.cells[0].text == "All sites"


def test_a_warning_is_said_once_with_the_profiles_it_is_of(data: AnalysisData) -> None:
    views = (
        made_view("A", made_profile(), warnings=("few knots",)),
        made_view("B", made_profile(modality="E"), warnings=("few knots", "it rises")),
    )
    assert warnings(replace(data, profiles=views)) == {
        "few knots": ["A (memory to memory)", "B (file to file)"],
        "it rises": ["B (file to file)"],
    }


def test_lines_that_were_not_kept_are_counted_all_the_same() -> None:
    html = render_analysis(AnalysisData("", tallies=(LogTally("a.log", "x", 3, 1, 0, 2),)))
    assert "2 of a.log that were no records" in html
    assert "Which lines they are was not kept." in html and "The first 0" not in html


def test_a_pair_in_which_all_failed_is_no_zero(data: AnalysisData) -> None:
    cells = pairs_table(data).rows[0].cells
    assert cells[5].text == "no transfer completed" and cells[5].sort == "" and cells[5].bad
    assert cells[4].badge == "6 failed"


def test_ranks_and_tallies_keep_their_numbers() -> None:
    rank = ranks_table(made_explanation().sites).rows[0].cells
    assert [cell.text for cell in rank[:2]] == ["NERSC", "220"]
    assert rank[3].text == "0.510 to 0.600"
    tally = tallies_table(made_tallies()).rows[1].cells
    assert [cell.text for cell in tally[2:]] == [
        "1\u202f200", "1\u202f150", "31", "14 log level lines", "5",
    ]  # fmt: skip
    assert tally[6].bad


def test_sites_are_ranked_where_no_cause_stands_out(data: AnalysisData) -> None:
    bare = replace(data, explanation=replace(made_explanation(), causes=()))
    html = render_analysis(bare)
    assert 'id="causes"' not in html
    assert 'href="#ranks"' in html and "Sites compared" in html and 'id="ranks-table"' in html


def test_a_dashed_line_is_explained_only_where_one_is_drawn(data: AnalysisData) -> None:
    assert "dashed beyond" in render_analysis(data)
    inside = replace(data.profiles[0], fitted=made_line(end_ms=366.0))
    assert "dashed" not in body_of(render_analysis(replace(data, profiles=(inside,))))


def body_of(html: str) -> str:
    return html[html.index("<main>") : html.index("</main>")]


@pytest.mark.parametrize("made", [made_streams, made_single, made_empty])
def test_what_there_is_nothing_of_is_left_out(made: object) -> None:
    html = render_analysis(made())  # type: ignore[operator]
    assert 'id="causes"' not in html and 'id="heat"' not in html and 'id="compared"' not in html
    assert 'id="method"' in html


def test_without_a_capacity_the_page_says_why_there_are_no_coefficients() -> None:
    html = render_analysis(made_single())
    assert "they need a known capacity and at least two round-trip times" in html


def test_names_of_coefficients_are_set_with_an_index_and_nothing_else_is() -> None:
    assert symbols("C_UC < C_CC") == "C<sub>UC</sub> &lt; C<sub>CC</sub>"
    assert symbols("C_UCX and VAC_U") == "C_UCX and VAC_U"


def test_the_page_and_its_figures_are_written_side_by_side(tmp_path: Path) -> None:
    data = replace(made_streams(), profiles=made_streams().profiles[:2])
    page, *figures = write_analysis_page(data, tmp_path / "out" / "index.html", ["png"])
    assert page.read_text("utf-8").startswith("<!doctype html>")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in figures}
    assert names == {"figures/profiles-t-streams.png", "figures/running-t-streams.png"}
    assert all(path.stat().st_size > 4000 for path in figures)
    captions = (tmp_path / "out/figures/captions.txt").read_text("utf-8")
    assert "profiles-t-streams: Throughput over round-trip time" in captions
    assert sorted(path.name for path in page.parent.iterdir()) == ["figures", "index.html"]


def test_with_no_formats_there_is_the_page_alone(tmp_path: Path) -> None:
    assert write_analysis_page(made_empty(), tmp_path / "index.html", ()) == [
        tmp_path / "index.html"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemFailure, match="cannot write the page"):
        write_analysis_page(made_empty(), tmp_path / "file" / "index.html", ())
    with pytest.raises(SystemFailure, match="cannot write the figures"):
        write_analysis_figures(made_empty(), tmp_path / "file" / "figures")


def test_the_same_values_make_the_same_bytes(data: AnalysisData) -> None:
    assert render_analysis(data) == render_analysis(made_analysis())
    assert len(RTT_MS) == 28
