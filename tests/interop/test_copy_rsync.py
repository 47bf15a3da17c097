"""`farline copy` does what rsync does with the same trees: rsync finds nothing to do after it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import FARLINE, environment, serving

RSYNC = "rsync"
LIMIT_S = 170

pytestmark = pytest.mark.skipif(shutil.which(RSYNC) is None, reason=f"needs {RSYNC}")


def farline(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """One farline command, run in a folder."""
    return subprocess.run(
        [*FARLINE, *words], cwd=folder, env=environment(folder), capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip


def rsync(*words: str) -> list[str]:
    """What rsync says that it does, or would do."""
    done = subprocess.run([RSYNC, *words], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def differences(source: Path, target: Path, *words: str) -> list[str]:
    """What rsync would change."""
    return rsync("-nirlptgoX", *words, f"{source}/", f"{target}/")


def copy(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """A copy's part of its record."""
    done = farline(folder, "copy", "--no-store", "--json", *words)
    assert done.returncode == code, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)["copy"]
    return report


def reasons(report: dict[str, Any]) -> dict[str, str]:
    """Why each name failed."""
    return {line["path"]: line["reason"] for line in report["failures"]}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "source"
    (top / "sub").mkdir(parents=True)
    (top / "a").write_text("one")
    (top / "b").write_text("other")
    (top / "sub/c").write_text("three")
    (top / "link").symlink_to("a")
    os.setxattr(top / "a", "user.kept", b"yes")
    for path in (top / "sub/c", top / "sub", top):
        os.utime(path, (1_500_000_000, 1_500_000_000))
    return top


@pytest.fixture
def target(tmp_path: Path, source: Path) -> Path:
    """What a copy has made of it before."""
    made = tmp_path / "target"
    rsync("-aX", f"{source}/", f"{made}/")
    return made


def spoil_attributes(target: Path) -> None:
    os.setxattr(target / "a", "user.kept", b"no")
    os.setxattr(target / "a", "user.more", b"gone afterwards")
    (target / "b").chmod(0o600)
    os.utime(target / "sub/c", (1, 1))
    os.utime(target / "link", (1, 1), follow_symlinks=False)
    (target / "sub").chmod(0o711)
    os.utime(target / "sub", (1, 1))


@pytest.mark.parametrize("level", ["checksum", "size"])
def test_attributes_of_what_is_there_become_the_sources_without_its_data(
    tmp_path: Path, source: Path, target: Path, level: str
) -> None:
    spoil_attributes(target)
    assert differences(source, target)
    words = ("--xattrs", "--sync-level", level, "source/", "target")
    inodes = {name: (target / name).stat().st_ino for name in ("a", "b", "sub/c")}
    dry = copy(tmp_path, "--dry-run", *words)
    assert dry["updated"]["files"] == 5 and differences(source, target)
    report = copy(tmp_path, *words)
    assert report["updated"]["files"] == 5 and report["copied"]["files"] == 0
    assert not differences(source, target, *(["--checksum"] if level == "checksum" else []))
    assert inodes == {name: (target / name).stat().st_ino for name in inodes}
    assert "updated" not in copy(tmp_path, *words)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        old = Path.cwd()
        os.chdir(path.parent)
        try:
            one.bind(path.name)
        finally:
            os.chdir(old)


def make_link(path: Path) -> None:
    path.symlink_to("nowhere")


def make_link_to_folder(path: Path) -> None:
    path.symlink_to("sub")


@pytest.mark.parametrize(
    "make", [make_pipe, make_socket, make_link, make_link_to_folder, Path.mkdir]
)
def test_what_stands_where_a_file_goes_is_replaced_when_that_may_be(
    tmp_path: Path, source: Path, target: Path, make: Callable[[Path], None]
) -> None:
    (target / "a").unlink()
    make(target / "a")
    refused = copy(tmp_path, "source/", "target", code=23)
    assert list(reasons(refused)) == ["a"] and "--overwrite different" in reasons(refused)["a"]
    copy(tmp_path, "--xattrs", "--overwrite", "older", "source/", "target")
    assert not differences(source, target)


