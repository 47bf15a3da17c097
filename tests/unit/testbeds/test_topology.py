"""Topologies as people write them: units, conveniences, presets, overrides, refusals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError, UsageError
from farline.testbeds import load, presets

pytestmark = pytest.mark.unit

TWO = """
name = "two"
hosts = [{ name = "a" }, { name = "b" }]
"""


def link_of(text: str, **overrides: object) -> Any:
    """The first link of a topology of two hosts with these links."""
    return load(TWO + text, **overrides)["links"][0]


def test_every_preset_holds_together_and_says_what_it_is_for() -> None:
    found = presets()
    assert set(found) == {
        "back-to-back",
        "chicago-amsterdam",
        "dumbbell",
        "long-path",
        "multi-nic",
        "nodes",
        "seven-sites",
    }
    for name, preset in found.items():
        assert load(name)["name"] == name
        assert re.search(r"\(.* 20\d\d(, .*)?\)$", preset.description)


@pytest.mark.parametrize(
    ("preset", "rate_bps", "rtt_s", "mtu_bytes"),
    [
        ("back-to-back", 10**10, 0.00004, 9000),
        ("long-path", 10**10, 0.00959, None),
        ("chicago-amsterdam", 622_000_000, 0.110, None),
        ("dumbbell", 10**10, 0.0, None),
        ("nodes", 10**10, 0.060, None),
        ("multi-nic", 10**10, 0.00004, 9000),
    ],
)
def test_main_links_are_those_of_the_papers(
    preset: str, rate_bps: int, rtt_s: float, mtu_bytes: int | None
) -> None:
    topology: Any = load(preset)
    main = topology.get("main_link") or topology["links"][0]["name"]
    [link] = [link for link in topology["links"] if link["name"] == main]
    assert link["forward"]["rate_bps"] == rate_bps
    assert 2 * link["forward"]["delay_s"] == pytest.approx(rtt_s, abs=1e-12)
    assert link["forward"].get("mtu_bytes") == mtu_bytes


def test_seven_sites_are_a_full_mesh_with_28_round_trips() -> None:
    topology: Any = load("seven-sites")
    sites = [host["name"] for host in topology["hosts"] if not host["name"].endswith("-2")]
    assert len(sites) == 7
    rtts = {
        frozenset((link["a"].removesuffix("-2"), link["b"].removesuffix("-2"))): 2000
        * link["forward"]["delay_s"]
        for link in topology["links"]
    }
    assert len(topology["links"]) == len(rtts) == 28
    between = [rtt for pair, rtt in rtts.items() if len(pair) == 2]
    within = [rtt for pair, rtt in rtts.items() if len(pair) == 1]
    assert len(set(between)) == 21
    assert within == [0] * 7
    assert {11.8, 22.6, 45.6, 91.6, 183, 366} <= {round(rtt, 6) for rtt in between}
    assert max(between) == 366


def test_a_preset_grows_with_its_parameter() -> None:
    assert [host["name"] for host in load("nodes", k="2")["hosts"]] == [
        "source-1",
        "source-2",
        "sink-1",
        "sink-2",
    ]
    assert len(load("multi-nic", k=8)["links"]) == 8


def test_values_have_units_as_in_plans() -> None:
    pipe = link_of(
        """
[[links]]
name = "l"
a = "a"
b = "b"
both.rate_bps = "1.5Gbit"
both.delay_s = "9.59ms"
both.loss.random = "0.1%"
both.queue.capacity_bytes = "64K"
both.schedule = [{ at_s = "2s", change = { rate_bps = "100Mbit", loss = 0.5 } }]
"""
    )["forward"]
    assert pipe["rate_bps"] == 1_500_000_000
    assert pipe["delay_s"] == 0.00959
    assert pipe["loss"]["random"] == 0.001
    assert pipe["queue"]["capacity_bytes"] == 65536
    assert pipe["schedule"] == [{"at_s": 2.0, "change": {"rate_bps": 10**8, "loss": 0.5}}]


def test_directions_go_before_what_both_have() -> None:
    link = link_of(
        'links = [{ name = "l", a = "a", b = "b", rtt_s = "20ms",'
        ' both = { rate_bps = "1Gbit", loss = { random = 0.01, every = 9 } },'
        ' reverse = { rate_bps = "1Mbit", loss = { random = 0 } } }]'
    )
    assert link["forward"]["rate_bps"] == 10**9
    assert link["reverse"]["rate_bps"] == 10**6
    assert link["reverse"]["loss"] == {"random": 0.0, "every": 9}
    assert link["forward"]["delay_s"] == link["reverse"]["delay_s"] == 0.01


def test_defaults_hold_where_nothing_else_is_said() -> None:
    topology: Any = load(
        """
name = "three"
hosts = [{ name = "a" }, { name = "b", cpu_limit = 2 }, { name = "c" }]
links = [{ name = "x", a = "a", b = "b" }, { name = "y", a = "b", b = "c", rtt_s = 0 },
         { name = "z", a = "a", b = "c", forward = { delay_s = "1ms" } }]
