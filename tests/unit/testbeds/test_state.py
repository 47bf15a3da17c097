"""What beds leave on a machine, and its removal: with keepers that are dead or never were."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farline.errors import SystemFailure, UsageError
from farline.testbeds import caps, kernel, list_beds, needs, processes, state, sweep, take_down

pytestmark = pytest.mark.unit

DEAD_PID = 2**22 - 1


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Beds of this test alone; settings of the machine are a file of its own."""
    monkeypatch.setenv(state.DIRECTORY_VARIABLE, str(tmp_path / "beds"))
    monkeypatch.setenv(kernel.FILE_VARIABLE, str(tmp_path / "kernel" / "kernel.json"))
    monkeypatch.setattr(caps, "_MOUNTS", tmp_path / "mountinfo")
    (tmp_path / "groups").mkdir()
    (tmp_path / "mountinfo").write_text(
        f"30 1 0:26 / {tmp_path / 'groups'} rw - cgroup2 cgroup2 rw\n", encoding="ascii"
    )
    sysctls = tmp_path / "sys" / "net"
    (sysctls / "ipv4").mkdir(parents=True)
    (sysctls / "core").mkdir()
    (sysctls / "ipv4" / "tcp_mem").write_text("10\t20\t30\n", encoding="ascii")
    (sysctls / "core" / "rmem_max").write_text("1000\n", encoding="ascii")
    monkeypatch.setattr(kernel, "_SYSCTLS", tmp_path / "sys")
    return tmp_path / "beds"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A program that does nothing for long, and ends with its test."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


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
    known = note("one", **changes)
    group = make_group(directory, known)
    assert list_beds() == []
    assert not (directory / "one").exists()
    assert group.exists() == ("boot_id" in changes), "nothing is known across a start"


def make_group(directory: Path, known: state.BedState, name: str | None = None) -> Path:
    """A control group, which the state of a bed names."""
    group = directory.parent / "groups" / (name or f"farline-testbed.one.{known.token}.a")
    group.mkdir()
    state.write(directory / known.name, replace(known, cgroups=(str(group),)))
    return group


def test_folders_of_anybody_else_are_left_alone(directory: Path) -> None:
    """The directory may be one in which other things are."""
    foreign = {
        "photos": {"log": "mine", "summer.jpg": ""},
        "logs": {"log": "not a bed's"},
        "Capital": {"state.json": "{}"},
        "empty-state": {"state.json": ""},
        "list": {"state.json": "[]"},
        "older": {"state.json": '{"name": "older", "pid": 1}'},
        "of-another": {"state.json": "{}", "control": ""},
    }
    for name, files in foreign.items():
        (directory / name).mkdir(parents=True, mode=0o700)
        for file, text in files.items():
            (directory / name / file).write_text(text, encoding="ascii")
    (directory / "link").symlink_to(directory / "photos")
    assert list_beds() == []
    assert take_down("nothing") is None
    left = sweep().left
    for name, files in foreign.items():
        assert {item.name for item in (directory / name).iterdir()} == set(files)
    assert (directory / "photos" / "log").read_text(encoding="ascii") == "mine"
    assert set(left) == set(foreign) - {"Capital"}
    assert left["photos"].endswith("not the folder of a testbed; testbeds need their own directory")
    assert "its state.json is from another version of farline" in left["older"]
    with pytest.raises(
        SystemFailure, match=r"left unchanged, because its state\.json is from another version"
    ):
        take_down("older")
    with pytest.raises(
        SystemFailure, match="link: left unchanged, because it is not the folder of a testbed"
    ):
        take_down("link")
    with (
        state.locked() as folder,
        pytest.raises(SystemFailure, match="not the folder of a testbed"),
    ):
        state.new(folder, "photos", "two")


def test_a_file_in_a_beds_folder_that_is_not_the_beds_stays(directory: Path) -> None:
    note("one", pid=DEAD_PID)
    (directory / "one" / "results.txt").write_text("hours of work", encoding="ascii")
    assert sweep().left["one"].startswith(f"{directory}/one: left unchanged")
    assert [item.name for item in (directory / "one").iterdir()] == ["results.txt"]


