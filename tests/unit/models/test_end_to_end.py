"""Streams, stripes and nodes as one: settings by their labels, and what binds them."""

from __future__ import annotations

import pytest

from farline.errors import SpecError
from farline.models.end_to_end import EndToEnd, NodeCapacity, NodeSetting
from farline.models.stream_curves import FullSecondOrder, HackerCurve

NETWORK = FullSecondOrder(0.022258, -0.912571, 18.251425)


def test_a_label_is_written_and_read_as_in_the_paper() -> None:
    setting = NodeSetting.of_label("4stm-1str-2n-1str-2n")
    assert setting == NodeSetting(nodes=2, stripes=1, streams=4)
    assert setting.label == "4stm-1str-2n-1str-2n"
    assert setting.all_streams == 8


@pytest.mark.parametrize(
    "text",
    [
        "4stm-1str-2n-1str", "04stm-1str-1n-1str-1n", "0stm-1str-1n-1str-1n",
        "4STM-1str-1n-1str-1n", "4stm -1str-1n-1str-1n", "4stm-1str-1n-1str-1n\n",
        "4_0stm-1str-1n-1str-1n", "12345stm-1str-1n-1str-1n", "4stm-1str-1n-2str-1n",
        "4stm-1str-1n-1str-2n", "", "\u0664stm-1str-1n-1str-1n",
    ],
)  # fmt: skip
def test_other_labels_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        NodeSetting.of_label(text)


def test_fewer_nodes_come_before_fewer_stripes_before_fewer_streams() -> None:
    assert NodeSetting(1, 9, 9) < NodeSetting(2, 1, 1)
    assert NodeSetting(1, 1, 9) < NodeSetting(1, 2, 1)


@pytest.mark.parametrize(
    ("setting", "rate", "binds"),
    [
        (NodeSetting(1, 1, 1), 0.240, "network"),
        (NodeSetting(1, 1, 4), 1.000, "nic"),
        (NodeSetting(16, 1, 4), 8.960, "network"),
        (NodeSetting(16, 1, 2), 9.299, "network"),
    ],
)
def test_one_gigabit_interfaces_have_their_reference_values(
    setting: NodeSetting, rate: float, binds: str
) -> None:
    node = NodeCapacity(nic=1)
    found, name = EndToEnd(NETWORK, node, node).bound(setting)
    assert found == pytest.approx(rate, abs=5e-4)
    assert name == binds


def test_processors_processes_and_disks_bind_on_either_side() -> None:
    network = HackerCurve(1000.0)
    slow = NodeCapacity(nic=10, cpu=6, process=1.5)
    assert EndToEnd(network, source=slow).bound(NodeSetting(1, 2, 1)) == (3.0, "process")
    assert EndToEnd(network, destination=slow).bound(NodeSetting(2, 8, 1)) == (12.0, "cpu")
    disk = EndToEnd(network, destination_disk=lambda stripes: 6.0 if stripes <= 5 else 4.0)
    assert disk.bound(NodeSetting(2, 3, 1)) == (4.0, "disk")


def test_what_is_no_capacity_or_count_is_refused() -> None:
    with pytest.raises(SpecError, match="nic"):
        NodeCapacity(nic=0)
    with pytest.raises(SpecError, match="streams"):
        NodeSetting(1, 1, 10_000)
