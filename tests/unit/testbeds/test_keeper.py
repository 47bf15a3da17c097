"""A keeper and those who speak to it, over a real socket and an emulator that emulates nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from farline.cli.group import run
from farline.errors import SystemFailure, UnreachableError, UsageError
from farline.testbeds import (
    Testbed,
    caps,
    control,
    current_bed,
    keeper,
    kernel,
    path_record,
    processes,
    state,
)
from farline.testbeds import bed as bed_module
from farline.testbeds.history import History
from tests.support.fake_emulator import FakeEmulator

pytestmark = pytest.mark.unit

TOPOLOGY: dict[str, Any] = {
    "name": "two",
    "hosts": [{"name": "a", "cpus": [0]}, {"name": "b"}],
    "links": [{"name": "l", "a": "a", "b": "b", "forward": {}}],
}


TOKEN = "0123456789abcdef"


@dataclass
class Kept:
    """A keeper that serves in a thread, and its emulator."""

    folder: Path
    emulator: FakeEmulator
    keeper: keeper.Keeper
    thread: threading.Thread


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """A bed called `bed`; nothing in it touches this machine."""
    monkeypatch.setenv(state.DIRECTORY_VARIABLE, str(tmp_path / "beds"))
    monkeypatch.setenv(kernel.FILE_VARIABLE, str(tmp_path / "kernel" / "kernel.json"))
    monkeypatch.setattr(kernel, "settle", lambda *_: [])
    monkeypatch.setattr(keeper, "_POLL_S", 0.05)
    monkeypatch.setattr(processes, "end_inside", lambda *_: [])
    emulator = FakeEmulator(TOPOLOGY)
    monkeypatch.setattr(keeper, "start_emulator", lambda *_: emulator)
    with state.locked() as folder:
        state.new(folder, "bed", "two")
    folder = tmp_path / "beds" / "bed"
    start = keeper.Start(TOPOLOGY, 0, False, {"a": ["/sys/fs/cgroup/x"]}, ["a warning"])
    kept = keeper.Keeper(folder, start)
    service = keeper.Service(kept, control.listen(folder), None)
    thread = threading.Thread(target=service.run)
    thread.start()
    yield Kept(folder, emulator, kept, thread)
    service.end_soon()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_a_bed_is_what_its_keeper_says(kept: Kept) -> None:
    bed = Testbed.attach("bed")
    assert list(bed.hosts) == ["a", "b"]
    assert (bed.name, bed.main_link, bed.warnings) == ("bed", "l", ["a warning"])
    host = bed.hosts["a"]
    assert (host.address, host.addresses6, host.devices) == ("10.77.0.1", ["fd77::1"], ["eth0"])
    assert bed.address("b", seen_from="a") == "10.77.0.2"
    with pytest.raises(UsageError, match="'c' is not a host; allowed: a, b"):
        bed.address("c", seen_from="a")
    bed.close()


def test_limits_come_before_the_program_and_the_program_is_kept_whole(kept: Kept) -> None:
    bed = Testbed.attach("bed")
    command = bed.hosts["a"].command(["my tool", "$HOME", "--", ";"], cwd="/tmp")
    assert command[-4:] == ["my tool", "$HOME", "--", ";"]
    assert command.index("/sys/fs/cgroup/x") < command.index("taskset") < command.index("nsenter")
    assert "--chdir=/tmp" in command
    assert bed.hosts["b"].command(["true"])[0] == "nsenter"
    with pytest.raises(UsageError, match="no command"):
        bed.hosts["b"].command([])
    bed.close()


def test_changes_reach_the_emulator_with_their_units_read(kept: Kept) -> None:
    bed = Testbed.attach("bed")
    bed.change(rtt_s="20ms", loss="1%")
    bed.change("l", "reverse", rate_bps="1Gbit")
    bed.cut("l")
    assert kept.emulator.changes == [
        {"link": "l", "direction": "both", "change": {"loss": 0.01, "delay_s": 0.01}},
        {"link": "l", "direction": "reverse", "change": {"rate_bps": 10**9}},
        {"link": "l", "direction": "both", "change": {"up": False}},
    ]
    with pytest.raises(UsageError, match="rtt_s applies to both directions"):
        bed.change("l", "forward", rtt_s=1)
    with pytest.raises(UsageError, match=r"loss: 2 is out of range"):
        bed.change(loss=2.0)
    bed.close()


def test_samples_come_once_and_again_by_their_number(kept: Kept) -> None:
    bed = Testbed.attach("bed")
    first = bed.sample_row()
    bed.link_samples()
    again = bed.link_samples(first)
    assert again["start_us"].tolist() == list(range(first, first + len(again["start_us"])))
    own = bed.link_samples()
    assert own["start_us"][0] > first
    bed.close()


def test_a_path_has_its_stamp_and_topology(kept: Kept) -> None:
    bed = Testbed.attach("bed")
    with bed.stamped() as stamp, pytest.raises(UsageError, match="before its interval has ended"):
        _ = stamp.value
    record = path_record(bed, "a", "b", stamp.value)
    assert record["stamp"]["valid"] is True
    assert record["topology"] == TOPOLOGY
    assert (record["testbed"], record["rtt_s"], record["rate_bps"]) == ("bed", 0.05, None)
    path_record(bed, "a", "b", stamp.value, "10.77.0.2")
    assert kept.emulator.asked_paths == [("a", "b"), ("a", "10.77.0.2")]
    bed.close()


def test_a_program_inside_knows_its_bed_by_the_environment(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert current_bed() is None
    bed = Testbed.attach("bed")
    for name, value in bed.hosts["b"].environment.items():
        monkeypatch.setenv(name, value)
    here = current_bed()
    assert here is not None
    assert (here.bed.name, here.host) == ("bed", "b")
    assert [here.host_of(name) for name in ("a", "b-eth0", "fd77::1", "10.0.0.1")] == [
        "a",
        "b",
        "a",
        None,
    ]
    monkeypatch.delenv("FARLINE_TESTBED_HOST")
    with pytest.raises(UsageError, match="must be set together"):
        current_bed()
    here.bed.close()
    bed.close()


def test_a_keeper_that_is_told_to_stop_removes_what_it_left(kept: Kept) -> None:
    bed = Testbed.attach("bed")
    bed._control.ask("stop")
    kept.thread.join(timeout=10)
    assert kept.emulator.stopped
    assert not kept.folder.exists()
    with pytest.raises(UnreachableError, match="testbed 'bed' is gone"):
        bed.counters()
    bed.close()


def test_a_keeper_ends_its_own_bed_whoever_it_seems_to_be(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root of a user namespace it would look for its bed among root's."""
    monkeypatch.delenv(state.DIRECTORY_VARIABLE)
    monkeypatch.setattr(state, "directory", lambda: tmp_path / "roots")
    bed = Testbed(kept.folder)
    bed._control.ask("stop")
    kept.thread.join(timeout=10)
    bed.close()
    assert not kept.folder.exists()
    assert not (tmp_path / "roots").exists()


