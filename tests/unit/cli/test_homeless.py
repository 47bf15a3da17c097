"""Commands of a user without a home folder: some need none, the rest say what to set."""

from __future__ import annotations

import pytest

from farline.cli import group
from farline.cluster.placement_file import PlacementFile
from farline.copying import CopyRequest
from farline.copying.estimates import kept_history
from farline.copying.pools import pool_names
from farline.tools.known_servers import KnownServer, KnownServers
from tests.support.homeless import take_home


@pytest.fixture(autouse=True)
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    take_home(monkeypatch)
    monkeypatch.delenv("FARLINE_TESTBED_SOCKET", raising=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("runs", "store: this user has no home folder; set HOME or FARLINE_STORE, or use --store"),
        ("ticket list", "server: this user has no home folder; set HOME or XDG_STATE_HOME, or use"),
        ("serve -p 0", "server: this user has no home folder; set HOME or XDG_STATE_HOME, or use"),
        ("portal start", "portal: this user has no home folder; set HOME or XDG_STATE_HOME, or"),
        ("adjust last -P 2", "control socket: this user has no home folder; set HOME or XDG_STATE"),
        ("import-config rclone", "~/.config/rclone/rclone.conf: the home folder is unknown"),
        ("analyze explain ~/x", "~/x: the home folder is unknown"),
    ],
)
def test_what_needs_a_folder_is_one_line(
    capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    assert group.run(words.split()) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"farline: {said}") and told.count("\n") == 1


def test_what_is_optional_is_absent(capsys: pytest.CaptureFixture[str]) -> None:
    assert group.run(["trust", "--list"]) == 0
    assert pool_names() == []
    assert kept_history() == ()
    assert CopyRequest.between("a", "dtn:b").paths is None
    assert KnownServers().get("a:1") == KnownServer() and not KnownServers().is_kept
    assert capsys.readouterr().err == ""


def test_placements_are_not_kept() -> None:
    file = PlacementFile("", "/archive")
    file.add({"n1": {"a": 1}})
    file.forget("n1", ["a"])
    assert (file.nodes(), file.read("n1")) == ([], {})
