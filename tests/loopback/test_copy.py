"""`farline copy` with the engine: to and from a server, between folders, over ssh's start-up."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loopback.conftest import Start, rows_of
from tests.support.serving import FARLINE, Serving, environment, farline, serving
from tests.support.trees import make_tree, shape

SSH = """#!/bin/sh
# Takes ssh's words and runs the command here, in the home folder.
export SSH_CONNECTION="127.0.0.1 50000 127.0.0.1 22"
while [ $# -gt 0 ]; do
    case "$1" in
    -T) shift ;;
    -G) echo "hostname 127.0.0.1"; exit 0 ;;
    -p | -i | -F | -J | -o) shift 2 ;;
    *) break ;;
    esac
done
shift
cd; exec sh -c "$*"
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tree(tmp_path_factory.mktemp("source") / "tree")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root that the server's tickets open."""
    return tmp_path_factory.mktemp("there")


@pytest.fixture(scope="module")
def files(home: Path, there: Path) -> Iterator[Serving]:
    with serving(home, "--write", str(there), "--read", str(there)) as running:
        yield running


@pytest.fixture
def ssh(tmp_path: Path) -> list[str]:
    """Options by which an ssh of the test's own is called."""
    path = tmp_path / "ssh"
    path.write_text(SSH)
    path.chmod(0o700)
    return ["-e", str(path), "--remote-farline", shlex.join(FARLINE)]


