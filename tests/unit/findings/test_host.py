"""Host findings against stated paths: limits, mends, and what is not known."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.findings.host import findings, judged_interfaces
from farline.findings.host_finding import SEVERITIES, HostFinding, StatedPath, round_up
from farline.spec._types import HostFacts

LONG = StatedPath(10_000_000_000, 0.1)
SHORT = StatedPath(100_000_000, 0.001)

GOOD: HostFacts = {
    "hostname": "node",
    "kernel": "6.12.1",
    "operating_system": "An OS",
    "architecture": "x86_64",
    "cpu": {
        "model": "A CPU",
        "online": 8,
        "governor": "performance",
        "numa_nodes": 1,
        "virtualised": False,
    },
    "memory_bytes": 1 << 36,
    "sysctls": {
        "net.core.default_qdisc": "fq",
        "net.core.netdev_max_backlog": "250000",
        "net.core.optmem_max": "1048576",
        "net.core.rmem_max": "2147483647",
        "net.core.wmem_max": "2147483647",
        "net.ipv4.tcp_adv_win_scale": "1",
        "net.ipv4.tcp_congestion_control": "cubic",
        "net.ipv4.tcp_mem": "1000000 2000000 3000000",
        "net.ipv4.tcp_moderate_rcvbuf": "1",
        "net.ipv4.tcp_mtu_probing": "1",
        "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_rmem": "4096 131072 536870912",
        "net.ipv4.tcp_sack": "1",
        "net.ipv4.tcp_slow_start_after_idle": "0",
        "net.ipv4.tcp_timestamps": "1",
        "net.ipv4.tcp_window_scaling": "1",
        "net.ipv4.tcp_wmem": "4096 16384 536870912",
    },
    "congestion_controls": ["reno", "cubic", "bbr", "htcp"],
    "allowed_congestion_controls": ["reno", "cubic", "bbr", "htcp"],
    "interfaces": [
        {
            "name": "eth0",
            "addresses": ["192.0.2.1"],
            "mtu_bytes": 9000,
            "up": True,
            "driver": "mlx5_core",
            "speed_bps": 100_000_000_000,
            "numa_node": 0,
            "qdisc": "fq",
            "tx_queue_packets": 1000,
            "offloads": {
                "rx-checksumming": True,
                "tx-checksumming": True,
                "scatter-gather": True,
                "tcp-segmentation-offload": True,
                "generic-segmentation-offload": True,
                "generic-receive-offload": True,
                "large-receive-offload": False,
            },
        }
    ],
    "clock_source": "tsc",
}


def host(changes: dict[str, Any]) -> HostFacts:
    """The good host with some facts changed, by a dotted path of keys or a sysctl's name."""
    facts: Any = deepcopy(GOOD)
    for key, value in changes.items():
        if key.startswith("net."):
            facts["sysctls"][key] = value
        elif key.startswith("eth0."):
            facts["interfaces"][0][key.removeprefix("eth0.")] = value
        elif key.startswith("cpu."):
            facts["cpu"][key.removeprefix("cpu.")] = value
        else:
            facts[key] = value
    checked: HostFacts = facts
    return checked


def worse(facts: HostFacts, path: StatedPath = LONG, **given: Any) -> list[HostFinding]:
    """Findings that are not ok."""
    return [item for item in findings(facts, path, **given) if item.severity != "ok"]


def test_a_tuned_host_has_nothing_to_mend() -> None:
    found = findings(GOOD, LONG, memory_copy_bps=1e11)
    assert [item for item in found if item.severity != "ok"] == []
    assert {"net.ipv4.tcp_rmem", "eth0", "memory", "CPU governor"} <= {
        item.subject for item in found
    }


