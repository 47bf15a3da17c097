"""`farline testbed` and `profile` over a testbed, as far as they go without one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from farline.campaign import emulated_path
from farline.campaign.path_table import PathPlace
from farline.campaign.plan import Plan
from farline.cli import emulated, testbed
from farline.cli.group import run
from farline.cli.stamped import run_stamped
from farline.cli.testbed import _split
from farline.cli.testbed_status import _table
from farline.cli.toml_text import toml_text
from farline.errors import UsageError
from farline.testbeds import load, presets
from farline.testbeds.link_status import LinkRow, look
from tests.support.paths import make_link_samples, make_stamp, make_topology


class Bed:
    """A testbed that remembers what was changed."""

    def __init__(self, topology: dict[str, Any] | None = None, valid: bool = True) -> None:
        self.now = topology or make_topology(0.02)
        self.valid = valid
        self.changes: list[tuple[str, str, dict[str, Any]]] = []

    def topology(self) -> dict[str, Any]:
        return self.now

    def change(self, link: str, direction: str = "both", **changes: Any) -> None:
        self.changes.append((link, direction, changes))

    def mark(self) -> int:
        return 7

    def stamp(self, mark: int) -> dict[str, Any]:
        assert mark == 7
        return make_stamp() if self.valid else make_stamp("packets came late")

    def link_samples(self) -> dict[str, Any]:
        return make_link_samples(5)

    def counters(self) -> dict[str, Any]:
        names = (
            "in tail_drop codel_drop mtu_drop loss cut ecn_marked corrupted duplicated reordered"
        )
        zero = {f"{name}_packets": 0 for name in names.split()}
        pipe = {**zero, "rate_bps": 10**9, "delay_ns": 10**7, "backlog_bytes": 5}
        ways = [{**pipe, "tail_drop_packets": 3, "cut_packets": 2, "ecn_marked_packets": 4}, pipe]
        return {"at_s": 1.0, "links": ways, "relay": {}}


def help_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run([*words, "--help"]) == 0
    return capsys.readouterr().out


def test_the_first_screen_shows_the_way_in(capsys: pytest.CaptureFixture[str]) -> None:
    lines = help_of(capsys, "testbed").splitlines()
    assert "  farline testbed up dumbbell --rate 10Gbit --rtt 100ms" in lines
    assert "  farline testbed exec source -- ping -c 3 sink" in lines
    assert "source" in [host["name"] for host in load("dumbbell")["hosts"]]


@pytest.mark.parametrize("name", sorted(testbed.command.commands))
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert "--help" in help_of(capsys, "testbed", name)


def test_every_option_of_a_link_is_an_option_of_up(capsys: pytest.CaptureFixture[str]) -> None:
    from farline.spec.links import LINK_OPTIONS

    assert run(["testbed", "up", "--help-all"]) == 0
    said = capsys.readouterr().out.replace("[no-]", "").split()
    assert all(option.flags[0] in said for option in LINK_OPTIONS)


@pytest.mark.parametrize("name", sorted(presets()))
def test_a_topology_that_is_shown_can_be_brought_up_again(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(["testbed", "show", name, "--loss", "1e-3", "--queue-bdp", "2", "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert load(toml_text(whole)) == whole


def test_options_are_the_main_links(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--rate", "1Gbit", "--rtt", "100ms", "--precise", "--seed", "5"]
    assert run(["testbed", "show", "dumbbell", "--json", *options]) == 0
    whole = json.loads(capsys.readouterr().out)
    link = next(one for one in whole["links"] if one["name"] == whole["main_link"])
    assert (link["forward"]["rate_bps"], link["forward"]["delay_s"]) == (10**9, 0.05)
    assert (whole["mode"], whole["seed"]) == ("precise", 5)


@pytest.mark.parametrize(
    ("words", "place", "program"),
    [
        (("a", "--", "iperf3", "-s"), ["a"], ["iperf3", "-s"]),
        (("bed", "a", "--", "sh", "-c", "x -- y"), ["bed", "a"], ["sh", "-c", "x -- y"]),
        (("a", "iperf3", "-s"), ["a"], ["iperf3", "-s"]),
        (("a",), ["a"], []),
    ],
)
def test_what_runs_where(words: tuple[str, ...], place: list[str], program: list[str]) -> None:
    assert _split(words) == (place, program)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["testbed", "exec"], "no host is named"),
        (["testbed", "change"], "nothing to change"),
        (["testbed", "change", "--rtt", "5ms", "--delay", "2ms"], "both set the delay"),
        (["testbed", "change", "--rtt", "5ms", "--direction", "forward"], "use --delay"),
        (["testbed", "down", "x", "--all"], "cannot be combined"),
        (["testbed", "up", "nowhere"], "not a preset"),
        (["testbed", "up", "nodes", "--set", "k"], "write NAME=N"),
        (["testbed", "show", "dumbbell", "--loss", "2"], "out of range"),
        (["profile", "--rtt", "0,5ms", "--link-mtu", "1500,9000"], "would need its own testbed"),
        (["profile", "192.0.2.1", "--rtt", "0,5ms"], "leave out HOST"),
        (["profile", "-t", "1"], "vary an emulated path with --rtt"),
        (["profile", "--rtt", "5ms", "--client-host", "moon"], "is not a host of"),
        (["profile", "--rtt", "5ms", "--link", "moon"], "'moon' is not a link; allowed: cable"),
        (["profile", "--rtt", "5ms,6ms", "--link-delay", "1ms"], "both set the delay"),
        (["profile", "--link-queue-bytes", "1M,2M", "--link-queue-bdp", "1"], "both set the queue"),
        (["profile", "--link-rate", "0,1G", "--link-queue-bdp", "1"], "no rate"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(words) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_sweep_of_round_trip_times_is_planned_without_running(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [
        "profile",
        "--rtt",
        "0,11.8ms,366ms",
        "--link-queue-bdp",
        "0.5",
        "-t",
        "1",
        "--dry-run",
    ]
    assert run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["target"] == "testbed back-to-back"
    assert [one["path"] for one in document["settings"]] == [
        {"rtt_s": rtt, "capacity_bdp": 0.5} for rtt in (0.0, 0.0118, 0.366)
    ]
    assert document["plan"]["path"] == {"rtt_s": [0.0, 0.0118, 0.366], "capacity_bdp": 0.5}


def test_a_plan_file_without_a_host_is_one_over_a_path(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan = tmp_path / "sweep.toml"
    plan.write_text(
        '[fixed]\nduration_s = 1\n[path]\ntestbed = "long-path"\nrtt_s = ["1ms", 0.1]\n'
    )
    assert run(["profile", str(plan), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "to testbed long-path: 2 settings, varying RTT" in said
    assert "RTT 1 ms" in said and "RTT 100 ms" in said


def test_a_new_testbed_starts_at_the_largest_of_what_varies() -> None:
    axes = {"path.rtt_s": (0.0, 0.1), "streams": (1, 2)}
    plan = Plan(fixed={"path.mtu_bytes": 1500, "duration_s": 1.0}, axes=axes)
    (link,) = emulated.new_topology(plan)["links"]
    assert (link["forward"]["delay_s"], link["forward"]["mtu_bytes"]) == (0.05, 1500)


def test_cpus_of_the_hosts_need_a_new_testbed() -> None:
    plan = Plan(place=PathPlace(host_cpus="1"))
    topology = emulated.new_topology(plan)
    assert [host["cpus"] for host in topology["hosts"]] == [[1]] * len(topology["hosts"])
    emulated_path.refuse_bed_options(plan, "b", topology)
    with pytest.raises(UsageError, match="testbed 'b' is up, and host_cpus needs a new one"):
        emulated_path.refuse_bed_options(plan, "b", load("back-to-back"))
    wrong = Plan(place=PathPlace(host_cpus="x"))
    with pytest.raises(UsageError, match=r"\[path\] host_cpus: 'x' is not a whole number"):
        emulated_path.refuse_bed_options(wrong, "b", load("back-to-back"))


def test_client_and_server_are_on_the_two_sides_of_the_link() -> None:
    dumbbell = load("dumbbell")
    assert emulated_path.end_hosts(dumbbell, Plan()) == ("source", "sink")
    back = Plan(place=PathPlace(client_host="sink"))
    assert emulated_path.end_hosts(dumbbell, back) == ("sink", "source")
    near = Plan(place=PathPlace(server_host="background-source"))
    assert emulated_path.end_hosts(dumbbell, near) == ("source", "background-source")
    with pytest.raises(UsageError, match="both client and server"):
        emulated_path.end_hosts(
            dumbbell, Plan(place=PathPlace(client_host="sink", server_host="sink"))
        )
    with pytest.raises(UsageError, match="not a link"):
        emulated_path.end_hosts(dumbbell, Plan(place=PathPlace(link="moon")))


@pytest.mark.parametrize(("code", "valid"), [(0, True), (3, False)])
def test_a_stamped_program_ends_as_it_would_alone(
    capfd: pytest.CaptureFixture[str], code: int, valid: bool
) -> None:
    program = [sys.executable, "-c", f"print('out'); raise SystemExit({code})"]
    assert run_stamped(Bed(valid=valid), program) == code  # type: ignore[arg-type]
    out, error = capfd.readouterr()
    assert out == "out\n"
    assert ("farline: valid: " if valid else "farline: not valid: packets came late") in error


def test_a_stamped_program_that_is_killed_kills_with_the_same_signal() -> None:
    script = (
        "from farline.cli.stamped import run_stamped; from tests.unit.cli.test_testbed import Bed;"
        "run_stamped(Bed(), ['sh', '-c', 'kill -TERM $$'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == -signal.SIGTERM
    assert "valid:" in done.stderr


def test_what_links_carry_and_lose_is_counted() -> None:
    forward, reverse = look(Bed())[0]  # type: ignore[arg-type]
    assert (forward.dropped, forward.lost, forward.other) == (3, 2, {"ecn_marked": 4})
    assert forward.carried_bps == pytest.approx(8 * 12_000_000 / 0.1)
    assert (forward.backlog_max_bytes, reverse.backlog_max_bytes) == (480_000, 0)


def test_the_table_of_links_fits_80_columns() -> None:
    from rich.console import Console

    row = LinkRow(
        "background-source", "→", "background-source → left-switch", 10**10, 0.183, 9.41e9,
        457_000_000, 457_000_000, 123_456_789, 12_345, 0, {},
    )  # fmt: skip
    console = Console(width=10_000)
    assert console.measure(_table([row], 80)).maximum <= 80
    heads = [column.header for column in _table([row], 200).columns]
    assert heads[2] == "from, to" and "packets" in heads
