"""`farline fairness` above the line: what it refuses, plans, prints, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from farline.cli.group import run
from farline.errors import ProtocolError
from tests.support.contending import FakeLine

Command = Callable[..., tuple[int, str, str]]
LINE = ("--link-rate", "100Mbit", "--rtt", "10ms")


@pytest.fixture
def fairness(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Runs the command on a line without a network; gives exit code and what it printed."""

    @contextmanager
    def line(*_about: object) -> Iterator[FakeLine]:
        yield FakeLine()

    monkeypatch.setattr("farline.testbeds.shared_line.running_line", line)
    monkeypatch.setattr("farline.testbeds.lookup.list_beds", lambda: [])

    def command(*words: str) -> tuple[int, str, str]:
        code = run(["fairness", *words, "--store", str(tmp_path / "store")])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_a_transfer_beside_one_cubic_flow(fairness: Command) -> None:
    code, out, err = fairness(
        "-C", "cubic", *LINE, "--load", "50%,100%", "--repetitions", "1", "--lead", "200ms"
    )
    assert code == 0, err
    assert "TCP cubic beside TCP cubic, 100 Mbit/s line, rates on the wire" in out
    assert "verdict: TCP cubic takes 1.00 of its share beside one CUBIC flow" in out
    assert "trial 5 of 5: " in err


def test_a_document_has_every_measure_and_the_plan(fairness: Command) -> None:
    words = ("--transport", "udt", *LINE, "--load", "50%", "--repetitions", "2", "--lead", "200ms")
    code, out, _err = fairness(*words, "--json")
    document = json.loads(out)
    assert code == 0 and document["rates"] == "wire"
    names = [one["name"] for one in document["transfers"]]
    assert names == ["transfer", "one-cubic-flow"]
    (load,) = document["transfers"][0]["loads"]
    assert load["load_bps"] == 50e6
    assert load["measures"]["harm"]["mean"] == pytest.approx(0.0)
    assert document["plan"]["fairness"]["reference"] == "one-cubic-flow"


def test_an_expectation_that_does_not_hold_has_its_own_exit_code(
    fairness: Command, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[fairness]\nloads = "50%"\nrepetitions = 1\nlead_s = "200ms"\n[subject.tcp]\n[path]\n'
        'rate_bps = "100Mbit"\n[expect.tcp]\nharm = { at_least = 0.5 }\n'
    )
    code, out, err = fairness(str(plan))
    assert code == 3
    assert "expectations: 0 of 1 hold" in out
    assert "expectation failed: TCP: harm is 0" in err and "expected at least 0.5" in err


def test_a_finished_measurement_is_shown_again_without_running(
    fairness: Command, tmp_path: Path
) -> None:
    words = ("-C", "cubic", *LINE, "--load", "50%", "--repetitions", "1", "--lead", "200ms")
    first = fairness(*words)
    code, out, err = fairness("--resume", "--report", str(tmp_path / "report"))
    assert code == 0 and "trial" not in err
    assert first[1].splitlines()[:4] == out.splitlines()[:4]
    assert (tmp_path / "report" / "report.html").exists()


def test_report_draws_a_fairness_measurement_as_one(
    fairness: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fairness("-C", "cubic", *LINE, "--load", "50%", "--repetitions", "1", "--lead", "200ms")
    out = tmp_path / "page"
    code = run(["report", "last", "-o", str(out), "--svg", "--store", str(tmp_path / "store")])
    assert code == 0 and "report.html" in capsys.readouterr().out
    assert "TCP cubic beside TCP cubic" in (out / "report.html").read_text()
    assert (out / "figures" / "share.svg").exists()


def test_a_dry_run_says_what_and_how_long(fairness: Command) -> None:
    code, out, _err = fairness(*LINE, "-C", "cubic", "--load", "50%,100%", "--dry-run")
    assert code == 0
    assert out.startswith("15 trials, about 2 min")
    assert "TCP cubic beside 50.0 Mbit/s" in out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "no line to share: name a HOST, or emulate one"),
        (("--testbed", "nowhere"), "'nowhere' is not a preset"),
        ((*LINE, "host.example.org"), "has its own hosts: leave out HOST"),
        (("host.example.org", "--load", "50%"), "50% of an unknown line: state its rate"),
        ((*LINE, "--load", "lots"), "'lots' is not a load"),
        ((*LINE, "--background", "tcp:cubic,streams"), "write OPTION=VALUE"),
        ((*LINE, "--background", "carrier-pigeon"), "is not allowed; allowed: tcp, udp"),
        ((*LINE, "--tool", "pigeon"), "--tool: 'pigeon' is not allowed"),
        ((*LINE, "--repetitions", "0"), "repetitions: 0 is out of range"),
        ((*LINE, "-t", "1", "-O", "1"), "-O: 1 is out of range"),
        ((*LINE, "-R"), "-R: allowed: forward"),
        ((*LINE, "--background-rtt", "5ms"), "is less than the shared link's 0.01 s"),
        (("--testbed", "back-to-back", "--link-rate", "1Gbit"), "is not a host of back-to-back"),
        (("no-such-plan.toml",), "No such file"),
        (("--resume", "x", "-P", "2"), "--resume continues with the stored plan"),
        (("--resume",), "no"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    fairness: Command, words: tuple[str, ...], line: str
) -> None:
    code, out, err = fairness(*words)
    assert code == 1 and out == ""
    assert line in err and err.count("\n") == 1


def test_a_plan_has_its_own_sides(fairness: Command, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[subject.tcp]\n[path]\nrate_bps = "100Mbit"\n')
    assert "a plan has its own sides" in fairness(str(plan), "-P", "4")[2]
    assert "a plan has its own sides and line" in fairness(str(plan), "--rtt", "1ms")[2]


def test_what_a_plan_says_wrong_is_said_in_its_own_words(fairness: Command, tmp_path: Path) -> None:
    """Only the command line has flags."""
    plan = tmp_path / "plan.toml"
    text = (
        '[fairness]\nloads = "50%"\n[background]\ntcp.congestion_control = "cubic"\n[subject.bad]\n'
        'tool = "command"\nTOLD = "sh -c true"\n'
        '[path]\ntestbed = "dumbbell"\nrate_bps = "50Mbit"\nrtt_s = "10ms"\n'
    )
    plan.write_text(text.replace("TOLD", "tool_comand"))
    code, _out, err = fairness(str(plan))
    assert code == 1 and "tool_comand: unknown; did you mean tool_command" in err
    assert "--tool" not in err
    plan.write_text(text.replace("TOLD", "tool_command"))
    code, _out, err = fairness(str(plan))
    assert code == 1 and "duration_s: command takes it where tool_command says" in err


def test_one_that_fails_says_how_to_go_on(
    fairness: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_about: object) -> None:
        raise ProtocolError("iperf3 failed: it ended with exit code 137 and said nothing")

    with monkeypatch.context() as patch:
        patch.setattr("farline.api.contention.measure_contention", fail)
        code, _out, err = fairness("-C", "cubic", *LINE, "--load", "50%", "--repetitions", "1")
    assert code == ProtocolError.exit_code
    line = err.splitlines()[-1]
    name = line.partition("resume with: farline fairness --resume ")[2].split()[0]
    assert line.endswith(f"--store {tmp_path / 'store'}")
    assert fairness("--resume", name)[0] == 0
