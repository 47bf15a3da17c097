"""What a link is changed to for a setting: nothing of another setting is left on it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.spec.link_change import link_changes, same_but_for, touched_names
from tests.support.paths import make_topology

GIGABIT = 10**9


def link(**forward: Any) -> dict[str, Any]:
    return {"name": "l", "a": "a", "b": "b", "forward": {"delay_s": 0.01, **forward}}


def changes(one: dict[str, Any], values: dict[str, Any], *keys: str) -> dict[str, dict[str, Any]]:
    return link_changes(one, values, touched_names((*keys, *values)))


def test_what_a_setting_does_not_say_is_what_the_link_had() -> None:
    one = link(rate_bps=GIGABIT, loss={"random": 0.25}, reorder=0.5)
    found = changes(one, {"rtt_s": 0.1}, "rate_bps", "loss", "reorder", "duplicate")
    assert found == {
        "both": {
            "rate_bps": GIGABIT, "delay_s": 0.05, "loss": 0.25, "reorder": 0.5, "duplicate": 0.0
        }
    }  # fmt: skip


def test_a_delay_goes_back_whichever_way_it_was_said() -> None:
    assert changes(link(), {}, "rtt_s") == changes(link(), {}, "delay_s")
    assert changes(link(), {"delay_s": 0.3}, "rtt_s") == {"both": {"delay_s": 0.3}}


def test_directions_that_differ_are_kept_apart() -> None:
    one = {**link(rate_bps=GIGABIT), "reverse": {"rate_bps": 8, "delay_s": 0.2}}
    found = changes(one, {"loss": 0.1}, "rate_bps", "rtt_s")
    assert found == {
        "forward": {"rate_bps": GIGABIT, "delay_s": 0.01, "loss": 0.1},
        "reverse": {"rate_bps": 8, "delay_s": 0.2, "loss": 0.1},
    }
    assert changes(one, {"rtt_s": 1.0}) == {"both": {"delay_s": 0.5}}


@pytest.mark.parametrize(
    ("queue", "held"),
    [
        ({"capacity_bytes": 5000}, {"capacity_bytes": 5000}),
        ({"capacity_bdp": 0.25}, {"capacity_bdp": 0.25}),
        ({"capacity_bytes": 9, "capacity_bdp": 2.0}, {"capacity_bytes": 9, "capacity_bdp": 2.0}),
        ({"capacity_packets": 100}, {"capacity_bytes": 2**36}),
        ({}, {"capacity_bdp": 1.0}),
    ],
)
@pytest.mark.parametrize("key", ["capacity_bytes", "capacity_bdp"])
def test_a_queue_holds_again_what_it_held(
    queue: dict[str, Any], held: dict[str, Any], key: str
) -> None:
    assert changes(link(rate_bps=GIGABIT, queue=queue), {}, key) == {"both": held}


def test_a_stated_capacity_is_the_only_one() -> None:
    one = link(rate_bps=GIGABIT, queue={"capacity_bytes": 5000})
    assert changes(one, {"capacity_bdp": 2}, "capacity_bytes") == {"both": {"capacity_bdp": 2}}


def limit_bytes(queue: dict[str, Any], rate_bps: int, rtt_s: float) -> float:
    """What a queue holds by the rule of crates/emulator/src/model/capacity.rs."""
    products = queue.get("capacity_bdp")
    if "capacity_bytes" in queue:
        return float(queue["capacity_bytes"])
    if products is not None and rtt_s:
        return max(float(products) * rate_bps * rtt_s / 8, 1538)
    return max(float(products or 1) * rate_bps * max(rtt_s, 0.01) / 8, 150_000)


@given(rate_bps=st.integers(10_000, 10**12), rtt_s=st.floats(0, 10), start_s=st.floats(0, 10))
def test_a_queue_of_no_stated_capacity_holds_its_default_over_the_setting_of_the_run(
    rate_bps: int, rtt_s: float, start_s: float
) -> None:
    """Another setting states a capacity; this one only a round trip."""
    rtt_s = rtt_s if rtt_s > 1e-6 else 0.0
    one = link(rate_bps=rate_bps, delay_s=start_s / 2)
    (change,) = changes(one, {"rtt_s": rtt_s}, "capacity_bdp").values()
    queue = {key: value for key, value in change.items() if key.startswith("capacity")}
    wanted = limit_bytes({}, rate_bps, rtt_s)
    assert limit_bytes(queue, rate_bps, rtt_s) == pytest.approx(wanted, rel=1e-5, abs=1)


def test_a_testbed_is_another_only_by_what_the_campaign_does_not_set() -> None:
    before, after = make_topology(0.1), make_topology(0.3, loss=0.5)
    pipe = after["links"][0]["forward"]
    after["links"][0]["reverse"] = {**pipe, "queue": {**pipe["queue"], "capacity_bdp": 1.0}}
    names = touched_names(("rtt_s", "loss", "capacity_bytes"))
    assert same_but_for(before, after, ["link"], names)
    assert not same_but_for(before, after, ["link"], touched_names(("rtt_s", "loss")))
    assert not same_but_for(before, after, [], names)
    assert not same_but_for(before, {**after, "seed": 2}, ["link"], names)
