"""`farline host --map`: where processors and interfaces are, read from a tree like the kernel's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from farline.cli import host as cli_host
from farline.cli.host_map import map_lines
from farline.findings.host_map import map_document, placements
from farline.tools.host_layout import HostLayout, cpu_list, cpu_text, host_layout

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
NET = "sys/class/net"


def tree(root: Path, files: Mapping[str, str]) -> HostLayout:
    """The layout that these files tell of."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return host_layout(root)


def two_sockets(root: Path) -> HostLayout:
    """8 CPUs with two threads a core; a fast interface at node 1, a slow one nobody knows where."""
    siblings = {
        f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 4},{cpu % 4 + 4}"
        for cpu in range(8)
    }
    irqs = {f"proc/irq/{irq}/smp_affinity_list": cpus for irq, cpus in ((50, "2"), (51, "6"))}
    return tree(
        root,
        {
            f"{CPU}/online": "0-7",
            **siblings,
            **irqs,
            f"{NODE}/node0/cpulist": "0-1,4-5",
            f"{NODE}/node0/meminfo": "Node 0 MemTotal:       1024 kB",
            f"{NODE}/node0/distance": "10 21",
            f"{NODE}/node1/cpulist": "2-3,6-7",
            f"{NODE}/node1/distance": "21 10",
            f"{NET}/ens1/operstate": "up",
            f"{NET}/ens1/speed": "100000",
            f"{NET}/ens1/device/numa_node": "1",
            f"{NET}/ens1/device/msi_irqs/50": "msix",
            f"{NET}/ens1/device/msi_irqs/51": "msix",
            f"{NET}/ens1/queues/rx-0/rps_cpus": "0",
            f"{NET}/ens1/queues/rx-1/rps_cpus": "0",
            f"{NET}/eno1/operstate": "down",
            f"{NET}/eno1/speed": "-1",
            f"{NET}/eno1/device/numa_node": "-1",
            f"{NET}/lo/operstate": "unknown",
        },
    )


def test_streams_go_beside_the_interface_one_to_a_core_and_not_where_its_interrupts_are(
    tmp_path: Path,
) -> None:
    layout = two_sockets(tmp_path)
    (placement,) = placements(layout)
    # Node 1 has the cores (2, 6) and (3, 7); the interrupts are at the first.
    assert placement.nic == "ens1"
    assert placement.cpus == (3,)
    assert "node 1, beside it" in placement.why
    assert "interrupts (2,6)" in placement.why


def test_the_map_is_told_in_lines_and_as_a_document(tmp_path: Path) -> None:
    layout = two_sockets(tmp_path)
    assert list(map_lines(layout)) == [
        "2 NUMA nodes, 8 CPUs in 4 cores",
        "node 0: CPUs 0-1,4-5, 1.00 MiB of memory; distance 21 to node 1",
        "  eno1: down, speed unknown, driver unknown, 0 queues, interrupts unknown",
        "node 1: CPUs 2-3,6-7; distance 21 to node 0",
        "  ens1: up, 100 Gbit/s, driver unknown, 2 queues, interrupts on CPUs 2,6",
        "    streams: --client-cpus 3 (node 1, beside it, one of each core, without those of its "
        "interrupts (2,6))",
    ]
    document = map_document(layout)
    assert document["cores"] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert document["nodes"][0]["memory_bytes"] == 1 << 20
    assert [one["name"] for one in document["interfaces"]] == ["eno1", "ens1"]


def test_streams_are_shown_on_cpus_that_this_process_may_use(tmp_path: Path) -> None:
    layout = two_sockets(tmp_path)
    # As in a container or a job: of the quiet core (3, 7) its second thread alone.
    (placement,) = placements(layout, {0, 7})
    assert placement.cpus == (7,) and "that farline may use here" in placement.why
    lines = list(map_lines(layout, {0, 7}))
    assert "farline may use CPUs 0,7 here" in lines
    assert any("--client-cpus 7 (" in line for line in lines)
    assert map_document(layout, {0, 7})["allowed_cpus"] == [0, 7]
    # Where it may use none beside the interface, no CPUs are proposed.
    assert not any("--client-cpus" in line for line in map_lines(layout, {0}))


def test_where_interrupts_may_go_to_any_cpu_all_cores_are_taken(tmp_path: Path) -> None:
    layout = two_sockets(tmp_path)
    (tmp_path / "proc/irq/51/smp_affinity_list").write_text("0-7")
    (placement,) = placements(host_layout(tmp_path))
    assert placement.cpus == (2, 3)
    assert layout.cpus == tuple(range(8))


def test_a_host_that_says_nothing_has_one_node_with_all_its_cpus(tmp_path: Path) -> None:
    layout = tree(tmp_path, {f"{CPU}/online": "0-1"})
    assert [node.cpus for node in layout.nodes] == [(0, 1)]
    assert layout.siblings == ((0,), (1,))
    assert "no network interface has a device of its own here" in list(map_lines(layout))


@given(st.sets(st.integers(0, 300)))
def test_lists_of_cpus_are_read_as_they_are_written(cpus: set[int]) -> None:
    assert set(cpu_list(cpu_text(cpus))) == cpus


@pytest.mark.parametrize("text", ["", "x", "1-", "-1", "0-3,x"])
def test_what_is_no_list_has_no_cpus(text: str) -> None:
    assert cpu_list(text) == ()


def test_this_host_has_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(cli_host.command, ["--map", "--json"], catch_exceptions=False)
    document = json.loads(done.stdout)
    assert document["cpus"]
    assert sorted(cpu for core in document["cores"] for cpu in core) == document["cpus"]
    refused = CliRunner().invoke(cli_host.command, ["--map", "--sysctl"])
    assert refused.exit_code == 2
