"""`farline ls`, `stat`, `cat`, `mkdir`, `rename`, `rm`, `farline.open_folder` and fsspec."""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pytest

import farline as fl
from farline.api.fsspec_files import FarlineFileSystem
from farline.errors import AuthError, FarlineError, LimitError, UsageError
from farline.tools.names import NameExists, NoFolder, NoSuchName, NotAllowed
from tests.loopback.conftest import Start
from tests.support.serving import Serving, environment, farline, serving

pytestmark = pytest.mark.loopback


@dataclass
class Site:
    """A server with a folder, and tickets for it."""

    home: Path
    root: Path
    server: Serving

    def ticket(self, may: str, path: str = "") -> str:
        """A location by the ticket to `read` or to `write`."""
        return f"{self.server.tickets[may].partition('#')[0]}#{path or '.'}"

    def run(self, verb: str, may: str, path: str = "", *more: str, code: int = 0) -> str:
        """What a verb prints, or says of its failure."""
        done = farline(self.home, verb, self.ticket(may, path), *more)
        assert done.returncode == code, (done.stdout, done.stderr)
        assert "v1." not in done.stdout + done.stderr, "a ticket is a secret"
        assert code == 0 or len(done.stderr.splitlines()) == 1, done.stderr
        return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """For all tests of this file; each has a folder of its own below the root."""
    home = tmp_path_factory.mktemp("site")
    root = home / "root"
    root.mkdir()
    words = ("--read", str(root), "--write", str(root))
    with serving(home, *words) as server:
        yield Site(home, root, server)


def test_a_folder_is_listed_as_it_is(site: Site) -> None:
    folder = site.root / "listed"
    (folder / "below/deep").mkdir(parents=True)
    (folder / "data.bin").write_bytes(b"x" * 12_345)
    (folder / "below/deep/file").touch()
    (folder / "link").symlink_to("data.bin")
    (folder / "gone").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    (folder / os.fsdecode(b"odd\xff\x1b[2J name")).touch()
    os.utime(folder / "data.bin", ns=(0, 1_700_000_000_123_456_789))
    (folder / "data.bin").chmod(0o640)
    lines = site.run("ls", "read", "listed", "-b").splitlines()
    assert len(lines) == 6
    by_name = {line.split("  ")[-1].partition(" -> ")[0]: line for line in lines}
    assert "below/" in by_name and by_name["below/"].startswith("drwx")
    assert by_name["data.bin"].split()[:2] == ["-rw-r-----", "12345"]
    assert by_name["link"].startswith("lrwx") and by_name["link"].endswith("-> data.bin")
    assert "\\xff\\x1b[2J" in "".join(lines) and "\x1b" not in "".join(lines)
    names = site.run("ls", "write", "listed/", "-R", "-1").splitlines()
    assert names == sorted(names) and "below/deep/file" in names
    documents = [
        json.loads(line) for line in site.run("ls", "read", "listed", "--json").split("\n") if line
    ]
    data = next(one for one in documents if one["path"] == "data.bin")
    assert (data["bytes"], data["mtime_ns"], data["mode"]) == (
        12_345,
        1_700_000_000_123_456_789,
        "0640",
    )
    link = next(one for one in documents if one["path"] == "link")
    assert (link["kind"], link["target"], link["target_kind"]) == ("link", "data.bin", "file")
    assert "target_kind" not in next(one for one in documents if one["path"] == "gone")
    # One file is listed as itself, and a folder with -d.
    assert site.run("ls", "read", "listed/data.bin", "-1").strip() == "data.bin"
    assert site.run("ls", "read", "listed", "-d", "-1").strip() == "listed"


def test_sums_are_those_of_the_usual_tools(site: Site) -> None:
    content = os.urandom(3_000_000)
    (site.root / "summed").write_bytes(content)
    (site.root / "empty").touch()
    words = ("--sum", "md5,adler32,blake3", "--json")
    for may in ("read", "write"):
        found = [
            json.loads(line)
            for line in site.run("stat", may, "summed", "empty", *words).splitlines()
        ]
        assert [one["path"] for one in found] == ["summed", "empty"]
        sums = found[0]["sums"]
        assert sums["md5"] == hashlib.md5(content).hexdigest()
        assert sums["adler32"] == f"{zlib.adler32(content):08x}"
        assert len(sums["blake3"]) == 64
        assert found[1]["sums"]["adler32"] == "00000001"
    printed = site.run("stat", "read", "summed", "--sum", "md5")
    assert "3000000 bytes" in printed and hashlib.md5(content).hexdigest() in printed
    assert "is a folder" in site.run("stat", "read", ".", "--sum", "md5", code=1)
    assert "one or more of: blake3, adler32, md5" in site.run(
        "stat", "read", ".", "--sum", "sha9", code=1
    )


