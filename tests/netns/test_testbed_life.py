"""What a user can rely on about a testbed's life: who ends it, what is left, what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from farline.errors import UnreachableError, UsageError
from farline.testbeds import (
    Testbed,
    control,
    list_beds,
    load,
    path_record,
    processes,
    state,
    take_down,
)
from farline.testbeds.fixture import MakeBed
from tests.netns.conftest import Ending, Sleeper
from tests.netns.test_testbed_hosts import measure

pytestmark = pytest.mark.netns

TCP_MEM = Path("/proc/sys/net/ipv4/tcp_mem")
LIMITED = """
name = "limited"
hosts = [{ name = "a", cpu_limit = 1 }, { name = "b" }]
links = [{ name = "l", a = "a", b = "b", rtt_s = "366ms", both = { rate_bps = "10Gbit" } }]
"""
OWNER = """
import sys
from farline.testbeds import Testbed, load
with Testbed.up(load("back-to-back"), name=sys.argv[1]) as bed:
    inside = ["sh", "-c", "echo $$; exec sleep 600"]
    bed.hosts["client"].popen(inside, start_new_session=True).wait()
"""


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Beds of this test alone, and nothing of them afterwards."""
    folder = tmp_path / ("a-folder-with-a-name-longer-than-a-socket-address-may-be-" + "x" * 60)
    monkeypatch.setenv(state.DIRECTORY_VARIABLE, str(folder))
    yield folder
    for info in list_beds():
        with suppress(ProcessLookupError):  # its owner may just have ended
            os.kill(info.pid, signal.SIGKILL)
        processes.wait_for_end(info.pid, 5)
    assert list_beds() == []


