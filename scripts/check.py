"""`make check`: in less than a minute, what is likely to show a mistake in what was changed last.

Changed is what differs from where this branch left origin/main, files that git does not know yet
included; where nothing does, what the last commit changed. Form, types, layers, generated files and
shape are checked as a whole. Of the tests those of `tests/unit` run that import a changed module,
the nearest first, and in Rust those of changed crates and of crates that are built on them. What
the time does not suffice for is named at the end, with what is not looked at here at all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scripts._affected import crates, tests

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / ".venv" / "bin"
LIMIT_S = 55.0
STOPPING_S = 3.0
ELSEWHERE = "clippy, stubtest, tests beside tests/unit and, of Rust, in crates/*/tests"


@dataclass
class Check:
    """What was run, what failed and what was left out; two lanes add to it."""

    end: float
    failed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    _printing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def left_s(self) -> float:
        """Seconds until the time is over."""
        return self.end - time.monotonic()

    def run(self, name: str, *command: str | Path, show: bool = False) -> None:
        """Runs one part; its output is shown if it fails, or if `show` says so."""
        if self.left_s < STOPPING_S:
            self.left_out.append(name)
            return
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [str(word) for word in command],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=self.left_s,
            )
        except subprocess.TimeoutExpired:
            self.left_out.append(f"{name} (not over in time)")
            return
        if done.returncode:
            self.failed.append(name)
        word = "FAILED" if done.returncode else "ok"
        with self._printing:
            if done.returncode or show:
                print(done.stdout.rstrip())
            print(f"check: {name}: {word}, {time.monotonic() - begun:.1f} s", flush=True)


def git(*words: str) -> list[str]:
    """Lines that git prints; none if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_since(base: str) -> set[str]:
    """Files that differ from a commit, those that git does not know yet included."""
    return {*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")}


def find_changed(base: str | None) -> tuple[str, set[str]]:
    """What the changes are counted from, and the files."""
    if base is not None:
        return base, changed_since(base)
    for commit in git("merge-base", "HEAD", "origin/main"):
        if found := changed_since(commit):
            return f"origin/main ({commit[:10]})", found
    return "the commit before the last", changed_since("HEAD~")


def check_python(check: Check, changed: set[str]) -> None:
    """Form and types of all, and tests of what was changed."""
    check.run("ruff", BIN / "ruff", "check", "--quiet", ".")
    check.run("ruff format", BIN / "ruff", "format", "--quiet", "--check", ".")
    near = tests.affected(ROOT, changed)
    if any(path.endswith((".py", ".pyi")) for path in changed):
        check.run("mypy", BIN / "mypy", "--no-error-summary")
        check.run("layers", BIN / "lint-imports", "--no-cache")
    if near:
        # Where no time is left this is named among what was left out.
        limit = ["--stop-after", f"{max(check.left_s - STOPPING_S, 1.0):.0f}"]
        side = ["-n", "2", "--dist", "loadfile"] if len(near) > 3 else []
        words = ["-q", "--no-header", *limit, *side, *near]
        name = f"{len(near)} files of tests/unit"
        check.run(name, BIN / "python", "-m", "pytest", *words, show=True)


def check_rust(check: Check, changed: set[str]) -> None:
    """Form, generated files and shape of all, and tests of changed crates."""
    check.run("rustfmt", "cargo", "fmt", "--all", "--check")
    check.run("generated files", "cargo", "xtask", "gen", "--check")
    check.run("shape", "cargo", "xtask", "tidy")
    programs = crates.without_library(ROOT)
    for name in crates.affected(ROOT, changed):
        kind = "bins" if name in programs else "lib"
        words = ["-q", "--locked", f"--{kind}", "-p", name]
        check.run(f"{kind} tests of {name}", "cargo", "test", *words)


def side_by_side(*lanes: Callable[[], None]) -> None:
    """Runs all, and returns when the last has ended."""
    threads = [threading.Thread(target=lane) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def last_words(changed: set[str]) -> Iterator[str]:
    """What is not looked at here at all."""
    rust = sorted(path for path in changed if path.startswith("crates/"))
    if rust:
        yield "the Python tests of what Rust does: `make dev` first, then the files"
    yield ELSEWHERE


def main(arguments: Sequence[str]) -> int:
    """1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", help="count changes from this commit")
    parser.add_argument("--seconds", type=float, default=LIMIT_S, help="when to stop [%(default)s]")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    base, changed = find_changed(options.base)
    print(f"check: {len(changed)} files changed since {base}", flush=True)
    check = Check(begun + options.seconds)
    side_by_side(lambda: check_python(check, changed), lambda: check_rust(check, changed))
    print("check: not looked at here: " + "; ".join(last_words(changed)))
    took = f"{time.monotonic() - begun:.0f} s"
    if check.failed:
        print(f"check: failed: {', '.join(check.failed)}, {took}", file=sys.stderr)
        return 1
    if check.left_out:
        print(f"check: passed what it ran, {took}; NO TIME FOR: {'; '.join(check.left_out)}")
        print("check: for all of it: .venv/bin/python -m scripts.check --seconds 900")
        return 0
    print(f"check: passed, {took}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
