"""Texts on the command line of `farline analyze` into values, and what is refused."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from farline.cli.analyze.json import plain
from farline.cli.analyze.options import SourceOptions, check_figure, defaults_from
from farline.cli.analyze.profile import read_rtts
from farline.spec.infrastructure import Infrastructure, Site
from farline.spec.units import parse_rtt_ms

TREES = Infrastructure("trees", (Site("Ash"), Site("Elm")))


@pytest.mark.parametrize(
    ("text", "rtt_ms"), [("11.8ms", 11.8), ("0.5ms", 0.5), ("0.2s", 200.0), ("0", 0.0)]
)
def test_round_trip_times_are_read_with_their_unit(text: str, rtt_ms: float) -> None:
    assert parse_rtt_ms(text) == pytest.approx(rtt_ms)


def test_round_trip_times_come_as_lists_and_ranges() -> None:
    assert read_rtts("5ms,10ms,80ms") == [5.0, 10.0, 80.0]
    assert read_rtts("10ms..30ms+10ms") == pytest.approx([10.0, 20.0, 30.0])
    assert read_rtts(None) == []
    with pytest.raises(click.UsageError, match="--at: 'soon'"):
        read_rtts("soon")
    with pytest.raises(click.UsageError, match="--at: '80' has no unit: 80 could be 80ms or 80s"):
        read_rtts("5ms,80")


@pytest.mark.parametrize(
    ("options", "with_runs", "with_logs"),
    [
        (SourceOptions(), True, True),
        (SourceOptions(files=("a.log",)), False, False),
        (SourceOptions(tables=("t",)), False, False),
        (SourceOptions(files=("a.log",), logs=True), False, True),
        (SourceOptions(runs=True), True, False),
        (SourceOptions(runs=False), False, True),
        (SourceOptions(runs=False, logs=False), False, False),
    ],
)
def test_the_store_counts_where_no_source_is_named_or_it_is_asked_for(
    options: SourceOptions, with_runs: bool, with_logs: bool
) -> None:
    assert (options.with_runs, options.with_logs) == (with_runs, with_logs)


def test_values_for_columns_are_told_once_each() -> None:
    assert defaults_from(["rtt_ms=45", "modality = E"]) == {"rtt_ms": "45", "modality": "E"}
    for texts in (["rtt_ms"], ["rtt_ms="], ["rtt_ms=4", "rtt_ms=5"]):
        with pytest.raises(click.UsageError, match="--set"):
            defaults_from(texts)


def test_figures_have_one_of_two_formats() -> None:
    check_figure(Path("a.svg"))
    check_figure(None)
    with pytest.raises(click.UsageError, match=r"\.png or \.svg"):
        check_figure(Path("a.pdf"))


def test_documents_have_null_for_what_is_no_number() -> None:
    import numpy as np

    value = {1: np.array([1.0, np.nan]), "x": (TREES.sites[0], float("inf"), {3}), "n": np.int64(2)}
    found = plain(value)
    assert found["1"] == [1.0, None] and found["n"] == 2
    assert found["x"][0]["name"] == "Ash" and found["x"][1:] == [None, [3]]
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        plain(object())