def test_keys_of_servers_met_inside_a_bed_go_with_it(directory: Path) -> None:
    note("one", pid=DEAD_PID)
    for name in ("one", "written-too-late"):
        (directory / name).mkdir(exist_ok=True)
        for file in ("known_servers.json", ".known_servers.json.k3x9"):
            (directory / name / file).write_text("{}", encoding="ascii")
    assert sweep().left == {}
    assert not any((directory / name).exists() for name in ("one", "written-too-late"))


def test_what_a_bed_has_before_its_state_is_written_is_removed(directory: Path) -> None:
    note("other", pid=DEAD_PID)
    (directory / "bare").mkdir()
    (directory / "half").mkdir()
    (directory / "half" / "state.new").write_text("{", encoding="ascii")
    for name in ("log", "control", "start.json", "hosts-0123456789abcdef.a"):
        (directory / "other" / name).touch()
    assert sweep().left == {}
    assert [path.name for path in directory.iterdir()] == [".lock"]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_directory_in_which_others_may_write_is_refused(directory: Path, mode: int) -> None:
    note("one", pid=DEAD_PID)
    directory.chmod(mode)
    with pytest.raises(SystemFailure, match="its group or others can write to it"):
        list_beds()
    assert (directory / "one").is_dir()


def test_a_directory_of_somebody_else_or_a_link_is_refused(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.mkdir(mode=0o700)
    (directory.parent / "link").symlink_to(directory)
    with (
        pytest.raises(SystemFailure, match="must be a folder, not a link"),
        state.locked(directory.parent / "link"),
    ):
        pass
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(SystemFailure, match="must belong to this user"):
        list_beds()


def test_only_a_beds_own_control_groups_are_removed(directory: Path) -> None:
    known = note("one", pid=DEAD_PID)
    elsewhere = directory.parent / f"farline-testbed.one.{known.token}.a"
    elsewhere.mkdir()
    others = [make_group(directory, known, name) for name in ("farline-testbed.one.00.a", "user")]
    named = (*map(str, others), str(elsewhere), str(directory.parent / "groups/../groups/user"))
    state.write(directory / "one", replace(known, cgroups=named))
    assert sweep().gone == ("one",)
    assert all(group.is_dir() for group in (*others, elsewhere))


def test_what_cannot_be_undone_is_tried_again_by_the_next_command(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caps, "_TRIES", 2)
    known = note("one", pid=DEAD_PID)
    group = make_group(directory, known)
    (group / "busy").mkdir()
    left = sweep().left
    assert left["one"].startswith(f"testbed 'one': {group} could not be removed yet")
    rest = state.read(directory / "one")
    assert rest is not None
    assert (rest.cgroups, rest.pid, rest.is_alive()) == ((str(group),), 0, False)
    with pytest.raises(SystemFailure, match="could not be removed yet"):
        take_down("one")
    with (
        state.locked() as folder,
        pytest.raises(SystemFailure, match="try again with `farline testbed down one`"),
    ):
        state.new(folder, "one", "two")
    (group / "busy").rmdir()
    assert take_down("one") == "swept"
    assert not group.exists()
    assert not (directory / "one").exists()


def test_programs_that_do_not_end_are_not_forgotten(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note("one", pid=DEAD_PID, namespaces=(5, 6))
    waiting = [4711]
    monkeypatch.setattr(processes, "end_inside", lambda *_: waiting)
    assert "programs that are still running" in sweep().left["one"]
    rest = state.read(directory / "one")
    assert rest is not None
    assert rest.namespaces == (5, 6)
    waiting.clear()
    assert sweep().gone == ("one",)


def test_members_of_a_control_group_end_with_it(
    directory: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    known = note("one", pid=DEAD_PID)
    group = make_group(directory, known)
    procs = group / "cgroup.procs"
    procs.write_text(f"0\n{os.getpid()}\n{sleeper.pid}\n", encoding="ascii")

    def as_the_kernel_does() -> None:
        sleeper.wait()
        procs.unlink()

    watcher = threading.Thread(target=as_the_kernel_does)
    watcher.start()
    assert sweep().gone == ("one",)
    watcher.join(timeout=10)
    assert sleeper.returncode == -9
    assert not group.exists()


def test_settings_are_raised_for_the_sum_and_restored_after_the_last(directory: Path) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    alive("one", tcp_memory_bytes=1000 * page)
    assert tcp_mem(directory) == [750, 1000, 1250]
    second = note("two", tcp_memory_bytes=3000 * page)
    assert tcp_mem(directory) == [3000, 4000, 5000]
    first = state.read(directory / "one")
    assert first is not None
    state.write(directory / "one", replace(first, pid=DEAD_PID))
    assert [info.name for info in list_beds()] == [], "two is starting, one is gone"
    assert tcp_mem(directory) == [2250, 3000, 3750]
    with state.locked() as folder:
        assert state.remove(folder / "two", second, held=False)
    assert tcp_mem(directory) == [10, 20, 30]
    assert not (directory.parent / "kernel" / "kernel.json").exists()


def test_beds_of_two_directories_share_the_settings(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    first = alive("one", tcp_memory_bytes=1000 * page)
    monkeypatch.setenv(state.DIRECTORY_VARIABLE, str(directory.parent / "others"))
    second = alive("one", tcp_memory_bytes=3000 * page)
    assert tcp_mem(directory) == [3000, 4000, 5000]
    with state.locked(directory) as folder:
        state.remove(folder / "one", first, held=False)
    assert tcp_mem(directory) == [2250, 3000, 3750]
    with state.locked() as folder:
        state.remove(folder / "one", second, held=False)
    assert tcp_mem(directory) == [10, 20, 30]


class Killed(BaseException):
    """Stands for SIGKILL: nothing is done after it."""


@pytest.mark.parametrize("at", range(1, 6))
def test_settings_come_back_whenever_a_killed_one_was_raising_them(
    directory: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Killed before or after the kernel has a value, with a bed up already."""
    page = os.sysconf("SC_PAGE_SIZE")
    alive("one", tcp_memory_bytes=1000 * page)
    left = [at]

    def or_die(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return call(*arguments)

        return counted

    with monkeypatch.context() as patch:
        patch.setattr(kernel, "_set", or_die(kernel._set))
        patch.setattr(kernel, "_write", or_die(kernel._write))
        with pytest.raises(Killed):
            alive("two", tcp_memory_bytes=3000 * page)
    for name in ("one", "two"):
        known = state.read(directory / name)
        assert known is not None
        state.write(directory / name, replace(known, pid=DEAD_PID))
    assert list_beds() == []
    assert tcp_mem(directory) == [10, 20, 30]
    assert rmem_max(directory) == 1000


def rmem_max(directory: Path) -> int:
    return int((directory.parent / "sys/net/core/rmem_max").read_text(encoding="ascii"))


def test_settings_come_back_when_the_folder_is_gone_already(directory: Path) -> None:
    alive("one", tcp_memory_bytes=1000 * os.sysconf("SC_PAGE_SIZE"))
    shutil.rmtree(directory / "one")
    list_beds()
    assert tcp_mem(directory) == [10, 20, 30]


def test_settings_come_back_before_the_folder_goes(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = alive("one", tcp_memory_bytes=1000 * os.sysconf("SC_PAGE_SIZE"))
    found = []

    def unlink(_: Path) -> bool:
        found.append(tcp_mem(directory))
        return True

    monkeypatch.setattr(state, "_unlink", unlink)
    with state.locked() as folder:
        state.remove(folder / "one", known, held=True)
    assert found == [[10, 20, 30]]


def test_only_known_settings_are_put_back(directory: Path) -> None:
    file = kernel.file_for(directory)
    file.parent.mkdir(mode=0o700)
    other = directory.parent / "sys" / "core_pattern"
    other.write_text("core", encoding="ascii")
    item = {"before": "|/tmp/evil", "given": ["core"]}
    document = {"needs": {}, "settings": {"core_pattern": item, "../sys/core_pattern": item}}
    file.write_text(json.dumps(document), encoding="ascii")
    assert kernel.read(file).settings == {}
    list_beds()
    assert other.read_text(encoding="ascii") == "core"


def test_a_setting_that_somebody_else_has_changed_stays(directory: Path) -> None:
    known = alive("one", tcp_memory_bytes=1000 * os.sysconf("SC_PAGE_SIZE"))
    (directory.parent / "sys/net/ipv4/tcp_mem").write_text("7 8 9", encoding="ascii")
    with state.locked() as folder:
        state.remove(folder / "one", known, held=False)
    assert tcp_mem(directory) == [7, 8, 9]


def test_settings_are_never_lowered(directory: Path) -> None:
    alive("one", tcp_memory_bytes=10)
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
    assert warnings[-1].startswith("net.ipv4.tcp_mem is left unchanged (Permission denied); long")


def test_a_long_fast_path_needs_several_times_what_is_under_way() -> None:
    pipe = {"rate_bps": 10**10, "delay_s": 0.183, "queue": {}}
    needed = kernel.tcp_memory_bytes({"links": [{"forward": pipe}]})
    assert 4 * 915_000_000 < needed < 16 * 915_000_000
    assert kernel.tcp_memory_bytes({"links": [{"forward": {"delay_s": 0.1}}]}) == 0


def test_a_schedule_needs_what_its_largest_values_do() -> None:
    largest = {"rate_bps": 10**10, "delay_s": 0.183, "queue": {}}
    schedule = [
        {"at_s": 1.0, "change": {"rate_bps": 10**10}},
        {"at_s": 2.0, "change": {"delay_s": 0.183, "rate_bps": 0}},
    ]
    small = {"rate_bps": 10**6, "delay_s": 0.001, "queue": {}, "schedule": schedule}
    needed = [kernel.tcp_memory_bytes({"links": [{"forward": pipe}]}) for pipe in (largest, small)]
    assert needed[0] == needed[1]
    for change in ({"capacity_bytes": 10**9}, {"capacity_bdp": 3.0}):
        deep = {**small, "schedule": [*schedule, {"at_s": 3.0, "change": change}]}
        assert kernel.tcp_memory_bytes({"links": [{"forward": deep}]}) > needed[0]


@pytest.mark.parametrize("name", ["", "-a", "A", "a b", "../x", "a" * 33])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a name has 1 to 32 of a-z, 0-9 and -"):
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
    with pytest.raises(SystemFailure, match="XDG_RUNTIME_DIR or FARLINE_TESTBED_DIR"):
        state.directory()


def test_the_root_of_a_user_namespace_has_its_users_place_for_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a keeper is user 0, but not the one whose settings are in /run."""
    monkeypatch.delenv(kernel.FILE_VARIABLE)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(kernel, "_UID_MAP", tmp_path / "uid_map")
    (tmp_path / "uid_map").write_text("0 1000 1\n", encoding="ascii")
    assert kernel.file_for(tmp_path) == tmp_path / "kernel.json"
    (tmp_path / "uid_map").write_text("         0          0 4294967295\n", encoding="ascii")
    assert kernel.file_for(tmp_path) == Path("/run/farline/kernel.json")


def test_a_process_is_held_by_more_than_its_number(sleeper: subprocess.Popen[bytes]) -> None:
    ticks = processes.start_ticks(sleeper.pid)
    assert ticks is not None
    assert processes.Process.hold(sleeper.pid, ticks + 1) is None
    assert processes.Process.hold(DEAD_PID) is None
    held = processes.Process.hold(sleeper.pid, ticks)
    assert held is not None
    assert not held.wait(0.01)
    assert held.end()
    held.end()
    assert processes.start_ticks(sleeper.pid) is None
    held.close()
    held.close()
    assert held.wait(0)
    assert held.end(), "nothing is sent to what is not held any more"


def test_a_zombie_is_dead_and_a_number_used_again_is_another() -> None:
    with subprocess.Popen(["true"]) as child:
        assert processes.wait_for_end(child.pid, 10)
        assert processes.start_ticks(child.pid) is None
    own = processes.start_ticks(os.getpid())
    assert own is not None
    assert processes.is_alive(os.getpid(), own)
    assert not processes.is_alive(os.getpid(), own + 1)


def failing(error: OSError) -> Callable[..., int]:
    def call(*_: object) -> int:
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            PermissionError(13, "Permission denied"),
            "run as root, or give this user read and write access",
        ),
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
    assert needs.missing() == "nsenter is not installed; it is part of the package util-linux"