def test_a_folder_with_something_in_it_makes_way_only_by_force(
    tmp_path: Path, source: Path, target: Path
) -> None:
    (target / "a").unlink()
    (target / "a/deep").mkdir(parents=True)
    (target / "a/deep/file").write_text("kept")
    words = ("--xattrs", "--overwrite", "different", "source/", "target")
    assert "--force" in reasons(copy(tmp_path, *words, code=23))["a"]
    assert (target / "a/deep/file").read_text() == "kept"
    kept = copy(tmp_path, "--force", "--exclude", "file", *words, code=23)
    assert "a filter protects something in it" in reasons(kept)["a"]
    dry = copy(tmp_path, "--force", "--dry-run", *words)
    assert dry["deleted"]["files"] == 3 and (target / "a/deep/file").exists()
    assert copy(tmp_path, "--force", *words)["deleted"]["files"] == 3
    assert not differences(source, target)


@pytest.mark.parametrize("make", [make_pipe, make_socket, make_link, Path.touch])
def test_what_stands_where_a_folder_goes_is_replaced_when_that_may_be(
    tmp_path: Path, source: Path, target: Path, make: Callable[[Path], None]
) -> None:
    shutil.rmtree(target / "sub")
    make(target / "sub")
    refused = copy(tmp_path, "source/", "target", code=23)
    assert "--overwrite different replaces it" in reasons(refused)["sub"]
    words = ("--xattrs", "--overwrite", "different", "source/", "target")
    dry = copy(tmp_path, "--dry-run", *words)
    assert (dry["copied"]["files"], dry["made"]) == (1, 1)
    copy(tmp_path, *words)
    assert not differences(source, target)


@pytest.mark.parametrize("inside", [True, False])
def test_links_to_folders_are_kept_or_replaced(
    tmp_path: Path, source: Path, target: Path, inside: bool
) -> None:
    shutil.rmtree(target / "sub")
    other = target / "real" if inside else tmp_path / "real"
    other.mkdir()
    (target / "sub").symlink_to(other if not inside else "real")
    refused = reasons(copy(tmp_path, "source/", "target", code=23))
    assert "-K copies into that folder" in refused["sub"] and "-K" in refused["sub/c"]
    copy(tmp_path, "-K", "source/", "target")
    assert (target / "sub").is_symlink() and (other / "c").read_text() == "three"
    if inside:
        # rsync 3.5 follows no link that leads out of its destination.
        assert not differences(source, target, "--keep-dirlinks")
    copy(tmp_path, "--overwrite", "different", "source/", "target")
    assert not (target / "sub").is_symlink() and not differences(source, target)


def test_special_files_in_sources_are_skipped_and_named(tmp_path: Path, source: Path) -> None:
    make_pipe(source / "pipe")
    done = farline(tmp_path, "copy", "--no-store", "source/", "new")
    assert done.returncode == 0
    assert "skipped pipe: is a device, a pipe or a socket" in done.stderr
    assert not (tmp_path / "new/pipe").exists()


def test_what_the_kernel_makes_up_arrives_with_its_content(tmp_path: Path) -> None:
    names = ["/proc/version", "/proc/filesystems", "/sys/kernel/mm/transparent_hugepage/enabled"]
    names = [name for name in names if Path(name).exists()]
    (tmp_path / "made").mkdir()
    report = copy(tmp_path, *names, "made")
    assert report["copied"]["files"] == len(names)
    for name in names:
        assert (tmp_path / "made" / Path(name).name).read_bytes() == Path(name).read_bytes()
    if Path("/proc/kcore").exists():
        wrong = copy(tmp_path, "/proc/kcore", "made", code=23)
        assert list(reasons(wrong)) == ["kcore"] and not (tmp_path / "made/kcore").exists()


def test_only_what_is_there_is_updated_with_existing(tmp_path: Path, source: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "b").write_text("old")
    report = copy(tmp_path, "--existing", "--overwrite", "different", "source/", "ours")
    rsync("-a", "--existing", f"{source}/", f"{tmp_path}/theirs/")
    assert report["copied"]["files"] == 1 and report["skipped"]["files"] == 4
    assert tree(tmp_path / "ours") == tree(tmp_path / "theirs") == ["b"]
    assert not rsync("-nirlptc", f"{tmp_path}/theirs/", f"{tmp_path}/ours/")


