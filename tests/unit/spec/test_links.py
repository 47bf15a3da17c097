"""Options of a link: how texts become values, and values become changes."""

from __future__ import annotations

from typing import Any

import pytest

from farline.spec.links import (
    LINK_OPTION_BY_KEY,
    LINK_OPTIONS,
    VARIABLE_KEYS,
    change_of,
    find_link,
    find_links,
    half,
)
from farline.spec.values import read_sweep, read_value

RTT = LINK_OPTION_BY_KEY["rtt_s"]


def link(**pipe: Any) -> dict[str, Any]:
    return {"name": "l", "a": "a", "b": "b", "forward": {"delay_s": 0.01, **pipe}}


def test_names_and_flags_are_unique() -> None:
    assert len(LINK_OPTION_BY_KEY) == len(LINK_OPTIONS)
    flags = [option.flags[0] for option in LINK_OPTIONS]
    assert len(set(flags)) == len(flags)
    assert set(VARIABLE_KEYS) <= LINK_OPTION_BY_KEY.keys()


def test_a_time_of_a_link_needs_its_unit() -> None:
    assert read_value(RTT, "11.8ms") == 0.0118
    assert read_value(RTT, "2s") == 2.0
    assert read_value(RTT, "0") == 0.0
    assert read_value(RTT, 0.2) == 0.2  # of a key that ends in its unit
    assert read_value(LINK_OPTION_BY_KEY["loss"], "1e-4") == 1e-4
    with pytest.raises(ValueError, match="100 could be 100ms or 100s; write the unit"):
        read_value(RTT, "100")


def test_the_round_trip_times_of_papers_5_are_read() -> None:
    read = read_sweep(RTT, "0,11.8ms,22.6ms,45.6ms,91.6ms,183ms,366ms")
    assert read == (0.0, 0.0118, 0.0226, 0.0456, 0.0916, 0.183, 0.366)
    assert read_sweep(RTT, "10ms..30ms+10ms") == (0.01, 0.02, 0.03)
    with pytest.raises(ValueError, match=r"22\.6 could be 22\.6ms or 22\.6s"):
        read_sweep(RTT, "0,11.8ms,22.6")


@pytest.mark.parametrize(("key", "text"), [("rtt_s", "3h"), ("loss", "1.5"), ("mtu_bytes", "100")])
def test_what_is_out_of_range_is_refused_with_what_is_allowed(key: str, text: str) -> None:
    with pytest.raises(ValueError, match="allowed"):
        read_value(LINK_OPTION_BY_KEY[key], text)


def test_half_of_a_time_is_exact() -> None:
    assert [half(x) for x in (0.0118, 0.0456, 0.366)] == [0.0059, 0.0228, 0.183]


def test_a_round_trip_becomes_the_delay_of_each_way() -> None:
    assert change_of({"rtt_s": 0.02, "loss": 0.1}, link()) == {"loss": 0.1, "delay_s": 0.01}


@pytest.mark.parametrize("rtt_s", [0.0, 0.1])
def test_a_queue_in_products_is_left_to_the_emulator(rtt_s: float) -> None:
    change = change_of({"rtt_s": rtt_s, "capacity_bdp": 0.5}, link(rate_bps=10**9))
    assert change == {"delay_s": rtt_s / 2, "capacity_bdp": 0.5}


def test_a_queue_in_products_needs_a_rate() -> None:
    for change in ({"capacity_bdp": 1}, {"capacity_bdp": 1, "rate_bps": 0}):
        with pytest.raises(ValueError, match="has no rate"):
            change_of(change, link())
    with pytest.raises(ValueError, match="has no rate"):
        change_of({"capacity_bdp": 1, "rate_bps": 0}, link(rate_bps=10**9))
    assert change_of({"capacity_bdp": 1, "rate_bps": 10}, link())["capacity_bdp"] == 1


@pytest.mark.parametrize(
    "values", [{"rtt_s": 0.1, "delay_s": 0.1}, {"capacity_bytes": 9, "capacity_bdp": 1}]
)
def test_two_values_for_one_thing_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r" and .* both set the"):
        change_of(values, link(rate_bps=10**9))


def test_what_cannot_change_in_use_is_refused() -> None:
    with pytest.raises(ValueError, match="mtu_bytes cannot change while the testbed is up"):
        change_of({"mtu_bytes": 9000}, link())


def test_the_main_link_is_the_one_that_is_named_else_the_first() -> None:
    topology = {"name": "t", "links": [{"name": "x"}, {"name": "y"}]}
    assert find_link(topology)["name"] == "x"
    assert find_link({**topology, "main_link": "y"})["name"] == "y"
    assert find_link(topology, "y")["name"] == "y"
    with pytest.raises(ValueError, match="its links are x, y"):
        find_link(topology, "z")


def names(topology: dict[str, Any], name: str | None = None) -> list[str]:
    return [one["name"] for one in find_links(topology, name)]


def test_the_copies_of_the_main_link_go_with_it_unless_one_is_named() -> None:
    lanes = [{**link(rate_bps=10), "name": f"lane-{number}"} for number in (1, 2, 13)]
    other = {**link(rate_bps=20), "name": "lane-4"}
    elsewhere = {**link(rate_bps=10), "name": "lane-5", "b": "c"}
    topology = {"name": "t", "main_link": "lane-2", "links": [*lanes, other, elsewhere]}
    assert names(topology) == ["lane-1", "lane-2", "lane-13"]
    assert names(topology, "lane-13") == ["lane-13"]
    with pytest.raises(ValueError, match="is not a link"):
        names(topology, "lane-3")