def comes_true(question: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Whether the answer becomes yes in the time allowed."""
    end = time.monotonic() + within_s
    while not question():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def has_ended(pid: int) -> bool:
    return processes.start_ticks(pid) is None


def test_a_bed_ends_with_its_block_whatever_happens_there(
    own_directory: Path, sleeper: Sleeper
) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        Testbed.up(load("back-to-back"), name="block") as bed,
    ):
        inside = sleeper(bed.hosts["client"])
        keeper = bed.describe()["pid"]
        raise ZeroDivisionError
    assert has_ended(keeper)
    assert inside.wait(timeout=5) == -signal.SIGTERM
    assert not (own_directory / "block").exists()


def test_a_bed_ends_when_its_owner_is_killed(own_directory: Path, ending: Ending) -> None:
    command = [sys.executable, "-c", OWNER, "owned"]
    owner = ending(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    assert owner.stdout is not None
    inside = int(owner.stdout.readline())
    assert not has_ended(inside)
    owner.kill()
    owner.wait()
    assert comes_true(lambda: has_ended(inside))
    assert comes_true(lambda: not (own_directory / "owned").exists())


def test_what_a_killed_keeper_leaves_is_removed_by_the_next_command(
    own_directory: Path, sleeper: Sleeper
) -> None:
    before = TCP_MEM.read_text(encoding="ascii")
    bed = Testbed.up(load(LIMITED), name="killed", keep=True)
    assert TCP_MEM.read_text(encoding="ascii") != before
    [group] = [Path(path) for path in bed.hosts["a"].groups]
    assert group.is_dir()
    inside = [sleeper(bed.hosts[name]) for name in "ab"]
    os.kill(bed.describe()["pid"], signal.SIGKILL)
    with pytest.raises(UnreachableError, match="testbed 'killed' is gone"):
        while True:
            bed.counters()
    bed.close()
    assert all(process.poll() is None for process in inside), "the kernel keeps what is in use"
    assert comes_true(lambda: list_beds() == [])
    assert [process.wait(timeout=5) for process in inside] == [-signal.SIGTERM] * 2
    assert not group.exists()
    assert TCP_MEM.read_text(encoding="ascii") == before
    assert [path.name for path in own_directory.iterdir()] == [".lock"]


def test_a_keeper_that_does_not_answer_is_taken_down(
    own_directory: Path, monkeypatch: pytest.MonkeyPatch, sleeper: Sleeper
) -> None:
    bed = Testbed.up(load("back-to-back"), name="stuck", keep=True)
    inside = sleeper(bed.hosts["client"])
    keeper = bed.describe()["pid"]
    bed.close()
    os.kill(keeper, signal.SIGSTOP)
    monkeypatch.setattr(control, "ANSWER_TIMEOUT_S", 0.3)
    with pytest.raises(
        UnreachableError, match="'stuck' does not answer: remove it with `farline testbed down"
    ):
        Testbed.attach("stuck")
    assert take_down("stuck") == "killed"
    assert has_ended(keeper)
    assert inside.wait(timeout=5) == -signal.SIGTERM
    assert take_down("stuck") is None
    assert not (own_directory / "stuck").exists()


def test_programs_outside_are_left_alone_when_namespace_numbers_come_again(
    ending: Ending,
) -> None:
    """A state that names the network of this very process, but no file that it sees."""
    own = processes.namespace_number(os.getpid(), "net")
    outside = ending(subprocess.Popen(["sleep", "600"], text=True))
    with state.locked() as folder:
        known = state.new(folder, "old", "back-to-back")
        dead = replace(known, pid=2**22 - 1, start_ticks=1, namespaces=(own or 0,))
        state.write(folder / "old", dead)
    assert list_beds() == []
    assert outside.poll() is None


def test_a_kept_bed_is_there_for_the_next_program(own_directory: Path) -> None:
    script = "from farline.testbeds import *\nTestbed.up(load('back-to-back'), 'kept', keep=True)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    [info] = list_beds()
    assert (info.name, info.topology, info.owned) == ("kept", "back-to-back", False)
    bed = Testbed.attach("kept")
    assert bed.hosts["client"].run(["true"]).returncode == 0
    with pytest.raises(UsageError, match="'kept' is already up"):
        Testbed.up(load("back-to-back"), name="kept")
    bed.down()
    assert list_beds() == []
    with pytest.raises(UnreachableError, match="'kept' is not up; no testbed is"):
        Testbed.attach("kept")


@pytest.mark.alone
def test_beds_do_not_know_each_other() -> None:
    """Same addresses, two networks; and both start at once."""
    topologies = [load("back-to-back", rtt_s=rtt_s) for rtt_s in (0.01, 0.03)]
    with ThreadPoolExecutor() as pool:
        beds = list(pool.map(Testbed.up, topologies))
    with beds[0], beds[1]:
        times = [measure(bed.hosts["client"], "10.77.0.2") for bed in beds]
        assert times[0][0] == pytest.approx(0.01, abs=2e-3)
        assert times[1][0] == pytest.approx(0.03, abs=2e-3)
        assert len({info.name for info in list_beds()}) == 2


@pytest.mark.alone
def test_links_change_while_the_bed_is_up(testbed: MakeBed) -> None:
    bed = testbed("back-to-back", rtt_s="10ms")
    client = bed.hosts["client"]
    bed.change(rtt_s="40ms")
    assert measure(client, "server")[0] == pytest.approx(0.04, abs=2e-3)
    assert bed.topology()["links"][0]["forward"]["delay_s"] == 0.02
    bed.cut()
    assert measure(client, "server", count=1) == [None]
    bed.restore()
    assert measure(client, "server")[0] == pytest.approx(0.04, abs=2e-3)
    with pytest.raises(UsageError, match="unknown field; allowed: rate_bps"):
        bed.change(speed="1Gbit")


@pytest.mark.alone
def test_the_path_of_a_run_is_recorded_with_its_stamp_and_samples(testbed: MakeBed) -> None:
    bed = testbed("long-path", rate_bps="1Gbit")
    row = bed.sample_row()
    with bed.stamped() as stamp:
        measure(bed.hosts["auckland"], "wellington", count=20)
    record = path_record(bed, "auckland", "wellington", stamp.value)
    assert record["rtt_s"] == pytest.approx(0.00959)
    assert record["rate_bps"] == 10**9
    assert stamp.value["unexplained_packets"] == 0
    assert stamp.value["deliveries"] >= 40
    # What leaves a link is counted at once, and sampled a little later.
    assert comes_true(lambda: sampled(bed, 0) == carried(bed) >= 40)
    assert set(bed.link_samples(row)["direction"].tolist()) == {0, 1}
    assert bed.lost_sample_rows == 0


def sampled(bed: Testbed, row: int) -> int:
    """Packets that have left the links by the samples from a row on."""
    return int(bed.link_samples(row)["out_packets"].sum())


def carried(bed: Testbed) -> int:
    """The same by the counters since the start."""
    return sum(link["out_packets"] for link in bed.counters()["links"])


def test_a_program_inside_finds_its_bed(testbed: MakeBed) -> None:
    bed = testbed("back-to-back")
    script = (
        "from farline.testbeds import current_bed\n"
        "import json\nhere = current_bed()\n"
        "print(json.dumps([here.bed.name, here.host, here.host_of('10.77.0.2')]))"
    )
    done = bed.hosts["client"].run([sys.executable, "-c", script], check=True)
    assert json.loads(done.stdout) == [bed.name, "client", "server"]


def test_what_a_link_carries_can_be_captured(testbed: MakeBed, tmp_path: Path) -> None:
    bed = testbed("back-to-back")
    bed.capture(tmp_path / "link.pcap")
    measure(bed.hosts["client"], "server", count=3)
    counted = bed.stop_capture()
    assert counted["written_packets"] > 0
    assert (counted["missed_packets"], counted["error"]) == (0, None)
    data = (tmp_path / "link.pcap").read_bytes()
    assert data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"), "pcap, little-endian"
    assert len(data) > 24 + 16 * counted["written_packets"]


def test_a_capture_ends_with_the_connection_that_asked_for_it(
    testbed: MakeBed, tmp_path: Path
) -> None:
    bed = testbed("back-to-back")
    other = Testbed.attach(bed.name)
    other.capture(tmp_path / "one.pcap")
    with pytest.raises(UsageError, match="is already being captured"):
        bed.capture(tmp_path / "two.pcap")
    other.close()
    assert comes_true(lambda: can_capture(bed, tmp_path / "two.pcap"))
    bed.stop_capture()


def can_capture(bed: Testbed, path: Path) -> bool:
    try:
        bed.capture(path)
    except UsageError:
        return False
    return True


@pytest.mark.alone
def test_a_link_that_is_made_longer_gets_more_tcp_memory() -> None:
    before = tcp_mem_pages()
    with Testbed.up(load("back-to-back", rate_bps="1Gbit", rtt_s="1ms")) as bed:
        short = tcp_mem_pages()
        bed.change(rate_bps="10Gbit", rtt_s="366ms")
        assert tcp_mem_pages() > short
    assert tcp_mem_pages() == before


def tcp_mem_pages() -> int:
    return int(TCP_MEM.read_text(encoding="ascii").split()[-1])
