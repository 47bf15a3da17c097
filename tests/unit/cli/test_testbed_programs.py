"""Programs and captures on a testbed as the command line runs them: signals, ends, limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from farline.cli.group import run
from farline.cli.stamped import run_stamped
from farline.errors import UnreachableError, UsageError
from farline.testbeds.bed import SNAP_BYTES
from tests.support.paths import make_stamp

pytestmark = pytest.mark.unit

STAMPED = """
import sys
from farline.cli.stamped import run_stamped
from tests.support.paths import make_stamp
class Bed:
    mark = lambda self: 7
    stamp = lambda self, mark: make_stamp()
sys.exit(run_stamped(Bed(), sys.argv[1:]))
"""


class Bed:
    """A testbed that keeps what it was asked, and may be gone when it is to stamp."""

    name = "bed"

    def __init__(self, is_gone: bool = False) -> None:
        self.is_gone = is_gone
        self.asked: list[Any] = []
        self.hosts = {"a": SimpleNamespace(command=list)}

    def mark(self) -> int:
        return 7

    def stamp(self, mark: int) -> dict[str, Any]:
        if self.is_gone:
            raise UnreachableError("testbed 'bed' is gone")
        return make_stamp()

    def close(self) -> None:
        pass

    def capture(self, *arguments: Any) -> None:
        self.asked.append(signal.getsignal(signal.SIGINT))
        os.kill(os.getpid(), signal.SIGINT)

    def stop_capture(self, link: str) -> dict[str, Any]:
        self.asked.append(link)
        return {"written_packets": 3, "missed_packets": 0, "error": None}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_stamped_program_that_is_killed_ends_this_one_in_the_same_way(number: int) -> None:
    command = [sys.executable, "-c", STAMPED, "sh", "-c", f"kill -{number} $$"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "valid: " in done.stderr) == (-number, True), done.stderr


@pytest.mark.parametrize("code", [0, 3])
def test_a_program_whose_bed_is_gone_keeps_its_exit_code(
    code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    bed: Any = Bed(is_gone=True)
    assert run_stamped(bed, ["sh", "-c", f"exit {code}"]) == code
    assert capsys.readouterr().err == "farline: no stamp: testbed 'bed' is gone\n"


def test_a_stamped_program_that_is_not_there_is_named() -> None:
    bed: Any = Bed()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(UsageError, match="/no/such/program: No such file"):
        run_stamped(bed, ["/no/such/program"])
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_comes_before_the_program_is_there_reaches_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bed: Any = Bed()
    start: Callable[..., Any] = subprocess.Popen

    def late(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return start(*arguments)

    monkeypatch.setattr(subprocess, "Popen", late)
    monkeypatch.setattr("farline.cli.stamped._die_of", lambda number: 128 + number)
    assert run_stamped(bed, ["sleep", "600"]) == 128 + signal.SIGTERM


@pytest.mark.parametrize("hang_up", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_stamped_program_ignores_what_was_ignored_before_and_no_more(
    capfd: pytest.CaptureFixture[str], hang_up: signal.Handlers
) -> None:
    bed: Any = Bed()
    actions: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: hang_up,
    }
    before = {number: signal.signal(number, action) for number, action in actions.items()}
    try:
        assert run_stamped(bed, ["sh", "-c", "grep SigIgn: /proc/$$/status"]) == 0
    finally:
        for number, action in before.items():
            signal.signal(number, action)
    ignored = int(capfd.readouterr().out.split()[1], 16)
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        assert not ignored & 1 << (number - 1)
    assert bool(ignored & 1 << (signal.SIGHUP - 1)) == (hang_up is signal.SIG_IGN)


def test_a_program_does_not_begin_with_pipes_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    bed = Bed()
    numbers = (signal.SIGPIPE, signal.SIGXFSZ)
    before = [signal.getsignal(number) for number in numbers]
    found: list[list[Any]] = []

    def refuse(*_: object) -> None:
        found.append([signal.getsignal(number) for number in numbers])
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("farline.cli.testbed.find_bed", lambda _: bed)
    monkeypatch.setattr(os, "execvp", refuse)
    assert run(["testbed", "exec", "a", "--", "nothing"]) == 1
    assert found == [[signal.SIG_DFL, signal.SIG_DFL]]
    assert [signal.getsignal(number) for number in numbers] == before, "put back where it failed"


def test_ctrl_c_while_a_capture_starts_ends_it_as_one_later_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bed = Bed()
    monkeypatch.setattr("farline.cli.testbed_link.find_bed_and_link", lambda _: (bed, "cable"))
    assert run(["testbed", "capture", "link.pcap"]) == 0
    assert bed.asked[0] is not signal.default_int_handler
    assert bed.asked[1] == "cable"
    assert capsys.readouterr().out == "link.pcap: 3 packets, 0 missed\n"


def test_a_capture_keeps_64_bytes_at_least(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["testbed", "capture", "link.pcap", "--snap", "63"]) == 1
    assert "allowed: 64 to 65535" in capsys.readouterr().err
    assert SNAP_BYTES >= 64, "what is kept unless told is allowed too"
