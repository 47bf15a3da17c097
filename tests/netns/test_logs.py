"""What the log says of a copy to a disk that is full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.log_lines import field, read_lines, said
from tests.support.serving import farline, serving

DISK_BYTES = 2 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "logs-full-disk", str(folder)]
    subprocess.run(words, check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_with_path_errno_and_ids_at_both_ends(
    tmp_path: Path, disk: Path
) -> None:
    source = tmp_path / "large"
    source.write_bytes(bytes(range(256)) * (4 * DISK_BYTES // 256))
    logs = [tmp_path / "server.log", tmp_path / "client.log"]
    words = [
        ["--log-level", "debug", "--log-format", "json", "--log-file", str(log)] for log in logs
    ]
    with serving(tmp_path, "--write", str(disk), *words[0]) as server:
        target = f"{server.tickets['write']}#."
        done = farline(tmp_path, "copy", str(source), target, "--retries", "0", *words[1])
        assert done.returncode == 2, done.stderr
        server.stop()
    there, client = map(read_lines, logs)
    (full,) = said(there, "entry not written", entry="large", errno=28)[:1]
    assert field(full, "reason") == "No space left on device" and full["session"]
    (fails,) = said(there, "receiving end fails", kind="system")
    assert "No space left on device" in field(fails, "reason")
    (end,) = said(there, "session ends", session=full["session"])
    assert field(end, "status") == "failed" and str(disk) not in field(end, "reason")
    (attempt,) = said(client, "attempt ended", kind="system")
    assert "No space left on device" in field(attempt, "reason")
    assert said(client, "client's session ends", session=full["session"], kind="system")
