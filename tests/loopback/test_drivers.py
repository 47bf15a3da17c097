"""What every driver owes: a run that is proved and recorded, and failures that are told apart.

One suite runs against all of them, with the real tools; what no package brings is stood for by
small programs (`tests/support/fake_tools.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from farline.campaign.measure import summed_up
from farline.campaign.settings import sampled_spec
from farline.drivers import DrivenTool, Here, Standing, drivers, find_driver
from farline.drivers.places import ServerPlace
from farline.errors import SpecError
from farline.store import RunBundle, RunFilter, Store
from farline.tools import RunResult, Stop, StopQuestion, ignore_event, never_stop
from tests.support import fake_tools

SCHEMA = Path(__file__).parents[2] / "schemas" / "run-record.schema.json"
HERE = "127.0.0.1"
BYTES = 300_000

TESTERS = ("iperf3", "nuttcp", "iperf2")
MOVERS = ("gridftp", "rsync", "scp", "xrdcp", "rclone", "fdt", "bbcp", "uftp")
PULLERS = ("gridftp", "rsync", "scp", "xrdcp", "rclone", "udt", "bbcp")
FAKED = ("fdt", "bbcp", "globus")
STANDING = ("iperf3", "nuttcp", "iperf2", "gridftp", "rsync", "xrdcp")


@pytest.fixture(autouse=True)
def tools_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of the search path, with what no package brings."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def provide(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a tool, real or stood for; skips where Debian has it and this machine has not.

    What no package brings is the real one where `FDT_JAR` names it, or bbcp is found.
    """
    if (name == "fdt" and os.environ.get("FDT_JAR")) or (name == "bbcp" and shutil.which("bbcp")):
        pass
    elif name == "fdt":
        monkeypatch.setenv("FDT_JAR", str(fake_tools.fake_fdt(folder)))
    elif name == "bbcp":
        fake_tools.fake_bbcp(folder)
    elif name == "globus":
        fake_tools.fake_globus(folder)
    known = find_driver(name)
    if known.find(Here()) is None or (known.server_program and known.find_server(Here()) is None):
        pytest.skip(f"{name} is not installed: install {known.package}")


