"""An analysis in words: what is said is what was measured, and what misleads is said too."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from farline.findings.infrastructure_finding import CauseKind, Explanation, NextMeasurement
from farline.plots.analysis_values import AnalysisData
from farline.plots.analysis_words import (
    CAUSE_TEXT,
    cause_cards,
    coefficient_text,
    facts,
    findings,
    lead,
    next_steps,
    tiles,
)
from tests.support.analyses import (
    made_analysis,
    made_empty,
    made_explanation,
    made_profile,
    made_single,
    made_streams,
    made_view,
)


def texts(data: AnalysisData) -> list[str]:
    return [finding.text for finding in findings(data)]


def test_the_explanation_leads() -> None:
    assert lead(made_analysis()).startswith("Windows hold back the long paths")
    bare = replace(made_explanation(), lead="one site is slow")
    assert lead(replace(made_analysis(), explanation=bare)) == "One site is slow."


def test_without_an_explanation_the_profile_leads_with_mean_ends_and_shape() -> None:
    view = made_view("all", made_profile())
    said = lead(AnalysisData("No explanation", (view,)))
    found = view.coefficients
    assert found is not None
    assert said.startswith("All (memory to memory): 5.30 Gbit/s on average over RTT")
    assert f"C_UC {coefficient_text(found.c_uc.value)}" in said
    assert f"C_CC {coefficient_text(found.c_cc.value)}" in said
    assert "at 0.4 ms" in said and "at 366 ms" in said


def test_a_shape_is_named_only_where_its_interval_leaves_no_doubt() -> None:
    view = made_view("all", made_profile())
    found = view.coefficients
    assert found is not None and found.c_cc.high is not None and found.c_cc.high < 0
    assert "convex overall" in lead(AnalysisData("", (view,)))
    wide = replace(found, c_cc=replace(found.c_cc, low=-0.2, high=0.1))
    unsure = replace(view, coefficients=wide)
    assert "neither clearly concave nor clearly convex" in lead(AnalysisData("", (unsure,)))
    bare = replace(view, coefficients=replace(found, c_cc=replace(found.c_cc, low=None, high=None)))
    assert "too few for an interval" in lead(AnalysisData("", (bare,)))


def test_what_failed_and_what_could_not_be_read_is_said() -> None:
    said = texts(made_analysis())
    assert "4 of 564 measurements failed; they are not included in means." in said
    assert "5 lines were not records and could not be ingested; they are listed below." in said


def test_warnings_of_the_coefficients_are_among_the_findings() -> None:
    said = texts(made_analysis())
    assert any("the largest RTT weighs 0.0003" in text for text in said)


def test_too_little_data_is_said_and_nothing_is_said_twice() -> None:
    data = made_single()
    said = texts(data)
    assert said[0] == "Not enough data: One round-trip time tells no cause from another."
    assert lead(data) not in said
    assert data.explanation is not None
    whole = "Not enough data: two pairs; three are needed"
    told = replace(data, explanation=replace(data.explanation, not_enough=whole))
    assert texts(told)[0] == f"{whole}."
    led = replace(data, explanation=replace(data.explanation, lead=whole, not_enough=whole))
    assert lead(led) == f"{whole}." and not [said for said in texts(led) if "Not enough" in said]


def test_an_analysis_of_nothing_says_so() -> None:
    data = made_empty()
    assert "No complete transfer was measured" in lead(data)
    assert "3 of 3 measurements failed; they are not included in means." in texts(data)
    assert [(tile.figure, tile.bad) for tile in tiles(data)] == [("0", True)]


def test_few_failures_are_counted_without_alarm() -> None:
    (tile,) = [tile for tile in tiles(made_analysis()) if tile.label == "Measurements"]
    assert tile.note == "4 failed, not included in means" and not tile.bad


def test_the_coefficient_is_never_shown_without_mean_and_shape() -> None:
    (tile,) = [tile for tile in tiles(made_analysis()) if tile.label == "C_UC"]
    assert "C_CC" in tile.note and "mean 0.530" in tile.note


def test_measurements_are_counted_once_where_profiles_share_them() -> None:
    data = made_streams()
    assert facts(data).startswith("80 complete measurements")


def test_transfers_of_unknown_sites_are_counted_and_pairs_stand_in_for_a_whole() -> None:
    data = made_analysis()
    pairs = sum(pair.n for pair in data.pairs if pair.modality == "E")
    assert facts(data).startswith("560 complete")
    unplaced = replace(data.profiles[0].profile, unplaced=5)
    more = replace(data, profiles=(replace(data.profiles[0], profile=unplaced),))
    assert facts(more).startswith(f"{285 + pairs} complete")
    only = replace(data, profiles=data.profiles[2:4])
    every = f"{sum(pair.n for pair in data.pairs):,}".replace(",", "\u202f")
    assert facts(only).startswith(f"{every} complete")


def test_every_kind_of_cause_has_a_name() -> None:
    assert set(CAUSE_TEXT) == set(get_args(CauseKind))


def test_causes_keep_their_order_and_say_gain_and_strength() -> None:
    cards = cause_cards(made_explanation())
    assert [card.heading for card in cards] == [
        "Windows and buffers",
        "Slow site: NERSC",
        "Nothing to fix",
    ]
    assert [card.gain for card in cards] == [
        "+1.94 Gbit/s (+41\u202f%)",
        "+420 Mbit/s (+9.0\u202f%)",
        "no gain",
    ]
    assert [card.strength_text for card in cards] == ["clear", "likely", "weak"]
    assert cards[0].remedies == made_explanation().causes[0].remedies
    assert cause_cards(None) == []


def test_next_steps_are_sentences_and_name_sites_once() -> None:
    step = NextMeasurement("disk reads at NERSC", ("NERSC",), "tells its disk from its host")
    (said, kept) = next_steps(replace(made_explanation(), next=(step, replace(step, what="reads"))))
    assert (said.what, said.why, said.sites) == (
        "Disk reads at NERSC.",
        "Tells its disk from its host.",
        (),
    )
    assert kept.sites == ("NERSC",)
    assert next_steps(None) == []


def test_a_strength_beyond_its_range_stays_on_the_meter() -> None:
    cause = replace(made_explanation().causes[0], strength=1.7)
    (card,) = cause_cards(Explanation("", (cause,), (), ()))
    assert card.strength == 100
