"""What a user can rely on inside a testbed's hosts: names, commands, limits, distances."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from farline.errors import SpecError
from farline.testbeds import Host, Testbed, load
from farline.testbeds.fixture import MakeBed
from tests.netns.conftest import Ending, Sleeper
from tests.support import round_trips

pytestmark = pytest.mark.netns

ROUND_TRIPS = Path(round_trips.__file__)
TWO_HOSTS = """
name = "limits"
hosts = [{ name = "a" }, { name = "b" }]
links = [{ name = "l", a = "a", b = "b" }]
[defaults.host]
"""


def measure(host: Host, *addresses: str, count: int = 8) -> list[float | None]:
    """Shortest round-trip times from a host, in seconds."""
    command = [sys.executable, "-S", str(ROUND_TRIPS), str(count), *addresses]
    done = host.run(command, timeout=60, check=True)
    times: list[float | None] = json.loads(done.stdout)
    return times


@pytest.mark.alone
@pytest.mark.parametrize(
    ("preset", "rtt_s"), [("long-path", 0.00959), ("chicago-amsterdam", 0.110)]
)
@pytest.mark.parametrize("version", [4, 6])
def test_the_round_trip_is_the_stated_one(
    testbed: MakeBed, preset: str, rtt_s: float, version: int
) -> None:
    bed = testbed(preset)
    near, far = bed.hosts.values()
    addresses = far.addresses if version == 4 else far.addresses6
    [measured] = measure(near, *addresses)
    assert measured is not None
    assert rtt_s <= measured < rtt_s + 1e-3
    assert bed.path(near.name, far.name).rtt_s == pytest.approx(rtt_s, abs=1e-9)


@pytest.mark.alone
def test_all_28_round_trips_of_the_seven_sites(testbed: MakeBed) -> None:
    """At 100 Mb/s, so that the links need little memory: the rate plays no part in these."""
    topology: Any = load("seven-sites")
    for link in topology["links"]:
        link["forward"]["rate_bps"] = 100_000_000
    bed = testbed(topology)
    with ThreadPoolExecutor(len(bed.hosts)) as pool:
        found = list(pool.map(partial(off_by_s, bed, topology), bed.hosts.values()))
    errors_s = {name: error_s for part in found for name, error_s in part.items()}
    assert len(errors_s) == 28
    assert {name: error_s for name, error_s in errors_s.items() if not 0 <= error_s < 1e-3} == {}


def off_by_s(bed: Testbed, topology: Any, host: Host) -> dict[str, float]:
    """By how much the shortest round trip over each link that begins at a host is too long.

    A busy machine makes some late: an address gets more tries until one is right.
    """
    errors_s = {}
    for link in topology["links"]:
        if link["a"] == host.name:
            address = bed.address(link["b"], seen_from=host.name)
            stated_s = 2 * link["forward"]["delay_s"]
            for count in (2, 8, 16):
                [measured] = measure(host, address, count=count)
                errors_s[link["name"]] = (measured or 3600) - stated_s
                if errors_s[link["name"]] < 1e-3:
                    break
    return errors_s


def test_names_lead_to_the_nearest_address(testbed: MakeBed) -> None:
    """In a triangle each host has two addresses; only one is in reach of each other host."""
    bed = testbed(
        'name = "triangle"\nhosts = [{ name = "a" }, { name = "b" }, { name = "c" }]\n'
        'links = [{ name = "ab", a = "a", b = "b" }, { name = "bc", a = "b", b = "c" },'
        ' { name = "ac", a = "a", b = "c" }]\n'
    )
    for near in "ab":
        named = bed.hosts[near].run(["getent", "ahostsv4", "c"], check=True).stdout.split()[0]
        assert named == bed.address("c", seen_from=near)
        assert measure(bed.hosts[near], named, count=1) != [None]
    assert bed.hosts["a"].run(["hostname"]).stdout.strip() == "a"
    assert bed.address("c", seen_from="a") != bed.address("c", seen_from="b")


def test_a_command_is_run_as_if_it_were_outside(
    testbed: MakeBed, tmp_path: Path, sleeper: Sleeper
) -> None:
    host = testbed("back-to-back").hosts["client"]
    assert host.run(["sh", "-c", "exit 3"]).returncode == 3
    assert host.run(["farline-no-such-program"]).returncode == 127
    assert host.run(["pwd"], cwd=tmp_path).stdout.strip() == str(tmp_path)
    assert host.run(["pwd"]).stdout.strip() == str(Path.cwd())
    assert host.run(["cat"], input="passed on\n").stdout == "passed on\n"
    (tmp_path / "a b").write_text("kept apart", encoding="utf-8")
    assert host.run(["cat", "a b"], cwd=tmp_path).stdout == "kept apart"
    assert host.run("echo one two | wc -w").stdout.strip() == "2", "a text is for the shell"
    process = sleeper(host)
    assert host.pids() == [process.pid], "the program is the process that was started"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=5) == -signal.SIGTERM
    shown = host.run(["sh", "-c", "echo $FARLINE_TESTBED $FARLINE_TESTBED_HOST"]).stdout.split()
    assert shown == [host.bed, "client"]


def test_settings_of_a_host_are_its_own(testbed: MakeBed) -> None:
    text = TWO_HOSTS + 'sysctls = { "net.ipv4.tcp_congestion_control" = "reno" }\n'
    outside = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="ascii")
    host = testbed(text).hosts["a"]
    shown = host.run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).stdout
    assert shown.strip() == "reno"
    window = host.run(["cat", "/proc/sys/net/ipv4/tcp_wmem"]).stdout.split()[2]
    assert int(window) >= 457_500_000, "10 Gb/s over 366 ms fit into one window"
    now = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="ascii")
    assert now == outside


@pytest.mark.alone
def test_a_cpu_limit_holds_for_all_programs_of_a_host(testbed: MakeBed, ending: Ending) -> None:
    host = testbed(TWO_HOSTS + "cpu_limit = 0.2\n").hosts["a"]
    busy = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass\n"
    busy += "print(time.process_time())"
    command = [sys.executable, "-c", busy]
    both = [ending(host.popen(command, stdout=subprocess.PIPE)) for _ in range(2)]
    used_s = sum(float(process.communicate(timeout=30)[0]) for process in both)
    assert used_s < 1.5 * 0.2 * 1.6, "a fifth of a CPU between them, and a period or two more"


def test_programs_use_the_cpus_of_their_host(testbed: MakeBed) -> None:
    cpu = max(os.sched_getaffinity(0))
    host = testbed(TWO_HOSTS + f"cpus = [{cpu}]\n").hosts["a"]
    shown = host.run([sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"]).stdout
    assert shown.strip() == f"{{{cpu}}}"


def test_the_emulator_keeps_off_the_cpus_of_its_hosts(testbed: MakeBed) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    topology = load(TWO_HOSTS)
    for host in topology["hosts"]:
        host["cpus"] = allowed[:1]
    keeper = testbed(topology).describe()["pid"]
    tasks = {
        int(task.name): (task / "comm").read_text().strip()
        for task in Path(f"/proc/{keeper}/task").iterdir()
    }
    [relay] = [thread for thread, name in tasks.items() if name == "farline-relay"]
    assert os.sched_getaffinity(relay) == set(allowed[1:] or allowed)
    assert os.sched_getaffinity(keeper) == set(allowed), "it would wait for the emulator"


def test_a_cpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(SpecError, match=r"hosts\.a\.cpus: no CPU 4095; allowed: 0"):
        Testbed.up(load(TWO_HOSTS + "cpus = [4095]\n"))


@pytest.mark.alone
def test_a_disk_limit_holds_for_direct_writes(testbed: MakeBed, tmp_path: Path) -> None:
    bed = testbed(TWO_HOSTS + 'disk_write_bytes_per_s = "4M"\n')
    command = ["dd", "if=/dev/zero", f"of={tmp_path / 'data'}", "bs=1M", "count=8", "oflag=direct"]
    begun = time.monotonic()
    bed.hosts["a"].run(command, check=True)
    assert time.monotonic() - begun > 1.5, "8 MiB at 4 MiB/s"
    if any("blkio" in group for group in bed.hosts["a"].groups):
        assert any("direct and synchronous" in line for line in bed.warnings)