def test_the_reason_why_nothing_was_deleted_is_a_line_of_its_own_at_the_end(
    tmp_path: Path, source: Path, target: Path
) -> None:
    for number in range(120):
        (source / f"f{number}").write_text("new")
        (target / f"f{number}").write_text("older")
    (target / "extra").touch()
    (target / "more").touch()
    words = ("copy", "--no-store", "source/", "target")
    done = farline(tmp_path, *words, "--delete", "--max-delete=1")
    said = [line for line in done.stderr.splitlines() if line.startswith("farline: ")]
    assert done.returncode == 23
    assert said[-1] == "farline: nothing was deleted: 2 names to delete, but --max-delete allows 1"
    assert (target / "extra").exists()
    done = farline(tmp_path, *words, "--delete", "--max-delete=2", "--overwrite", "different")
    assert done.returncode == 0 and not (target / "extra").exists()


PATTERNS = [
    ["--exclude=/a"],
    ["--exclude=sub/"],
    ["--exclude=a/"],
    ["--exclude=**/c"],
    ["--exclude=sub/**"],
    ["--exclude=[!a]"],
    ["--exclude=[^a-b]"],
    ["--exclude=*"],
    ["--exclude=sub/***"],
    ["--include=*/", "--include=c", "--exclude=*"],
    ["--exclude=- b"],
    ["--exclude=+ a", "--exclude=?"],
    ["--filter=- b"],
    ["--filter=exclude b"],
    ["--filter=+ a", "--filter=- *"],
    ["--exclude=a", "--filter=!"],
    ["--exclude-from=rules"],
    ["--include-from=rules", "--exclude=*"],
    ["--filter=. merged"],
    ["-f- b"],
    ["--from0", "--exclude-from=zeros"],
]


@pytest.mark.parametrize("words", PATTERNS, ids=" ".join)
def test_filters_take_what_rsync_takes(tmp_path: Path, source: Path, words: list[str]) -> None:
    (source / "#hash").touch()
    (source / "sub/a").touch()
    (tmp_path / "rules").write_bytes(b"# a\r\n; b\n\n+ /a\n- c\n#hash\n\\#hash\r\nlink\n")
    (tmp_path / "merged").write_bytes(b"# none\n+ /a\n- a\n\n- b\n")
    (tmp_path / "zeros").write_bytes(b"b\0# a\0c\0")
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    copy(tmp_path, *words, "source/", "ours")
    done = subprocess.run(
        [RSYNC, "-a", *words, "source/", "theirs/"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "ours") == tree(tmp_path / "theirs")


def tree(top: Path) -> list[str]:
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (b"a\n\n# b\n;b\n./sub/c\r\n", []),
        (b"a\0sub/c", ["--from0"]),
        (b"two\nlines", ["--from0"]),
        (b"./#hash\n", []),
        (b"sub/\n", []),
    ],
)
def test_lists_of_names_are_read_as_rsync_reads_them(
    tmp_path: Path, source: Path, listed: bytes, words: list[str]
) -> None:
    (source / "#hash").touch()
    (source / "two\nlines").touch()
    (tmp_path / "list").write_bytes(listed)
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    copy(tmp_path, "--files-from=list", *words, "source/", "ours")
    options = ["-ar", "--files-from=list", *words, "source/", "theirs/"]
    done = subprocess.run([RSYNC, *options], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "ours") == tree(tmp_path / "theirs")


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of other users")


def everything(source: Path, target: Path, *words: str) -> list[str]:
    """What rsync would change, owners among it."""
    return rsync("-niaX", *words, f"{source}/", f"{target}/")