def test_names_are_made_changed_and_removed(site: Site) -> None:
    folder = site.root / "changed"
    site.run("mkdir", "write", "changed/a/b", "-p")
    assert (folder / "a/b").is_dir()
    site.run("mkdir", "write", "changed/a/b", "-p")
    assert "exists already" in site.run("mkdir", "write", "changed/a/b", code=1)
    assert "no such file or folder" in site.run("mkdir", "write", "changed/x/y", code=1)
    (folder / "file").write_text("one")
    (folder / "other").write_text("two")
    assert "exists already" in site.run("rename", "write", "changed/file", "changed/other", code=1)
    assert (folder / "other").read_text() == "two"
    site.run("rename", "write", "changed/file", "changed/other", "--force")
    assert (folder / "other").read_text() == "one"
    # The new name may be written with the server, too.
    site.run("rename", "write", "changed/other", site.ticket("write", "changed/new/file"), "-p")
    assert (folder / "new/file").read_text() == "one"
    # Words are names as they are; escapes are for what is printed.
    (folder / "b\\s").write_text("b")
    site.run("rename", "write", "changed/b\\s", "changed/c\\t\udcff")
    assert (folder / "c\\t\udcff").read_text() == "b"
    assert "1 name" in site.run("rm", "write", "changed/none", "changed/c\\t\udcff", "-f", "-v")
    assert "not empty" in site.run("rm", "write", "changed/new", code=1)
    assert (
        site.run("rm", "write", "changed/new", "changed/a", "-r", "-v").strip() == "4 names removed"
    )
    assert list(folder.iterdir()) == []
    assert "no such file" in site.run("rm", "write", "changed/none", code=1)
    site.run("rm", "write", "changed/none", "changed", "-f")
    assert not folder.exists()
    for path in (".", "/", "..", "a/.."):
        site.run("rm", "write", path, "-r", code=1)
    assert site.root.exists()


def test_a_ticket_gives_its_own_rights_below_its_own_folder(site: Site, tmp_path: Path) -> None:
    (site.root / "kept").write_text("kept")
    (tmp_path / "secret").write_text("secret")
    (site.root / "out").symlink_to(tmp_path)
    for verb, more in (("rm", ()), ("mkdir", ()), ("rename", ("kept2",))):
        assert "the ticket is for reading files" in site.run(verb, "read", "kept", *more, code=4)
    assert "for writing files, not for reading" in site.run("cat", "write", "kept", code=4)
    for path in ("../kept", "out/secret", "/../../etc/passwd"):
        assert "leads outside" in site.run("cat", "read", path, code=4)
        assert "leads outside" in site.run("rm", "write", path, "-r", code=4)
        assert "leads outside" in site.run("stat", "read", path, code=4)
    site.run("rm", "write", "out", "-r")
    assert (tmp_path / "secret").exists(), "the link is gone, not what it led to"
    done = farline(site.home, "ls", f"{site.server.ticket}#.")
    assert (done.returncode, "the ticket is for profiling" in done.stderr) == (4, True), done.stderr
    done = farline(site.home, "ls", f"farline://{site.server.address}#.")
    assert done.returncode == 4 and "need a ticket" in done.stderr
    done = farline(site.home, "ls", "/tmp")
    assert done.returncode == 1 and "is on this host" in done.stderr


def test_what_is_in_a_file_is_printed_from_anywhere(site: Site) -> None:
    content = "".join(f"line {number}\n" for number in range(200_000))
    (site.root / "text").write_text(content)
    assert site.run("cat", "read", "text") == content
    assert (
        site.run("cat", "read", "text", "--offset", "1MB", "--count", "9B") == content[10**6 :][:9]
    )
    assert site.run("cat", "read", "text", "--offset", "1GB") == ""
    assert "is a folder" in site.run("cat", "read", ".", code=1)