def test_a_change_that_needs_more_tcp_memory_gets_it(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[dict[str, int]] = []

    def settle(_: Path, needs: dict[str, int]) -> list[str]:
        settled.append(needs)
        return ["net.ipv4.tcp_mem stays as it is"]

    monkeypatch.setattr(kernel, "settle", settle)
    bed = Testbed.attach("bed")
    bed.change(loss=0.1)
    assert settled == [], "nothing more is needed"
    [link] = TOPOLOGY["links"]
    long = {"rate_bps": 10**10, "delay_s": 0.1, "queue": {}}
    kept.emulator.now = {**TOPOLOGY, "links": [{**link, "forward": long}]}
    needed = kernel.tcp_memory_bytes(kept.emulator.now)
    bed.change(rate_bps="10Gbit", rtt_s="200ms")
    bed.change(loss=0)
    assert settled == [{str(kept.folder): needed}], "once, and never lowered"
    noted = state.read(kept.folder)
    assert noted is not None
    assert noted.tcp_memory_bytes == needed
    assert bed.describe()["warnings"] == ["a warning", "net.ipv4.tcp_mem stays as it is"]
    bed.close()


def test_a_capture_ends_with_the_connection_that_asked_for_it(kept: Kept, tmp_path: Path) -> None:
    one, other = Testbed.attach("bed"), Testbed.attach("bed")
    one.capture(tmp_path / "link.pcap")
    other.close()
    assert one.counters() == {"links": []}
    assert kept.emulator.stopped_captures == []
    one.close()
    last = Testbed.attach("bed")
    assert becomes(lambda: kept.emulator.stopped_captures == ["l"])
    last.capture(tmp_path / "link.pcap")
    assert last.stop_capture()["written_packets"] == 1
    last.close()
    Testbed.attach("bed").close()
    assert kept.emulator.stopped_captures == ["l", "l"], "what was stopped is not stopped again"


def becomes(question: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Whether the answer becomes yes in the time allowed."""
    end = time.monotonic() + within_s
    while not question():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_down_sends_nothing_to_a_process_that_has_the_keepers_number_now(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper here is this process: a bed that takes it for another must not end it."""
    bed = Testbed.attach("bed")
    assert bed._keeper is not None
    bed.close()
    ticks = processes.start_ticks
    monkeypatch.setattr(processes, "start_ticks", lambda pid: (ticks(pid) or 0) + 1)
    later = Testbed(kept.folder)
    assert later._keeper is None
    later.down()
    assert becomes(lambda: not kept.thread.is_alive())


def test_a_bed_whose_connection_has_ended_is_asked_by_a_signal(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(processes.Process, "send", lambda _, number: sent.append(number))
    monkeypatch.setattr(processes, "TERM_GRACE_S", 0.01)
    monkeypatch.setattr(bed_module, "END_TIMEOUT_S", 0.01)
    bed = Testbed.attach("bed")
    bed.close()
    bed.down()
    assert sent == [signal.SIGTERM, signal.SIGKILL]


SILENT = """
import socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Silence]:
    """A bed `bed` whose keeper never answers."""
    monkeypatch.setenv(state.DIRECTORY_VARIABLE, str(tmp_path / "beds"))
    monkeypatch.setenv(kernel.FILE_VARIABLE, str(tmp_path / "kernel" / "kernel.json"))
    monkeypatch.setattr(processes, "end_inside", lambda *_: [])
    monkeypatch.setattr(control, "ANSWER_TIMEOUT_S", 0.1)
    with state.locked() as folder:
        known = state.new(folder, "bed", "two")
    command = [sys.executable, "-S", "-c", SILENT, control.SOCKET_NAME]
    with subprocess.Popen(command, cwd=folder / "bed", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ticks = processes.start_ticks(process.pid)
        assert ticks is not None
        state.write(folder / "bed", replace(known, pid=process.pid, start_ticks=ticks))
        yield Silence(folder / "bed", process)
        process.kill()


@dataclass
class Silence:
    """A bed that does not answer."""

    folder: Path
    process: subprocess.Popen[bytes]


def test_down_ends_a_bed_that_does_not_answer(
    silent: Silence, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["testbed", "down", "bed"]) == 0
    assert "did not answer, so it was killed" in capsys.readouterr().out
    assert processes.start_ticks(silent.process.pid) is None
    assert not silent.folder.exists()
    assert run(["testbed", "down", "bed"]) == 5
    assert "testbed 'bed' is not up" in capsys.readouterr().err


def test_a_state_that_others_may_have_written_ends_nobody(
    silent: Silence, capsys: pytest.CaptureFixture[str]
) -> None:
    silent.folder.parent.chmod(0o777)
    assert run(["testbed", "down", "bed"]) == SystemFailure.exit_code
    assert "others can write to it" in capsys.readouterr().err
    assert silent.process.poll() is None


def test_down_without_a_name_means_the_only_one_even_if_it_does_not_answer(
    silent: Silence, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["testbed", "down"]) == 0
    assert "testbed bed did not answer" in capsys.readouterr().out
    assert not silent.folder.exists()


@pytest.mark.parametrize("words", [["bed"], ["--all"], []])
def test_down_of_a_bed_whose_keeper_died_removes_what_it_left(
    silent: Silence, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    silent.process.kill()
    silent.process.wait()
    assert run(["testbed", "down", *words]) == 0
    said = capsys.readouterr().out
    assert said == "testbed bed had already ended; what it left was removed\n"
    assert not silent.folder.exists()


def test_down_of_all_goes_on_after_a_failure(
    silent: Silence, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.getpid()
    with state.locked() as folder:
        known = state.new(folder, "a-first", "two")
        ticks = processes.start_ticks(own) or 0
        state.write(folder / "a-first", replace(known, pid=own, start_ticks=ticks))
    end = bed_module.take_down

    def fail_first(name: str) -> bed_module.Ending | None:
        if name == "a-first":
            raise SystemFailure("a-first: no")
        return end(name)

    monkeypatch.setattr("farline.cli.testbed.take_down", fail_first)
    assert run(["testbed", "down", "--all"]) == SystemFailure.exit_code
    captured = capsys.readouterr()
    assert captured.err == "farline: a-first: no\n"
    assert captured.out.startswith("testbed bed did not answer")
    assert not silent.folder.exists()


def ask_raw(folder: Path, data: bytes) -> Any:
    """The answer to bytes as they are."""
    with socket.socket(socket.AF_UNIX) as raw, control._short_path(folder) as path:
        raw.settimeout(10)
        raw.connect(path)
        raw.sendall(data)
        return json.loads(raw.makefile().readline())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense\n", "; allowed: describe, change, mark"),
        (b"[1]\n", "unknown request"),
        (b'{"do": "explode"}\n', "unknown request"),
        (b'{"do": "stamp"}\n', "missing 1 required positional argument"),
        (b'{"do": "mark", "more": 1}\n', "unexpected keyword argument"),
    ],
)
def test_a_request_that_is_none_is_refused_and_the_bed_stays(
    kept: Kept, line: bytes, said: str
) -> None:
    answer = ask_raw(kept.folder, line)
    assert answer["failed"]["kind"] == "usage"
    assert said in answer["failed"]["message"]
    assert ask_raw(kept.folder, b'{"do": "mark"}\n') == {"ok": 7}


def test_a_line_without_end_is_cut_off(kept: Kept) -> None:
    with socket.socket(socket.AF_UNIX) as raw, control._short_path(kept.folder) as path:
        raw.settimeout(10)
        raw.connect(path)
        with pytest.raises(OSError):
            while True:
                raw.sendall(b"x" * 65536)
    assert ask_raw(kept.folder, b'{"do": "mark"}\n') == {"ok": 7}


def test_the_socket_is_for_its_user_alone(kept: Kept) -> None:
    assert (kept.folder / control.SOCKET_NAME).stat().st_mode & 0o777 == 0o600
    assert kept.folder.stat().st_mode & 0o777 == 0o700


def test_a_failed_emulator_is_told_and_the_bed_still_answers(kept: Kept) -> None:
    kept.emulator.broken = json.dumps({"kind": "system", "message": "out of memory"})
    bed = Testbed.attach("bed")
    assert bed.describe()["failure"] == {"kind": "system", "message": "out of memory"}
    bed.close()


def test_lines_are_whole_however_they_come() -> None:
    lines = control.LineReader(100)
    assert lines.feed(b"on") == []
    assert lines.feed(b"e\ntwo\nthr") == [b"one", b"two"]
    assert lines.feed(b"ee\n") == [b"three"]


def test_the_oldest_samples_are_forgotten_and_counted() -> None:
    history = History(rows_max=4)
    for first in range(0, 12, 2):
        column = b"".join(number.to_bytes(8, "little") for number in (first, first + 1))
        history.append(2, {"start_us": column})
    assert history.end == 12
    assert history.start == 8, "four rows and no more"
    answer = history.since(7)
    assert (answer["next"], answer["lost_rows"]) == (12, 1)
    assert history.since(9)["lost_rows"] == 0
    assert history.since(12)["columns"] == {"start_us": ""}


def test_who_asks_an_owner_that_has_gone_is_told() -> None:
    with pytest.raises(UsageError, match="the process that started it has already ended"):
        keeper._owner(2**22 - 1)
    assert keeper._owner(0) is None
    descriptor = keeper._owner(os.getppid())
    assert descriptor is not None
    os.close(descriptor)


@pytest.mark.parametrize(
    ("hosts", "own"),
    [
        ([[0], [0]], {1, 2}),
        ([[0], [1, 2]], {0, 1, 2}),
        ([[0], []], {0, 1, 2}),
        ([[], []], {0, 1, 2}),
    ],
)
def test_the_emulator_keeps_to_the_cpus_that_no_host_may_use(
    hosts: list[list[int]], own: set[int]
) -> None:
    given = [{"name": str(number), "cpus": cpus} for number, cpus in enumerate(hosts)]
    assert keeper.own_cpus(given, {0, 1, 2}) == own


def test_limits_become_lines_of_control_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    v2 = tmp_path / "unified"
    v2.mkdir()
    (v2 / "cgroup.controllers").write_text("cpu io memory\n", encoding="ascii")
    mounts.write_text(f"30 1 0:26 / {v2} rw - cgroup2 cgroup2 rw\n", encoding="ascii")
    monkeypatch.setattr(caps, "_MOUNTS", mounts)
    monkeypatch.setattr(caps, "_disks", lambda: ["254:0"])
    host = {"name": "a", "cpu_limit": 0.5, "disk_read_bytes_per_s": 4096}
    planned = caps.plan("bed", TOKEN, {"hosts": [host, {"name": "b"}]})
    assert set(planned) == {"a"}
    lines = [(item.file, item.line) for group in planned["a"].groups for item in group.settings]
    assert lines == [("cpu.max", "50000 100000"), ("io.max", "254:0 rbps=4096")]
    names = {group.path.name for group in planned["a"].groups}
    assert names == {f"farline-testbed.bed.{TOKEN}.a"}, "of this bed and no other of its name"
    mounts.write_text(f"30 1 0:26 / {v2} rw - cgroup cgroup rw,cpu\n", encoding="ascii")
    with pytest.raises(Exception, match=r"hosts\.a\.disk_read_bytes_per_s: this machine has no"):
        caps.plan("bed", TOKEN, {"hosts": [host]})
    [group] = caps.plan("bed", TOKEN, {"hosts": [{"name": "a", "cpu_limit": 2}]})["a"].groups
    assert group.settings[1] == caps.Setting("cpu.cfs_quota_us", "200000")
