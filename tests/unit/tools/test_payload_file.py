"""`-F FILE` of an RBUDP probe: the file says how much is sent, and must be one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from farline.errors import UsageError
from farline.tools.payload_file import with_file_size


def document(path: Path, **more: Any) -> dict[str, Any]:
    return {"transport": "rbudp", "rate_bps": 10**9, "rbudp": {"file": str(path)}, **more}


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    path = tmp_path / "payload"
    path.write_bytes(b"x" * 12_345)
    return path


def test_the_size_of_the_file_is_what_is_sent(payload: Path) -> None:
    assert with_file_size(document(payload))["total_bytes"] == 12_345


@pytest.mark.parametrize("stated", [{"total_bytes": 7}, {"duration_s": 2.0}])
def test_a_stated_length_stays(payload: Path, stated: dict[str, Any]) -> None:
    asked = document(payload, **stated)
    assert with_file_size(asked) == asked


def test_what_is_received_into_has_no_size_yet(tmp_path: Path) -> None:
    asked = document(tmp_path / "new", direction="reverse")
    assert with_file_size(asked) == asked


def test_without_a_file_nothing_is_looked_at() -> None:
    for asked in ({}, {"transport": "rbudp", "rbudp": {"early": False}}, {"rbudp": None}):
        assert with_file_size(dict(asked)) == asked


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "no such file or directory; name a file to send"),
        ("empty", "the file is empty, so there is nothing to send"),
        ("folder", "not a regular file; name a file to send"),
        ("payload/below", "not a directory; name a file to send"),
        ("nul\0", "embedded null byte; name a file to send"),
    ],
)
@pytest.mark.parametrize("stated", [{}, {"total_bytes": 7}])
def test_what_is_no_file_to_send_is_refused_in_one_line(
    tmp_path: Path, payload: Path, name: str, reason: str, stated: dict[str, Any]
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError) as refused:
        with_file_size(document(tmp_path / name, **stated))
    assert refused.value.message.endswith(f": {reason}")
    assert refused.value.message.startswith("-F /")
