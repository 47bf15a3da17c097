"""A command whose standard files are closed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.serving import FARLINE

_WHERE = """
import os, sys
import farline.cli.group as group
def run(_words):
    places = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
    files = [sys.stdin.fileno(), sys.stdout.fileno(), sys.stderr.fileno()]
    children = os.system("test -e /dev/fd/0 && test -e /dev/fd/1 && test -e /dev/fd/2")
    print("seen", file=sys.stdout), print("seen", file=sys.stderr)
    return 7 if places == ["/dev/null"] * 3 and files == [0, 1, 2] and not children else 1
group.run = run
import farline.cli
farline.cli.main()
"""


def closed(command: list[str], which: str) -> subprocess.CompletedProcess[str]:
    """Runs a command with these files closed."""
    words = ["sh", "-c", f'"$@" {which}', "sh", *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("which", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_file_changes_no_exit_code_and_says_nothing(which: str) -> None:
    done = closed([*FARLINE, "--version"], which)
    assert (done.returncode, done.stderr) == (0, "")
    assert closed([*FARLINE, "no-such-verb"], which).returncode == 1


def test_in_the_place_of_closed_files_nothing_else_is_opened() -> None:
    assert closed([sys.executable, "-c", _WHERE], "<&- >&- 2>&-").returncode == 7
