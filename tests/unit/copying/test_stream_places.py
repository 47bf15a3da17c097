"""Where streams of a copy run best on a node, by trees of files like the kernel's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from farline.copying import stream_places
from farline.copying.node_look import NodeLook
from farline.copying.stream_places import StreamPlace, place_beside, stream_place
from farline.tools.host_layout import devices_below, host_layout

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
NET = "sys/class/net"
FILES = {
    f"{CPU}/online": "0-7",
    f"{NODE}/node0/cpulist": "0-3",
    f"{NODE}/node1/cpulist": "4-7",
    f"{NET}/ens0/device/numa_node": "0",
    f"{NET}/ens1/device/numa_node": "1",
    f"{NET}/ens1/device/msi_irqs/50": "msix",
    "proc/irq/50/smp_affinity_list": "4",
    f"{NET}/odd/device/numa_node": "-1",
    f"{NET}/vlan7/lower_ens1/is": "link",
    f"{NET}/bond0/lower_ens0/is": "link",
    f"{NET}/bond0/lower_ens1/is": "link",
}
ADDRESSES = {
    "lo": ["127.0.0.1"], "ens0": ["10.0.0.1", "fd00::1"], "ens1": ["10.1.0.1"], "odd": ["10.2.0.1"],
    "vlan7": ["10.7.0.1"], "bond0": ["10.8.0.1"], "tun0": ["10.9.0.1"],
}  # fmt: skip
ALL = range(8)


def tree(root: Path, files: Mapping[str, str] = FILES) -> Path:
    """A tree of these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def placed(root: Path, address: str, allowed: range | set[int] = ALL) -> StreamPlace:
    """Where the streams of an address run."""
    return place_beside(host_layout(root), ADDRESSES, [address], allowed, root)


@pytest.mark.parametrize(
    ("address", "cpus", "why"),
    [
        ("10.0.0.1", (0, 1, 2, 3), "ens0 is at NUMA node 0"),
        ("fd00::1", (0, 1, 2, 3), "ens0 is at NUMA node 0"),
        # Without the CPU of its interrupts.
        ("10.1.0.1", (5, 6, 7), "ens1 is at NUMA node 1"),
        ("10.7.0.1", (5, 6, 7), "vlan7 is at NUMA node 1"),
        ("10.8.0.1", (), "the devices of bond0 are at NUMA nodes 0 and 1"),
        ("10.2.0.1", (), "it does not say at which NUMA node odd is"),
        ("10.9.0.1", (), "it does not say at which NUMA node tun0 is"),
        ("192.0.2.9", (), "no interface of its own has the address for data"),
    ],
)
def test_streams_run_beside_the_interface_that_carries_them(
    tmp_path: Path, address: str, cpus: tuple[int, ...], why: str
) -> None:
    assert placed(tree(tmp_path), address) == StreamPlace(cpus, why)


def test_only_cpus_that_farline_may_use_are_taken(tmp_path: Path) -> None:
    root = tree(tmp_path)
    assert placed(root, "10.1.0.1", {0, 6}).cpus == (6,)
    place = placed(root, "10.1.0.1", {0, 1})
    assert place.cpus == ()
    assert place.why == "ens1 is at NUMA node 1, whose CPUs farline may not use there"


def test_with_one_numa_node_nothing_is_placed(tmp_path: Path) -> None:
    root = tree(tmp_path, {f"{CPU}/online": "0-7", f"{NET}/ens0/device/numa_node": "0"})
    assert placed(root, "10.0.0.1") == StreamPlace((), "it has one NUMA node")


def test_devices_are_found_below_others_also_in_a_circle(tmp_path: Path) -> None:
    root = tree(tmp_path, {**FILES, f"{NET}/a/lower_b/is": "", f"{NET}/b/lower_a/is": ""})
    assert devices_below("ens1", root) == ("ens1",)
    assert devices_below("bond0", root) == ("ens0", "ens1")
    assert devices_below("a", root) == devices_below("none", root) == ()


def test_the_interface_is_that_of_the_own_address_or_the_one_that_leads_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path, {**FILES, f"{NET}/lo/device/numa_node": "1"})
    monkeypatch.setattr(stream_places, "host_layout", lambda: host_layout(root))
    monkeypatch.setattr(stream_places, "devices_below", lambda name, _: devices_below(name, root))
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: set(ALL))
    here = StreamPlace((4, 5, 6, 7), "lo is at NUMA node 1")
    assert stream_place({"own": "127.0.0.1", "towards": "192.0.2.1"}) == here
    assert stream_place({"own": "no such name.", "towards": "127.0.0.1"}) == here
    assert stream_place({}).cpus == ()
    answer = NodeLook().answer({"place": {"towards": "127.0.0.1"}})
    assert answer == {"place": {"cpus": [4, 5, 6, 7], "why": "lo is at NUMA node 1"}}
