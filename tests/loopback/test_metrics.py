"""What `farline serve --metrics` tells Prometheus of copies that were made."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

from tests.support.serving import farline, serving


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_copies_and_profiles_are_counted(tmp_path: Path) -> None:
    source, root = tmp_path / "precious-name", tmp_path / "root"
    root.mkdir()
    source.mkdir()
    for number in range(3):
        (source / f"file-{number}").write_bytes(bytes(1000))
    address = f"127.0.0.1:{free_port()}"
    with serving(tmp_path, "--write", str(root), "--metrics", address) as server:
        target = f"{server.tickets['write']}#there/"
        done = farline(tmp_path, "copy", f"{source}/", target, "--no-store", "-q")
        assert done.returncode == 0, done.stderr
        done = farline(tmp_path, "probe", server.ticket, "-t", "0.2", "--no-store")
        assert done.returncode == 0, done.stderr
        assert server.process.stdout is not None
        ended = 0
        while ended < 2:
            ended += '"session_ended"' in server.process.stdout.readline()
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
            text = answer.read().decode()
    assert 'farline_files_total{outcome="copied"} 3\n' in text
    assert 'farline_file_bytes_total{outcome="copied"} 3000\n' in text
    assert 'farline_sessions_total{kind="copy",status="complete",transport="tcp"} 1\n' in text
    assert 'farline_sessions_total{kind="profile",status="complete",transport="tcp"} 1\n' in text
    assert "precious-name" not in text
