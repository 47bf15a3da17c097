"""Long benches in parts: what is kept, what is run again, and what the exit code says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from _emulator import results
from _emulator.figures import Figure, Label, Seen, at_least
from _emulator.results import Bench, Effort, main


def group(name: str, value: float) -> results.Group:
    """A group of one row."""

    def rows(effort: Effort) -> Iterator[Figure]:
        yield at_least(Label(name, f"{name} case", "Gb/s"), Seen([value]), 1.0)

    return rows


def broken(effort: Effort) -> Iterator[Figure]:
    """A group that fails after its first row."""
    yield at_least(Label("broken", "first", ""), Seen([2.0]), 1.0)
    raise RuntimeError("iperf3: no route")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench of two groups that writes elsewhere."""
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.delenv("CASES", raising=False)
    return Bench("emulator-made-up", "About.", {"one": group("one", 2.0), "two": group("two", 3.0)})


def run(bench: Bench, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The bench with a command line."""
    monkeypatch.setattr("sys.argv", ["bench", *words])
    return main(bench)


def kept(bench: Bench) -> list[dict[str, Any]]:
    """Rows in the results."""
    rows: list[dict[str, Any]] = json.loads(bench.path.read_text(encoding="utf-8"))["rows"]
    return rows


def test_a_whole_run_keeps_every_row(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(bench, monkeypatch) == 0
    assert [(row["group"], row["complete"], row["short"]) for row in kept(bench)] == [
        ("one", True, False),
        ("two", True, False),
    ]


def test_cases_run_some_groups_and_leave_the_others_rows(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(bench, monkeypatch)
    changed = replace(bench, groups={**bench.groups, "one": group("one", 0.5)})
    assert run(changed, monkeypatch, "--cases", "one") == 1
    assert {row["group"]: row["ours"] for row in kept(bench)} == {"one": 0.5, "two": 3.0}


def test_cases_come_from_the_environment_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASES", "two")
    assert run(bench, monkeypatch) == 0
    assert [row["group"] for row in kept(bench)] == ["two"]


def test_a_group_that_is_not_there_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="there are one, two"):
        run(bench, monkeypatch, "--cases", "three")


def test_resume_leaves_out_what_is_done_and_repeats_what_broke(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_broken = replace(bench, groups={"one": group("one", 2.0), "broken": broken})
    assert run(with_broken, monkeypatch) == 1
    assert "FAILED broken: iperf3: no route" in capsys.readouterr().out
    assert [(row["group"], row["complete"]) for row in kept(bench)] == [
        ("one", True),
        ("broken", False),
    ]
    mended = replace(bench, groups={"one": group("one", 9.0), "broken": group("broken", 4.0)})
    assert run(mended, monkeypatch, "--resume") == 0
    assert {row["group"]: row["ours"] for row in kept(bench)} == {"one": 2.0, "broken": 4.0}


def test_a_broken_group_does_not_keep_the_next_from_running(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = replace(bench, groups={"broken": broken, "two": group("two", 3.0)})
    assert run(order, monkeypatch) == 1
    assert [row["group"] for row in kept(bench)] == ["broken", "two"]


def test_resume_measures_anew_what_was_measured_in_short(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(bench, monkeypatch, "--short") == 0
    assert all(row["short"] for row in kept(bench))
    assert run(bench, monkeypatch, "--resume") == 0
    assert not any(row["short"] for row in kept(bench))
