"""`farline app-perf` above the engine: pairs of runs, their bounds, how they end and are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from farline.campaign.application_bound import order
from farline.campaign.judging import judge_for, known_bounds
from farline.cli import group
from farline.spec._types import RunRecord, RunSpec
from farline.store import RunFilter, Store
from farline.tools import RunResult, StopQuestion, events
from farline.tools.native import NativeTool
from tests.support.blasts import blast, rbudp_record
from tests.support.runs import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    columns,
    int_columns,
    run_record,
    steady_rows,
    stream,
)

if TYPE_CHECKING:
    from farline.tools.events import Steps

AppPerf = Callable[..., tuple[int, str, str]]
RATES = {"read": 576e6, "copy": 490e6}
INTERRUPTED = {"kind": "interrupted", "message": "stopped by the user"}


def played(mode: str, bps: float, number: int) -> tuple[RunRecord, Any]:
    """A run of 10 s at `bps`, whose receiver fills its CPU when it copies."""
    moved = round(bps * 10 / 8)
    busy = 9_900_000 if mode == "copy" else 5_000_000
    record = run_record(
        stream(CLIENT, SENDER, bytes=moved),
        stream(SERVER, RECEIVER, bytes=moved, thread_cpu_us=busy),
        run_id=f"01JD{number:022d}",
    )
    rows = steady_rows([bps] * 100, end=CLIENT, role=SENDER, process_cpu_us=30_000)
    return record, columns(rows + steady_rows([bps] * 100, end=SERVER, role=RECEIVER))


@pytest.fixture
def asked() -> list[RunSpec]:
    return []


@pytest.fixture
def app_perf(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: list[RunSpec]
) -> AppPerf:
    def play(
        *arguments: str,
        changes: dict[int, dict[str, Any]] | None = None,
        rates: list[float] | None = None,
    ) -> Any:
        def run(
            _self: NativeTool, target: str, spec: RunSpec, _stop: StopQuestion
        ) -> Steps[RunResult]:
            assert target == "far.example"
            asked.append(spec)
            sections: dict[str, Any] = dict(spec)
            mode = sections[spec["transport"]]["receive_mode"]
            bps = rates[len(asked) - 1] if rates else RATES[mode]
            record, taken = played(mode, bps, len(asked))
            yield events.StreamSamples(int_columns(taken))
            change: Any = (changes or {}).get(len(asked), {})
            return RunResult({**record, **change, "spec": spec}, taken)

        monkeypatch.setattr(NativeTool, "steps", run)
        code = group.run(["app-perf", "far.example", *arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return play


def modes(specs: list[RunSpec]) -> Iterator[str]:
    return (str((spec.get("tcp") or {})["receive_mode"]) for spec in specs)


def test_three_pairs_of_three_seconds_take_turns(app_perf: AppPerf, asked: list[RunSpec]) -> None:
    code, out, _ = app_perf("--no-store")
    assert code == 0
    assert list(modes(asked)) == ["read", "copy", "copy", "read", "read", "copy"]
    assert {spec["duration_s"] for spec in asked} == {3.0}
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "1 576 Mbit/s 490 Mbit/s 0.851 unknown / receiver-cpu" in rows
    assert [row[:1] for row in rows if row.endswith("/ receiver-cpu")] == ["1", "2", "3"]
    assert "median    576 Mbit/s    490 Mbit/s   0.851" in out
    assert out.splitlines()[-1] == (
        "recommended rate for rbudp: -b 465M (95 % of the application bound of 490 Mbit/s)"
    )


def test_what_is_stated_goes_to_both_kinds_of_run(app_perf: AppPerf, asked: list[RunSpec]) -> None:
    app_perf("--no-store", "-t", "1", "-P", "2", "-R", "--rounds", "1", "--mss", "1400")
    assert [(spec["duration_s"], spec["streams"]) for spec in asked] == [(1.0, 2)] * 2
    assert [spec["direction"] for spec in asked] == ["reverse"] * 2
    first, second = (dict(spec["tcp"] or {}) for spec in asked)
    assert first.pop("receive_mode") != second.pop("receive_mode") and first == second


def test_while_it_runs_it_shows_what_a_probe_shows(app_perf: AppPerf) -> None:
    _, out, _ = app_perf("--no-store", "--rounds", "1")
    assert "pair 1, raw bound:" in out and "pair 1, application bound:" in out
    assert out.count("tcp to far.example:5470") == 2
    assert sum("576 Mbit/s" in line and "30 %" in line for line in out.splitlines()) == 10


def test_the_document_names_runs_bounds_and_the_rate(app_perf: AppPerf) -> None:
    code, out, _ = app_perf("--no-store", "--json", "--rounds", "2")
    document = json.loads(out)
    bounds = document["bounds"]
    assert (code, document["schema"], len(document["runs"])) == (0, 1, 4)
    assert bounds["raw_bps"] == pytest.approx(576e6)
    assert bounds["application_bps"] == pytest.approx(490e6)
    assert bounds["rate_bps"] == pytest.approx(0.95 * 490e6)
    assert bounds["pairs"][1]["application_run"] == document["runs"][2]
    assert bounds["pairs"][0]["application_limit"] == "receiver-cpu"


def test_a_stated_rate_that_came_whole_is_no_bound(app_perf: AppPerf) -> None:
    _, out, _ = app_perf("--no-store", "--rounds", "1", "-b", "490M")
    assert "application bound: 490 Mbit/s or more" in out and "rate to state" not in out


def test_runs_that_scatter_are_said_to(app_perf: AppPerf) -> None:
    rates = [576e6, 490e6, 245e6, 570e6]
    _, out, _ = app_perf("--no-store", "--rounds", "2", rates=rates)
    assert "runs of the same kind differ by a factor of 2: use more --rounds" in out


def test_runs_that_agree_are_not_doubted(app_perf: AppPerf) -> None:
    assert "differ by a factor" not in app_perf("--no-store")[1]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--transport", "udt"], "--transport udt: it has no --receive-mode to compare"),
        (["--transport", "null"], "allowed: tcp, udp"),
        (["--transport", "rbudp", "-b", "1G"], "allowed: tcp, udp"),
        (["-u"], "--transport udp needs -b RATE"),
        (
            ["--receive-mode", "copy"],
            "app-perf itself compares read with copy; leave this option out",
        ),
        (["--skip-rx-copy"], "app-perf itself compares read with copy; leave this option out"),
        (["--bidir"], "a bound is measured in one direction"),
        (["--rounds", "0"], "--rounds"),
        (["-t", "1", "-n", "1M"], "-n: cannot be combined with -t"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    app_perf: AppPerf, arguments: list[str], reason: str
) -> None:
    code, out, err = app_perf("--no-store", *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert reason in err


def test_an_interrupted_run_ends_it_and_whole_pairs_count(app_perf: AppPerf) -> None:
    change = {3: {"status": "partial", "error": INTERRUPTED}}
    code, out, _ = app_perf("--no-store", changes=change)
    assert code == 130 and "median    576 Mbit/s" in out


def test_an_interruption_before_the_first_pair_leaves_no_bound(app_perf: AppPerf) -> None:
    change = {1: {"status": "partial", "error": INTERRUPTED}}
    code, out, _ = app_perf("--no-store", "--json", changes=change)
    document = json.loads(out)
    assert (code, document["bounds"], document["error"]) == (130, None, INTERRUPTED)


def test_a_failure_ends_it_with_its_own_code(app_perf: AppPerf, asked: list[RunSpec]) -> None:
    busy = {"kind": "busy", "message": "the server has no room"}
    failed = {"status": "failed", "streams": [], "error": busy}
    code, out, err = app_perf("--no-store", changes={2: failed})
    assert (code, len(asked)) == (5, 2)
    assert "farline: the server has no room" in err and "median" not in out


def test_runs_are_kept_and_found_again_by_an_rbudp_probe(app_perf: AppPerf, tmp_path: Path) -> None:
    app_perf("--store", str(tmp_path), "--rounds", "2")
    store = Store(tmp_path)
    assert len(store.runs(RunFilter(transport="tcp"))) == 4
    (bound,) = known_bounds(store, "far.example:5470")
    assert bound.application_bps == pytest.approx(490e6) and len(bound.runs_bps) == 2
    assert known_bounds(store, "other.example:5470") == []
    judge = judge_for({"transport": "rbudp"}, store, "far.example:5470")
    assert judge is not None
    found = judge(rbudp_record(blast(), rate_bps=610_000_000), columns([]))
    assert found["line"].endswith(
        "the application bound measured here on 2026-11-21 was 490 Mbit/s,"
        " and the stated rate is above it"
    )


def test_other_probes_do_not_ask_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert judge_for({"transport": "tcp"}, store, "far.example:5470") is None
    assert judge_for({"transport": "rbudp"}, None, "far.example:5470") is None
    assert judge_for({"transport": "rbudp"}, store, "far.example:5470") is None


def test_what_goes_first_takes_turns() -> None:
    steps = list(order(3))
    assert [number for number, _ in steps] == [1, 1, 2, 2, 3, 3]
    assert [mode for _, mode in steps] == ["read", "copy", "copy", "read", "read", "copy"]
