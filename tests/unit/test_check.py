"""`make check` runs the tests that a change may break, the nearest first, and says what is left."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts import check
from scripts._affected import crates, tests

ROOT = Path(__file__).resolve().parents[2]
UNITS = "tests/unit/"


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ("python/farline/models/buffer_need.py", "findings/test_buffer_advice.py"),
        ("benches/_copy/rounds.py", "benches/test_copy_rounds.py"),
        ("benches/_program.py", "benches/test_program.py"),
        ("scripts/_affected/crates.py", "test_check.py"),
    ],
)
def test_tests_of_what_imports_a_change_are_found(changed: str, first: str) -> None:
    found = tests.affected(ROOT, {changed})
    assert UNITS + first in found
    assert all((ROOT / path).is_file() for path in found)


def test_a_changed_test_comes_first_and_unconcerned_ones_do_not_come() -> None:
    test, module = UNITS + "models/test_tcp_steady.py", "python/farline/models/buffer_need.py"
    found = tests.affected(ROOT, {test, module})
    assert found[0] == test
    assert UNITS + "formats/test_gridftp.py" not in found


def test_all_tests_beside_a_changed_conftest_are_found() -> None:
    found = tests.affected(ROOT, {UNITS + "plots/conftest.py"})
    beside = {path.relative_to(ROOT).as_posix() for path in (ROOT / UNITS / "plots").glob("test_*")}
    assert set(found) == beside


def test_a_changed_plan_concerns_the_tests_of_plans() -> None:
    assert UNITS + "test_copy_plans.py" in tests.affected(ROOT, {"plans/new.toml"})


def test_distances_are_steps_to_the_nearest_change() -> None:
    importers = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "x": {"c"}}
    assert tests.distances(importers, ["a"]) == {"a": 0, "b": 1, "c": 2}
    assert tests.distances(importers, ["a", "x"]) == {"a": 0, "x": 0, "b": 1, "c": 1}


def test_crates_come_with_those_built_on_them_after_them() -> None:
    found = crates.affected(ROOT, {"crates/mover/src/lib.rs"})
    assert found == ["farline-mover", "farline-carried", "farline-session", "farline-iperf3"]
    found = crates.affected(ROOT, {"crates/spec/src/lib.rs"})
    assert found[0] == "farline-spec"
    assert {"farline-sim", "farline-session", "xtask"} < set(found)
    assert found.index("farline-mover") < found.index("farline-session")
    assert crates.affected(ROOT, {"README.md", "python/farline/errors.py"}) == []


def test_a_part_that_fails_is_shown_and_one_that_passes_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = check.Check(time.monotonic() + 60)
    one.run("good", sys.executable, "-c", "print('all is well')")
    one.run("bad", sys.executable, "-c", "print('line 3 is wrong'); raise SystemExit(1)")
    said = capsys.readouterr().out
    assert "check: good: ok" in said and "all is well" not in said
    assert "check: bad: FAILED" in said and "line 3 is wrong" in said
    assert one.failed == ["bad"] and not one.left_out


def test_what_the_time_does_not_suffice_for_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "STOPPING_S", 0.0)
    over = check.Check(time.monotonic() - 1)
    over.run("late", sys.executable, "-c", "raise SystemExit(1)")
    assert over.left_out == ["late"] and not over.failed
    short = check.Check(time.monotonic() + 0.3)
    short.run("long", "sleep", "600")
    assert short.left_out == ["long (not over in time)"] and not short.failed


def test_a_test_that_could_not_begin_in_time_is_skipped(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    words = ["--stop-after", "-1", "tests/unit/test_errors.py"]
    done = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert "left out: the time was over" in done.stdout
    assert "passed" not in done.stdout


def test_changed_files_are_those_since_a_commit_and_new_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(check, "ROOT", tmp_path)
    git("init", "-b", "main")
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-m", name)
    assert check.find_changed(None) == ("the commit before the last", {"two"})
    (tmp_path / "three").write_text("new")
    (tmp_path / "one").write_text("changed")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    base, changed = check.find_changed(None)
    assert base.startswith("origin/main") and changed == {"one", "three"}
    assert check.find_changed("HEAD~") == ("HEAD~", {"one", "two", "three"})


def test_crates_without_a_library_are_known() -> None:
    assert crates.without_library(ROOT) == {"farline-carried", "xtask"}