def test_limits_of_a_ticket_hold(site: Site) -> None:
    (site.root / "large").write_bytes(bytes(3_000_000))
    state = str(site.home / "state")
    host, port = site.server.address.rsplit(":", 1)
    words = ("ticket", "make", host, "-p", port, "--state-dir", state)
    limited = farline(site.home, *words, "--read", str(site.root), "--limit-bytes", "1MB")
    assert limited.returncode == 0, limited.stderr
    ticket = limited.stdout.strip().splitlines()[-1].partition("#")[0]
    with fl.open_folder(f"{ticket}#.") as folder:
        assert len(folder.read("large", 0, 900_000)) == 900_000
        with pytest.raises(LimitError, match="does not allow reading more"):
            folder.read("large")
    slow = farline(site.home, *words, "--read", str(site.root), "--limit-rate", "8Mbit")
    ticket = slow.stdout.strip().splitlines()[-1].partition("#")[0]
    began = time.monotonic()
    with fl.open_folder(f"{ticket}#.") as folder:
        folder.read("large", 0, 2_000_000)
    assert time.monotonic() - began > 1.0, "2 MB at 1 MB/s, the last part excepted"


def test_every_change_is_told(site: Site, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with serving(tmp_path, "--write", str(tmp_path / "root")) as server:
        assert server.process.stdout is not None
        ticket = server.tickets["write"].partition("#")[0]
        with fl.open_folder(f"{ticket}#.") as folder:
            folder.make_folder("a")
            with pytest.raises(NoSuchName):
                folder.remove("b")
        events: list[dict[str, Any]] = []
        while not events or events[-1]["event"] != "names_ended":
            events.append(json.loads(server.process.stdout.readline()))
    assert [one["event"] for one in events] == [
        "names_started", "name_changed", "name_changed", "names_ended",
    ]  # fmt: skip
    assert (events[1]["verb"], events[1]["path"], events[1]["count"]) == ("make_folder", "a", 1)
    assert (events[2]["verb"], events[2]["error"]) == ("remove", "b: no such file or folder")
    assert (events[3]["requests"], events[3]["changes"], events[3]["status"]) == (2, 1, "complete")
    assert not any("v1." in json.dumps(one) for one in events)


def test_the_library_has_python_s_own_errors(site: Site) -> None:
    (site.root / "lib").mkdir()
    (site.root / "lib/file").write_text("content")
    with fl.open_folder(site.ticket("write", "lib")) as folder:
        assert [name.name for name in folder.list()] == ["file"]
        assert folder.stat("file").bytes == 7 and folder.stat().is_folder
        assert folder.exists("file") and not folder.exists("none")
        for call, kind, own in (
            (lambda: folder.stat("none"), NoSuchName, FileNotFoundError),
            (lambda: folder.make_folder("file"), NameExists, FileExistsError),
            (lambda: folder.list("file"), NoFolder, NotADirectoryError),
            (lambda: folder.read("file"), NotAllowed, PermissionError),
        ):
            with pytest.raises(kind) as caught:
                call()
            assert isinstance(caught.value, own) and isinstance(caught.value, FarlineError)
        folder.rename("file", "new/file", parents=True)
        assert folder.remove("new", recursive=True) == 2
        assert "v1." not in repr(folder)
    with pytest.raises(UsageError, match="on this host"):
        fl.open_folder(str(site.root))
    with pytest.raises(AuthError):
        fl.open_folder(f"farline://{site.server.address}#.")


def test_a_session_that_ended_is_begun_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with fl.open_folder(site.ticket("read")) as folder:
        folder.stat()
        first = folder._session
        monkeypatch.setattr("farline.api.folder.IDLE_S", 0.0)
        folder.stat()
        assert folder._session is not first


def test_ten_thousand_names_are_listed_once_each(site: Site) -> None:
    many = site.root / "many"
    many.mkdir()
    for number in range(10_000):
        (many / f"{number:05}").touch()
    names = site.run("ls", "read", "many", "-1").splitlines()
    assert names == [f"{number:05}" for number in range(10_000)]


def test_two_clients_ask_at_once(site: Site, start: Start) -> None:
    (site.root / "twice").mkdir(exist_ok=True)
    running = [start(site.home, "ls", site.ticket("read", "twice")) for _ in range(4)]
    assert [one.wait(30) for one in running] == [0] * 4


@pytest.fixture
def files(site: Site) -> Iterator[FarlineFileSystem]:
    """fsspec's view of the ticket to read."""
    FarlineFileSystem.clear_instance_cache()
    found = fsspec.filesystem("farline", server=site.server.tickets["read"])
    yield found
    found.close()


def test_tables_are_read_by_pandas_and_arrow(site: Site, files: FarlineFileSystem) -> None:
    import pyarrow.parquet as pq

    table = pd.DataFrame({"a": range(100_000), "b": [f"x{n}" for n in range(100_000)]})
    (site.root / "tables").mkdir(exist_ok=True)
    table.to_parquet(site.root / "tables/t.parquet")
    table.to_csv(site.root / "tables/t.csv", index=False)
    assert pd.read_csv(site.ticket("read", "tables/t.csv")).equals(table)
    read = pq.read_table("tables/t.parquet", filesystem=files, columns=["a"])
    assert read.column("a").to_pylist() == list(range(100_000))


def test_fsspec_lists_finds_and_reads_ranges(site: Site, files: FarlineFileSystem) -> None:
    folder = site.root / "spec"
    (folder / "x/y").mkdir(parents=True)
    content = os.urandom(1_000_000)
    (folder / "x/data").write_bytes(content)
    (folder / "x/y/more.txt").write_text("more")
    (folder / "link").symlink_to("x/data")
    assert sorted(files.ls("spec", detail=False)) == ["spec/link", "spec/x"]
    assert files.info("spec/link")["size"] == 1_000_000 and files.isfile("spec/link")
    assert (
        files.isdir("spec/x") and files.exists("spec/x/y/more.txt") and not files.exists("spec/z")
    )
    assert files.find("spec/x") == ["spec/x/data", "spec/x/y/more.txt"]
    assert files.glob("spec/**/*.txt") == ["spec/x/y/more.txt"]
    assert files.du("spec/x") == 1_000_004
    assert files.cat_file("spec/x/data", 500_000, 500_010) == content[500_000:500_010]
    assert files.cat_file("spec/x/data", -5) == content[-5:]
    assert files.cat_ranges(["spec/x/data"] * 2, [0, 9], [3, 12]) == [content[:3], content[9:12]]
    with files.open("spec/x/data") as file:
        file.seek(999_990)
        assert file.read() == content[-10:]
    assert files.checksum("spec/x/data") == int(hashlib.md5(content).hexdigest(), 16)
    with pytest.raises(FileNotFoundError):
        files.open("spec/none")
    with pytest.raises(PermissionError):
        files.rm_file("spec/x/data")
    assert "v1." not in files.unstrip_protocol("spec/x")


def test_fsspec_writes_whole_files_or_none(site: Site, tmp_path: Path) -> None:
    FarlineFileSystem.clear_instance_cache()
    files: Any = fsspec.filesystem("farline", server=site.server.tickets["write"])
    files.makedirs("put/deep")
    with pytest.raises(FileExistsError):
        files.makedirs("put/deep")
    with files.open("put/new.bin", "wb") as file:
        file.write(b"a" * 9_000_000)
        file.write(b"end")
        assert not (site.root / "put/new.bin").exists()
    assert (site.root / "put/new.bin").read_bytes() == b"a" * 9_000_000 + b"end"
    with files.open("put/new.bin", "wb") as file:
        file.write(b"short")
    assert (site.root / "put/new.bin").read_text() == "short"
    (tmp_path / "tree/below").mkdir(parents=True)
    (tmp_path / "tree/below/file").write_text("in a tree")
    files.put(str(tmp_path / "tree"), "put/tree", recursive=True)
    assert (site.root / "put/tree/below/file").read_text() == "in a tree"
    files.mv("put/new.bin", "put/old.bin")
    assert sorted(files.ls("put", detail=False)) == ["put/deep", "put/old.bin", "put/tree"]
    files.rm("put", recursive=True)
    assert not (site.root / "put").exists()
    reader: Any = fsspec.filesystem("farline", server=site.server.tickets["read"])
    (site.root / "got").mkdir(exist_ok=True)
    (site.root / "got/file").write_text("got")
    reader.get("got", str(tmp_path / "here"), recursive=True)
    assert (tmp_path / "here/file").read_text() == "got"


def test_fsspec_finds_farline_by_its_entry_point(site: Site) -> None:
    import subprocess
    import sys

    (site.root / "hello").write_text("hello")
    script = "import fsspec, sys; print(fsspec.open(sys.argv[1]).open().read().decode(), end='')"
    done = subprocess.run(
        [sys.executable, "-c", script, site.ticket("read", "hello")],
        env=environment(site.home), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "hello"), done.stderr
