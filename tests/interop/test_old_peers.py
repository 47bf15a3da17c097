"""Earlier builds against today's: copies in both directions, resumed, over tickets and over ssh.

`make old-peers` builds the commits that `scripts/old_peers.py` names; without it the tests are
skipped. Either build serves, either is the client.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts.old_peers import PEERS, OldPeer, built, command, folder_of
from tests.interop.test_copy_ssh import Sshd, sshd
from tests.support.attributes import access_list, attributes
from tests.support.serving import FARLINE, environment
from tests.support.trees import make_tree, shape

__all__ = ["sshd"]
pytestmark = pytest.mark.skipif(not built(), reason="no builds of earlier commits: make old-peers")
LIMIT_S = 100.0
CHUNK = 256 << 10
RATE = ("--bwlimit", "2M", "--chunk", "256K")


@dataclass(frozen=True)
class Build:
    """One end: its command."""

    words: tuple[str, ...]

    def run(self, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        return subprocess.run(
            [*self.words, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S,
            env=environment(home), cwd=home,
        )  # fmt: skip

    def record(self, home: Path, *words: str) -> dict[str, Any]:
        """The record of a copy that succeeds."""
        done = self.run(home, "copy", *words, "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    @contextmanager
    def serving(self, home: Path, root: Path, port: str = "0") -> Iterator[dict[str, Any]]:
        """A server with tickets for `root`; what it says when it is ready."""
        words = [
            "serve", "--json", "-B", "127.0.0.1", "-p", port, "--state-dir", str(home / "state"),
            "--write", str(root), "--read", str(root),
        ]  # fmt: skip
        process = subprocess.Popen(
            [*self.words, *words], stdout=subprocess.PIPE, text=True, env=environment(home)
        )
        try:
            assert process.stdout is not None
            ready: dict[str, Any] = json.loads(process.stdout.readline())
            yield ready
        finally:
            process.kill()
            process.communicate()


NOW = Build(tuple(FARLINE))


@pytest.fixture(params=PEERS, ids=lambda peer: peer.name)
def peer(request: pytest.FixtureRequest) -> OldPeer:
    """One that is built."""
    one: OldPeer = request.param
    if one not in built():
        pytest.skip("no builds of earlier commits: make old-peers")
    return one


@pytest.fixture
def old(peer: OldPeer) -> Build:
    return Build(command(peer))


@pytest.fixture(params=["old-serves", "new-serves"])
def ends(request: pytest.FixtureRequest, old: Build) -> tuple[Build, Build]:
    """The client and the server."""
    return (NOW, old) if request.param == "old-serves" else (old, NOW)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def test_a_tree_is_pushed_and_pulled(ends: tuple[Build, Build], tmp_path: Path, root: Path) -> None:
    client, server = ends
    tree = make_tree(tmp_path / "tree")
    with server.serving(tmp_path, root) as ready:
        tickets = ready["tickets"]
        pushed = client.record(tmp_path, f"{tree}/", f"{tickets['write']}#up")
        assert shape(root / "up") == shape(tree)
        pulled = client.record(tmp_path, f"{tickets['read']}#up/", str(tmp_path / "back"))
        assert shape(tmp_path / "back") == shape(tree)
        again = client.record(tmp_path, f"{tree}/", f"{tickets['write']}#up")
    assert {one["spec"]["copy"]["verify"] for one in (pushed, pulled)} == {"tree"}
    assert again["copy"]["copied"]["files"] == 0


@pytest.mark.parametrize("way", ["push", "pull"])
def test_a_copy_that_was_killed_is_resumed(
    ends: tuple[Build, Build], tmp_path: Path, root: Path, way: str
) -> None:
    client, server = ends
    with server.serving(tmp_path, root) as ready:
        places, target = large_file(tmp_path, root, ready["tickets"], way)
        cut_short(client, tmp_path, places)
        record = client.record(tmp_path, *places, "--chunk", "256K")
    assert record["copy"]["resumed_bytes"] >= CHUNK
    assert target.read_bytes() == (tmp_path / "source").read_bytes()


@pytest.mark.parametrize("first", ["old", "new"])
def test_another_build_ends_what_one_began(
    peer: OldPeer, old: Build, tmp_path: Path, root: Path, first: str
) -> None:
    """The receiving end is brought up to date, or back, in the middle of a copy."""
    one, other = (old, NOW) if first == "old" else (NOW, old)
    source, target = tmp_path / "source", root / "target"
    source.write_bytes(os.urandom(8 << 20))
    # Up to version 4 all sums were BLAKE3; today's is another unless it is asked for.
    blake3 = ("--hash", "blake3") if first == "old" and peer.protocol < 5 else ()
    places = [str(source), str(target)]
    cut_short(one, tmp_path, places)
    assert not target.exists()
    record = other.record(tmp_path, *places, "--chunk", "256K", *blake3)
    assert target.read_bytes() == source.read_bytes()
    # Going back: a journal of a later version is not read, and the copy begins anew.
    if first == "old":
        assert record["copy"]["resumed_bytes"] >= CHUNK


def test_a_server_that_is_updated_keeps_its_tickets_and_its_key(
    old: Build, tmp_path: Path, root: Path
) -> None:
    (tmp_path / "source").write_bytes(b"content")
    with old.serving(tmp_path, root) as before:
        ticket = before["tickets"]["write"]
        old.record(tmp_path, str(tmp_path / "source"), f"{ticket}#a")
        port = before["addresses"][0].rpartition(":")[2]
    with NOW.serving(tmp_path, root, port) as after:
        assert after["fingerprint"] == before["fingerprint"]
        for number, client in enumerate((old, NOW)):
            client.record(tmp_path, str(tmp_path / "source"), f"{ticket}#b{number}")
    assert [(root / name).read_bytes() for name in ("a", "b0", "b1")] == [b"content"] * 3


def test_a_probe_is_measured_and_judged(
    ends: tuple[Build, Build], tmp_path: Path, root: Path
) -> None:
    client, server = ends
    with server.serving(tmp_path, root) as ready:
        for way in ([], ["-R"]):
            words = ["probe", ready["ticket"], "-t", "1", "--json", *way]
            words[3] = "1s" if client is NOW else "1"
            done = client.run(tmp_path, *words)
            assert done.returncode == 0, done.stderr
            record = json.loads(done.stdout)
            assert record["status"] == "complete"
            assert record["verdict"]["limit"]


@pytest.mark.parametrize("transport", ["udt", "rbudp"])
def test_other_transports_fit(
    ends: tuple[Build, Build], tmp_path: Path, root: Path, transport: str
) -> None:
    client, server = ends
    (tmp_path / "source").write_bytes(os.urandom(2 << 20))
    rate = ["--bwlimit", "100Mbit/s"] if transport == "rbudp" else []
    with server.serving(tmp_path, root) as ready:
        target = f"{ready['tickets']['write']}#a"
        client.record(tmp_path, str(tmp_path / "source"), target, "--transport", transport, *rate)
    assert (root / "a").read_bytes() == (tmp_path / "source").read_bytes()


def test_files_go_to_and_from_it_over_ssh(
    ends: tuple[Build, Build], sshd: Sshd, tmp_path: Path
) -> None:
    client, server = ends
    tree = make_tree(tmp_path / "tree")
    there = " ".join([sshd.environment, *server.words])
    options = [*sshd.options[:-1], there]
    client.record(tmp_path, f"{tree}/", f"{sshd.host}:{tmp_path}/up", *options)
    assert shape(tmp_path / "up") == shape(tree)
    client.record(tmp_path, f"{sshd.host}:{tmp_path}/up/", str(tmp_path / "back"), *options)
    assert shape(tmp_path / "back") == shape(tree)


def test_attributes_and_lists_are_pushed_and_pulled(
    peer: OldPeer, ends: tuple[Build, Build], tmp_path: Path, root: Path
) -> None:
    """The source folder's own came with version 7: an earlier end leaves them out."""
    client, server = ends
    tree, back = make_tree(tmp_path / "tree"), tmp_path / "back"
    for name in (".", "sub", "empty", "large", "nothing", "sub/small 1"):
        os.setxattr(tree / name, "user.project", b"north\0" + name.encode())
        os.setxattr(tree / name, "system.posix_acl_access", access_list(7))
    known = attributes_below(tree, has_top=peer.protocol >= 7)
    with server.serving(tmp_path, root) as ready:
        tickets = ready["tickets"]
        for again in (False, True):
            pushed = client.record(tmp_path, "-X", f"{tree}/", f"{tickets['write']}#up")
            assert attributes_below(root / "up") == known
            pulled = client.record(tmp_path, "-X", f"{tickets['read']}#up/", str(back))
            assert attributes_below(back) == known
            assert all(bool(one["copy"]["copied"]["files"]) != again for one in (pushed, pulled))
    assert shape(root / "up") == shape(back) == shape(tree)