def commands_with(text: str) -> list[str]:
    """Command lines of this machine's processes that have `text` in them."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = one.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found += [words] if text in words else []
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with two files, one of them below another folder."""
    folder = tmp_path / "source"
    (folder / "below").mkdir(parents=True)
    (folder / "one").write_bytes(os.urandom(BYTES))
    (folder / "below" / "two words").write_bytes(os.urandom(BYTES // 3))
    return folder


def run(
    name: str, server: ServerPlace | None = None, target: str = HERE,
    should_stop: StopQuestion = never_stop, **document: Any,
) -> RunResult:  # fmt: skip
    """One run; its record is as the schema says."""
    spec = sampled_spec({"tool": name, **document})
    result = DrivenTool(name, server or Here()).run(target, spec, ignore_event, should_stop)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(result.record)
    return result


def copy(source: Path | str, destination: Path | str, **more: Any) -> dict[str, Any]:
    """The section of a copy."""
    return {"sources": [str(source)], "destination": str(destination), **more}


def failed(result: RunResult) -> tuple[str, str]:
    """Kind and line of a run that failed."""
    error = result.record["error"]
    assert error is not None and result.record["status"] == "failed"
    return error["kind"], error["message"]


def driven_of(result: RunResult) -> Any:
    """What a record has of the tool."""
    return result.record["driven"]


def same(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files."""
    return subprocess.run(["diff", "-r", one, other], capture_output=True).returncode == 0


# Their streams have to keep a rate: beside floods of other tests they do not.
@pytest.mark.alone
@pytest.mark.parametrize("name", TESTERS)
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_tester_measures(
    name: str, direction: str, tools_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(name, tools_here, monkeypatch)
    more: dict[str, Any] = {"rate_bps": 40_000_000} if name != "iperf2" else {}
    result = run(name, duration_s=1, streams=2, direction=direction, **more)
    driven = driven_of(result)
    assert result.record["status"] == "complete", result.record.get("error")
    flow = driven[direction]
    assert flow["bytes"] > 0 and driven["version"] and driven["exit_code"] == 0
    assert 0.5 < flow["elapsed_s"] <= driven["wall_s"] + 0.5
    if more:
        # Both streams together, in farline's words: a rate is that of each.
        assert flow["bytes"] * 8 / flow["elapsed_s"] == pytest.approx(80e6, rel=0.3)


@pytest.mark.parametrize("name", MOVERS)
def test_a_mover_pushes_a_folder(
    name: str, source: Path, tmp_path: Path, tools_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(name, tools_here, monkeypatch)
    if name == "fdt":
        (source / "below" / "two words").rename(source / "two words")
        (source / "below").rmdir()
    result = run(name, copy=copy(f"{source}/", tmp_path / "copy"))
    driven = driven_of(result)
    assert result.record["status"] == "complete", result.record.get("error")
    assert same(source, tmp_path / "copy")
    assert (driven["proof"], driven["files"]) == ("hash", 2)
    assert driven["forward"]["bytes"] == BYTES + BYTES // 3
    assert driven["forward"]["elapsed_s"] == driven["wall_s"]


@pytest.mark.parametrize("name", PULLERS)
def test_a_mover_pulls_a_file(
    name: str, source: Path, tmp_path: Path, tools_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(name, tools_here, monkeypatch)
    target = tmp_path / "copy" / "renamed"
    result = run(name, direction="reverse", copy=copy(source / "one", target))
    assert result.record["status"] == "complete", result.record.get("error")
    assert target.read_bytes() == (source / "one").read_bytes()


def sent_datagrams() -> int:
    """Datagrams that this machine has sent so far."""
    lines = Path("/proc/net/snmp").read_text("ascii").splitlines()
    names, values = (line.split() for line in lines if line.startswith("Udp:"))
    return int(values[names.index("OutDatagrams")])


def test_gridftp_really_goes_by_udt(source: Path, tmp_path: Path) -> None:
    before = sent_datagrams()
    what = copy(source / "one", tmp_path / "copy" / "one")
    result = run("gridftp", transport="udt", copy=what, tool_timeout_s=30)
    assert result.record["status"] == "complete", result.record.get("error")
    assert sent_datagrams() - before > BYTES / 1500, "it fell back to TCP without a word"


@pytest.mark.parametrize(
    "more", [{"tool_stripes": 2}, {"pipeline": 20, "concurrency": 2}, {"streams": 3}], ids=str
)
def test_gridftp_takes_its_stripes_and_pipelines(
    more: dict[str, int], source: Path, tmp_path: Path
) -> None:
    of_copy = {name: value for name, value in more.items() if name in ("pipeline", "concurrency")}
    of_run: dict[str, Any] = {name: more[name] for name in more if name not in of_copy}
    result = run("gridftp", copy=copy(f"{source}/", tmp_path / "copy", **of_copy), **of_run)
    assert result.record["status"] == "complete", result.record.get("error")
    assert same(source, tmp_path / "copy")
    words = driven_of(result)["client_command"]
    flags = {"tool_stripes": "-stripe", "pipeline": "-pp", "concurrency": "-cc", "streams": "-p"}
    assert all(flags[name] in words for name in more)
    until = time.monotonic() + 10
    while left := commands_with(str(tmp_path)):
        assert time.monotonic() < until, left
        time.sleep(0.1)


@pytest.mark.parametrize("name", STANDING)
def test_nobody_there_is_told_at_once(
    name: str, source: Path, tools_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(name, tools_here, monkeypatch)
    files = find_driver(name).abilities.kind == "mover"
    what: dict[str, Any] = {"duration_s": 1}
    if files:
        what = {"copy": copy(source / "one", "m/x", verify="none")}
    begun = time.monotonic()
    kind, line = failed(run(name, Standing(1), **what))
    assert kind in ("unreachable", "timeout", "protocol"), line
    assert time.monotonic() - begun < 30 and name in line


@pytest.mark.parametrize("name", ["iperf3", "nuttcp", "iperf2", "gridftp"])
def test_a_wrong_host_is_unreachable(
    name: str, tools_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(name, tools_here, monkeypatch)
    what: dict[str, Any] = {"total_bytes": 1 << 20} if name == "gridftp" else {"duration_s": 1}
    kind, line = failed(run(name, Standing(), target="no-such-host.invalid", **what))
    assert kind == "unreachable", line


def descendants() -> set[int]:
    """Processes of this machine that this process started, at any depth."""
    text = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True).stdout
    pairs = [tuple(map(int, line.split())) for line in text.splitlines()]
    found, new = {os.getpid()}, {os.getpid()}
    while new:
        new = {pid for pid, parent in pairs if parent in new} - found
        found |= new
    return found - {os.getpid()}


@pytest.mark.parametrize("name", ["iperf3", "nuttcp", "iperf2", "gridftp", "scp", "rsync"])
@pytest.mark.parametrize("wish", [Stop.GRACEFULLY, Stop.NOW])
def test_one_that_is_stopped_is_partial_and_leaves_no_process(
    name: str, wish: Stop, tmp_path: Path, tools_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(name, tools_here, monkeypatch)
    what: dict[str, Any] = {"duration_s": 60}
    if name == "gridftp":
        what = {"total_bytes": 1 << 44}
    elif name in ("scp", "rsync"):
        with (tmp_path / "big").open("wb") as file:
            file.truncate(1 << 30)
        rate = {"total_rate_bps": 8_000_000}
        what = {"copy": copy(tmp_path / "big", tmp_path / "out" / "big", **rate)}
    asked = iter([Stop.GO_ON] * 4)
    result = run(name, should_stop=lambda: next(asked, wish), **what)
    assert result.record["status"] == "partial"
    left = [pid for pid in descendants() if "ps -eo" not in _words(pid)]
    running = [pid for pid in left if name in _words(pid)]
    assert running == []


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for less than the source."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder])
    if done.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("name", MOVERS)
def test_a_full_disk_is_a_failure(
    name: str, source: Path, small_disk: Path, tools_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(name, tools_here, monkeypatch)
    what = copy(source / "one", small_disk / "one", stall_timeout_s=5)
    kind, line = failed(run(name, copy=what, tool_timeout_s=15))
    assert kind in ("system", "protocol", "timeout", "unreachable"), line
    assert name in line


@pytest.mark.parametrize("lie", ["nothing", "short", "different"])
def test_a_tool_that_says_it_went_well_is_not_believed(
    lie: str, source: Path, tmp_path: Path, tools_here: Path
) -> None:
    fake_tools.lying_scp(tools_here, lie)
    target = tmp_path / "copy" / "one"
    result = run("scp", copy=copy(source / "one", target))
    kind, line = failed(result)
    assert kind == "protocol"
    assert str(target) in line
    assert driven_of(result)["exit_code"] == 0


def test_what_differs_is_not_replaced_unasked(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy" / "one"
    target.parent.mkdir()
    target.write_bytes(b"mine")
    kind, line = failed(run("rsync", copy=copy(source / "one", target)))
    assert (kind, target.read_bytes()) == ("usage", b"mine")
    assert "--overwrite different" in line
    asked = run("rsync", copy=copy(source / "one", target, overwrite="different"))
    assert asked.record["status"] == "complete"
    assert target.read_bytes() == (source / "one").read_bytes()


def test_a_missing_tool_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farline.drivers.places._ADMIN_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    kind, line = failed(run("nuttcp", duration_s=1))
    assert kind == "system"
    assert "nuttcp is not installed" in line and "Debian package nuttcp" in line


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({"tool": "scp", "streams": 4, "copy": copy("a", "b")}, "streams: scp does not take it"),
        ({"tool": "iperf3", "copy": copy("a", "b")}, "copy: iperf3 moves no files"),
        ({"tool": "rsync", "duration_s": 1}, "tool: rsync moves files only"),
        ({"tool": "iperf3", "transport": "rbudp", "rate_bps": 0}, "transport: iperf3 has no rbudp"),
        ({"tool": "udt", "copy": copy("a", "b")}, None),
        ({"tool": "udt", "direction": "forward", "copy": copy("a", "b")}, "direction: udt has no"),
        ({"tool_server": "here"}, "tool_server: applies only with a tool"),
        ({"tool": "gridftp", "copy": copy("a", "b", verify="read-back")}, "copy.verify"),
        ({"tool": "command", "streams": 2, "tool_command": "x {host}"}, "streams: command takes"),
    ],
)
def test_what_a_tool_does_not_take_is_refused_by_name(
    document: dict[str, Any], line: str | None
) -> None:
    if line is None:
        assert sampled_spec(document)["transport"] == "udt"
        return
    with pytest.raises(SpecError) as caught:
        sampled_spec(document)
    assert caught.value.message.startswith(line)


def test_any_program_is_driven_by_a_template(source: Path, tmp_path: Path) -> None:
    result = run(
        "command", Standing(), total_bytes=1_000_000, tool_server="standing",
        tool_command="sh -c 'echo sent {total_bytes} to {host}: 12.5 MB/s 3.5 s'",
        tool_result=r"sent (?P<bytes>\d+) .* (?P<seconds>[\d.]+) s",
    )  # fmt: skip
    flow = driven_of(result)["forward"]
    assert (flow["bytes"], flow["elapsed_s"]) == (1_000_000, 3.5)
    moved = run(
        "command", copy=copy(source / "one", tmp_path / "out" / "one"),
        tool_command="cp -- {source} {destination}",
        tool_server_command="iperf3 -s -p {port} -B {host}",
    )  # fmt: skip
    assert moved.record["status"] == "complete", moved.record.get("error")
    assert (tmp_path / "out" / "one").read_bytes() == (source / "one").read_bytes()


def test_globus_asks_for_a_task_and_waits(
    tools_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide("globus", tools_here, monkeypatch)
    result = run("globus", Standing(), target="destination", copy=copy("src:/a/", "dst:/b/"))
    driven = driven_of(result)
    assert result.record["status"] == "complete", result.record.get("error")
    assert (driven["forward"]["bytes"], driven["proof"]) == (1000, "none")
    fake_tools.fake_globus(tools_here, "FAILED")
    kind, line = failed(run("globus", Standing(), copy=copy("src:/a/", "dst:/b/")))
    assert kind == "protocol" and "FAILED" in line


def test_no_secret_is_on_a_command_line(source: Path, tmp_path: Path) -> None:
    result = run("rsync", copy=copy(source / "one", tmp_path / "copy" / "one"))
    driven = driven_of(result)
    words = " ".join([*driven["client_command"], *driven["server_command"]])
    assert "***" not in words, "it is in files and in the environment"


def test_a_record_is_summed_up_and_kept_as_any_other(tmp_path: Path) -> None:
    measured = summed_up(run("iperf3", duration_s=1))
    summary, verdict = measured.record["summary"], measured.record["verdict"]
    assert summary is not None and verdict is not None
    assert summary["forward"] is not None and summary["reverse"] is None
    assert summary["forward"]["steady_bps"] is None
    assert len(measured.samples["bytes"]) > 0
    store = Store(tmp_path / "store")
    store.append(RunBundle(measured.record, measured.samples))
    (row,) = store.runs(RunFilter()).to_pylist()
    assert row["tool"] == "iperf3"
    assert row["total_bps"] == pytest.approx(summary["forward"]["total_bps"])


def test_every_driver_says_what_brings_it_and_what_it_takes() -> None:
    from farline.spec.table import OPTIONS

    paths = {option.path for option in OPTIONS}
    words = next(option.choices for option in OPTIONS if option.path == "tool")
    assert set(words) == {"native", *drivers()}
    for name, known in drivers().items():
        assert known.name == name and known.package and known.title
        assert set(known.abilities.takes) <= paths, name
