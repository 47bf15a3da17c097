"""What a user can rely on when an end has several nodes: one copy, whatever becomes of a node."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from _copy import trees
from farline.cluster.slurm import Slurm, SlurmRequest, allocate
from farline.errors import BusyError, InterruptedRun, UsageError
from farline.testbeds import Testbed
from farline.testbeds.fixture import MakeBed
from farline.tools import Stop, never_stop
from farline.tools.child import Child
from farline.tools.events import Notice
from farline.tools.step_command import filled, read_template
from tests.netns.conftest import FARLINE
from tests.support.slurm import SlurmCluster, slurm_cluster
from tests.support.steps import finished

pytestmark = pytest.mark.netns

MIB = 1 << 20
LIMIT_S = 120
LINKS: dict[str, Any] = {"k": 2, "rtt_s": "4ms"}
SLOW: dict[str, Any] = {**LINKS, "rate_bps": "80Mbit"}
"""With which a copy takes 8 s or more."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """60 small files in 3 folders, an empty one, a link, and a file that is cut into pieces."""
    source = tmp_path / "source"
    trees.small_files(source, 60, 5000, folders=3)
    (source / "large").write_bytes(os.urandom(80 * MIB))
    (source / "empty").touch()
    (source / "link").symlink_to("large")
    return source


@pytest.fixture
def pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes a pools.toml that farline finds."""
    folder = tmp_path / "config" / "farline"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.parent))

    def write(text: str) -> None:
        (folder / "pools.toml").write_text(text)

    return write


