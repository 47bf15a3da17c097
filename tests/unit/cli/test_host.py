"""`farline host`: text that fits a terminal, a document, and refusals."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner, Result

from farline.cli import host as cli_host
from farline.spec._types import HostFacts
from farline.tools import native

FACTS: HostFacts = {
    "hostname": "node-with-a-long-name.example.org",
    "kernel": "6.12.1-with-a-long-suffix-of-a-distribution",
    "operating_system": "An Operating System 12 (with a name)",
    "architecture": "x86_64",
    "cpu": {
        "model": "A Processor With a Long Name v4 @ 2.40GHz",
        "online": 4,
        "governor": "powersave",
        "numa_nodes": 2,
        "virtualised": True,
    },
    "memory_bytes": 1 << 36,
    "sysctls": {
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.ipv4.tcp_wmem": "4096 16384 4194304",
        "net.ipv4.tcp_mem": "1000 2000 3000",
        "net.ipv4.tcp_sack": "1",
    },
    "congestion_controls": ["reno", "cubic"],
    "allowed_congestion_controls": ["reno"],
    "interfaces": [
        {
            "name": "enp129s0f0np0",
            "addresses": ["192.0.2.1"],
            "mtu_bytes": 1500,
            "up": True,
            "driver": "ice",
            "speed_bps": 25_000_000_000,
            "numa_node": 1,
            "qdisc": "mq",
            "tx_queue_packets": 1000,
            "offloads": {"tcp-segmentation-offload": False},
        }
    ],
    "clock_source": "tsc",
}


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """A host that is always the same; gives what was measured."""
    asked: list[tuple[int, float]] = []

    def measure(threads: int, seconds: float) -> float:
        asked.append((threads, seconds))
        return 1.5e11

    monkeypatch.setattr(native, "host_facts", lambda: FACTS)
    monkeypatch.setattr(native, "memory_copy_bps", measure)
    return asked


def run(*arguments: str) -> Result:
    """Runs the command in this process."""
    return CliRunner().invoke(cli_host.command, list(arguments), standalone_mode=True)


def test_the_text_fits_eighty_columns_and_names_every_mend() -> None:
    result = run("--rate", "100Gbit", "--rtt", "50ms", "-P", "8")
    assert result.exit_code == 0, result.output
    assert max(len(line) for line in result.output.splitlines()) <= 80
    assert (
        "Path: 100 Gbit/s over 50.0 ms, 8 streams; bandwidth-delay product 596 MiB" in result.output
    )
    for command in (
        'sysctl -w net.ipv4.tcp_rmem="4096 131072 268435456"',
        "ethtool -K enp129s0f0np0 tso on",
        "cpupower frequency-set -g performance",
    ):
        assert command in result.output
    assert "blocking, " in result.output.splitlines()[-1]


def test_commands_are_on_lines_of_their_own() -> None:
    lines = [line.strip() for line in run().output.splitlines()]
    assert "cpupower frequency-set -g performance" in lines
    assert 'sysctl -w net.ipv4.tcp_rmem="4096 131072 268435456"' in lines


def test_the_document_holds_path_facts_and_findings() -> None:
    result = run("--json", "--rate", "1Gbit", "--rtt", "20ms", "--interface", "enp129s0f0np0")
    document: dict[str, Any] = json.loads(result.output)
    assert document["schema"] == 1
    assert document["path"]["bdp_bytes"] == 2_500_000
    assert document["host"] == FACTS
    assert document["memory_copy_bps"] == 1.5e11
    ranks = [("bad", "warn", "ok").index(finding["severity"]) for finding in document["findings"]]
    assert ranks == sorted(ranks) and document["findings"][0]["subject"] == "net.ipv4.tcp_wmem"


def test_memory_is_measured_with_a_thread_a_stream_unless_told_not_to(
    measured: list[tuple[int, float]],
) -> None:
    run("-P", "3")
    run("-P", "64")
    assert [threads for threads, _ in measured] == [3, 4]
    document = json.loads(run("--no-measure", "--json").output)
    assert len(measured) == 2 and document["memory_copy_bps"] is None
    assert "memory" not in {finding["subject"] for finding in document["findings"]}


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--rate", "fast"), "is not a rate"),
        (("--rate", "0"), "above 0"),
        (("--rtt", "0ms"), "above 0"),
        (("--rtt", "near"), "is not a duration"),
        (("--streams", "0"), "1<=x<=256"),
        (("--loss", "1"), "0<=x<1"),
        (("--interface", "eth9"), "no interface 'eth9'; available: enp129s0f0np0"),
    ],
)
def test_bad_input_says_what_is_allowed(arguments: tuple[str, ...], word: str) -> None:
    result = run(*arguments)
    assert result.exit_code != 0 and word in result.output


def test_sysctl_prints_a_file_that_sysctl_reads() -> None:
    result = run("--sysctl", "--rate", "10Gbit", "--rtt", "100ms")
    lines = [line for line in result.output.splitlines() if line]
    settings = [line for line in lines if not line.startswith("#")]
    assert result.exit_code == 0 and "/etc/sysctl.d/90-farline.conf" in lines[0]
    assert all(re.fullmatch(r"[a-z0-9_.]+ = [\w ]+", line) for line in settings)
    assert "net.ipv4.tcp_rmem = 4096 131072 268435456" in settings
    assert "net.ipv4.tcp_wmem = 4096 16384 268435456" in settings
    assert run("--sysctl", "--json").exit_code != 0


def test_a_kernel_that_tells_no_setting_is_not_called_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FACTS, "sysctls", {})
    assert "none can be read here" in " ".join(run().output.split())
    said = run("--sysctl").output
    assert "No kernel setting can be read here" in said and "Nothing needs" not in said


def test_a_control_without_a_module_is_had_as_a_bpf_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("farline.testbeds.congestion.has_module", lambda name: name == "tcp_bbr")
    lines = [line.strip() for line in run().output.splitlines()]
    assert "modprobe -a tcp_bbr; farline testbed cc load htcp" in lines


def test_larger_packets_come_with_a_warning_and_a_way_to_check() -> None:
    text = " ".join(run("--rate", "100Gbit").output.split())
    assert "mtu 9000" in text and "black hole" in text
    assert "ping -M do -s 8972 HOST" in text and "tracepath HOST" in text