@pytest.mark.parametrize(
    ("changes", "severity", "subject", "command"),
    [
        (
            {"net.ipv4.tcp_rmem": "4096 131072 6291456"},
            "bad",
            "net.ipv4.tcp_rmem",
            'sysctl -w net.ipv4.tcp_rmem="4096 131072 268435456"',
        ),
        (
            {"net.ipv4.tcp_wmem": "4096 16384 4194304"},
            "bad",
            "net.ipv4.tcp_wmem",
            'sysctl -w net.ipv4.tcp_wmem="4096 16384 268435456"',
        ),
        (
            {"net.ipv4.tcp_wmem": "4096 16384 134217728"},
            "warn",
            "net.ipv4.tcp_wmem",
            'sysctl -w net.ipv4.tcp_wmem="4096 16384 268435456"',
        ),
        (
            {"net.core.rmem_max": "212992"},
            "warn",
            "net.core.rmem_max",
            "sysctl -w net.core.rmem_max=134217728",
        ),
        (
            {"net.core.wmem_max": "212992"},
            "warn",
            "net.core.wmem_max",
            "sysctl -w net.core.wmem_max=134217728",
        ),
        (
            {"net.ipv4.tcp_mem": "1000 2000 3000"},
            "bad",
            "net.ipv4.tcp_mem",
            'sysctl -w net.ipv4.tcp_mem="49152 65536 98304"',
        ),
        (
            {"net.ipv4.tcp_moderate_rcvbuf": "0"},
            "bad",
            "net.ipv4.tcp_moderate_rcvbuf",
            "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1",
        ),
        (
            {"net.core.optmem_max": "20480"},
            "warn",
            "net.core.optmem_max",
            "sysctl -w net.core.optmem_max=1048576",
        ),
        (
            {"net.ipv4.tcp_window_scaling": "0"},
            "bad",
            "net.ipv4.tcp_window_scaling",
            "sysctl -w net.ipv4.tcp_window_scaling=1",
        ),
        ({"net.ipv4.tcp_sack": "0"}, "bad", "net.ipv4.tcp_sack", "sysctl -w net.ipv4.tcp_sack=1"),
        (
            {"net.ipv4.tcp_timestamps": "0"},
            "bad",
            "net.ipv4.tcp_timestamps",
            "sysctl -w net.ipv4.tcp_timestamps=1",
        ),
        (
            {"net.ipv4.tcp_mtu_probing": "0"},
            "warn",
            "net.ipv4.tcp_mtu_probing",
            "sysctl -w net.ipv4.tcp_mtu_probing=1",
        ),
        (
            {"net.ipv4.tcp_slow_start_after_idle": "1"},
            "warn",
            "net.ipv4.tcp_slow_start_after_idle",
            "sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
        ),
        (
            {"net.ipv4.tcp_no_metrics_save": "0"},
            "warn",
            "net.ipv4.tcp_no_metrics_save",
            "sysctl -w net.ipv4.tcp_no_metrics_save=1",
        ),
        (
            {"net.core.netdev_max_backlog": "100"},
            "warn",
            "net.core.netdev_max_backlog",
            "sysctl -w net.core.netdev_max_backlog=695",
        ),
        (
            {
                "congestion_controls": ["reno", "cubic"],
                "allowed_congestion_controls": ["reno", "cubic"],
            },
            "warn",
            "congestion control",
            "modprobe -a tcp_bbr tcp_htcp",
        ),
        (
            {"allowed_congestion_controls": ["reno", "cubic", "htcp"]},
            "warn",
            "net.ipv4.tcp_allowed_congestion_control",
            'sysctl -w net.ipv4.tcp_allowed_congestion_control="reno cubic bbr htcp"',
        ),
        ({"eth0.mtu_bytes": 1500}, "warn", "eth0", "ip link set dev eth0 mtu 9000"),
        ({"eth0.mtu_bytes": 1400}, "warn", "eth0", "ip link set dev eth0 mtu 1500"),
        ({"eth0.speed_bps": 1_000_000_000}, "bad", "eth0", "ethtool eth0"),
        (
            {
                "eth0.offloads": {
                    "tcp-segmentation-offload": False,
                    "generic-receive-offload": False,
                }
            },
            "warn",
            "eth0",
            "ethtool -K eth0 tso on gro on",
        ),
        ({"eth0.qdisc": "pfifo_fast", "eth0.tx_queue_packets": 10_000}, "warn", "eth0",
         "tc qdisc replace dev eth0 root fq"),
        (
            {"eth0.qdisc": "mq", "net.core.default_qdisc": "pfifo_fast"},
            "warn",
            "eth0",
            "sysctl -w net.core.default_qdisc=fq && tc qdisc replace dev eth0 root mq",
        ),
        (
            {"cpu.numa_nodes": 2, "eth0.numa_node": 1},
            "warn",
            "eth0",
            "numactl --cpunodebind=1 --membind=1 farline probe HOST",
        ),
        (
            {"cpu.governor": "powersave"},
            "warn",
            "CPU governor",
            "cpupower frequency-set -g performance",
        ),
        ({"cpu.virtualised": True}, "warn", "virtual machine", None),
        ({"clock_source": "hpet"}, "warn", "clock source", None),
    ],
)  # fmt: skip
def test_each_limit_is_found_alone_with_its_mend(
    changes: dict[str, Any], severity: str, subject: str, command: str | None
) -> None:
    (found,) = worse(host(changes))
    assert (found.severity, found.subject) == (severity, subject)
    assert found.why and found.command
    assert command is None or found.command == command


