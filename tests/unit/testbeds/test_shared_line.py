"""The line that two sides share: which hosts can be told apart, how far away the background is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from farline.campaign.contention.plan import Network
from farline.errors import FarlineError
from farline.fairness.contest import BACKGROUND, SUBJECT
from farline.testbeds import load
from farline.testbeds.shared_line import check_hosts, line_rate, new_topology

HOSTS = {SUBJECT: ("source", "sink"), BACKGROUND: ("background-source", "background-sink")}


def delays(topology: Any, name: str) -> list[float]:
    link = next(one for one in topology["links"] if one["name"] == name)
    ways = (link["forward"], link.get("reverse") or link["forward"])
    return [way.get("delay_s") or 0.0 for way in ways]


def test_the_preset_can_be_shared() -> None:
    topology = load("dumbbell", rate_bps="100Mbit")
    check_hosts(topology, "bottleneck", HOSTS)
    assert line_rate(topology, "bottleneck") == 100e6
    assert line_rate(topology, "source") is None


@pytest.mark.parametrize(("allowed", "control"), [("reno cubic\n", "cubic"), ("reno\n", None)])
def test_hosts_use_cubic_where_the_kernel_allows_it(
    allowed: str, control: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "allowed").write_text(allowed)
    monkeypatch.setattr("farline.testbeds.shared_line._ALLOWED", tmp_path / "allowed")
    hosts: list[Any] = new_topology(Network())["hosts"]
    name = "net.ipv4.tcp_congestion_control"
    assert {(host.get("sysctls") or {}).get(name) for host in hosts} == {control}


def test_a_background_further_away_is_delayed_on_its_own_link() -> None:
    topology = new_topology(Network(options={"rtt_s": 0.01}, background_rtt_s=0.05))
    assert delays(topology, "background-source") == pytest.approx([0.02, 0.02])
    assert delays(topology, "source") == [0.0, 0.0]


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ({SUBJECT: ("source", "nobody")}, "'nobody' is not a host of dumbbell"),
        ({SUBJECT: ("source", "sink"), BACKGROUND: ("source", "background-sink")}, "named twice"),
        ({SUBJECT: ("source", "background-source")}, "does not lie between"),
    ],
)
def test_hosts_that_cannot_be_told_apart_are_refused(hosts: Any, words: str) -> None:
    with pytest.raises(FarlineError, match=words):
        check_hosts(load("dumbbell"), "bottleneck", hosts)
