"""`farline tune`: what it says of a choice and of a path, and what it refuses."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from farline.cli.group import cli, run
from farline.cli.tune_report import save_report
from farline.cli.tune_text import View, age_text, chart_lines, choice_lines, command_line, document
from farline.store import RunBundle, Store
from farline.store.paths.choices import StoredChoice, read_choice, write_choice
from farline.tools.events import SampleBegun, SampleTaken
from farline.tuning.choice import cost_of, make_choice
from farline.tuning.grids import stream_grid, stream_prior
from farline.tuning.history import Evidence
from farline.tuning.job import TuneResult
from farline.tuning.search import BeliefSearch
from farline.tuning.situation import Setting
from tests.support.runs import run_record
from tests.unit.tuning.histories import RISING, WAN, driven


@pytest.fixture
def result() -> TuneResult:
    """A search of a path that gains from every stream."""
    grid = stream_grid()
    search = BeliefSearch(grid, stream_prior(grid, WAN))
    driven(search, RISING)
    choice = make_choice(
        grid, search.belief, search.samples, default=Setting(8), reason="budget",
        basis="5 samples, no past transfer",
    )  # fmt: skip
    return TuneResult(choice, cost_of(choice, is_own_data=False), WAN, Evidence(), kept=Path("k"))


def test_a_choice_is_told_with_its_default_reason_and_cost(result: TuneResult) -> None:
    lines = list(choice_lines(result, result.checked(), ("far",), "far"))
    assert lines[0].startswith("choice: 32 streams: 1.4")
    assert lines[1] == "  use: farline copy --streams 32 SRC... DST"
    assert lines[2].startswith("  default: 8 streams: 1.18 Gbit/s expected")
    assert "the choice reaches 1." in lines[2]
    assert lines[3] == "  why: the budget for samples is used up; 5 samples, no past transfer"
    assert "of test data; pays off from" in lines[4]
    assert lines[5] == "  kept: copies to far without --streams use it"
    bars = list(chart_lines(result.checked()))
    assert len(bars) == 3
    assert all("fitted" in bar for bar in bars)


def test_the_command_to_paste_is_quoted_and_has_what_samples_had(result: TuneResult) -> None:
    choice = replace(result.checked(), setting=Setting(16, 4))
    line = command_line(choice, ("my data", "far:x"), ["--congestion", "cubic"])
    assert line == (
        "farline copy --congestion cubic --streams 16 --concurrency 4 'my data' far:x"
    )  # fmt: skip


def test_a_gain_within_the_noise_pays_from_no_size_on(result: TuneResult) -> None:
    noisy = replace(result.checked(), within_noise=True)
    cost = list(choice_lines(result, noisy, ("far",), "far"))[4]
    assert "pays off" not in cost
    assert cost.endswith("the gain over the default is within the noise")


def test_a_sample_without_a_result_ends_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = View(quiet=False)
    view.show(SampleBegun(1, "8 streams", 2.0))
    view.show(SampleTaken(1, "8 streams", 8, 1e9, 2.0, 250, "receiver-cpu"))
    view.show(SampleBegun(2, "16 streams", 2.0))
    view.end_line()
    view.end_line()
    assert capsys.readouterr().out == (
        "sample 1: 8 streams, 2.0 s ... 1.00 Gbit/s, limited by receiver CPU\n"
        "sample 2: 16 streams, 2.0 s ...\n"
    )


def test_the_document_says_the_same(result: TuneResult) -> None:
    found = document(result, result.checked(), "far")
    assert json.loads(json.dumps(found)) == found
    assert (found["streams"], found["default"]["streams"], found["reason"]) == (32, 8, "budget")
    assert found["expected"]["low_bps"] < found["expected"]["rate_bps"]


@pytest.mark.parametrize("suffix", [".html", ".svg", ".png"])
def test_a_report_is_a_page_or_a_picture(tmp_path: Path, result: TuneResult, suffix: str) -> None:
    path = tmp_path / f"tune{suffix}"
    save_report(result, result.checked(), "far<&>", path)
    assert path.stat().st_size > 5_000
    if suffix == ".html":
        text = path.read_text("utf-8")
        assert "How to use the path to far&lt;&amp;&gt;" in text
        assert "data:image/svg+xml;base64," in text
        assert "http" not in text.split("base64,")[0].replace("http-equiv", "")


def farline(*words: str) -> Result:
    return CliRunner().invoke(cli, ["tune", *words], catch_exceptions=False)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Three runs to far.example, one of another transport, and a choice for it."""
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    store = Store()
    way = {
        "total_bps": 8e8, "steady_bps": 9e8, "omitted_s": 1.0, "warmup_rule": "none",
        "bytes": 10**9, "elapsed_s": 10.0,
    }  # fmt: skip
    for number, transport in ((1, "tcp"), (2, "tcp"), (3, "udt")):
        record = run_record(
            run_id=f"01JD{number:022d}", spec={"streams": 4, "transport": transport},
            summary={"forward": way, "reverse": None, "min_rtt_us": 40_000},
        )  # fmt: skip
        store.append(RunBundle(record, {}))
    choice = StoredChoice(
        "far.example", True, time.time(), 4, None, None, 9e8, 8e8, 1e9, "2 samples", "noise"
    )
    write_choice(store.layout.paths, store.layout.temp, choice)
    return store