def test_a_fifo_at_high_rate_needs_a_long_queue() -> None:
    found = worse(host({"eth0.qdisc": "pfifo_fast"}))
    assert [item.command for item in found] == [
        "tc qdisc replace dev eth0 root fq",
        "ip link set dev eth0 txqueuelen 10000",
    ]


def test_a_mended_host_is_well() -> None:
    """Every sysctl command, applied to the facts, makes its own finding go away."""
    bad = {
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.ipv4.tcp_wmem": "4096 16384 4194304",
        "net.ipv4.tcp_mem": "1000 2000 3000",
        "net.core.rmem_max": "212992",
        "net.core.wmem_max": "212992",
        "net.core.netdev_max_backlog": "100",
        "net.core.optmem_max": "20480",
    }
    mended = dict(bad)
    for item in worse(host(bad)):
        match = re.fullmatch(r'sysctl -w ([\w.]+)="?([\d ]+)"?', item.command)
        assert match is not None, item.command
        mended[match[1]] = match[2]
    assert worse(host(mended)) == []


def test_streams_share_the_product() -> None:
    facts = host({"net.ipv4.tcp_rmem": "4096 131072 67108864"})
    assert [item.subject for item in worse(facts)] == ["net.ipv4.tcp_rmem"]
    assert worse(facts, StatedPath(10_000_000_000, 0.1, streams=4)) == []


def test_the_bound_of_a_small_window_is_named() -> None:
    (found,) = worse(host({"net.ipv4.tcp_rmem": "4096 131072 2500000"}))
    assert "window up to 1.19 MiB" in found.what
    assert "each stream needs 119 MiB; over 100 ms this allows 100 Mbit/s per stream" in found.why


@pytest.mark.parametrize(
    ("kernel", "scale", "fits"),
    [("6.12.1", "-2", True), ("5.10.0", "-2", False), ("5.10.0", "2", True), ("5.10.0", "1", True)],
)
def test_older_kernels_divide_the_receive_buffer_by_a_parameter(
    kernel: str, scale: str, fits: bool
) -> None:
    facts = host({"kernel": kernel, "net.ipv4.tcp_adv_win_scale": scale,
                  "net.ipv4.tcp_rmem": "4096 131072 268435456"})  # fmt: skip
    assert ("net.ipv4.tcp_rmem" not in [item.subject for item in worse(facts)]) is fits


def test_what_a_short_path_does_not_need_is_not_asked_for() -> None:
    stock = {
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.ipv4.tcp_wmem": "4096 16384 4194304",
        "net.core.rmem_max": "212992",
        "net.core.wmem_max": "212992",
        "net.core.netdev_max_backlog": "1000",
        "eth0.mtu_bytes": 1500,
        "net.ipv4.tcp_mtu_probing": "0",
        "eth0.speed_bps": 1_000_000_000,
    }
    assert worse(host(stock), SHORT) == []


@pytest.mark.parametrize(
    ("copy_bps", "severity"), [(9e9, "bad"), (20e9, "warn"), (41e9, "ok"), (None, None)]
)
def test_memory_against_the_rate(copy_bps: float | None, severity: str | None) -> None:
    found = [
        item for item in findings(GOOD, LONG, memory_copy_bps=copy_bps) if item.subject == "memory"
    ]
    assert [item.severity for item in found] == ([severity] if severity else [])


def test_loss_bounds_a_stream_as_mathis_says() -> None:
    path = StatedPath(1_000_000_000, 0.1, streams=1, loss=1e-4)
    (found,) = [
        item for item in worse(host({"eth0.mtu_bytes": 1512}), path) if item.subject == "loss"
    ]
    assert "14.3 Mbit/s" in found.what
    assert found.command == "farline probe HOST -P 70"
    enough = StatedPath(1_000_000_000, 0.1, streams=70, loss=1e-4)
    assert "loss" not in [item.subject for item in worse(host({"eth0.mtu_bytes": 1512}), enough)]


def test_losses_do_not_limit_bbr_where_it_is_the_default() -> None:
    facts = host({"net.ipv4.tcp_congestion_control": "bbr"})
    few = StatedPath(1_000_000_000, 0.1, loss=1e-4)
    assert "loss" not in [item.subject for item in worse(facts, few)]
    (found,) = [item for item in findings(facts, few) if item.subject == "loss"]
    assert found.why == "bbr, the default here, is not limited by such losses"
    many = StatedPath(1_000_000_000, 0.1, loss=0.1)
    assert "loss" in [item.subject for item in worse(facts, many)]


