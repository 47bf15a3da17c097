"""Other tools agree with `farline copy`: rsync finds nothing to do after it, b3sum and xxhsum print
the same sums.

The tree has names in any bytes, sparse files, empty folders, symbolic and hard links, extended
attributes and times to the nanosecond.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from _copy.faults import plan, tree
from _copy.faults.check import Receipt, read_receipt
from tests.support.serving import farline, serving

RSYNC, B3SUM, XXHSUM = "rsync", "b3sum", "xxhsum"
ROOT = Path(__file__).parents[2]
LIMIT_S = 60
SCALE = replace(plan.SHORT, most_file_bytes=3 << 20, most_tree_bytes=12 << 20)

pytestmark = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in (RSYNC, B3SUM, XXHSUM)),
    reason=f"needs {RSYNC}, {B3SUM} and {XXHSUM}",
)


@pytest.fixture
def source(tmp_path: Path) -> tree.Source:
    made = tree.make(tmp_path / "source", plan.cases(3, 1, SCALE)[0], SCALE)
    os.setxattr(made.path("plain/sparse"), "user.origin", b"\x00any\xff")
    made.root.chmod(0o750)
    os.utime(made.root, (1_000_000_000, 1_000_000_000))
    return made


def differences(source: Path, target: Path) -> list[str]:
    """What rsync would do to make the second tree the first, contents compared."""
    words = [RSYNC, "-aHX", "--delete", "--dry-run", "--checksum", "--itemize-changes"]
    done = subprocess.run(
        [*words, f"{source}/", f"{target}/"], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def copy(folder: Path, *words: str) -> tuple[dict[str, Any], Receipt]:
    """A whole copy: its part of the record, its receipt."""
    receipt = folder / "receipt"
    options = ("--no-store", "--json", "--receipt", str(receipt), "--hard-links", "--xattrs")
    done = farline(folder, "copy", *words, *options)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)["copy"]
    return report, read_receipt(receipt)


@pytest.mark.parametrize("way", ["push", "pull"])
def test_rsync_finds_nothing_to_do_after_a_copy(
    tmp_path: Path, source: tree.Source, way: str
) -> None:
    target = tmp_path / "target"
    with serving(tmp_path, "--write", "/", "--read", "/") as server:
        tickets = server.tickets
        words = {
            "push": (f"{source.root}/", f"{tickets['write']}#{target}/"),
            "pull": (f"{tickets['read']}#{source.root}/", f"{target}/"),
        }
        report, _ = copy(tmp_path, *words[way])
    assert report["failed"]["files"] == 0
    assert differences(source.root, target) == []


def test_a_copy_finds_nothing_to_do_after_rsync(tmp_path: Path, source: tree.Source) -> None:
    target = tmp_path / "target"
    subprocess.run([RSYNC, "-aHX", f"{source.root}/", f"{target}/"], check=True, timeout=LIMIT_S)
    with serving(tmp_path, "--write", "/") as server:
        words = (f"{source.root}/", f"{server.tickets['write']}#{target}/")
        report, receipt = copy(tmp_path, *words)
        checked, _ = copy(tmp_path, *words, "--sync-level", "checksum")
    assert (report["copied"]["files"], report["failed"]["files"]) == (0, 0)
    assert (checked["copied"]["files"], checked["failed"]["files"]) == (0, 0)
    assert {receipt.lines[name]["status"] for name in tree.files(source.root)} == {"present"}


def b3sums(paths: list[bytes]) -> list[str]:
    done = subprocess.run([B3SUM.encode(), "--no-names", *paths], capture_output=True, check=True)
    return done.stdout.decode().split()


def xxh3_trees(paths: list[bytes]) -> list[str]:
    """By xxhsum and the shell, as the page of decisions says."""
    page = (ROOT / "docs/decisions/0011-sums.md").read_text()
    function = page.partition("```sh\n")[2].partition("```")[0]
    script = f'{function}\nfor path; do xxh3_tree "$path"; done'
    with tempfile.TemporaryDirectory() as folder:
        words = [b"bash", b"-euc", script.encode(), b"bash", *paths]
        done = subprocess.run(words, cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().split()


@pytest.mark.parametrize(
    ("options", "field", "sums"),
    [(["--hash", "blake3"], "blake3", b3sums), (["--no-encrypt"], "blake3", b3sums),
     ([], "xxh3_tree", xxh3_trees)],
)  # fmt: skip
def test_sums_in_a_receipt_are_those_that_other_tools_print(
    tmp_path: Path,
    source: tree.Source,
    options: list[str],
    field: str,
    sums: Callable[[list[bytes]], list[str]],
) -> None:
    target = tmp_path / "target"
    with serving(tmp_path, "--write", "/") as server:
        words = (f"{source.root}/", f"{server.tickets['write']}#{target}/")
        _, receipt = copy(tmp_path, *words, *options)
    names = list(tree.files(source.root))
    paths = [os.fsencode(source.path(name)) for name in names]
    stated = [receipt.lines[name].get(field) for name in names]
    hashed = dict(zip(names, sums(paths), strict=True))
    one_of = {source.path(name).lstat().st_ino for name in names}
    assert len([one for one in stated if one]) >= len(one_of), "each file has its hash once"
    for name, said in zip(names, stated, strict=True):
        assert said in (None, hashed[name]), name
