"""Names and ports that real tools stumble over: what arrives is right, or the name is refused."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from farline.drivers import Here, driven_tool, find_driver
from farline.drivers.processes import Server
from farline.errors import SystemFailure
from farline.tools import never_stop
from tests.loopback.test_drivers import copy, failed, provide, run, same

ODD = (
    "plain", "with blank", "-dash", " lead", "trail ", "per%cent%20x", "hash#tag", "star*",
    "br[a]cket", "comma,x", "$HOME", "semi;colon", "col:on", "~tilde", "tab\tx", "{br}", "a&b",
)  # fmt: skip


def have(name: str) -> None:
    """Skips where Debian has a tool and this machine has not."""
    known = find_driver(name)
    if known.find(Here()) is None or (known.server_program and known.find_server(Here()) is None):
        pytest.skip(f"{name} is not installed: install {known.package}")


def full_of(folder: Path, names: tuple[str, ...]) -> Path:
    """A folder with a file of every name, and another below it."""
    (folder / "below").mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(os.urandom(2000))
        (folder / "below" / name).write_bytes(os.urandom(1000))
    return folder


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["rsync", "gridftp"])
@pytest.mark.parametrize(
    "odd", ["-dash", "per%cent%20x", "br[a]cket", "comma,x", "$HOME", "col:on"]
)
def test_a_file_with_an_odd_name_arrives_under_it(
    odd: str, name: str, direction: str, tmp_path: Path
) -> None:
    have(name)
    (tmp_path / odd).write_bytes(os.urandom(5000))
    result = run(name, direction=direction, copy=copy(tmp_path / odd, f"{tmp_path}/there/"))
    assert result.record["status"] == "complete", result.record
    assert (tmp_path / "there" / odd).read_bytes() == (tmp_path / odd).read_bytes()


@pytest.mark.parametrize("odd", ["ünïcödé", "new\nline"])
def test_gridftp_refuses_names_that_its_client_would_shorten(odd: str, tmp_path: Path) -> None:
    """Without the refusal `ü1` is written as `1`, over a file of that name."""
    have("gridftp")
    source = full_of(tmp_path / "source", ("plain",))
    (source / "below" / odd).write_bytes(b"new")
    there = tmp_path / "there"
    result = run("gridftp", copy=copy(f"{source}/", there))
    kind, line = failed(result)
    assert kind == "spec" and "outside ASCII" in line and "\n" not in line
    assert not there.exists()


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["fdt", "bbcp"])
def test_what_no_package_brings_carries_odd_names_too(
    name: str, direction: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    provide(name, tools, monkeypatch)
    source = tmp_path / "source"
    source.mkdir()
    for odd in (*ODD, "ünïcödé", "back\\slash"):
        if name != "bbcp" or "\t" not in odd:
            (source / odd).write_bytes(os.urandom(2000))
    result = run(name, direction=direction, copy=copy(f"{source}/", tmp_path / "there"))
    assert result.record["status"] == "complete", result.record
    assert same(source, tmp_path / "there")


@pytest.mark.parametrize(
    ("name", "odd", "why"),
    [
        ("bbcp", "new\nline", "control characters"),
        ("bbcp", "tab\tx", "control characters"),
        ("fdt", os.fsdecode(b"\xff"), "not UTF-8"),
        ("fdt", "below/one", "beside each other, here "),
    ],
)
def test_names_that_fdt_and_bbcp_would_lose_are_refused(
    name: str, odd: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FDT writes all files of a tree into one folder, one over the other, and says OK."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    provide(name, tools, monkeypatch)
    (tmp_path / "source" / odd).parent.mkdir(parents=True)
    (tmp_path / "source" / odd).write_bytes(b"new")
    result = run(name, copy=copy(f"{tmp_path}/source/", tmp_path / "there"))
    kind, line = failed(result)
    assert kind == "spec" and why in line and "\n" not in line
    assert not (tmp_path / "there").exists()


def test_two_runs_at_once_have_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driven_tool, "_PORTS", (29_000, 29_128))
    (one, lease), (other, more) = (driven_tool._leased_port(Here(), "127.0.0.1") for _ in range(2))
    with lease, more:
        assert one != other
        with pytest.raises(SystemFailure, match="no free port"):
            driven_tool._leased_port(Here(), "127.0.0.1")
    again, lease = driven_tool._leased_port(Here(), "127.0.0.1")
    lease.close()
    assert again in (one, other)


def test_a_port_on_which_another_listens_is_not_taken_for_the_servers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = Server(Here(), ["sleep", "30"], {}, "tcp", port)
        try:
            with pytest.raises(SystemFailure, match=f"port {port} is taken"):
                server.wait_ready(never_stop, 10)
        finally:
            server.end()


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_xrdcp_serves_a_folder_of_any_name(kind: str, direction: str, tmp_path: Path) -> None:
    """Its server's configuration parts words at blanks, and replaces variables."""
    have("xrdcp")
    source = full_of(tmp_path / "my $HOME" / "admin, 100%", ODD)
    there = tmp_path / "other $HOME"
    paths = (source / "$HOME", f"{there}/") if kind == "file" else (f"{source}/", there / "admin")
    result = run("xrdcp", direction=direction, copy=copy(*paths))
    assert result.record["status"] == "complete", result.record
    if kind == "file":
        assert (there / "$HOME").read_bytes() == (source / "$HOME").read_bytes()
    else:
        assert same(source, there / "admin")


def test_xrdcp_refuses_a_name_that_would_end_at_its_question_mark(tmp_path: Path) -> None:
    have("xrdcp")
    source = full_of(tmp_path / "source", ("q", "q?mark"))
    kind, line = failed(run("xrdcp", copy=copy(f"{source}/", tmp_path / "there")))
    assert kind == "spec" and "q?mark" in line
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("name", ["gridftp", "rsync", "scp", "xrdcp", "rclone", "uftp"])
def test_a_folder_without_files_is_copied_or_named(name: str, tmp_path: Path) -> None:
    have(name)
    (tmp_path / "source").mkdir()
    result = run(name, copy=copy(f"{tmp_path}/source/", tmp_path / "there"))
    if name in ("gridftp", "xrdcp", "uftp"):
        kind, line = failed(result)
        assert kind == "spec" and line.endswith(f"no file is below {tmp_path}/source")
    else:
        assert result.record["status"] == "complete", result.record
        assert (tmp_path / "there").is_dir()
