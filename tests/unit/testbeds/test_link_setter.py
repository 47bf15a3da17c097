"""The link that a campaign sets between runs, on a testbed that only remembers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from farline.errors import SpecError, SystemFailure
from farline.testbeds.link_setter import LinkSetter
from farline.testbeds.run_watch import BedWatch
from tests.support.paths import make_link_samples, make_stamp, make_topology


class Bed:
    """A testbed whose links change as those of an emulator do, as far as its topology says."""

    name = "bed"

    def __init__(self, topology: dict[str, Any] | None = None) -> None:
        self.now = copy.deepcopy(topology or make_topology(0.02))
        self.changes: list[tuple[str, str, dict[str, Any]]] = []
        self.refuses: list[dict[str, Any]] = []

    def topology(self) -> dict[str, Any]:
        return copy.deepcopy(self.now)

    def change(self, link: str, direction: str = "both", **changes: Any) -> None:
        if any(one.items() <= changes.items() for one in self.refuses):
            raise SystemFailure("no room")
        self.changes.append((link, direction, changes))
        (found,) = [one for one in self.now["links"] if one["name"] == link]
        found.setdefault("reverse", copy.deepcopy(found["forward"]))
        for way in ("forward", "reverse") if direction == "both" else (direction,):
            put(found[way], changes)

    def path(self, client: str, server: str) -> Any:
        return type("Facts", (), {"rtt_s": 0.02, "rate_bps": 10**9})

    def stamp(self, mark: int) -> dict[str, Any]:
        return make_stamp()

    def link_samples(self) -> dict[str, Any]:
        return make_link_samples(1)


def put(pipe: dict[str, Any], changes: dict[str, Any]) -> None:
    """Writes a change into a direction; a capacity takes the place of any other."""
    capacities = {key: changes[key] for key in changes if key.startswith("capacity_")}
    plain = {key: value for key, value in changes.items() if key not in {*capacities, "loss"}}
    pipe.update(plain)
    if "loss" in changes:
        pipe["loss"] = {"random": changes["loss"]}
    if capacities:
        queue = {k: v for k, v in pipe["queue"].items() if not k.startswith("capacity_")}
        pipe["queue"] = {**queue, **capacities}


def setter(bed: Bed, *keys: str, link: str | None = None) -> LinkSetter:
    return LinkSetter(bed, link, keys, sleep=lambda _s: None)  # type: ignore[arg-type]


def pipe_of(bed: Bed, link: int = 0) -> dict[str, Any]:
    pipe: dict[str, Any] = bed.now["links"][link]["forward"]
    return pipe


def test_a_link_is_set_once_rests_and_is_put_back() -> None:
    bed, rests = Bed(make_topology(0.02, loss=0.1)), list[float]()
    one = LinkSetter(bed, sleep=rests.append)  # type: ignore[arg-type]
    one.apply({"rtt_s": 0.1, "loss": 0.0})
    one.apply({"rtt_s": 0.1, "loss": 0.0})
    assert bed.changes == [("link", "both", {"loss": 0.0, "delay_s": 0.05})]
    assert rests == [pytest.approx(0.15)]
    one.restore()
    assert bed.changes[1:] == [("link", "both", {"loss": 0.1, "delay_s": 0.01})]
    one.restore()
    assert len(bed.changes) == 2


def test_a_link_that_was_never_set_is_left_alone() -> None:
    bed = Bed()
    one = setter(bed)
    one.apply({})
    one.restore()
    assert bed.changes == []
    with pytest.raises(SpecError, match="is not a link"):
        setter(bed, link="moon").apply({"rtt_s": 1.0})


def test_nothing_of_the_reference_is_left_for_the_next_run() -> None:
    bed = Bed(make_topology(0.02))
    one = setter(bed, "rtt_s", "loss", "capacity_bdp")
    one.apply({"rtt_s": 0.1, "loss": 0.25, "capacity_bdp": 4.0})
    one.apply({"rtt_s": 0.1})
    assert pipe_of(bed)["loss"] == {"random": 0.0}
    assert pipe_of(bed)["queue"]["capacity_bdp"] == 1.0
    one.apply({})
    assert pipe_of(bed)["delay_s"] == 0.01


def test_a_queue_of_a_users_testbed_is_put_back() -> None:
    topology = make_topology(0.02)
    topology["links"][0]["forward"]["queue"]["capacity_bdp"] = 0.5
    bed = Bed(topology)
    one = setter(bed)
    one.apply({"capacity_bytes": 9000})
    assert pipe_of(bed)["queue"]["capacity_bytes"] == 9000
    one.apply({"rtt_s": 0.1})
    one.restore()
    assert pipe_of(bed) == pipe_of(Bed(topology))


def test_every_copy_of_the_main_link_is_set_and_put_back() -> None:
    topology = make_topology(0.02)
    (cable,) = topology["links"]
    lanes = [{**copy.deepcopy(cable), "name": f"lane-{number}"} for number in (1, 2)]
    spare = {**copy.deepcopy(cable), "name": "spare"}
    bed = Bed({**topology, "main_link": "lane-1", "links": [*lanes, spare]})
    one = setter(bed, "rtt_s")
    one.apply({"rtt_s": 0.1})
    one.apply({"rtt_s": 0.2})
    assert [pipe_of(bed, number)["delay_s"] for number in range(3)] == [0.1, 0.1, 0.01]
    one.restore()
    assert [pipe_of(bed, number)["delay_s"] for number in range(3)] == [0.01] * 3
    named = setter(bed, link="lane-2")
    named.apply({"rtt_s": 0.3})
    assert [pipe_of(bed, number)["delay_s"] for number in range(3)] == [0.01, 0.15, 0.01]


def test_a_refused_change_leaves_nothing_for_the_next_run() -> None:
    topology = make_topology(0.02)
    topology["links"][0]["reverse"] = {**topology["links"][0]["forward"], "loss": {"random": 0.5}}
    bed = Bed(topology)
    bed.refuses = [{"delay_s": 5.0, "loss": 0.5}]
    one = setter(bed, "rtt_s", "loss")
    one.apply({"rtt_s": 0.1})
    with pytest.raises(SystemFailure, match="no room"):
        one.apply({"rtt_s": 10.0})
    assert pipe_of(bed)["delay_s"] == 5.0
    one.apply({"rtt_s": 0.1})
    assert pipe_of(bed)["delay_s"] == 0.05


def test_a_record_calls_the_varied_link_the_main_link() -> None:
    here = type("Here", (), {"bed": Bed(), "host": "a", "host_of": lambda self, _address: "b"})()
    for link, main in (("far", "far"), (None, None)):
        seen = BedWatch(here, link).finish(1, "10.77.0.2:5470")
        assert seen is not None and seen.path["topology"] is not None
        assert seen.path["topology"].get("main_link") == main
