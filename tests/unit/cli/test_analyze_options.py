"""Texts on the command line of `farline analyze` into values, and what is refused."""

from __future__ import annotations

import datetime
from pathlib import Path

import click
import pytest

from farline.cli.analyze.cells import read_by, value_text
from farline.cli.analyze.files import is_parquet, is_remote, named_files
from farline.cli.analyze.json import plain
from farline.cli.analyze.logs import defaults_from
from farline.cli.analyze.options import SourceOptions, check_figure
from farline.cli.analyze.parquet import parquet_files
from farline.cli.analyze.profile import read_rtts
from farline.cli.analyze.selection import narrowed
from farline.errors import FarlineError, SpecError, UsageError
from farline.spec.infrastructure import Infrastructure, Site
from farline.spec.units import parse_rtt_ms
from farline.store.transfers import Selection

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


def test_a_selection_is_narrowed_by_keys_and_columns() -> None:
    base = Selection(where={"tool": ("gridftp",)})
    found = narrowed(base, "modality=E, site=ash,streams=1,4,buffer_bytes=4M,none", TREES, "--a")
    assert (found.modality, found.at_site) == ("E", "Ash")
    assert found.where == {
        "tool": ("gridftp",), "streams": (1, 4), "buffer_bytes": (4 << 20, None)
    }  # fmt: skip
    limits = narrowed(base, "sites=ash,elm,min-rate=100M,min-bytes=1KB", TREES, "--a")
    assert limits.sites == ("Ash", "Elm")
    assert (limits.min_rate_bps, limits.min_bytes) == (1e8, 1000)
    dated = narrowed(base, "since=2026-01-02T00:00:00Z,until=2026-02-01T00:00:00Z", TREES, "--a")
    assert dated.since == datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    assert base.where == {"tool": ("gridftp",)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("E", "KEY=VALUE"),
        ("colour=red", "allowed are modality, site"),
        ("streams=many", "not a whole number"),
        ("since=soon", "write a date"),
        ("site=oak", "no site of trees"),
        ("min-rate=fast", "not a rate"),
        ("modality=Q", "not one of T, E, H, F"),
        ("rate_bps=5", "no such column with values"),
        ("streams=1,streams=4", "--a streams: given twice"),
        ("site=ash,modality=E,site=elm", "--a site: given twice"),
    ],
)
def test_what_cannot_be_selected_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises((click.ClickException, FarlineError)) as refused:
        narrowed(Selection(), text, TREES, "--a")
    message = str(getattr(refused.value, "message", refused.value))
    assert says in message and "\n" not in message


def test_sites_without_a_description_of_them_are_refused() -> None:
    with pytest.raises(click.UsageError, match="--infrastructure"):
        narrowed(Selection(), "site=ash", None, "--a")


def test_keys_of_profiles_are_columns_or_sites() -> None:
    assert read_by("streams, site,modality,streams") == ("streams", "site")
    assert read_by(None) == ()
    with pytest.raises(click.UsageError, match="'rate_bps': allowed are site"):
        read_by("rate_bps")
    assert value_text("buffer_bytes", 4 << 20) == "4MiB"
    assert (value_text("streams", None), value_text("streams", 4)) == ("not stated", "4")


def test_values_for_columns_are_told_once_each() -> None:
    assert defaults_from(["rtt_ms=45", "modality = E"]) == {"rtt_ms": "45", "modality": "E"}
    for texts in (["rtt_ms"], ["rtt_ms="], ["rtt_ms=4", "rtt_ms=5"]):
        with pytest.raises(click.UsageError, match="--set"):
            defaults_from(texts)


def test_files_come_from_names_patterns_and_folders_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.log", "b.log", "deep/c.json", ".hidden", "deep/.git/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    monkeypatch.chdir(tmp_path)
    assert [str(path) for path in named_files(["b.log", "*.log"])] == ["b.log", "a.log"]
    found = named_files([str(tmp_path)])
    assert [path.name for path in found] == ["a.log", "b.log", "c.json"]
    assert [path.name for path in named_files([f"{tmp_path}/**/*.json"])] == ["c.json"]
    (tmp_path / "empty").mkdir()
    for name in ("nothing", "*.csv", "empty"):
        with pytest.raises(UsageError, match=rf"{name.replace('*', '.')}: no"):
            named_files([name])


def test_parquet_is_known_by_its_content_and_urls_by_their_form(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"PAR1....PAR1")
    (tmp_path / "b.parquet").write_bytes(b"no")
    assert is_parquet(tmp_path / "a") and not is_parquet(tmp_path / "b.parquet")
    assert is_remote("s3://bucket/x.parquet") and not is_remote("logs/x.parquet")
    with pytest.raises(UsageError, match="no such file"):
        is_parquet(tmp_path / "c")


def test_columns_of_parquet_are_named_scaled_and_filled_as_those_of_a_log() -> None:
    mapping = "rate_bps=mbps:Mbit/s,rtt_ms=rtt:s,tool='x'"
    found = parquet_files("x.parquet", mapping, {"modality": "E"})
    assert found.columns == {"rate_bps": "mbps", "rtt_ms": "rtt"}
    assert found.scales == {"rate_bps": 1e6, "rtt_ms": 1e3}
    assert (found.values, found.defaults) == ({"tool": "x"}, {"modality": "E"})
    with pytest.raises(SpecError, match="complete"):
        parquet_files("x.parquet", "complete=ok:yes", {})


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
    with pytest.raises(TypeError, match="no form in JSON"):
        plain(object())
