"""From a package file to a verified copy, in a Debian root that has nothing else: three commands.

What is installed is in `clean_root.py`.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from pathlib import Path

import pytest

from tests.interop.clean_root import MACHINE, Root, reach_sources

pytestmark = [pytest.mark.timeout(900), pytest.mark.alone]
LIMIT_S = 60.0 if platform.machine() == MACHINE else 600.0
"""From the package file to the end of the copy."""
BYTES = 50_000_000


def copied(root: Root, took_s: float, name: str) -> None:
    """Two commands: a server, and a copy to it from the other host; all of it within the limit."""
    content = os.urandom(BYTES)
    (root.path / "root" / "source").write_bytes(content)
    (root.path / "srv" / "data").mkdir()
    began = time.monotonic()
    words = ["farline", "serve", "--json", "-B", "10.77.0.1", "--write", "/srv/data"]
    server = root.start(*words, host=root.hosts[0])
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line, "the server ended: what it said is above"
        ticket = json.loads(line)["tickets"]["write"]
        record = json.loads(
            root.run(
                "farline", "copy", "/root/source", f"{ticket}#there", "--json", host=root.hosts[1]
            )
        )
    finally:
        server.kill()
        server.communicate()
    took_s += time.monotonic() - began
    print(f"{name}: {took_s:.1f} s from the file to a verified copy of {BYTES / 1e6:.0f} MB")
    assert record["status"] == "complete" and record["spec"]["copy"]["verify"] == "tree"
    assert (root.path / "srv" / "data" / "there").read_bytes() == content
    assert took_s < LIMIT_S


def test_the_debian_package_in_three_commands(root: Root, deb: Path) -> None:
    shutil.copy(deb, root.path / "tmp" / "farline.deb")
    began = time.monotonic()
    root.run("apt-get", "install", "-qq", "--no-install-recommends", "/tmp/farline.deb")
    copied(root, time.monotonic() - began, "deb")
    probe = root.run("farline", "probe", "--help")
    assert "Usage: farline probe" in probe


def test_the_wheel_in_three_commands(root: Root, wheel: Path) -> None:
    """Where Python has pip."""
    root.run("apt-get", "install", "-qq", "--no-install-recommends", "python3-pip")
    # Debian's certificates came along.
    reach_sources(root.path)
    shutil.copy(wheel, root.path / "tmp" / wheel.name)
    began = time.monotonic()
    words = ["python3", "-m", "pip", "install", "--quiet", "--break-system-packages"]
    root.run(*words, "--root-user-action=ignore", f"/tmp/{wheel.name}")
    copied(root, time.monotonic() - began, "wheel")