def copied(home: Path, *arguments: str) -> dict[str, Any]:
    """The record of a copy in which nothing fails."""
    done = farline(home, "copy", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    assert record["copy"]["failed"]["files"] == 0
    return record


def test_a_tree_goes_to_a_server_and_comes_back_as_it_was(
    tmp_path: Path, tree: Path, there: Path, files: Serving
) -> None:
    record = copied(tmp_path, f"{tree}/", f"{files.tickets['write']}#up")
    assert shape(there / "up") == shape(tree)
    assert record["copy"]["cipher"] == "aes128-gcm"
    assert record["copy"]["copied"]["bytes"] == record["copy"]["found"]["bytes"] > 3_000_000
    copied(tmp_path, f"{files.tickets['read']}#up/", str(tmp_path / "back"))
    assert shape(tmp_path / "back") == shape(tree)
    assert not list(there.rglob(".farline-partial"))


def test_a_folder_without_a_slash_at_its_end_is_a_folder_there(
    tmp_path: Path, tree: Path, there: Path, files: Serving
) -> None:
    (there / "whole").mkdir()
    copied(tmp_path, str(tree), f"{files.tickets['write']}#whole")
    assert shape(there / "whole" / "tree") == shape(tree)


def test_the_same_again_copies_nothing(tmp_path: Path, tree: Path) -> None:
    first = copied(tmp_path, f"{tree}/", str(tmp_path / "b"))
    again = copied(tmp_path, f"{tree}/", str(tmp_path / "b"))
    assert again["copy"]["copied"]["files"] == 0
    assert again["copy"]["present"]["files"] >= first["copy"]["copied"]["files"] > 40
    # Both ends are this host: nothing to seal against, unless that was asked for.
    assert first["copy"]["cipher"] == "none"
    sealed = copied(tmp_path, f"{tree}/", str(tmp_path / "c"), "--cipher", "aes256-gcm")
    assert sealed["copy"]["cipher"] == "aes256-gcm"


def test_what_nobody_hashes_or_seals_may_go_without_being_read(tmp_path: Path, tree: Path) -> None:
    options = ("--verify", "none", "--cipher", "none", "--read-engine", "sendfile")
    record = copied(tmp_path, f"{tree}/", str(tmp_path / "b"), *options)
    assert shape(tmp_path / "b") == shape(tree)
    assert record["copy"]["sender"]["engine"] == "sendfile"
    sealed = farline(tmp_path, "copy", f"{tree}/", str(tmp_path / "c"), *options[4:])
    assert sealed.returncode == 1 and sealed.stderr.count("\n") == 1
    assert sealed.stderr.startswith("farline: --read-engine: sendfile needs transport tcp,")
    assert not (tmp_path / "c").exists()


def test_what_is_there_and_differs_is_left_alone_unless_asked(tmp_path: Path, tree: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "large").write_text("mine")
    done = farline(tmp_path, "copy", f"{tree}/", str(there), "-q")
    assert done.returncode == 23
    assert done.stderr.startswith("farline: failed large: ") and done.stderr.count("\n") == 1
    assert (there / "large").read_text() == "mine"
    assert (there / "sub" / "small 3").exists()
    copied(tmp_path, f"{tree}/", str(there), "--overwrite", "different")
    assert shape(there) == shape(tree)


def test_nothing_changes_in_a_dry_run(tmp_path: Path, tree: Path) -> None:
    done = farline(tmp_path, "copy", "-n", "-v", f"{tree}/", str(tmp_path / "b"))
    assert done.returncode == 0, done.stderr
    assert "large (would-copy)" in done.stdout
    assert not (tmp_path / "b").exists() or not shape(tmp_path / "b")


def test_filters_and_lists_take_what_they_say(tmp_path: Path, tree: Path) -> None:
    copied(
        tmp_path, f"{tree}/", str(tmp_path / "b"),
        "--include", "small 1*", "--exclude", "small *", "--exclude", "/large",
    )  # fmt: skip
    found = {path.name for path in (tmp_path / "b").rglob("*") if path.is_file()}
    assert "small 17" in found and "small 2" not in found and "large" not in found
    (tmp_path / "names").write_text("large\nsub/small 5\n")
    copied(tmp_path, f"{tree}/", str(tmp_path / "c"), "--files-from", str(tmp_path / "names"))
    files = sorted(str(p.relative_to(tmp_path / "c")) for p in (tmp_path / "c").rglob("*"))
    assert files == ["large", "sub", "sub/small 5"]


def test_delete_deletes_exactly_as_many_as_said(tmp_path: Path, tree: Path) -> None:
    copied(tmp_path, f"{tree}/", str(tmp_path / "b"))
    for name in ("extra 1", "extra 2"):
        (tmp_path / "b" / name).touch()
    wrong = farline(tmp_path, "copy", f"{tree}/", str(tmp_path / "b"), "--delete=1", "-q")
    assert wrong.returncode != 0
    assert (tmp_path / "b" / "extra 1").exists() and (tmp_path / "b" / "extra 2").exists()
    told = copied(tmp_path, f"{tree}/", str(tmp_path / "b"), "-n", "--delete")
    assert told["copy"]["deleted"]["files"] == 2
    copied(tmp_path, f"{tree}/", str(tmp_path / "b"), "--delete=2")
    assert shape(tmp_path / "b") == shape(tree)


def test_delete_leaves_alone_what_another_copy_keeps_below(tmp_path: Path, tree: Path) -> None:
    (tree_with := tmp_path / "a").mkdir()
    (tree_with / "sub").mkdir()
    (tree_with / "sub" / "file").touch()
    copied(tmp_path, f"{tree_with}/", str(tmp_path / "b"))
    other = tmp_path / "b" / "sub" / ".farline-partial"
    (other / "of another copy").mkdir(parents=True)
    # Where the folder itself goes, all that is in it does.
    (tmp_path / "b" / "gone" / ".farline-partial").mkdir(parents=True)
    record = copied(tmp_path, f"{tree_with}/", str(tmp_path / "b"), "--delete=2")
    assert record["copy"]["deleted"]["files"] == 2
    assert (other / "of another copy").is_dir()
    assert not (tmp_path / "b" / "gone").exists()


def test_what_makes_way_counts_among_what_is_deleted(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    (source / "name").write_text("now a file")
    (target / "name").mkdir(parents=True)
    for name in ("name/x", "name/y", "extra"):
        (target / name).touch()
    words = (f"{source}/", str(target), "--force", "--overwrite", "different", "--delete")
    assert copied(tmp_path, *words, "-n")["copy"]["deleted"]["files"] == 4
    assert copied(tmp_path, *words, "--max-delete=4")["copy"]["deleted"]["files"] == 4
    assert shape(target) == shape(source)
    (target / "name").unlink()
    (target / "name").mkdir()
    for name in ("name/x", "extra"):
        (target / name).touch()
    done = farline(tmp_path, "copy", *words, "--max-delete=2", "--json")
    assert done.returncode == 23
    [problem] = json.loads(done.stdout)["copy"]["problems"]
    assert problem.startswith("only what --force replaced was deleted: 3 names to delete")
    assert (target / "extra").exists()


def test_a_path_that_is_cut_behind_a_slash_fails_by_name_alone(tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.mkdir()
    (source / "z").touch()
    here = os.open(source, os.O_RDONLY)
    for _ in range(16):
        os.mkdir("n" * 255, dir_fd=here)
        inner = os.open("n" * 255, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    done = farline(tmp_path, "copy", f"{source}/", str(tmp_path / "b"), "--json")
    assert done.returncode == 23, done.stderr
    [failed] = json.loads(done.stdout)["copy"]["failures"]
    assert failed["reason"] == "has a path of more than 4096 bytes"
    assert (tmp_path / "b" / "z").exists()


def test_the_receipt_lists_every_file_and_the_run_is_kept(tmp_path: Path, tree: Path) -> None:
    receipt = tmp_path / "receipt.jsonl"
    record = copied(tmp_path, f"{tree}/", str(tmp_path / "b"), "--receipt", str(receipt))
    lines = [json.loads(line) for line in receipt.read_text().splitlines()]
    content = {line["path"]: line for line in lines if line["kind"] == "file"}
    regular = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(content) == len(regular)
    assert all(len(line["xxh3_tree"]) == 32 for line in content.values())
    assert "sub/deeper/\\xff\\xfe" in content and "sub/deeper/new\\x0aline" in content
    rows = rows_of(tmp_path / "data" / "farline" / "store")
    assert [row["run_id"] for row in rows] == [record["run_id"]]


def test_a_pull_says_what_the_other_end_could_not_send(
    tmp_path: Path, there: Path, files: Serving
) -> None:
    (there / "alone").write_text("w")
    (there / "pipes").mkdir()
    os.mkfifo(there / "pipes" / "p")
    receipt = tmp_path / "receipt.jsonl"
    sources = [f"{files.tickets['read']}#{name}" for name in ("missing", "alone", "pipes")]
    done = farline(tmp_path, "copy", *sources, f"{tmp_path / 'b'}/", "--receipt", str(receipt))
    assert done.returncode == 23, done.stderr
    assert "missing" in done.stderr + done.stdout
    lines = {
        line["path"]: line["status"] for line in map(json.loads, receipt.read_text().splitlines())
    }
    assert lines["missing"] == "failed" and lines["pipes/p"] == "skipped"
    assert (tmp_path / "b" / "alone").read_text() == "w"


def test_a_ticket_opens_what_it_is_for_and_nothing_else(
    tmp_path: Path, tree: Path, there: Path, files: Serving
) -> None:
    (there / "x").write_text("x")
    for words in (
        [f"{files.tickets['write']}#x", str(tmp_path)],
        [str(tree / "large"), f"{files.tickets['read']}#y"],
        [str(tree / "large"), f"{files.ticket}#y"],
    ):
        done = farline(tmp_path, "copy", *words, "-q")
        assert done.returncode == 4, done.stderr
        assert done.stderr.count("\n") == 1
    (tmp_path / "secret").write_text("s")
    out = farline(
        tmp_path, "copy", f"{files.tickets['read']}#../{tmp_path.name}/secret", str(tmp_path / "o")
    )
    assert out.returncode != 0 and not (tmp_path / "o").exists()
    assert farline(tmp_path, "probe", files.tickets["write"], "-t", "0.1").returncode == 4


def test_a_server_that_wants_a_cipher_gets_one(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "root").mkdir()
    with serving(tmp_path, "--write", str(tmp_path / "root"), "--require-cipher") as server:
        url = f"{server.tickets['write']}#a"
        refused = farline(tmp_path, "copy", f"{tree}/", url, "--no-encrypt", "-q")
        assert refused.returncode == 4 and "requires encryption" in refused.stderr
        copied(tmp_path, f"{tree}/", url)


def test_over_ssh_to_and_from_another_host(tmp_path: Path, tree: Path, ssh: list[str]) -> None:
    to = copied(tmp_path, f"{tree}/", f"dtn:{tmp_path}/up", *ssh)
    assert shape(tmp_path / "up") == shape(tree)
    assert to["copy"]["cipher"] == "aes128-gcm"
    copied(tmp_path, f"u@dtn:{tmp_path}/up/", str(tmp_path / "back"), *ssh, "--single-port")
    assert shape(tmp_path / "back") == shape(tree)


def test_a_host_that_cannot_be_connected_to_connects_back(
    tmp_path: Path, tree: Path, ssh: list[str]
) -> None:
    back = [*ssh, "--connect-back", "0"]
    record = copied(tmp_path, f"{tree}/", f"dtn:{tmp_path}/up", *back)
    assert shape(tmp_path / "up") == shape(tree)
    assert record["copy"]["cipher"] == "aes128-gcm" and record["spec"]["streams"] == 4
    copied(tmp_path, f"dtn:{tmp_path}/up/", str(tmp_path / "back"), *back)
    assert shape(tmp_path / "back") == shape(tree)


def test_between_two_other_hosts_the_data_go_directly(
    tmp_path: Path, tree: Path, ssh: list[str], files: Serving, there: Path
) -> None:
    receipt = tmp_path / "receipt"
    record = copied(tmp_path, f"a:{tree}/", f"b:{tmp_path}/direct", *ssh, "--receipt", str(receipt))
    assert shape(tmp_path / "direct") == shape(tree)
    assert record["copy"]["cipher"] == "aes128-gcm"
    assert len(receipt.read_text().splitlines()) > 40
    copied(tmp_path, f"a:{tree}/", f"{files.tickets['write']}#third", *ssh)
    assert shape(there / "third") == shape(tree)
    copied(tmp_path, f"{files.tickets['read']}#third/", f"b:{tmp_path}/fourth", *ssh)
    assert shape(tmp_path / "fourth") == shape(tree)


def test_what_the_shells_of_two_other_hosts_print_does_not_matter(
    tmp_path: Path, tree: Path, ssh: list[str]
) -> None:
    path = tmp_path / "ssh"
    noise = """printf '{}\\033]0;x\\007hello: '; echo '{"event": "end", "data": {}}'; printf x"""
    path.write_text(path.read_text().replace("cd; exec", f"cd; {noise}; exec"))
    copied(tmp_path, f"a:{tree}/", f"b:{tmp_path}/direct", *ssh)
    assert shape(tmp_path / "direct") == shape(tree)


def test_ssh_may_ask_for_a_password_on_the_terminal(tmp_path: Path, ssh: list[str]) -> None:
    path = tmp_path / "ssh"
    asks = "printf 'word: ' >/dev/tty; read word </dev/tty; test \"$word\" = sesame || exit 255"
    path.write_text(path.read_text().replace("cd; exec", f"{asks}; cd; exec"))
    (tmp_path / "a").write_text("x")
    ends = [str(tmp_path / "a"), f"dtn:{tmp_path}/b"]
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(FARLINE[0], [*FARLINE, "copy", *ends, *ssh], dict(environment(tmp_path)))
    seen = b""
    while b"word: " not in seen:
        seen += os.read(terminal, 1024)
    os.write(terminal, b"sesame\n")
    with contextlib.suppress(OSError):
        while more := os.read(terminal, 1024):
            seen += more
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, seen
    assert (tmp_path / "b").read_text() == "x"


def test_a_failure_of_the_other_two_is_said_here(tmp_path: Path, ssh: list[str]) -> None:
    done = farline(tmp_path, "copy", f"a:{tmp_path}/none", f"b:{tmp_path}/x", *ssh, "-q")
    assert done.returncode not in (0, 70) and "none" in done.stderr


def test_a_stopped_copy_goes_on_where_it_was(tmp_path: Path, start: Start) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(8 << 20))
    words = ["copy", str(source), str(tmp_path / "b"), "--bwlimit", "2M", "--chunk", "256K"]
    first = start(tmp_path, *words, "--json-stream")
    assert first.stdout is not None
    for line in first.stdout:
        event = json.loads(line)
        if event["event"] == "progress" and event["data"]["moved_bytes"] > 3 << 20:
            break
    first.send_signal(2)
    last = [json.loads(line) for line in first.stdout.read().splitlines()][-1]
    assert first.wait(30) == 130
    assert last["data"]["farline"]["status"] == "partial"
    assert not (tmp_path / "b").exists()
    record = copied(tmp_path, str(source), str(tmp_path / "b"), "--chunk", "256K")
    assert (tmp_path / "b").read_bytes() == source.read_bytes()
    assert record["copy"]["resumed_bytes"] >= 1 << 20


def test_a_copy_that_is_held_to_a_low_rate_keeps_what_it_had_in_the_last_second(
    tmp_path: Path, start: Start
) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(4 << 20))
    words = ["copy", str(source), str(tmp_path / "b"), "--bwlimit", "200k"]
    first = start(tmp_path, *words, "--json-stream")
    assert first.stdout is not None
    for line in first.stdout:
        event = json.loads(line)
        if event["event"] == "progress" and event["data"]["moved_bytes"] > 700 << 10:
            break
    first.send_signal(2)
    begun = time.monotonic()
    first.stdout.read()
    assert first.wait(30) == 130
    assert time.monotonic() - begun < 8, "it waited for chunks that take long"
    record = copied(tmp_path, str(source), str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == source.read_bytes()
    assert record["copy"]["resumed_bytes"] >= 256 << 10


def test_a_copy_that_is_stopped_does_not_wait_for_chunks_that_take_long(
    tmp_path: Path, start: Start
) -> None:
    (tmp_path / "source").write_bytes(os.urandom(4 << 20))
    words = [str(tmp_path / "source"), str(tmp_path / "b"), "--bwlimit", "100k", "--chunk", "2M"]
    first = start(tmp_path, "copy", *words, "--json-stream")
    assert first.stdout is not None
    for line in first.stdout:
        event = json.loads(line)
        if event["event"] == "progress" and event["data"]["moved_bytes"] > 0:
            break
    first.send_signal(2)
    begun = time.monotonic()
    first.stdout.read()
    assert first.wait(30) == 130
    assert time.monotonic() - begun < 8


def test_a_server_that_was_killed_finds_the_copy_going_on(tmp_path: Path, start: Start) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "source").write_bytes(os.urandom(8 << 20))
    root = ["--write", str(tmp_path / "root")]
    with serving(tmp_path, *root) as first:
        port = first.address.rpartition(":")[2]
        url = f"{first.tickets['write']}#b"
        words = [str(tmp_path / "source"), url, "--bwlimit", "2M", "--chunk", "256K"]
        copy = start(tmp_path, "copy", *words, "--json-stream")
        assert copy.stdout is not None
        events = []
        for line in copy.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == "progress" and events[-1]["data"]["moved_bytes"] > 4 << 20:
                break
        first.process.kill()
        first.process.wait()
    with serving(tmp_path, *root, "-p", port):
        events += [json.loads(line) for line in copy.stdout]
        assert copy.wait(60) == 0
    assert (tmp_path / "root" / "b").read_bytes() == (tmp_path / "source").read_bytes()
    again = [event["data"] for event in events if event["event"] == "error"]
    assert again and all("again_in_s" in data for data in again)
    assert events[-1]["data"]["farline"]["copy"]["resumed_bytes"] >= 1 << 20
    statuses = [row["status"] for row in rows_of(tmp_path / "data" / "farline" / "store")]
    assert statuses[0] == "failed" and statuses[-1] == "complete"


@pytest.mark.parametrize("options", [(), ("--verify", "none")], ids=["hashed", "plain"])
@pytest.mark.parametrize("had", [False, True], ids=["vacant", "older-copy"])
def test_a_source_that_is_rewritten_shorter_while_it_is_read_arrives_as_it_is_then(
    tmp_path: Path, start: Start, options: tuple[str, ...], had: bool
) -> None:
    source, target = tmp_path / "big", tmp_path / "there"
    source.write_bytes(os.urandom(24 << 20))
    os.utime(source, ns=(10**18, 10**18))
    target.mkdir()
    if had:
        (target / "big").write_bytes(b"a good copy")
        os.utime(target / "big", ns=(9 * 10**17, 9 * 10**17))
    words = [
        "--bwlimit",
        "4MB/s",
        "--chunk",
        "256K",
        "--overwrite",
        "different",
        "--json-stream",
        *options,
    ]
    copy = start(tmp_path, "copy", "--no-store", *words, str(source), f"{target}/")
    assert copy.stdout is not None
    events = map(json.loads, copy.stdout)
    next(event for event in events if event["event"] == "progress" and _has_begun(event))
    source.write_bytes(b"new" * 10_000)
    for _ in events:
        pass
    assert copy.wait(60) == 0
    assert (target / "big").read_bytes() == source.read_bytes()
    assert (target / "big").stat().st_mtime_ns == source.stat().st_mtime_ns
    assert list(target.iterdir()) == [target / "big"]
    assert copy.stderr is not None and "again in" not in copy.stderr.read()


def _has_begun(event: dict[str, Any]) -> bool:
    return bool(0 < event["data"]["moved_bytes"] < 12 << 20)


def test_the_first_session_is_not_slowed_down_by_what_comes_after_it(tmp_path: Path) -> None:
    """A copy of one small file needs no array library, and says so by its imports."""
    (tmp_path / "a").write_text("x")
    code = (
        "import sys\nfrom farline.cli.group import run\n"
        f"code = run(['copy', '{tmp_path}/a', '{tmp_path}/b', '-q'])\n"
        "print(code, [n for n in ('numpy', 'pyarrow', 'duckdb', 'rich') if n in sys.modules])"
    )
    from tests.support.serving import environment

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "0 []"
