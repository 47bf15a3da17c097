"""The checks of copy-faults find what is wrong, and find nothing wrong with a good copy."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from _copy.faults import plan, tree
from _copy.faults.check import End, Receipt, Watch, problems, read_receipt, unescaped
from _copy.faults.plan import ALTERATIONS, KINDS, SHORT, TRANSPORTS, Case, Fault

TINY = replace(SHORT, most_file_bytes=256 << 10, most_tree_bytes=1 << 20)
NOTHING_FAILED = Receipt({})
WHOLE = End(0, NOTHING_FAILED, True)


@pytest.fixture
def case() -> Case:
    return plan.cases(1, 1, SHORT)[0]


@pytest.fixture
def source(tmp_path: Path, case: Case) -> tree.Source:
    return tree.make(tmp_path / "source", case, TINY)


@pytest.fixture
def copied(tmp_path: Path, source: tree.Source) -> Path:
    """A copy by a tool that is known to be good."""
    target = tmp_path / "target"
    subprocess.run(["cp", "-a", "--sparse=auto", f"{source.root}/.", target], check=True)
    return target


def failed(name: str, reason: str = "changed while it was copied") -> Receipt:
    return Receipt({name: {"status": "failed", "reason": reason}})


def largest(source: tree.Source) -> str:
    """A file with one name, content, and no holes."""
    names = (n for n in tree.files(source.root) if source.path(n).lstat().st_nlink == 1)
    return max(
        (n for n in names if n != source.sparse), key=lambda n: source.path(n).stat().st_size
    )


def test_the_same_seed_draws_the_same_cases_and_trees(tmp_path: Path) -> None:
    assert plan.cases(7, 30, SHORT) == plan.cases(7, 30, SHORT)
    assert plan.cases(7, 30, SHORT) != plan.cases(8, 30, SHORT)
    case = plan.cases(7, 3, SHORT)[2]
    one, other = (tree.make(tmp_path / name, case, TINY) for name in ("one", "other"))
    assert one.versions == other.versions
    assert len(one.versions) >= SHORT.files[0]


def test_every_fault_transport_and_way_is_among_few_cases() -> None:
    drawn = plan.cases(1, 12, SHORT)
    assert {case.faults[0].kind for case in drawn} | {
        f.kind for c in drawn for f in c.faults
    } == set(KINDS)
    assert {case.option("--transport") for case in drawn} == set(TRANSPORTS)
    assert {case.way for case in drawn} == {"push", "pull"}
    shares = [fault.at_share for case in drawn for fault in case.faults]
    assert all(0 <= share <= 0.9 for share in shares)


def test_a_good_copy_is_right(source: tree.Source, copied: Path) -> None:
    assert list(problems(source, copied, WHOLE)) == []
    watch = Watch(source, copied, 1)
    watch.look()
    assert (list(watch.wrong()), watch.looks) == ([], 1)


def flip(source: tree.Source, copied: Path) -> None:
    path = copied / largest(source)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)


def lose(source: tree.Source, copied: Path) -> None:
    (copied / largest(source)).unlink()


def add(_: tree.Source, copied: Path) -> None:
    (copied / "plain" / "surplus").touch()


def open_up(source: tree.Source, copied: Path) -> None:
    path = copied / largest(source)
    path.chmod(0o777)


def touch(source: tree.Source, copied: Path) -> None:
    (copied / largest(source)).touch()


def fill(source: tree.Source, copied: Path) -> None:
    assert source.sparse is not None
    path, facts = copied / source.sparse, source.path(source.sparse).stat()
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    path.chmod(facts.st_mode & 0o7777)
    os.utime(path, ns=(facts.st_mtime_ns, facts.st_mtime_ns))


def redirect(_: tree.Source, copied: Path) -> None:
    path = copied / "plain" / "link-0"
    path.unlink()
    path.symlink_to("/elsewhere")


def part(_: tree.Source, copied: Path) -> None:
    path = copied / "deep" / "second-0"
    content, facts = path.read_bytes(), path.stat()
    path.unlink()
    path.write_bytes(content)
    path.chmod(facts.st_mode & 0o7777)
    os.utime(path, ns=(facts.st_mtime_ns, facts.st_mtime_ns))


def forget_staging(_: tree.Source, copied: Path) -> None:
    (copied / tree.STAGING).mkdir()


def lose_folder(_: tree.Source, copied: Path) -> None:
    (copied / "empty").rmdir()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (flip, "has another content"),
        (lose, "is missing"),
        (add, "is not of the source"),
        (open_up, "has the mode"),
        (touch, "changed at"),
        (fill, "has lost its holes"),
        (redirect, "points elsewhere"),
        (part, "is no longer the same file"),
        (forget_staging, ".farline-partial is left"),
        (lose_folder, "is missing"),
    ],
)
def test_what_is_spoilt_is_found(
    source: tree.Source, copied: Path, spoil: Callable[[tree.Source, Path], None], said: str
) -> None:
    spoil(source, copied)
    assert any(said in problem for problem in problems(source, copied, WHOLE))


def test_a_wrong_file_under_a_final_name_is_noticed_while_copies_run(
    source: tree.Source, copied: Path
) -> None:
    watch = Watch(source, copied, 1)
    watch.look()
    flip(source, copied)
    watch.look()
    assert len(list(watch.wrong())) == 1


def test_failures_need_a_reason_and_a_cause(source: tree.Source, copied: Path) -> None:
    name = largest(source)
    (copied / name).unlink()
    found = problems(source, copied, End(23, failed(name), False))
    assert any("nothing was done to it" in problem for problem in found)
    source.altered.add(name)
    assert list(problems(source, copied, End(23, failed(name), False))) == []
    (said,) = problems(source, copied, End(23, failed(name, ""), False))
    assert "without a reason" in said


@pytest.mark.parametrize("end", [End(0, failed("a"), False), End(23, NOTHING_FAILED, False)])
def test_the_exit_code_and_the_receipt_agree(source: tree.Source, copied: Path, end: End) -> None:
    assert any("exit code" in problem for problem in problems(source, copied, end))


def test_a_run_that_does_not_end_well_is_wrong(source: tree.Source, copied: Path) -> None:
    (said,) = problems(source, copied, End(-9, NOTHING_FAILED, False))
    assert "-9" in said


@pytest.mark.parametrize("kind", ALTERATIONS)
def test_an_altered_file_may_be_what_it_was_or_what_it_is(
    source: tree.Source, copied: Path, kind: plan.Kind
) -> None:
    name = tree.alter(source, Fault(kind, 0.5, 1.0, 0.5))
    assert name is not None
    if source.path(name).is_file():
        assert tree.state_of(source.path(name)) != tree.state_of(copied / name)
        assert source.allows(name, tree.state_of(source.path(name)))
    assert list(problems(source, copied, End(0, NOTHING_FAILED, False))) == []
    with (copied / name).open("r+b") as file:
        file.write(b"neither")
    found = [*problems(source, copied, End(0, NOTHING_FAILED, False))]
    assert bool(found) == os.path.lexists(source.path(name)), (
        "what is gone cannot be compared at the end"
    )
    watch = Watch(source, copied, 1)
    watch.look()
    assert len(list(watch.wrong())) == 1


def test_new_content_with_an_old_time_is_wrong(source: tree.Source, copied: Path) -> None:
    name = largest(source)
    before = (copied / name).stat().st_mtime_ns
    source.altered.add(name)
    os.truncate(source.path(name), 0)
    source.note(name)
    os.truncate(copied / name, 0)
    os.utime(copied / name, ns=(before, before))
    assert any("never was" in problem for problem in problems(source, copied, WHOLE))
    watch = Watch(source, copied, 1)
    watch.look()
    assert len(list(watch.wrong())) == 1


def test_what_was_there_before_may_stay_of_a_file_that_changed_alone(
    source: tree.Source, copied: Path, case: Case
) -> None:
    tree.put_older(source, copied, case)
    watch = Watch(source, copied, 1)
    watch.look()
    assert list(watch.wrong()) == []
    assert any(
        "changed at" in problem or "mode" in problem for problem in problems(source, copied, WHOLE)
    )


def escaped(name: bytes) -> str:
    """A name as documents write it: text, backslash doubled, what is no text in hexadecimal."""
    parts = []
    for letter in name.decode("utf-8", "surrogateescape"):
        byte = ord(letter) - 0xDC00
        if 0x80 <= byte <= 0xFF:
            parts.append(f"\\x{byte:02x}")
        elif letter == "\\":
            parts.append("\\\\")
        elif ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0:
            parts += [f"\\x{each:02x}" for each in letter.encode()]
        else:
            parts.append(letter)
    return "".join(parts)


@given(st.binary(max_size=60))
def test_names_come_back_from_documents(name: bytes) -> None:
    assert os.fsencode(unescaped(escaped(name))) == name


def test_the_last_line_of_a_receipt_counts(tmp_path: Path) -> None:
    lines = [
        {"path": "a\\\\b", "status": "failed", "reason": "no space"},
        {"path": "a\\\\b", "status": "copied"},
        {"path": "c\\xff", "status": "failed", "reason": "gone"},
    ]
    path = tmp_path / "receipt"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert read_receipt(path).failed == {os.fsdecode(b"c\xff"): "gone"}
    assert read_receipt(tmp_path / "none").lines == {}