[defaults.host]
cpu_limit = 0.5
sysctls = { "net.ipv4.tcp_sack" = 0 }
[defaults.link]
rtt_s = "10ms"
both = { queue = { capacity_bdp = 2 } }
"""
    )
    assert [host["cpu_limit"] for host in topology["hosts"]] == [0.5, 2.0, 0.5]
    assert topology["hosts"][1]["sysctls"] == {"net.ipv4.tcp_sack": "0"}
    assert [link["forward"]["delay_s"] for link in topology["links"]] == [0.005, 0.0, 0.001]
    assert all(link["forward"]["queue"]["capacity_bdp"] == 2 for link in topology["links"])


def test_overrides_act_on_both_directions_of_the_main_link_alone() -> None:
    topology: Any = load(
        "dumbbell", rate_bps="1Gbit", rtt_s="100ms", loss="1%", capacity_packets=50, seed=3
    )
    by_name = {link["name"]: link for link in topology["links"]}
    main = by_name["bottleneck"]["forward"]
    assert (main["rate_bps"], main["delay_s"], main["loss"]["random"]) == (10**9, 0.05, 0.01)
    assert by_name["bottleneck"].get("reverse") is None, "the same both ways"
    assert by_name["source"]["forward"].get("rate_bps") is None
    assert topology["seed"] == 3


def test_a_queue_that_is_stated_anew_is_no_shorter_than_stated() -> None:
    queue = load("nodes", capacity_bdp=3)["links"][0]["forward"]["queue"]
    assert queue["capacity_bdp"] == 3
    text = TWO + 'links = [{ name = "l", a = "a", b = "b", both.queue.capacity_bytes = 1 }]'
    queue = load(text, capacity_bdp=3)["links"][0]["forward"]["queue"]
    assert queue.get("capacity_bytes") is None


def test_cpus_of_the_hosts_are_those_of_every_host() -> None:
    hosts = load("dumbbell", host_cpus="0,2-3")["hosts"]
    assert [host["cpus"] for host in hosts] == [[0, 2, 3]] * len(hosts)
    with pytest.raises(SpecError, match=r"long-path: host_cpus: 'x' is not a whole number"):
        load("long-path", host_cpus="x")
    for raw in (0, "", ","):
        with pytest.raises(SpecError, match=r"host_cpus: .* is not a list of CPUs such as 0,2-3"):
            load("long-path", host_cpus=raw)


def test_overrides_act_on_every_copy_of_the_main_link() -> None:
    topology: Any = load("multi-nic", rtt_s="5ms")
    assert [link["forward"]["delay_s"] for link in topology["links"]] == [0.0025] * 4


def test_an_mtu_holds_for_the_whole_path() -> None:
    topology: Any = load("dumbbell", mtu_bytes=9000)
    assert {link["forward"]["mtu_bytes"] for link in topology["links"]} == {9000}


@given(st.integers(0, 3_600_000_000))
def test_a_round_trip_is_the_sum_of_its_halves(rtt_us: int) -> None:
    link = link_of(f'links = [{{ name = "l", a = "a", b = "b", rtt_s = "{rtt_us}us" }}]')
    assert 2 * link["forward"]["delay_s"] == rtt_us / 1e6


LINK = '[[links]]\nname = "l"\na = "a"\nb = "b"\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("links = 3", "topology: links: 3 is not a list"),
        ("colour = 'red'\n" + LINK, "topology: colour: unknown field; allowed: schema"),
        (
            LINK + 'speed = "1G"',
            "topology: links.l.speed: unknown field; allowed: name",
        ),
        (LINK + 'both.rate = "1G"', "topology: links.l.both.rate: unknown field; allowed"),
        (LINK + 'both.rate_bps = "fast"', "topology: links.l.both.rate_bps: 'fast' is not a rate"),
        (LINK + 'both.loss.random = "120%"', "links.l.both.loss.random: 1.2 is out of range"),
        (LINK + "both.loss.random = nan", "links.l.both.loss.random: nan is not a number"),
        (LINK + 'rtt_s = "1s"\nboth.delay_s = 1', "links.l: rtt_s and delay_s cannot be combined"),
        (LINK.replace('b = "b"', 'b = "x"'), 'links.l: "x" is not a host or router; allowed: a, b'),
        (LINK + 'repeat = "k"', "links.l.repeat: 'k' is not a parameter; available: none"),
        (LINK + "repeat = 0", "links.l.repeat: 0 is out of range; allowed: 1 to 256"),
        (LINK + "[parameters]\nk = 1.5", "parameters.k: 1.5 is not a whole number from 1 to 256"),
        ('main_link = "x"\n' + LINK, "main_link: 'x' is not a link"),
        (LINK + "[defaults.router]", "defaults.router: unknown table"),
        (LINK + '[defaults.host]\ncpus = ["0"]', "defaults.host.cpus: '0' is not a whole number"),
        (
            LINK + "[defaults.host]\nsysctls = { a = true }",
            "sysctls.a: True is neither a string nor",
        ),
    ],
)
def test_a_refusal_says_where_and_what_is_allowed(text: str, line: str) -> None:
    with pytest.raises(SpecError) as refused:
        load(TWO + text)
    assert line in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"speed": 1}, "long-path: speed: unknown option; allowed: seed"),
        ({"rate_bps": "fast"}, "long-path: rate_bps: 'fast' is not a rate"),
        ({"rtt_s": 1, "delay_s": 1}, "rtt_s and delay_s cannot be combined: both set the delay"),
        ({"mtu_bytes": 100}, "mtu_bytes: 100 is out of range; allowed: 576 to 65535"),
        ({"k": 3}, "long-path: k: unknown option"),
    ],
)
def test_an_override_is_refused_with_its_name(overrides: dict[str, object], line: str) -> None:
    with pytest.raises(SpecError) as refused:
        load("long-path", **overrides)
    assert line in refused.value.message


def test_sources_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'ring' is not a preset; allowed: back-to-back, chicago"):
        load("ring")
    with pytest.raises(UsageError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="topology: not TOML"):
        load("name =\n")


def test_a_file_is_read_and_named_in_refusals(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TWO + LINK, encoding="utf-8")
    assert load(path) == load(str(path))
    path.write_text(TWO, encoding="utf-8")
    with pytest.raises(SpecError, match=r"mine\.toml: .*links"):
        load(path)
