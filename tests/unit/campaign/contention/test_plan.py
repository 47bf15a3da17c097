"""Plans of fairness measurements: what they say, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from farline.campaign.contention.job import spec_of
from farline.campaign.contention.plan import (
    Contender,
    expanded,
    load_plan,
    parse_contender,
    plan_from_document,
)
from farline.errors import SpecError, UsageError

PLANS = sorted((Path(__file__).parents[4] / "plans").glob("fairness-*.toml"))


def document(**parts: Any) -> dict[str, Any]:
    return {
        "fairness": {"loads": "20%,50%", "duration_s": "4s", "omit_s": "1s"},
        "subject": {"udt": {"transport": "udt"}},
        "path": {"rate_bps": "100Mbit", "rtt_s": "10ms"},
        **parts,
    }


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_shipped_plan_reads_back_from_its_own_document(path: Path) -> None:
    plan = load_plan(path)
    assert plan_from_document(plan.document()) == plan
    assert plan.expect


def test_loads_are_shares_or_rates() -> None:
    plan = plan_from_document(document(fairness={"loads": ["10%..50%+20%", "80Mbit"]}))
    assert plan.load_rates(100e6) == (10e6, 30e6, 50e6, 80e6)
    assert expanded("10M..30M+10M") == ["10000000bit/s", "20000000bit/s", "30000000bit/s"]
    assert len(plan_from_document(document(fairness={})).load_rates(1e8)) == 10


def test_a_share_of_an_unknown_line_is_refused() -> None:
    plan = plan_from_document(document())
    with pytest.raises(SpecError, match=r"20% of an unknown line: state its rate"):
        plan.load_rates(None)


def test_a_load_is_the_rate_of_all_streams_of_the_background() -> None:
    side = Contender("background", options={"streams": 4})
    spec = side.spec(5.0, 80e6, 1e8)
    assert (spec["rate_bps"], spec["tcp"]["pacing_rate_bps"]) == (20_000_000, 22_000_000)
    assert "rate_bps" not in side.spec(5.0, None, 1e8)


def test_a_transport_that_finds_no_rate_sends_at_that_of_the_line() -> None:
    side = Contender("x", options={"transport": "rbudp"})
    assert side.spec(5.0, None, 1e8)["rate_bps"] == 94_000_000
    stated = Contender("x", options={"transport": "rbudp", "rate_bps": 7})
    assert stated.spec(5.0, None, 1e8)["rate_bps"] == 7


def test_a_side_in_one_text() -> None:
    side = parse_contender("background", "tcp:reno,streams=4", ("native", "iperf3"))
    assert side.tool == "native"
    assert side.options == {"transport": "tcp", "tcp.congestion_control": "reno", "streams": 4}
    assert parse_contender("b", "iperf3", ("native", "iperf3")).tool == "iperf3"
    assert parse_contender("b", "iperf3/udp,rate_bps=1M", ("iperf3",)).transport == "udp"


def test_a_side_that_is_neither_transport_nor_tool_names_both() -> None:
    with pytest.raises(SpecError, match=r"^background 'foo': 'foo' is not .*tcp, .*tool: nuttcp$"):
        parse_contender("background", "foo", ("nuttcp",))
    with pytest.raises(
        SpecError, match=r"^background 'nuttcp/foo,streams=2': 'foo' is not .*null$"
    ):
        parse_contender("background", "nuttcp/foo,streams=2", ("nuttcp",))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fairnes": {}}, "table fairnes: unknown"),
        ({"fairness": {"load": "10%"}}, r"\[fairness\] load: unknown"),
        ({"fairness": {"loads": "much"}}, "'much' is not a load"),
        ({"fairness": {"loads": "50%..10%+10%"}}, "is not FIRST..LAST"),
        ({"fairness": {"duration_s": "5"}}, "has no unit"),
        ({"fairness": {"duration_s": "2s", "omit_s": "2s"}}, "omit_s: 2 is out of range"),
        ({"fairness": {"repetitions": True}}, "True is not a whole number"),
        ({"fairness": {"reference": "tcp"}}, "reference: no subject 'tcp'"),
        ({"subject": {}}, "no transfer to judge"),
        ({"subject": {"udt": {"transport": "utd"}}}, "transport"),
        ({"subject": {"a b": {}}}, "a name is"),
        ({"subject": {"x": {"direction": "reverse"}}}, "allowed: forward"),
        ({"subject": {"x": {"duration_s": "5s"}}}, "the plan sets the time"),
        ({"subject": {"x": {"tool": 4}}}, "is not a name of a tool"),
        ({"background": {"rate_bps": "1M"}}, "the loads are its rate"),
        ({"path": {"rate": "1M"}}, r"\[path\] rate: unknown"),
        ({"path": {"subject_hosts": ["a"]}}, "not a list of two hosts"),
        ({"expect": {"tcp": {}}}, "expect: no subject 'tcp'"),
        ({"expect": {"udt": {"speed": {"at_least": 1}}}}, "speed: unknown"),
        ({"expect": {"udt": {"harm": 0.5}}}, "is not { at_least"),
        ({"expect": {"udt": {"harm": {"at_least": "x"}}}}, "'x' is not a number"),
        ({"expect": {"udt": {"harm": {"at_least": 2, "at_most": 1}}}}, "is above at_most"),
    ],
)
def test_what_is_wrong_in_a_plan_is_said_with_its_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        plan_from_document(document(**change))


def test_a_file_that_is_not_there_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_plan(tmp_path / "no.toml")
    (tmp_path / "bad.toml").write_text("x = = 1")
    with pytest.raises(UsageError, match="not TOML"):
        load_plan(tmp_path / "bad.toml")


def test_a_driven_tool_is_asked_in_its_own_words() -> None:
    side = Contender("x", "iperf3", {"tcp.congestion_control": "cubic"})
    spec: Any = spec_of(side, 4.5, 40e6, 1e8)
    assert (spec["tool"], spec["rate_bps"], spec["duration_s"]) == ("iperf3", 40_000_000, 5.0)
    with pytest.raises(SpecError, match=r"x: tcp\.congestion_control: nuttcp does not take it"):
        spec_of(Contender("x", "nuttcp", side.options), 5.0, 40e6, 1e8)


def test_a_mover_that_cannot_stop_at_a_time_moves_what_the_line_takes_in_it() -> None:
    spec: Any = spec_of(Contender("x", "gridftp"), 8.0, None, 1e8)
    assert spec["total_bytes"] == 100_000_000 and not spec.get("duration_s")
