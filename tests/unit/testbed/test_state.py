"""What beds leave on a machine, and its removal: with keepers that are dead or never were."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farline.errors import SystemFailure, UsageError
from farline.testbed import kernel, list_beds, needs, processes, state

pytestmark = pytest.mark.unit

DEAD_PID = 2**22 - 1


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Beds of this test alone; settings of the machine are a file of its own."""
    monkeypatch.setenv(state.DIRECTORY_VARIABLE, str(tmp_path / "beds"))
    sysctls = tmp_path / "sys" / "net"
    (sysctls / "ipv4").mkdir(parents=True)
    (sysctls / "core").mkdir()
    (sysctls / "ipv4" / "tcp_mem").write_text("10\t20\t30\n", encoding="ascii")
    (sysctls / "core" / "rmem_max").write_text("1000\n", encoding="ascii")
    monkeypatch.setattr(kernel, "_SYSCTLS", tmp_path / "sys")
    return tmp_path / "beds"


def tcp_mem(directory: Path) -> list[int]:
    text = (directory.parent / "sys/net/ipv4/tcp_mem").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def note(name: str, **changes: Any) -> state.BedState:
    """Writes down a bed."""
    with state.locked() as folder:
        known = replace(state.new(folder, name, "two"), **changes)
        state.write(folder / name, known)
        state.settle_kernel(folder)
    return known


def alive(name: str, **changes: Any) -> state.BedState:
    """Writes down a bed whose keeper is this process."""
    own = os.getpid()
    ticks = processes.start_ticks(own)
    return note(name, pid=own, start_ticks=ticks, **changes)


def test_a_bed_with_a_living_keeper_stays(directory: Path) -> None:
    alive("one")
    assert [info.name for info in list_beds()] == ["one"]
    assert (directory / "one").is_dir()


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": DEAD_PID, "start_ticks": 5},
        {"pid": os.getpid(), "start_ticks": 5},
        {"starter_pid": DEAD_PID},
        {"boot_id": "another", "pid": os.getpid()},
    ],
    ids=["dead", "number used again", "died while starting", "before the machine started"],
)
def test_a_bed_without_its_keeper_is_removed(directory: Path, changes: dict[str, Any]) -> None:
    group = directory.parent / "group"
    group.mkdir()
    note("one", cgroups=(str(group),), **changes)
    assert list_beds() == []
    assert not (directory / "one").exists()
    assert group.exists() == ("boot_id" in changes), "nothing is known across a start"


def test_a_folder_that_makes_no_sense_is_removed(directory: Path) -> None:
    for name, text in (("empty", ""), ("list", "[]"), ("other", '{"name": 1}')):
        (directory / name).mkdir(parents=True)
        (directory / name / "state.json").write_text(text, encoding="ascii")
    (directory / "bare").mkdir()
    assert list_beds() == []
    assert [path.name for path in directory.iterdir()] == [".lock"]


def test_settings_are_raised_for_the_sum_and_restored_after_the_last(directory: Path) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    note("one", pid=DEAD_PID, tcp_memory_bytes=1000 * page)
    assert tcp_mem(directory) == [750, 1000, 1250]
    with state.locked() as folder:
        second = replace(
            state.new(folder, "two", "two"), tcp_memory_bytes=3000 * page, start_ticks=0
        )
        state.write(folder / "two", second)
        state.settle_kernel(folder)
    assert tcp_mem(directory) == [3000, 4000, 5000]
    assert [info.name for info in list_beds()] == [], "two is starting, one is gone"
    assert tcp_mem(directory) == [2250, 3000, 3750]
    with state.locked() as folder:
        state.remove(folder / "two", second, held=False)
        state.settle_kernel(folder)
    assert tcp_mem(directory) == [10, 20, 30]
    assert not (directory / "kernel.json").exists()


def test_a_setting_that_somebody_else_has_changed_stays(directory: Path) -> None:
    note("one", pid=DEAD_PID, tcp_memory_bytes=1000 * os.sysconf("SC_PAGE_SIZE"))
    (directory.parent / "sys/net/ipv4/tcp_mem").write_text("7 8 9", encoding="ascii")
    list_beds()
    assert tcp_mem(directory) == [7, 8, 9]


def test_settings_are_never_lowered(directory: Path) -> None:
    note("one", pid=DEAD_PID, tcp_memory_bytes=10)
    assert tcp_mem(directory) == [10, 20, 30]


def test_a_setting_that_cannot_be_raised_is_a_warning(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    with state.locked() as folder:
        known = replace(state.new(folder, "one", "two"), tcp_memory_bytes=1 << 30)
        state.write(folder / "one", known)
        write = Path.write_text
        monkeypatch.setattr(
            Path,
            "write_text",
            lambda path, *args, **more: (refuse if "sys/net" in str(path) else write)(
                path, *args, **more
            ),
        )
        warnings = state.settle_kernel(folder)
    assert warnings[-1].startswith("net.ipv4.tcp_mem stays as it is (Permission denied); long")


def test_a_long_fast_path_needs_several_times_what_is_under_way() -> None:
    pipe = {"rate_bps": 10**10, "delay_s": 0.183, "queue": {}}
    needed = kernel.tcp_memory_bytes({"links": [{"forward": pipe}]})
    assert 4 * 915_000_000 < needed < 16 * 915_000_000
    assert kernel.tcp_memory_bytes({"links": [{"forward": {"delay_s": 0.1}}]}) == 0


@pytest.mark.parametrize("name", ["", "-a", "A", "a b", "../x", "a" * 33])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="allowed are 1 to 32 of a-z, 0-9 and -"):
        state.check_name(name)


def test_only_one_at_a_time_changes_what_is_written_down() -> None:
    order = []

    def second() -> None:
        with state.locked():
            order.append("second")

    with state.locked():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(timeout=0.2)
        order.append("first")
    thread.join(timeout=10)
    assert order == ["first", "second"]


def test_without_a_place_the_user_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(state.DIRECTORY_VARIABLE)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemFailure, match="XDG_RUNTIME_DIR nor FARLINE_TESTBED_DIR"):
        state.directory()


def test_a_zombie_is_dead_and_a_number_used_again_is_another() -> None:
    child = subprocess.Popen(["true"])
    assert processes.wait_for_end(child.pid, 10)
    assert processes.start_ticks(child.pid) is None
    own = processes.start_ticks(os.getpid())
    assert own is not None
    assert processes.is_alive(os.getpid(), own)
    assert not processes.is_alive(os.getpid(), own + 1)
    child.wait()


def failing(error: OSError) -> Callable[..., int]:
    def call(*_: object) -> int:
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied"), "run as root, or let this user read and write"),
        (FileNotFoundError(2, "No such file or directory"), "load the module tun"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, error: OSError, said: str
) -> None:
    monkeypatch.setattr(needs, "_why_no_namespaces", lambda: None)
    monkeypatch.setattr(os, "open", failing(error))
    with pytest.raises(SystemFailure, match=said) as refused:
        needs.check()
    assert "/dev/net/tun" in refused.value.message
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert needs.missing() == "nsenter is not installed: it comes with util-linux"