def test_more_streams_than_processors() -> None:
    (found,) = worse(GOOD, StatedPath(10_000_000_000, 0.1, streams=9))
    assert (found.subject, found.command) == ("CPUs", "farline probe HOST -P 8")


def test_a_host_that_does_not_say_how_many_processors_it_has_is_not_told_to_use_none() -> None:
    subjects = [one.subject for one in findings(host({"cpu.online": 0}), LONG)]
    assert subjects and "CPUs" not in subjects


def test_what_is_not_known_is_not_judged() -> None:
    facts = host({"clock_source": None, "cpu.governor": None, "interfaces": [], "sysctls": {}})
    (unread,) = worse(facts)
    assert (unread.subject, unread.what) == ("kernel settings", "none can be read here")
    broken = host({"net.ipv4.tcp_rmem": "a b", "net.ipv4.tcp_mem": "", "net.core.rmem_max": "x"})
    assert worse(broken) == []


def test_a_named_interface_is_judged_even_if_it_is_down() -> None:
    facts = host({"eth0.up": False})
    assert "eth0" not in [item.subject for item in findings(facts, LONG)]
    assert worse(facts, interface="eth0")[0].command == "ip link set dev eth0 up"
    with pytest.raises(ValueError, match="no interface 'eth9'; available: eth0"):
        judged_interfaces(facts, "eth9")


def test_worst_comes_first() -> None:
    found = findings(host({"net.ipv4.tcp_sack": "0", "cpu.governor": "powersave"}), LONG)
    ranks = [SEVERITIES.index(item.severity) for item in found]
    assert ranks == sorted(ranks) and ranks[0] == 0


@given(
    rate_bps=st.integers(1, 10**13),
    rtt_s=st.floats(1e-6, 10),
    streams=st.integers(1, 256),
    loss=st.none() | st.floats(1e-12, 0.5),
    maximum=st.integers(1, 2**31 - 1),
)
def test_any_path_is_judged_and_a_raised_buffer_suffices(
    rate_bps: int, rtt_s: float, streams: int, loss: float | None, maximum: int
) -> None:
    path = StatedPath(rate_bps, rtt_s, streams, loss)
    found = findings(host({"net.ipv4.tcp_rmem": f"1 2 {maximum}"}), path, memory_copy_bps=1e10)
    (buffer,) = [item for item in found if item.subject == "net.ipv4.tcp_rmem"]
    out_of_reach = "no number of streams up to 256 fills" in buffer.why
    assert buffer.command or buffer.severity == "ok" or (out_of_reach and maximum == 2**31 - 1)
    if proposed := re.search(r"-P (\d+)$", buffer.command):
        assert int(proposed[1]) <= 256
    if not out_of_reach and buffer.command.startswith("sysctl"):
        raised = re.search(r"(\d+)\"$", buffer.command)
        assert raised is not None
        again = findings(host({"net.ipv4.tcp_rmem": f"1 2 {raised[1]}"}), path)
        assert [item.severity for item in again if item.subject == "net.ipv4.tcp_rmem"] == ["ok"]


def test_beyond_the_largest_buffer_more_streams_share_the_path() -> None:
    path = StatedPath(400_000_000_000, 0.3, streams=2)
    found = worse(GOOD, path)
    (buffer,) = [item for item in found if item.subject == "net.ipv4.tcp_rmem"]
    assert buffer.command == "farline probe HOST -P 14"
    wider = StatedPath(400_000_000_000, 0.3, streams=14)
    (buffer,) = [item for item in worse(GOOD, wider) if item.subject == "net.ipv4.tcp_rmem"]
    assert buffer.command == 'sysctl -w net.ipv4.tcp_rmem="4096 131072 2147483647"'


@given(st.integers(1, 2**40))
def test_round_up_is_the_next_power_of_two(size: int) -> None:
    power = round_up(size)
    assert power >= size > power // 2 and power & (power - 1) == 0


def test_no_more_streams_are_proposed_than_a_run_can_have() -> None:
    path = StatedPath(10**13, 6.0)
    (buffer,) = [item for item in worse(GOOD, path) if item.subject == "net.ipv4.tcp_rmem"]
    assert buffer.command == 'sysctl -w net.ipv4.tcp_rmem="4096 131072 2147483647"'
    assert buffer.why.endswith("no number of streams up to 256 fills this path")
    largest = host({"net.ipv4.tcp_rmem": "4096 131072 2147483647"})
    (buffer,) = [item for item in worse(largest, path) if item.subject == "net.ipv4.tcp_rmem"]
    assert buffer.command == ""
