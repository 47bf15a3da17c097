"""A bench that is stopped removes what it made, and none measures a development build."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent

import pytest

import _program
from farline.tools import native

BENCHES = Path(__file__).resolve().parents[3] / "benches"
LIMIT_S = 60.0

# Its folder is in memory; before it is removed the bench says so and waits for a line.
BENCH = """
import subprocess, sys
from pathlib import Path
from _copy.rounds import scratch
from _program import program

def main():
    with scratch(Path("/dev/shm"), "farline-bench") as folder:
        (folder / "source").write_bytes(bytes(1 << 20))
        try:
            print(folder, flush=True)
            subprocess.run(["sleep", "600"], check=True)
        finally:
            print("ending", flush=True)
            sys.stdin.readline()
    return 0

program(main, any_build=True)
"""

# As `make bench` runs it.
RUNNER = f"""
import sys
from _program import program, run_until

program(lambda: run_until([sys.executable, "-c", {BENCH!r}], 600.0), any_build=True)
"""


# The limit is over when a test says so with a line.
TOO_LONG = """
import subprocess, sys
wait = subprocess.Popen.wait

def over(self, timeout=None):
    if timeout == 600.0:
        sys.stdin.readline()
        raise subprocess.TimeoutExpired(self.args, timeout)
    return wait(self, timeout)

subprocess.Popen.wait = over
"""


@contextmanager
def started(script: str, *before: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A bench that has made its folder."""
    with subprocess.Popen(
        [*before, sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(BENCHES)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            folder = Path(process.stdout.readline().strip())
            assert (folder / "source").stat().st_size == 1 << 20
            yield process, folder
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    """The next line that it prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("script", [BENCH, RUNNER], ids=["bench", "make bench"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_bench_leaves_nothing_in_memory(script: str, number: signal.Signals) -> None:
    with started(script) as (process, folder):
        process.send_signal(number)
        assert next_line(process) == "ending"
        process.communicate("\n", timeout=LIMIT_S)
        assert process.returncode == 128 + number
        assert not folder.exists()


def test_a_signal_that_comes_just_before_it_waits_is_not_missed() -> None:
    # As seen by the main thread: it has been noted, and interrupts no wait.
    early = """
import signal, threading, time
def meet():
    time.sleep(1)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
threading.Thread(target=meet, daemon=True).start()
"""
    waits = " " * 12 + "subprocess.run("
    script = BENCH.replace(waits, indent(early, " " * 12) + waits)
    with started(script) as (process, folder):
        assert next_line(process) == "ending"
        process.communicate("\n", timeout=LIMIT_S)
        assert process.returncode == 128 + signal.SIGTERM
        assert not folder.exists()


def test_signals_while_it_cleans_up_change_nothing() -> None:
    with started(BENCH) as (process, folder):
        process.send_signal(signal.SIGTERM)
        assert next_line(process) == "ending"
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        _, said = process.communicate("\n", timeout=LIMIT_S)
        assert process.returncode == 128 + signal.SIGTERM
        assert said.count("stopped by") == 1
        assert not folder.exists()


def test_under_nohup_a_bench_goes_on_when_its_terminal_closes() -> None:
    with started(BENCH, "nohup") as (process, folder):
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert next_line(process) == "ending"
        process.communicate("\n", timeout=LIMIT_S)
        assert process.returncode == 128 + signal.SIGTERM
        assert not folder.exists()


def test_a_bench_that_takes_too_long_is_ended_and_cleans_up() -> None:
    with started(TOO_LONG + RUNNER) as (process, folder):
        assert process.stdin is not None
        print(file=process.stdin, flush=True)
        assert next_line(process) == "ending"
        process.communicate("\n", timeout=LIMIT_S)
        assert process.returncode == 1
        assert not folder.exists()


@pytest.mark.parametrize("path", sorted(BENCHES.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_every_bench_runs_as_one_that_can_be_stopped(path: Path) -> None:
    end = path.read_text(encoding="utf-8").partition('if __name__ == "__main__":')[2]
    assert "    program(" in end


def with_profile(monkeypatch: pytest.MonkeyPatch, profile: str, *words: str) -> None:
    """The extension as if it were built so, and the bench as if it were called so."""
    info = {**native.version_info(), "profile": profile}
    monkeypatch.setattr(native, "version_info", lambda: info)
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    monkeypatch.delenv("SHORT", raising=False)


def test_no_bench_measures_a_development_build(monkeypatch: pytest.MonkeyPatch) -> None:
    with_profile(monkeypatch, "debug")
    with pytest.raises(SystemExit, match=r"a debug build.*make setup"):
        _program.refuse_slow_build()


@pytest.mark.parametrize(("profile", "words"), [("release", ()), ("debug", ("--short",))])
def test_a_release_build_and_a_short_run_are_let_through(
    monkeypatch: pytest.MonkeyPatch, profile: str, words: tuple[str, ...]
) -> None:
    with_profile(monkeypatch, profile, *words)
    _program.refuse_slow_build()