@pytest.mark.parametrize(
    "peer", [one for one in PEERS if one.has_carried], ids=lambda peer: peer.name, indirect=True
)
def test_a_program_that_was_sent_earlier_is_the_far_end(
    peer: OldPeer, sshd: Sshd, tmp_path: Path
) -> None:
    tree = make_tree(tmp_path / "tree")
    options = [*sshd.options[:-1], str(folder_of(peer) / "carried")]
    NOW.record(tmp_path, f"{tree}/", f"{sshd.host}:{tmp_path}/up", *options)
    NOW.record(tmp_path, f"{sshd.host}:{tmp_path}/up/", str(tmp_path / "back"), *options)
    assert shape(tmp_path / "back") == shape(tree)


ABLE = {"v5", "v6", "v7"}
"""Builds that know of what the others refuse."""

REFUSED = [
    (("ls", "{read}#."), "too old for requests about names"),
    (("copy", "--hash", "xxh3", "--no-store", "{source}", "{write}#h"), "knows no xxh3"),
    (("copy", "--transport", "quic", "--no-store", "{source}", "{write}#q"), "quic"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=["ls", "hash", "quic"])
def test_what_an_earlier_server_cannot_do_is_one_plain_line(
    peer: OldPeer, old: Build, tmp_path: Path, root: Path,
    words: tuple[str, ...], said: str,
) -> None:  # fmt: skip
    (tmp_path / "source").write_bytes(b"content")
    with old.serving(tmp_path, root) as ready:
        named = {**ready["tickets"], "source": tmp_path / "source"}
        done = NOW.run(tmp_path, *(word.format(**named) for word in words))
    if peer.name in ABLE:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode in (1, 7, 8), (done.returncode, done.stderr)
    lines = [line for line in done.stderr.splitlines() if "first contact" not in line]
    assert len(lines) == 1 and said in lines[0], done.stderr
    print(f"{peer.name}: {lines[0]}")


def attributes_below(folder: Path, *, has_top: bool = True) -> dict[str, dict[str, bytes]]:
    """The extended attributes of `folder` and of what is in it, without those that have none."""
    names = [path for path in folder.rglob("*") if not path.is_symlink()]
    found = {
        str(path.relative_to(folder)): attributes(path) for path in [*names, *[folder] * has_top]
    }
    return {name: its for name, its in found.items() if its}


def large_file(
    tmp_path: Path, root: Path, tickets: dict[str, str], way: str
) -> tuple[list[str], Path]:
    """Places of a copy of 8 MiB, and the file that it is to make; its source is `source` too."""
    content = os.urandom(8 << 20)
    (tmp_path / "source").write_bytes(content)
    if way == "push":
        return [str(tmp_path / "source"), f"{tickets['write']}#target"], root / "target"
    (root / "kept").write_bytes(content)
    return [f"{tickets['read']}#kept", str(tmp_path / "target")], tmp_path / "target"


def cut_short(client: Build, home: Path, places: list[str]) -> None:
    """Kills a copy when 3 MiB have moved."""
    process = subprocess.Popen(
        [*client.words, "copy", *places, *RATE, "--json-stream"], stdout=subprocess.PIPE,
        text=True, env=environment(home),
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "progress" and event["data"]["moved_bytes"] > 3 << 20:
            break
    # sh is replaced by Python: the process is the client itself.
    process.kill()
    process.communicate()
