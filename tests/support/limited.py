"""Copies by a process that may do what any user may, though root started it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.serving import FARLINE, environment

AS_A_USER = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner")
"""Root writes to any folder, unless it may not be what root is."""

NEEDS_ROOT = [
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux"),
    pytest.mark.skipif(os.geteuid() != 0, reason="takes rights from root: needs root"),
]
_COPY = (*AS_A_USER, *FARLINE, "copy", "--no-store", "--no-progress")


def copy(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_COPY, *words], env=environment(tmp_path), text=True, capture_output=True, check=False,
        timeout=60,
    )  # fmt: skip


def start(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    """The same, at work; both outputs in one."""
    return subprocess.Popen(
        [*_COPY, *words], env=environment(tmp_path), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
