"""Files are held against the sums of a receipt, whichever they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from farline.copying.receipt_check import Noted, check_files, noted_files
from farline.errors import SpecError, SystemFailure, UsageError
from farline.spec.path_text import to_path_text

BLAKE3_ABC = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
XXH3_ABC = "06b05ab6733a618578af5f94892f3950"
"""What b3sum and `xxhsum -H128` print of `abc`."""


def line(path: str, **more: object) -> dict[str, object]:
    return {"path": path, "kind": "file", "status": "copied", "bytes": 3, **more}


def receipt_of(folder: Path, *lines: object) -> Path:
    path = folder / "receipt.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def problems(receipt: Path, destination: Path) -> dict[str, str | None]:
    noted = (one for one in noted_files(receipt) if one.digits is not None)
    return {found.noted.path: found.problem for found in check_files(noted, destination)}


def test_each_file_is_held_against_the_sum_that_its_line_has(tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "d").mkdir(parents=True)
    odd = b"d/new\nline \xff"
    for name in (b"a", b"b", b"c", odd):
        (there / os.fsdecode(name)).write_bytes(b"abc" if name != b"c" else b"abd")
    (there / "long").write_bytes(b"abcd")
    (there / "pipe").mkdir()
    receipt = receipt_of(
        tmp_path,
        line("a", blake3=BLAKE3_ABC),
        line("b", xxh3_tree=XXH3_ABC, status="present"),
        line("c", xxh3_tree=XXH3_ABC),
        line(to_path_text(odd), blake3=BLAKE3_ABC, status="updated"),
        line("long", blake3=BLAKE3_ABC),
        line("gone", blake3=BLAKE3_ABC),
        line("d", kind="folder"),
        line("not hashed", hash="none"),
        line("failed", status="failed", reason="no space"),
        line("deleted", kind="other", status="deleted"),
    )
    assert problems(receipt, there) == {
        "a": None,
        "b": None,
        "c": "has different content",
        to_path_text(odd): None,
        "long": "has 4 bytes instead of 3",
        "gone": "is missing",
    }
    assert Noted("not hashed", 3, "none", None) in noted_files(receipt)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    receipt = receipt_of(tmp_path, line("pipe", blake3=BLAKE3_ABC, bytes=0))
    (problem,) = problems(receipt, tmp_path).values()
    assert problem is not None and "not a regular file" in problem


def test_a_lone_file_is_checked_under_whatever_name_it_has(tmp_path: Path) -> None:
    (tmp_path / "renamed").write_bytes(b"abc")
    receipt = receipt_of(tmp_path, line("a", xxh3_tree=XXH3_ABC))
    assert problems(receipt, tmp_path / "renamed") == {"a": None}


@pytest.mark.parametrize("path", ["../a", "/a", "d/../../a"])
def test_no_receipt_leads_out_of_the_destination(tmp_path: Path, path: str) -> None:
    receipt = receipt_of(tmp_path, line(path, blake3=BLAKE3_ABC))
    with pytest.raises(UsageError, match="leads outside the destination"):
        problems(receipt, tmp_path)


@pytest.mark.parametrize(
    "text",
    [b"{}\n", b"no json\n", b"[1]\n", b"\xff\xfe\n", b'{"path":"a","kind":"file"}\n'],
)
def test_what_is_no_receipt_is_refused_by_its_line(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "receipt").write_bytes(text)
    with pytest.raises(SpecError, match=r"receipt .*: is"):
        list(noted_files(tmp_path / "receipt"))


@pytest.mark.parametrize("digits", ["", "ab", "g" * 64, XXH3_ABC, BLAKE3_ABC.upper()])
def test_a_sum_that_is_none_is_refused(tmp_path: Path, digits: str) -> None:
    with pytest.raises(SpecError, match="blake3 is not 64 hexadecimal digits"):
        list(noted_files(receipt_of(tmp_path, line("a", blake3=digits))))


def test_a_receipt_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemFailure, match="No such file"):
        list(noted_files(tmp_path / "none"))