@as_root
def test_root_keeps_owners_groups_and_the_bits_that_lend_their_rights(
    tmp_path: Path, source: Path
) -> None:
    os.chown(source / "a", 1, 2)
    (source / "a").chmod(0o6755)
    os.chown(source / "sub", 4_000_001, 4_000_002)
    os.chown(source / "link", 1, 1, follow_symlinks=False)
    os.chown(source, 2, 2)
    copy(tmp_path, "-a", "--xattrs", "source/", "new")
    assert not everything(source, tmp_path / "new")
    copy(tmp_path, "--xattrs", "source/", "plain")
    assert (tmp_path / "plain/a").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "plain/a").stat().st_uid == 0
    words = ("--owner", "--group", "--numeric-ids", "--xattrs", "source/", "plain")
    dry = copy(tmp_path, "--dry-run", *words)
    assert dry["updated"]["files"] == 3
    assert copy(tmp_path, *words)["updated"]["files"] == 3
    # The folder itself was there: whose it is stays as it is.
    assert everything(source, tmp_path / "plain") == [".d...pog... ./"] or not [
        line for line in everything(source, tmp_path / "plain") if not line.endswith(" ./")
    ]


def test_a_ticket_keeps_owners_only_where_its_server_permits_it(
    tmp_path: Path, source: Path
) -> None:
    (tmp_path / "in").mkdir()
    for more, code in (([], 3), (["--keep-owners"], 0)):
        with serving(tmp_path, "--write", str(tmp_path / "in"), *more) as server:
            url = server.tickets["write"] + "#new"
            assert farline(tmp_path, "copy", "--no-store", "-a", "source/", url).returncode == 0
            done = farline(tmp_path, "copy", "--no-store", "--owner", "source/", url)
            assert (done.returncode == 0) == (code == 0), done.stderr
            assert code == 0 or "farline serve --keep-owners" in done.stderr


def test_sources_are_removed_once_they_are_there(tmp_path: Path, source: Path) -> None:
    for name in ("ours", "theirs"):
        shutil.copytree(source, tmp_path / f"{name}-source", symlinks=True)
        (tmp_path / f"{name}/b").mkdir(parents=True)
        (tmp_path / f"{name}/b/full").touch()
        shutil.copy2(source / "a", tmp_path / name / "a")
    report = copy(tmp_path, "--remove-source-files", "ours-source/", "ours", code=23)
    assert list(reasons(report)) == ["b"] and report["removed"] == 3
    subprocess.run(
        [RSYNC, "-a", "--remove-source-files", "theirs-source/", "theirs/"],
        cwd=tmp_path, capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert tree(tmp_path / "ours-source") == tree(tmp_path / "theirs-source") == ["b", "sub"]
    assert (tmp_path / "ours/sub/c").read_text() == "three"


def test_a_folder_copied_onto_itself_keeps_its_files(tmp_path: Path, source: Path) -> None:
    (tmp_path / "alias").symlink_to(source)
    before = tree(source)
    for target in ("source/", "alias/"):
        done = farline(tmp_path, "copy", "--no-store", "--remove-source-files", "source/", target)
        assert done.returncode == 1 and "the same folder" in done.stderr
        assert tree(source) == before


def test_a_dry_run_removes_nothing(tmp_path: Path, source: Path) -> None:
    before = tree(source)
    copy(tmp_path, "-n", "--remove-source-files", "source/", "new")
    assert tree(source) == before


def test_patterns_of_another_host_are_expanded_there_by_no_shell(
    tmp_path: Path, source: Path
) -> None:
    for name in ("one.dat", "two.dat", "three.txt", ".hidden.dat", "$(touch hacked).dat"):
        (source / "sub" / name).write_text(name)
    with serving(tmp_path, "--read", str(source)) as server:
        ticket = server.tickets["read"]
        found = {
            "sub/*.dat": ["$(touch hacked).dat", "one.dat", "two.dat"],
            "s*/t*.txt": ["three.txt"],
            "su?/": ["$(touch hacked).dat", ".hidden.dat", "c", "one.dat", "three.txt", "two.dat"],
        }
        for number, (pattern, names) in enumerate(found.items()):
            copy(tmp_path, f"{ticket}#{pattern}", f"new{number}/")
            assert tree(tmp_path / f"new{number}") == names
        words = (f"{ticket}#*.none", f"{ticket}#a", "new9/")
        missing = reasons(copy(tmp_path, *words, code=23))
        assert "no name matches it as a pattern" in missing["*.none"]
        done = farline(
            tmp_path, "copy", "--no-store", "--remove-source-files", f"{ticket}#sub/", "new8/"
        )
        assert done.returncode != 0 and "a server does not remove files" in done.stderr
    assert (source / "sub/one.dat").exists()
