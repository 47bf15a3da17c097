"""Analyses from a notebook: no command line, nothing printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from farline import analysis
from farline.store import Store
from tests.unit.cli.analyze_sample import MAP, SITES, write_sample

MEMORY = analysis.Reading(mapping=MAP)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    write_sample(tmp_path)


@pytest.fixture
def kept() -> Store:
    """A store that has both logs of the sample."""
    store = Store(Path("store"))
    (log,) = analysis.ingest(store, ["gridftp.log"])
    (table,) = analysis.ingest(store, ["memory.csv"], MEMORY)
    assert isinstance(log, analysis.Taken) and isinstance(table, analysis.Taken)
    return store


def test_every_analysis_is_a_call_and_prints_nothing(
    kept: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = analysis.open_measurements(store=kept, infrastructure=Path("sites.toml"))
    with opened as source:
        everything = analysis.select()
        (files, _), left_out = analysis.throughput_profiles(source, everything)
        compared = analysis.compare(source, "modality=T", "modality=E")
        method = analysis.compare_method(source, how="strict")
        found = analysis.sites(source, analysis.select(modality="E"))
        explained = analysis.explain(source, everything)
        page, *figures = analysis.report(source, everything, Path("page"), formats=())
    assert list(files.profile.rtt_ms) == [10.0, 30.0, 60.0] and left_out == []
    assert (compared.result.difference.mean_bps > 0).all()
    assert (method.result.profile.mean_bps < 1).all()
    assert sorted(view.name for view in found.profiles if view.group) == list(SITES)
    assert explained.explanation.lead and explained.notes[0].startswith("46 transfers")
    assert page.read_text(encoding="utf-8").startswith("<!") and figures == []
    assert capsys.readouterr() == ("", "")


def test_files_are_read_with_progress_over_all_of_them_and_notices(kept: Store) -> None:
    seen: list[tuple[str, int, int]] = []
    Path("more").mkdir()
    Path("more/a.log").write_bytes(Path("gridftp.log").read_bytes())
    Path("more/notes.txt").write_text("nothing of any kind\n")
    with analysis.open_measurements(
        ["more"],
        on_progress=lambda path, read, total: seen.append((path.name, read, total)),
    ) as source:
        (log,) = source.read
    size = Path("gridftp.log").stat().st_size
    assert seen[0] == ("a.log", 0, size) and seen[-1] == ("a.log", size, size)
    assert log.tally.transfers == 15
    (notice,) = source.notices
    assert notice.startswith("left out: ") and "notes.txt" in notice
    with analysis.open_measurements(["gridftp.log"], store=kept, runs=False) as source:
        assert source.read == () and "counted once" in source.notices[0]


def test_the_room_needs_no_command_line() -> None:
    script = "import sys, farline.analysis; print('click' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "False\n"
