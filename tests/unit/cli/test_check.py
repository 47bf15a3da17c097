"""`farline check` says which files are not what the receipt says, and ends accordingly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from farline.cli.group import run

ABC = {"blake3": "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"}
XXH3 = {"xxh3_tree": "06b05ab6733a618578af5f94892f3950"}


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    names = {"a": ABC, "b": XXH3, "c": {"hash": "none"}}
    common = {"kind": "file", "status": "copied", "bytes": 3}
    lines = [json.dumps({"path": name, **common, **more}) for name, more in names.items()]
    (tmp_path / "receipt").write_text("\n".join(lines))
    for name in names:
        (tmp_path / name).write_text("abc")
    return tmp_path / "receipt"


def test_all_that_is_as_it_was_ends_well(receipt: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(receipt), str(receipt.parent)]) == 0
    assert capfd.readouterr().out.splitlines() == [
        "checked   2 files, 6 B (1 BLAKE3, 1 XXH3)",
        "same      2",
        "unchecked 1 file without a checksum in the receipt",
    ]
    assert run(["check", str(receipt), str(receipt.parent), "-q"]) == 0
    assert capfd.readouterr().out == ""


def test_what_differs_is_named(receipt: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (receipt.parent / "b").write_text("abd")
    (receipt.parent / "a").unlink()
    assert run(["check", str(receipt), str(receipt.parent), "-q"]) == 23
    assert capfd.readouterr().out.splitlines() == ["a: is missing", "b: has different content"]
    assert run(["check", str(receipt), str(receipt.parent), "--json"]) == 23
    document = json.loads(capfd.readouterr().out)
    assert (document["same"], document["different"], document["without_checksum"]) == (0, 2, 1)
    assert document["failures"][0] == {"path": "a", "reason": "is missing"}


def test_a_receipt_without_sums_is_nothing_to_check(
    receipt: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    receipt.write_text(receipt.read_text().splitlines()[-1])
    assert run(["check", str(receipt), str(receipt.parent)]) == 1
    assert "has no checksums" in capfd.readouterr().err
    assert run(["check", str(receipt), str(receipt.parent / "none")]) == 1
    assert "no such file or folder" in capfd.readouterr().err
