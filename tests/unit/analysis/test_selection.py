"""Which files and which transfers texts mean, and what is refused."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from farline.analysis import Reading
from farline.analysis.cells import read_by, value_text
from farline.analysis.files import is_parquet, is_remote, named_files
from farline.analysis.selection import narrowed
from farline.errors import FarlineError, SpecError, UsageError
from farline.spec.infrastructure import Infrastructure, Site
from farline.store.transfers import Selection

TREES = Infrastructure("trees", (Site("Ash"), Site("Elm")))


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
        ("colour=red", "allowed: modality, site"),
        ("streams=many", "not a whole number"),
        ("since=soon", "write a date"),
        ("site=oak", "not a site of trees"),
        ("min-rate=fast", "not a rate"),
        ("modality=Q", "not one of T, E, H, F"),
        ("rate_bps=5", "no such column with values"),
        ("streams=1,streams=4", "--a streams: given twice"),
        ("site=ash,modality=E,site=elm", "--a site: given twice"),
    ],
)
def test_what_cannot_be_selected_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(FarlineError) as refused:
        narrowed(Selection(), text, TREES, "--a")
    assert says in refused.value.message and "\n" not in refused.value.message


def test_sites_without_a_description_of_them_are_refused() -> None:
    with pytest.raises(UsageError, match="--infrastructure"):
        narrowed(Selection(), "site=ash", None, "--a")


def test_keys_of_profiles_are_columns_or_sites() -> None:
    assert read_by("streams, site,modality,streams") == ("streams", "site")
    assert read_by(None) == ()
    with pytest.raises(UsageError, match="'rate_bps': allowed: site"):
        read_by("rate_bps")
    assert value_text("buffer_bytes", 4 << 20) == "4MiB"
    assert (value_text("streams", None), value_text("streams", 4)) == ("not stated", "4")


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
        with pytest.raises(UsageError, match=rf"{name.replace('*', '.')}: (no|this folder has no)"):
            named_files([name])


def test_a_file_under_two_names_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text("x")
    (tmp_path / "latest.log").symlink_to("a.log")
    names = ["a.log", "./a.log", str(tmp_path / "a.log"), "latest.log", "."]
    assert [str(path) for path in named_files(names)] == ["a.log"]


def test_parquet_is_known_by_its_content_and_urls_by_their_form(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"PAR1....PAR1")
    (tmp_path / "b.parquet").write_bytes(b"no")
    assert is_parquet(tmp_path / "a") and not is_parquet(tmp_path / "b.parquet")
    assert is_remote("s3://bucket/x.parquet") and not is_remote("logs/x.parquet")
    with pytest.raises(UsageError, match="no such file"):
        is_parquet(tmp_path / "c")


def test_columns_of_parquet_are_named_scaled_and_filled_as_those_of_a_log() -> None:
    mapping = "rate_bps=mbps:Mbit/s,rtt_ms=rtt:s,tool='x'"
    found = Reading(None, mapping, {"modality": "E"}).parquet("x.parquet")
    assert found.columns == {"rate_bps": "mbps", "rtt_ms": "rtt"}
    assert found.scales == {"rate_bps": 1e6, "rtt_ms": 1e3}
    assert (found.values, found.defaults) == ({"tool": "x"}, {"modality": "E"})
    with pytest.raises(SpecError, match="complete"):
        Reading(mapping="complete=ok:yes").parquet("x.parquet")
