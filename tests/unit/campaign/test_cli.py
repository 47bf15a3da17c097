"""`farline profile` with a measuring function that needs no network."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from farline.campaign.estimate import Estimate
from farline.campaign.job import CampaignJob
from farline.campaign.journal import last_unfinished
from farline.campaign.machine import Cell, Machine, Outcome
from farline.campaign.results import setting_results
from farline.campaign.shell import Progress
from farline.cli.campaign_end import hint
from farline.cli.campaign_text import results_table
from farline.cli.campaign_view import LiveCampaign
from farline.cli.common import Interruption
from farline.cli.group import cli
from farline.errors import SystemFailure
from farline.store import Store
from farline.store.entry import RunBundle
from farline.tools import Tool
from farline.tools.known_servers import KnownServers
from tests.support.driving import drive, failing, make, noisy, steady
from tests.support.paths import make_path, make_topology
from tests.support.records import make_record, make_samples

GRID = ["-P", "1,2", "-l", "64K..256K*2", "--congestion", "reno,cubic", "-t", "0.5"]
HOST = "192.0.2.7"
KEY = "sha256-" + "A" * 43
TICKET = f"farline://192.0.2.7:5470/v1.c2VjcmV0.def?key={KEY}"


@dataclass
class Engine:
    """Stands for the engine: keeps a record per run, and presses Ctrl-C when told to."""

    outcome_of: Callable[[Cell], Outcome] = steady
    interrupt_at: int = 10**6
    runs: int = 0

    def __post_init__(self) -> None:
        """Numbers runs over all commands of a test."""
        self.numbers = itertools.count()
        self.targets: list[str] = []

    def measure(
        self,
        target: str,
        spec: Mapping[str, Any],
        store: Store,
        *,
        should_stop: Interruption,
        campaign: str,
        labels: Mapping[str, Any],
        keep: Callable[[Mapping[str, Any]], bool],
        path: object = None,
        tool: Tool | None = None,
    ) -> Any:
        """As `farline.campaign.measure.measure`."""
        self.runs += 1
        self.targets.append(target)
        outcome = self.outcome_of(Cell(**labels))
        if self.runs == self.interrupt_at:
            should_stop.count += 1
            outcome = Outcome("partial", total_bps=1e8)
        error = {"kind": outcome.error_kind, "message": outcome.error}
        record = make_record(
            next(self.numbers),
            spec,
            bps=outcome.total_bps or 0.0,
            status=outcome.status,
            error=error if outcome.error_kind else None,
        )
        if outcome.error_kind:
            record["streams"] = []
        if outcome.valid is False:
            record["path"] = make_path(reasons=("late by 2 ms",))
        if keep(record):
            store.append(RunBundle(record, make_samples(2), campaign=campaign, labels=labels))
        return type("Measured", (), {"record": record})


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    engine = Engine()
    monkeypatch.setattr("farline.campaign.job.measure", engine.measure)
    monkeypatch.setattr("farline.campaign.shell.Shell.sleep", staticmethod(lambda _s: None))
    return engine


def profile(*arguments: str) -> Result:
    return CliRunner().invoke(
        cli, ["profile", *arguments], catch_exceptions=False, standalone_mode=False
    )


def test_flags_make_a_campaign_and_a_table(engine: Engine) -> None:
    result = profile(HOST, *GRID, "--repetitions", "2", "--seed", "5")
    assert result.return_value == 0
    assert engine.runs == 2 * (12 + 2)
    lines = result.stdout.splitlines()
    heads = next(line for line in lines if "throughput" in line)
    assert all(word in heads for word in ("streams", "block", "congestion", "95 % CI", "vs ref"))
    rows = [line for line in lines if "sender-cpu" in line]
    assert len(rows) == 12
    assert "all 12 settings completed" in result.stdout
    assert "seed 5" in result.stderr and "left: about" in result.stderr
    assert Store().runs().num_rows == 28
    assert len(list(Store().layout.fresh.iterdir())) == 0


def test_a_plan_file_and_flags_over_it(engine: Engine, tmp_path: Path) -> None:
    plan = tmp_path / "night.toml"
    plan.write_text("[campaign]\nrepetitions=1\n[grid]\nstreams=[1,2]\n[fixed]\nduration_s=0.5\n")
    document = json.loads(profile(HOST, str(plan), "--json", "-P", "4,8").stdout)
    assert document["campaign"].startswith("night-")
    assert [row["varied"] for row in document["settings"]] == [{"streams": 4}, {"streams": 8}]
    assert document["stopped"] == "finished" and document["settings"][0]["mean_bps"] > 0


def test_a_dry_run_shows_the_runs_and_the_time_and_leaves_nothing(engine: Engine) -> None:
    result = profile(HOST, *GRID, "--repetitions", "2", "--dry-run")
    assert result.return_value == 0
    assert "28 runs, 15 s" in result.stdout
    assert result.stdout.count("congestion reno") == 8
    assert (engine.runs, Store().runs().num_rows) == (0, 0)
    document = json.loads(profile(HOST, *GRID, "--dry-run", "--json").stdout)
    assert document["forecast"]["least"]["runs"] == 5 * 14
    assert len(document["settings"]) == 12 and len(document["first_block"]) == 14


def test_interrupt_and_resume(engine: Engine) -> None:
    engine.interrupt_at = 10
    result = profile(HOST, *GRID, "--repetitions", "2")
    assert result.return_value == 130
    campaign = last_unfinished(Store()).campaign.id
    assert result.stderr.endswith(f"; resume with: farline profile --resume {campaign}\n")
    assert Store().runs().num_rows == 10
    again = profile("--resume")
    assert again.return_value == 0
    assert engine.targets[-1] == f"{HOST}:5470"
    rows = Store().runs().to_pylist()
    assert len(rows) == 29
    done = [
        (r["setting"], r["block"], r["slot"], r["reference"])
        for r in rows
        if r["status"] == "complete"
    ]
    assert len(done) == len(set(done)) == 28
    assert {row["campaign"] for row in rows} == {campaign}


def test_what_to_type_to_go_on_names_the_store_and_keeps_the_ticket_secret(
    engine: Engine, tmp_path: Path
) -> None:
    store = tmp_path / "another store"
    job = CampaignJob(Machine(make()), TICKET, Store(store))
    assert hint(job).startswith("resume with: farline profile TICKET --resume profile-")
    assert f" --store '{store}' (`farline trust TICKET` remembers" in hint(job)
    assert "secret" not in hint(job)
    KnownServers().remember_ticket("192.0.2.7:5470", TICKET, KEY)
    assert hint(job).startswith("resume with: farline profile --resume profile-")


def test_a_refused_ticket_ends_it_in_one_line_and_records_nothing(engine: Engine) -> None:
    engine.interrupt_at = 5
    assert profile(HOST, *GRID, "--repetitions", "2").return_value == 130
    engine.outcome_of = failing("auth")
    before = Store().runs().num_rows
    for _ in range(2):
        refused = profile("--resume")
        assert refused.return_value == 4 and refused.stdout == ""
        last = refused.stderr.splitlines()[-1]
        assert last.startswith("farline: stopped: it was auth; resume with: ")
        assert "farline profile TICKET --resume profile-" in last and "farline trust TICKET" in last
        assert "run 5: " not in refused.stderr
    assert Store().runs().num_rows == before
    engine.outcome_of = steady
    assert profile("--resume").return_value == 0
    assert "failed" not in Store().runs()["status"].to_pylist()


def test_a_campaign_is_resumed_by_the_name_its_user_gave(engine: Engine) -> None:
    engine.interrupt_at = 5
    assert profile(HOST, *GRID, "--repetitions", "1", "--name", "mycamp").return_value == 130
    assert profile("--resume", "mycamp").return_value == 0
    (campaign,) = set(Store().runs()["campaign"].to_pylist())
    assert campaign.startswith("mycamp-")
    assert Store().campaign_name("mycamp") == Store().campaign_name("last") == campaign


def test_the_reference_row_says_ref_and_what_ratios_are(engine: Engine) -> None:
    result = profile(HOST, "-P", "1,2", "-t", "0.5", "--repetitions", "3")
    rows = [line.split() for line in result.stdout.splitlines() if "sender-cpu" in line]
    assert ["ref" in row for row in rows] == [True, False]
    told = " ".join(result.stdout.split())
    assert "vs ref: ratio to the reference runs of the same block" in told


def test_a_campaign_in_which_all_failed_says_so(engine: Engine) -> None:
    engine.outcome_of = failing("timeout")
    result = profile(HOST, "-P", "1,2", "-t", "0.5", "--repetitions", "1")
    assert result.return_value == 30
    assert "each setting once" in result.stderr
    assert "2 settings: 2 without a successful run, 2 runs failed" in result.stdout


@pytest.mark.parametrize("repetitions", [1, 9])
def test_a_campaign_in_which_no_run_is_valid_says_so_and_why(
    engine: Engine, tmp_path: Path, repetitions: int
) -> None:
    engine.outcome_of = lambda cell: replace(steady(cell), valid=False)
    words = (HOST, "-P", "1,2", "-t", "0.5", "--repetitions", str(repetitions))
    report = tmp_path / "report"
    result = profile(*words, "--report", str(report))
    assert result.return_value == 2
    said = result.stderr.splitlines()
    assert "farline: --report: no report written: no setting has a valid run" in said
    assert "late by 2 ms" in said[-1] and not report.exists()
    document = json.loads(profile(*words, "--json").stdout)
    assert document["error"]["kind"] == "system"
    assert "late by 2 ms" in document["error"]["message"]


def test_a_link_that_cannot_be_set_is_an_outcome_of_its_setting(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Setter:
        """Has no room for one round trip."""

        bed = type("Bed", (), {"name": "bed", "topology": lambda self: make_topology()})()
        restored = 0

        def apply(self, values: Mapping[str, Any]) -> None:
            if values["rtt_s"] == 0.005:
                raise SystemFailure("link: no room")

        def restore(self) -> None:
            self.restored += 1

    setter = Setter()
    monkeypatch.setattr("farline.cli.profile.inside_testbed", lambda: True)
    monkeypatch.setattr("farline.testbeds.link_setter.link_setter", lambda *_: setter)
    monkeypatch.setattr("farline.cli.profile.path_watch", lambda _link: None)
    engine.interrupt_at = 5
    assert profile(HOST, "--rtt", "1ms,5ms", "-t", "0.5", "--repetitions", "4").return_value == 130
    result = profile("--resume")
    assert result.return_value == SystemFailure.exit_code
    assert "1 of 2 settings has no valid run: RTT 5 ms: link: no room" in result.stderr
    assert "RTT 5 ms: given up: link: no room" in result.stdout
    assert setter.restored == 2
    rows = Store().runs().to_pylist()
    assert sorted(row["status"] for row in rows if row["error"] == "link: no room") == [
        "failed", "failed"
    ]  # fmt: skip


def test_a_finished_campaign_has_nothing_to_resume(engine: Engine) -> None:
    name = json.loads(profile(HOST, *GRID, "--repetitions", "1", "--json").stdout)["campaign"]
    runs = engine.runs
    document = json.loads(profile("--resume", name, "--json").stdout)
    assert engine.runs == runs
    assert all(row["runs"] for row in document["settings"])


def test_a_campaign_that_gives_up_says_so_and_can_be_resumed(engine: Engine) -> None:
    engine.outcome_of = failing("unreachable")
    result = profile(HOST, *GRID, "--repetitions", "1")
    assert result.return_value == 5
    assert "stopped: it was unreachable; resume with: farline profile --resume" in result.stderr
    assert "trying again in 1 s" in result.stderr
    engine.outcome_of = noisy(0.1)
    assert profile("--resume").return_value == 0
    assert Store().runs().num_rows == 3 + 14


def test_settings_that_cannot_work_are_named(engine: Engine) -> None:
    def outcome(cell: Cell) -> Outcome:
        return (failing("system") if int(cell.setting, 16) % 2 else steady)(cell)

    engine.outcome_of = outcome
    result = profile(HOST, *GRID, "--repetitions", "3", "--reference", "none")
    assert result.return_value == 2 and "no valid run" in result.stderr
    assert result.stdout.count("given up: it was system") >= 1
    engine.outcome_of = failing("system")
    result = profile(HOST, *GRID, "--repetitions", "3")
    assert result.return_value == 2
    assert "no run succeeded: it was system" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-P", "0"], "1 to 256"),
        (["--repetitions", "0"], "--repetitions: 0 is out of range"),
        (["--repetitions", "2", "--max-repetitions", "3"], "cannot be combined with repetitions"),
        (["--reference", "best"], "first, none"),
        (["nowhere.toml"], "nowhere.toml: No such file"),
        (["-u", "--sweep", "tcp.mss_bytes=1400,1500"], "applies to no run"),
    ],
)
def test_refusals_come_before_anything_runs(
    engine: Engine, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    from farline.cli.group import run

    assert run(["profile", HOST, *arguments]) == 1
    assert line in capsys.readouterr().err
    assert engine.runs == 0
    assert list(Store().layout.campaigns.glob("*.json")) == []


def test_resume_takes_no_other_plan(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    from farline.cli.group import run

    Store()
    assert run(["profile", HOST, "-P", "2", "--resume", "last"]) == 1
    assert "give no other" in capsys.readouterr().err
    assert run(["profile", "--resume"]) == 1
    assert "no unfinished campaign" in capsys.readouterr().err


@pytest.mark.parametrize("named", ["myplan.toml", "plan-without-a-suffix"])
def test_a_plan_without_a_host_is_no_host(
    engine: Engine, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, named: str,
) -> None:  # fmt: skip
    from farline.cli.group import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan-without-a-suffix").write_text("[grid]\nstreams=[1]\n")
    assert run(["profile", named]) == 1
    error = capsys.readouterr().err
    said = {
        "myplan.toml": "myplan.toml: No such file or directory",
        "plan-without-a-suffix": "has no table [path]: write farline profile HOST plan-without",
    }
    assert said[named] in error
    assert engine.runs == 0


def test_a_host_behind_the_plan_is_put_before_it(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    from farline.cli.group import run

    assert run(["profile", "plan.toml", "dtn1:5201"]) == 1
    error = capsys.readouterr().err
    assert "the host comes before the plan: farline profile dtn1:5201 plan.toml" in error
    assert engine.runs == 0


def test_at_80_columns_the_table_keeps_throughput_interval_and_limit() -> None:
    from rich.console import Console

    machine = Machine(make())
    drive(machine)
    rows = [replace(r, retransmits=123456.0) for r in setting_results(machine)]
    rows = [replace(r, cpu_s_per_gb=0.123, verdict_limit="receive-window") for r in rows]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(results_table(rows, 0.95, 80, rows[0].setting))
    shown = console.export_text().splitlines()
    assert all(len(line.rstrip()) <= 80 for line in shown)
    heads = next(line for line in shown if "throughput" in line)
    assert "95 % CI" in heads and "limited by" in heads and "CPU s/GB" not in heads
    assert sum("receive-window" in line for line in shown) == len(rows)


def test_the_bar_stands_on_its_own_line() -> None:
    from rich.console import Console

    machine = Machine(make())
    console = Console(width=80, record=True, file=io.StringIO())
    left = Estimate(14, 7.0)
    console.print(LiveCampaign()._drawn(Progress(machine, 0, left)))
    assert "now: -" in console.export_text().splitlines()
