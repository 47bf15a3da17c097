"""What a user can rely on about congestion controls: states, refusals, objects as stated."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from farline.errors import SpecError, SystemFailure
from farline.testbeds import congestion, struct_ops
from farline.testbeds.struct_ops import Kernel

ROOT = Path(__file__).resolve().parents[3]
TYPES = b"\0bpf_struct_ops_tcp_congestion_ops\0"
ALL_CAPABILITIES = "000001ffffffffff"
BPF_AND_NET_ADMIN = f"{1 << 39 | 1 << 12:016x}"


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """A kernel that can load programs, for a process that may."""
    proc = tmp_path / "proc"
    for folder in ("self", "sys/net/ipv4", "sys/net/core"):
        (proc / folder).mkdir(parents=True)
    (proc / "self/status").write_text(f"Name:\tx\nCapEff:\t{ALL_CAPABILITIES}\n")
    (proc / "self/uid_map").write_text("         0          0 4294967295\n")
    (proc / "sys/net/ipv4/tcp_available_congestion_control").write_text("reno cubic\n")
    (proc / "sys/net/core/bpf_jit_enable").write_text("1\n")
    btf = tmp_path / "vmlinux"
    btf.write_bytes(b"\x9f\xeb" + TYPES)
    return Kernel(proc, btf)


def program(map_id: int, name: str, references: int, state: str = "INUSE") -> list[dict[str, Any]]:
    """What bpftool says of one registered congestion control."""
    value = {
        "common": {
            "refcnt": {"refs": {"counter": references}},
            "state": f"BPF_STRUCT_OPS_STATE_{state}",
        },
        "data": {"name": name},
    }
    return [{"bpf_map_info": {"id": map_id}}, {"bpf_struct_ops_tcp_congestion_ops": value}]


class Bpftool:
    """A stand-in on PATH: answers as told, and keeps what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.asked = folder / "asked"
        self.asked.touch()
        self._answer = folder / "answer"
        self._program = folder / "bpftool"
        self.answers([])

    def answers(self, document: object, code: int = 0, complaint: str = "") -> None:
        """From now on it prints this document and this complaint, and ends with this code."""
        self._answer.write_text(json.dumps(document), encoding="utf-8")
        self._program.write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"open({str(self.asked)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
            f"sys.stderr.write({complaint!r})\n"
            f"print(open({str(self._answer)!r}).read())\nsys.exit({code})\n"
        )
        self._program.chmod(self._program.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bpftool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bpftool:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return Bpftool(folder)


def states(kernel: Kernel) -> dict[str, str]:
    return {one.name: one.state for one in congestion.available(kernel)}


def test_states_are_told_apart(kernel: Kernel, bpftool: Bpftool) -> None:
    listed = kernel.proc / "sys/net/ipv4/tcp_available_congestion_control"
    listed.write_text("reno cubic htcp scalable\n")
    bpftool.answers(program(7, "scalable", 1))
    assert states(kernel) == {
        "htcp": "kernel",
        "htcp_no_scale": "loadable",
        "scalable": "loaded",
        "highspeed": "loadable",
    }


def test_one_that_only_waits_for_its_last_socket_is_not_loaded(
    kernel: Kernel, bpftool: Bpftool
) -> None:
    bpftool.answers(program(7, "htcp", 3, state="TOBEFREE") + program(9, "scalable", 3))
    assert states(kernel)["htcp"] == "loadable"
    assert congestion.loaded() == ["scalable"]
    assert [one.users for one in struct_ops.registered()] == [2]


def test_each_obstacle_is_named_with_what_to_do(
    kernel: Kernel, bpftool: Bpftool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert struct_ops.obstacle(kernel) is None
    status, uid_map = kernel.proc / "self/status", kernel.proc / "self/uid_map"
    status.write_text("CapEff:\t0000000000000000\n")
    assert "needs root, or CAP_BPF" in str(struct_ops.obstacle(kernel))
    status.write_text(f"CapEff:\t{BPF_AND_NET_ADMIN}\n")
    assert struct_ops.obstacle(kernel) is None
    uid_map.write_text("0 1000 1\n")
    assert "needs root" in str(struct_ops.obstacle(kernel)), "root of a user namespace is not root"
    uid_map.write_text("0 0 4294967295\n")
    (kernel.proc / "sys/net/core/bpf_jit_enable").write_text("0\n")
    assert "bpf_jit_enable=1" in str(struct_ops.obstacle(kernel))
    kernel.btf.write_bytes(b"\x9f\xeb")
    assert "Linux 5.13" in str(struct_ops.obstacle(kernel))
    kernel.btf.unlink()
    assert "CONFIG_DEBUG_INFO_BTF" in str(struct_ops.obstacle(kernel))


def test_without_bpftool_the_package_is_named(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(struct_ops, "_SYSTEM_FOLDERS", ())
    found = {one.name: one for one in congestion.available(kernel)}
    assert found["htcp"].state == "unavailable"
    assert found["htcp"].reason.endswith("bpftool is missing: install the package bpftool")
    with pytest.raises(SystemFailure, match="install the package bpftool"):
        congestion.loaded()


def test_a_refusal_of_the_kernel_is_one_line(bpftool: Bpftool) -> None:
    bpftool.answers(None, code=255, complaint="libbpf: first\nlibbpf: failed to load: -22\n")
    with pytest.raises(SystemFailure, match=r"struct_ops register x\.o: libbpf: failed to load"):
        struct_ops.register(Path("x.o"))
    bpftool.answers({"error": "no struct_ops found"}, code=255)
    with pytest.raises(SystemFailure, match="unregister id 4: no struct_ops found"):
        struct_ops.unregister(4)


def test_unloading_what_is_in_use_is_refused_and_says_so(bpftool: Bpftool) -> None:
    bpftool.answers(program(7, "htcp", 3))
    with pytest.raises(SystemFailure, match="htcp: in use by 2 sockets or namespace defaults"):
        congestion.unload("htcp")
    assert "unregister" not in bpftool.asked.read_text()


def test_unloading_takes_out_what_has_that_name_whoever_loaded_it(bpftool: Bpftool) -> None:
    bpftool.answers(program(7, "htcp", 2, state="TOBEFREE") + program(12, "htcp", 1))
    congestion.unload("htcp")
    assert bpftool.asked.read_text().splitlines()[-1] == "--json struct_ops unregister id 12"


def test_unloading_takes_out_a_module_as_loading_puts_one_in(
    bpftool: Bpftool, kernel: Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(congestion, "Kernel", lambda: kernel)
    modules = "tcp_htcp 16384 0 - Live 0x0\nxtcp_scalable 1 0 - Live 0x0\n"
    (kernel.proc / "modules").write_text(modules)
    modprobe = tmp_path / "bin" / "modprobe"
    modprobe.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/modprobed\n')
    modprobe.chmod(0o755)
    congestion.unload("htcp")
    assert (tmp_path / "modprobed").read_text() == "-r tcp_htcp\n"
    assert bpftool.asked.read_text() == "", "a module needs no bpftool"
    modprobe.write_text("#!/bin/sh\necho 'modprobe: FATAL: Module tcp_htcp is in use.' >&2; exit 1")
    with pytest.raises(SystemFailure, match=r"modprobe -r tcp_htcp: .*is in use"):
        congestion.unload("htcp")
    with pytest.raises(SpecError, match="not loaded by farline"):
        congestion.unload("scalable")


def test_unknown_names_are_refused_with_those_there_are(bpftool: Bpftool) -> None:
    with pytest.raises(
        SpecError, match=r"vegas.*which has htcp, htcp_no_scale, scalable, highspeed"
    ):
        congestion.load("vegas")
    with pytest.raises(SpecError, match="not loaded by farline; none is loaded"):
        congestion.unload("scalable")


def test_every_one_has_an_object_and_a_name_the_kernel_takes() -> None:
    for one in congestion.PUBLISHED:
        content = congestion.object_path(one.name).read_bytes()
        assert content.startswith(b"\x7fELF") and one.name.encode() in content
        assert len(one.name) <= 15


def test_objects_are_built_from_the_sources_beside_them() -> None:
    """`make bpf` notes what it read; a source that changed since must be built again."""
    noted = congestion.object_path("htcp").with_name("SOURCES.sha256").read_text().splitlines()
    assert len(noted) == 6
    for line in noted:
        checksum, name = line.split()
        found = hashlib.sha256((ROOT / "bpf" / name).read_bytes()).hexdigest()
        assert found == checksum, f"bpf/{name} changed: run make bpf"


def test_the_highspeed_table_follows_from_its_formulas(tmp_path: Path) -> None:
    script = tmp_path / "highspeed_table.py"
    script.write_bytes((ROOT / "bpf/highspeed_table.py").read_bytes())
    subprocess.run([sys.executable, script], check=True, timeout=30, env=os.environ)
    written = script.with_name("highspeed_table.h").read_bytes()
    assert written == (ROOT / "bpf/highspeed_table.h").read_bytes()
