"""How the other end of a copy is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.copying.connector import LocalConnector
from farline.tools import never_stop
from tests.support.steps import finished


def test_a_server_for_one_copy_signs_with_a_secret_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    connector = LocalConnector()
    first = finished(connector.open(never_stop))
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    connector.close()
    assert first.ticket is not None and not list(tmp_path.iterdir())