def test_what_is_known_of_a_path_is_shown(store: Store) -> None:
    output = farline("far.example", "--explain").output
    assert "path to far.example: 3 past transfers" in output
    assert "  probe    tcp      4 streams: 900 Mbit/s median of 2" in output
    assert "  probe    udt      4 streams: 900 Mbit/s median of 1" in output
    assert "choice: 4 streams for throughput: 900 Mbit/s" in output
    assert "nothing is known" in farline("elsewhere", "--explain").output
    assert "nothing is known" in farline("far.example", "--explain", "-R").output


def test_what_is_known_is_exported_without_files_or_users(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "path.json"
    assert farline("far.example:5470", "--export", str(target)).exit_code == 0
    found = json.loads(target.read_text())
    assert (found["host"], len(found["transfers"])) == ("far.example", 3)
    assert found["choice"]["streams"] == 4
    assert not {"sources", "user", "paths"} & set(found["transfers"][0])
    assert json.loads(farline("far.example", "--export", "-").output)["host"] == "far.example"


def test_a_path_is_forgotten_and_its_runs_stay(store: Store) -> None:
    output = farline("data/", "user@far.example:data/", "--forget").output
    assert "3 past transfers ignored from now on" in output
    assert "its choice is deleted" in output
    assert "nothing is known" in farline("far.example", "--explain").output
    assert read_choice(store.layout.paths, "far.example", True) is None
    assert len(store.runs()) == 3


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["far", "--explain", "--forget"], "cannot be combined"),
        (["far", "--explain", "--no-store"], "needs the store"),
        (["far", "--tunnel"], "--tunnel: works only with SRC and DST"),
        (["far", "--knobs", "files"], "needs files"),
        (["a", "far:b", "-R"], "-R: works only with HOST"),
        (["far", "--budget", "0s"], "--budget"),
        (["far", "--budget", "1ms"], "at least 1 s"),
        (["far", "--budget", "5"], "unit"),
        (["far", "--report", "x.pdf"], "must end in .html, .png, .svg"),
        (["far", "--for", "speed"], "speed"),
        (["a:x", "b:y"], "neither end is on this host"),
        ([], "HOST"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str], store: Store
) -> None:
    assert run(["tune", *words]) == 1
    error = capsys.readouterr().err
    assert part in error
    assert "Traceback" not in error


def test_a_host_that_does_not_answer_is_its_own_exit_code(
    capsys: pytest.CaptureFixture[str], store: Store
) -> None:
    assert run(["tune", "127.0.0.1:1", "--budget", "1s"]) == 5
    assert "127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("age_s", "text"),
    [(5, "less than a minute ago"), (90, "1 minute ago"), (7300, "2 hours ago"), (2e5, "2 days")],
)
def test_ages_are_in_the_largest_unit_that_fits(age_s: float, text: str) -> None:
    assert age_text(time.time() - age_s).startswith(text)