def copied(*words: str) -> dict[str, Any]:
    """The record of a copy that must succeed."""
    done = subprocess.run(
        [FARLINE, "copy", "--json", "--no-store", *words], capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def assert_same(source: Path, target: Path) -> None:
    done = subprocess.run(["diff", "-r", "--no-dereference", source, target], capture_output=True)
    assert done.returncode == 0, done.stdout
    assert not (target / ".farline-partial").exists()


def test_two_sites_with_a_slurm_each_make_one_copy_with_one_record_and_one_receipt(
    testbed: MakeBed, source: Path, tmp_path: Path, pools: Callable[[str], None]
) -> None:
    bed = testbed("nodes", **LINKS)
    with ExitStack() as stack:
        sites = [
            stack.enter_context(slurm_cluster(site, [bed.hosts[f"{site}-{n}"] for n in (1, 2)]))
            for site in ("source", "sink")
        ]
        pools("".join(map(pool_text, sites)))
        receipt = tmp_path / "receipt.jsonl"
        record = copied(
            "--receipt", str(receipt), f"source-site:{source}/", f"sink-site:{tmp_path}/target"
        )
        assert_same(source, tmp_path / "target")
        for site in sites:
            site.wait_until_free(2)
    report = record["copy"]
    assert report["copied"]["files"] == 61 + 1, report
    assert report["failed"]["files"] == report["present"]["files"] == 0
    lines = [json.loads(line) for line in receipt.read_text().splitlines()]
    files = [line for line in lines if line["kind"] == "file"]
    assert len(files) == 62
    assert {line["status"] for line in files} == {"copied"}
    assert all("xxh3_tree" in line for line in files if line["bytes"]), files
    assert not any("resumed_bytes" in line for line in files)
    evidence = record["verdict"]["evidence"]
    assert any("source-1 to sink-1" in line for line in evidence), evidence
    assert any("source-2 to sink-2" in line for line in evidence), evidence


def pool_text(site: SlurmCluster) -> str:
    """The pool of a cluster."""
    name = site.head.name.partition("-")[0]
    return (
        f'[{name}-site]\nslurm = "xfer"\ncount = 2\nvia = {json.dumps(site.via)}\n'
        f'farline = "{FARLINE}"\n'
    )


@pytest.fixture
def bed(testbed: MakeBed) -> Testbed:
    """Two nodes a side."""
    return testbed("nodes", **LINKS)


@pytest.fixture
def cluster(bed: Testbed) -> Iterator[SlurmCluster]:
    """A cluster of the two nodes of one side."""
    nodes = [bed.hosts["sink-1"], bed.hosts["sink-2"]]
    with slurm_cluster("site", nodes) as cluster:
        yield cluster


def test_nodes_say_what_they_have_and_slurm_has_them_back(
    cluster: SlurmCluster, bed: Testbed, pools: Callable[[str], None], tmp_path: Path
) -> None:
    pools(pool_text(cluster))
    for place in (f"sink-site:{tmp_path}", f"testbed:{bed.name}:sink-[1-2]{tmp_path}"):
        done = subprocess.run(
            [FARLINE, "nodes", "--json", place], capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode == 0, done.stderr
        nodes = json.loads(done.stdout)["nodes"]
        assert [node["node"] for node in nodes] == ["sink-1", "sink-2"]
        assert all(node["cpus"] and node["free_bytes"] and node["has_path"] for node in nodes)
    cluster.wait_until_free(2)


def test_slurm_gives_nodes_starts_programs_and_takes_all_back(cluster: SlurmCluster) -> None:
    slurm = Slurm(read_template(cluster.via))
    got = finished(allocate(slurm, SlurmRequest("xfer", 2), never_stop))
    assert got.nodes == ("sink-1", "sink-2")
    assert cluster.free_nodes() == 0
    # Short waits: a signal that comes just before bash waits is told only after the wait.
    script = (
        'trap "echo ended; exit 7" TERM; hostname; read line; echo "$line"; '
        "while :; do sleep 0.1; done"
    )
    words = filled(slurm.via, filled(got.step(), ["bash", "-c", script], "sink-2"))
    program = Child(words)
    try:
        program.send(b"hello\n")
        assert read_until(program, b"hello\n") == b"sink-2\nhello\n"
        got.release()
        assert read_until(program, b"ended\n") == b"ended\n"
        assert program.wait(10) == 7
    finally:
        program.close(1)
    cluster.wait_until_free(2)
    got.release()


def read_until(program: Child, end: bytes) -> bytes:
    """What a program prints, up to `end`."""
    found, until = b"", time.monotonic() + 20
    while not found.endswith(end):
        assert time.monotonic() < until, (found, program.said.lines())
        found += program.read(0.1) or b""
    return found


def test_nodes_are_not_asked_for_what_the_job_around_farline_has(
    cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"JOB_ID": "1", "GRES": "gpu:1", "THREADS_PER_CORE": "4"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    slurm = Slurm(read_template(cluster.via))
    got = finished(allocate(slurm, SlurmRequest("xfer", 1), never_stop))
    words = filled(slurm.via, filled(got.step(), ["hostname"], got.nodes[0]))
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    got.release()
    assert done.stdout == f"{got.nodes[0]}\n", done.stderr


def test_nodes_that_slurm_takes_back_are_known_to_be_gone(cluster: SlurmCluster) -> None:
    slurm = Slurm(read_template(cluster.via))
    got = finished(allocate(slurm, SlurmRequest("xfer", 1), never_stop))
    assert not got.is_over
    cluster.asked("scancel", got.job)
    until = time.monotonic() + 20
    while not got.is_over:
        assert time.monotonic() < until
        time.sleep(0.1)
    got.release()


def test_what_slurm_refuses_is_told_in_one_line(cluster: SlurmCluster) -> None:
    slurm = Slurm(read_template(cluster.via))
    with pytest.raises(UsageError, match="nvalid partition"):
        finished(allocate(slurm, SlurmRequest("nothing", 1), never_stop))
    got = finished(allocate(slurm, SlurmRequest("xfer", 2), never_stop))
    try:
        for wait_s in (1, 3):  # salloc tells of them in different words
            with pytest.raises(BusyError) as busy:
                finished(allocate(slurm, SlurmRequest("xfer", 1, immediate_s=wait_s), never_stop))
            assert (busy.value.exit_code, busy.value.permanent) == (5, True)
        cluster.asked("scontrol", "update", "nodename=sink-2", "state=drain", "reason=a disk")
        with pytest.raises(BusyError, match="not available"):
            finished(allocate(slurm, SlurmRequest("xfer", 2, immediate_s=1), never_stop))
    finally:
        cluster.asked("scontrol", "update", "nodename=sink-2", "state=resume")
        got.release()
    cluster.wait_until_free(2)


def test_who_waits_for_licences_is_told_so_and_may_stop(
    cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farline.cluster.slurm.NOTICE_S", 0.5)
    slurm = Slurm(read_template(cluster.via))
    half = SlurmRequest("xfer", 1, licenses="wan_gbps:60")
    got = finished(allocate(slurm, half, never_stop))
    told: list[str] = []
    steps = allocate(slurm, half, lambda: Stop.GRACEFULLY if told else Stop.GO_ON)
    with pytest.raises(InterruptedRun):
        for event in steps:
            told += [event.text] if isinstance(event, Notice) else []
    assert "licences that others hold" in told[0]
    got.release()
    cluster.wait_until_free(2)
    assert not cluster.asked("squeue", "-h").strip()


def test_a_copy_that_is_killed_leaves_slurm_no_nodes(
    bed: Testbed, cluster: SlurmCluster, source: Path, tmp_path: Path, pools: Callable[[str], None]
) -> None:
    pools(pool_text(cluster))
    target = tmp_path / "target"
    words = [str(FARLINE), "copy", "--no-store", "--bwlimit", "40Mbit/s"]
    ends = [f"sink-site:{source}/", f"testbed:{bed.name}:source-[1-2]{target}"]
    with subprocess.Popen([*words, *ends], stderr=subprocess.PIPE) as copy:
        wait_for_data(target)
        assert cluster.free_nodes() == 0
        copy.kill()
        killed_s = time.monotonic()
        cluster.wait_until_free(2)
        cluster.wait_until_idle()
    took_s = time.monotonic() - killed_s
    assert took_s < 15, took_s


def test_a_copy_that_is_killed_while_it_waits_for_nodes_gets_none(
    bed: Testbed, cluster: SlurmCluster, source: Path, tmp_path: Path, pools: Callable[[str], None]
) -> None:
    slurm = Slurm(read_template(cluster.via))
    others = finished(allocate(slurm, SlurmRequest("xfer", 1), never_stop))
    pools(pool_text(cluster))
    ends = [f"sink-site:{source}/", f"testbed:{bed.name}:source-[1-2]{tmp_path}/target"]
    with subprocess.Popen([FARLINE, "copy", "--no-store", *ends], stderr=subprocess.PIPE) as copy:
        until = time.monotonic() + 20
        while "farline-copy" not in cluster.asked("squeue", "-h", "-t", "PD", "-o", "%j"):
            assert time.monotonic() < until, cluster.asked("squeue")
            time.sleep(0.1)
        copy.kill()
    others.release()
    cluster.wait_until_free(2)
    cluster.wait_until_idle()


def begin(bed: Testbed, source: Path, target: Path, *words: str) -> subprocess.Popen[str]:
    """A copy from both source nodes of a bed to both sinks."""
    pool = f"testbed:{bed.name}"
    ends = (f"{pool}:source-[1-2]{source}/", f"{pool}:sink-[1-2]{target}")
    return subprocess.Popen(
        [FARLINE, "copy", "--no-store", "--json", "--stall-timeout", "5s", *words, *ends],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_data(target: Path) -> None:
    """Until some of the large file has been there for longer than a journal waits."""
    until = time.monotonic() + 60
    while not list(target.glob(".farline-partial/*/large-*.part")):
        assert time.monotonic() < until, list(target.rglob("*"))
        time.sleep(0.05)
    time.sleep(3)


def processes_of(bed: Testbed, host: str) -> list[int]:
    """Of farline on a host: what has orders or serves there."""
    net = Path(bed.hosts[host].namespaces["net"]).stat().st_ino
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            is_there = entry.name.isdigit() and (entry / "ns" / "net").stat().st_ino == net
            words = (entry / "cmdline").read_bytes().split(b"\0") if is_there else []
            if b"--order" in words or b"--copy-session" in words:
                found.append(int(entry.name))
    return found


HURTS = [
    (what, host)
    for what in ("killed", "cut", "suspended")
    for host in ("source-1", "source-2", "sink-1", "sink-2")
]
"""What becomes of which node; a suspended one is given up after 30 s of silence."""
USUAL = [("killed", "source-2"), ("cut", "source-1"), ("cut", "sink-2")]
"""The first pair is also the one that would end the copy."""


@pytest.mark.parametrize(
    ("what", "host"), HURTS if os.environ.get("FARLINE_LONG") == "1" else USUAL
)
def test_a_node_that_fails_costs_its_share_and_no_byte(
    testbed: MakeBed, source: Path, tmp_path: Path, what: str, host: str
) -> None:
    bed = testbed("nodes", **SLOW)
    target = tmp_path / "target"
    with begin(bed, source, target) as copy:
        wait_for_data(target)
        hurt = processes_of(bed, host)
        assert hurt
        if what == "cut":
            bed.cut(host)
        else:
            for process in hurt:
                os.kill(process, signal.SIGKILL if what == "killed" else signal.SIGSTOP)
        try:
            out, said = copy.communicate(timeout=LIMIT_S)
        finally:
            copy.kill()
            for process in hurt:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    assert copy.returncode == 0, said
    assert json.loads(out)["copy"]["failed"]["files"] == 0
    assert_same(source, target)


def adjusted(*words: str) -> dict[str, Any]:
    """What `farline adjust last` comes to, once the copy listens."""
    until = time.monotonic() + 30
    while True:
        done = subprocess.run(
            [FARLINE, "adjust", "last", "--json", *words], capture_output=True, text=True,
            timeout=60,
        )  # fmt: skip
        if done.returncode == 0:
            answer: dict[str, Any] = json.loads(done.stdout)
            return answer
        assert time.monotonic() < until, done.stderr
        time.sleep(0.2)


def test_a_copy_over_nodes_is_changed_while_it_runs(
    testbed: MakeBed, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    bed = testbed("nodes", **SLOW)
    target = tmp_path / "target"
    with begin(bed, source, target, "--bwlimit", "8Mbit/s") as copy:
        wait_for_data(target)
        answer = adjusted("--streams", "3", "--rate", "32Mbit/s")
        assert [change["knob"] for change in answer["changes"]] == ["streams", "total-rate"]
        assert [change["after"] for change in answer["changes"]] == [3, 32_000_000]
        time.sleep(1)
        moved, from_s = received(bed), time.monotonic()
        time.sleep(3)
        rate_bps = 8 * (received(bed) - moved) / (time.monotonic() - from_s)
        assert adjusted("--rate", "0bit/s")["run_id"] == answer["run_id"]
        out, said = copy.communicate(timeout=LIMIT_S)
    assert copy.returncode == 0, said
    assert 12e6 < rate_bps < 1.3 * 32e6, rate_bps
    record = json.loads(out)
    assert record["run_id"] == answer["run_id"]
    assert len(record["adjustments"]) == 3
    assert record["spec"]["streams"] == 2 * 3
    assert_same(source, target)


def received(bed: Testbed) -> int:
    """Bytes that have come to the sinks."""
    lines = [
        line.partition(":")[2].split()
        for host in ("sink-1", "sink-2")
        for line in bed.hosts[host].run(["cat", "/proc/net/dev"]).stdout.splitlines()
    ]
    return sum(int(words[0]) for words in lines if words)


def test_nodes_that_slurm_gives_later_join_the_copy(
    bed: Testbed, cluster: SlurmCluster, source: Path, tmp_path: Path, pools: Callable[[str], None]
) -> None:
    slurm = Slurm(read_template(cluster.via))
    others = finished(allocate(slurm, SlurmRequest("xfer", 1), never_stop))
    (free,) = {"sink-1", "sink-2"} - set(others.nodes)
    pools(f"{pool_text(cluster)}least = 1\n")
    target = tmp_path / "target"
    words = [str(FARLINE), "copy", "--no-store", "--json", "--bwlimit", "16Mbit/s"]
    ends = [f"sink-site:{source}/", f"testbed:{bed.name}:source-[1-2]{target}"]
    with subprocess.Popen(
        [*words, *ends], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as copy:
        wait_for_data(target)
        others.release()
        out, said = copy.communicate(timeout=LIMIT_S)
    assert copy.returncode == 0, said
    assert_same(source, target)
    evidence = json.loads(out)["verdict"]["evidence"]
    for node in (free, others.nodes[0]):
        assert any(f"{node} to " in line and " 0 B in" not in line for line in evidence), evidence
    cluster.wait_until_idle()


def test_a_node_that_comes_back_carries_bytes_again(
    bed: Testbed, source: Path, tmp_path: Path, pools: Callable[[str], None]
) -> None:
    away = tmp_path / "away"
    away.touch()
    script = tmp_path / "on-node"
    script.write_text(
        f'#!/bin/sh\nif [ "$1" = source-2 ] && [ -e {away} ]; then echo "down" >&2; exit 9; fi\n'
        f'host=$1; shift 2; exec {FARLINE} testbed exec {bed.name} "$host" -- {FARLINE} "$@"\n'
    )
    script.chmod(0o755)
    pools(f'[sources]\nnodes = ["source-1", "source-2"]\ncommand = "{script} {{node}} {{argv}}"\n')
    target = tmp_path / "target"
    words = [str(FARLINE), "copy", "--no-store", "--json", "--bwlimit", "12Mbit/s"]
    ends = [f"sources:{source}/", f"testbed:{bed.name}:sink-[1-2]{target}"]
    with subprocess.Popen(
        [*words, *ends], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as copy:
        wait_for_data(target)
        away.unlink()
        out, said = copy.communicate(timeout=LIMIT_S)
    assert copy.returncode == 0, said
    assert_same(source, target)
    evidence = json.loads(out)["verdict"]["evidence"]
    assert any("source-2 to " in line and " 0 B in" not in line for line in evidence), evidence


def test_nodes_that_do_not_see_the_same_files_are_refused_by_name(
    bed: Testbed, source: Path, tmp_path: Path, pools: Callable[[str], None]
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    script = tmp_path / "on-node"
    # A disk of its own at the folder that the second node is to write to, or to read from.
    script.write_text(
        f'#!/bin/sh\nhost=$1; shift 2\nexec {FARLINE} testbed exec {bed.name} "$host" -- '
        'unshare -m sh -c \'case $0 in *-2) mount -t tmpfs none "$OWN";; esac; '
        f'exec {FARLINE} "$@"\' "$host" "$@"\n'
    )
    script.chmod(0o755)
    for side in ("source", "sink"):
        own = source if side == "source" else target
        pools(
            f'[{side}s]\nnodes = ["{side}-1%{side}-1", "{side}-2%{side}-2"]\n'
            f'command = "env OWN={own} {script} {{node}} {{argv}}"\n'
        )
        ends = {"source": f"testbed:{bed.name}:source-[1-2]{source}/large",
                "sink": f"testbed:{bed.name}:sink-[1-2]{target}"}  # fmt: skip
        ends[side] = f"{side}s:{source}/large" if side == "source" else f"sinks:{target}"
        done = subprocess.run(
            [FARLINE, "copy", "--no-store", ends["source"], ends["sink"]],
            capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert f"{side}-2 does not see" in done.stderr, done.stderr
        assert list(target.iterdir()) == []


def test_streams_run_beside_the_interface_that_carries_them(
    bed: Testbed, source: Path, tmp_path: Path, pools: Callable[[str], None]
) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    # What nodes see of their hardware: a CPU at each of two NUMA nodes, the interface at one.
    fake, script = tmp_path / "fake", tmp_path / "on-node"
    for number, cpu in enumerate(cpus[:2]):
        (fake / "node" / f"node{number}").mkdir(parents=True)
        (fake / "node" / f"node{number}" / "cpulist").write_text(f"{cpu}\n")
    lines = bed.hosts["sink-1"].run(["ip", "-o", "-4", "addr", "show", "scope", "global"]).stdout
    name = lines.split()[1]
    (fake / "net" / name / "device").mkdir(parents=True)
    (fake / "net" / name / "device" / "numa_node").write_text("1\n")
    script.write_text(
        f'#!/bin/sh\nhost=$1; shift 2\nexec {FARLINE} testbed exec {bed.name} "$host" -- '
        f"unshare -m sh -c 'mount --bind {fake}/node /sys/devices/system/node; "
        f'mount --bind {fake}/net /sys/class/net; exec {FARLINE} "$@"\' "$host" "$@"\n'
    )
    script.chmod(0o755)
    pools(f'[sinks]\nnodes = ["sink-1", "sink-2"]\ncommand = "{script} {{node}} {{argv}}"\n')
    ends = (f"testbed:{bed.name}:source-[1-2]{source}/", f"sinks:{tmp_path}/target")
    record = copied(*ends)
    assert_same(source, tmp_path / "target")
    assert record["spec"]["server_cpus"] == [cpus[1]]
    assert "client_cpus" not in record["spec"]
    evidence = record["verdict"]["evidence"]
    for host in ("sink-1", "sink-2"):
        line = f"{host}: streams on CPUs {cpus[1]}: {name} is at NUMA node 1"
        assert line in evidence, evidence
    assert any(
        line.startswith("source-1, source-2: streams are not placed: ") for line in evidence
    ), evidence
    record = copied("--place-streams", "off", *ends)
    assert "server_cpus" not in record["spec"]
    assert "streams are not placed: --place-streams off" in record["verdict"]["evidence"]


def test_a_copy_that_is_killed_is_resumed_and_sends_only_what_is_missing(
    testbed: MakeBed, source: Path, tmp_path: Path
) -> None:
    bed = testbed("nodes", **SLOW)
    target = tmp_path / "target"
    with begin(bed, source, target) as copy:
        wait_for_data(target)
        copy.kill()
    with begin(bed, source, target) as again:
        out, said = again.communicate(timeout=LIMIT_S)
    assert again.returncode == 0, said
    record = json.loads(out)
    assert record["summary"]["forward"]["bytes"] < 70 * MIB
    assert_same(source, target)
