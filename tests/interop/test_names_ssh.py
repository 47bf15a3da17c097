"""`farline ls` and its like over a real OpenSSH."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.interop.test_copy_ssh import SSHD, Sshd, sshd
from tests.support.serving import farline

__all__ = ["sshd"]
pytestmark = pytest.mark.skipif(
    not (Path(SSHD).exists() and shutil.which("ssh-keygen")),
    reason="no OpenSSH server: apt install openssh-server",
)


def test_names_are_seen_and_changed_over_ssh(sshd: Sshd, tmp_path: Path) -> None:
    far = tmp_path / "far"
    far.mkdir()
    (far / "a b").write_text("content")

    def run(verb: str, path: str, *more: str, code: int = 0) -> str:
        words = (verb, *sshd.options, f"{sshd.host}:{path}", *more)
        done = farline(tmp_path, *words)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr

    assert run("ls", str(far), "-1").strip() == "a b"
    assert run("cat", f"{far}/a b") == "content"
    assert "9a0364b9e99bb480dd25e1f0284c8555" in run("stat", f"{far}/a b", "--sum", "md5")
    run("mkdir", f"{far}/x/y", "-p")
    run("rename", f"{far}/a b", f"{far}/x/y/c")
    assert (far / "x/y/c").read_text() == "content"
    other = f"{sshd.host}:{far}/x/none"
    assert "no such file" in run("rm", f"{far}/x/y/c", other, code=1)
    run("rm", f"{far}/x", "-r")
    assert list(far.iterdir()) == []
    elsewhere = run("rm", f"{far}/x", "other.example.org:x", code=1)
    assert f"must be on {sshd.host} too" in elsewhere


def test_a_relative_path_begins_at_the_home_folder(sshd: Sshd, tmp_path: Path) -> None:
    done = farline(tmp_path, "stat", *sshd.options, f"{sshd.host}:", "--json")
    assert done.returncode == 0, done.stderr
    assert f'"path": "{Path.home()}/"' in done.stdout
