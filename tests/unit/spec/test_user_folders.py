"""The user's folders, and users who have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.errors import UsageError
from farline.spec.user_folders import expanded, home_folder, needed, user_folder
from tests.support.homeless import take_home


def test_a_folder_is_the_variable_s_or_below_the_home_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert user_folder("XDG_STATE_HOME", ".local/state") == Path("/home/ada/.local/state")
    assert expanded("~/x") == Path("/home/ada/x")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert user_folder("XDG_STATE_HOME", ".local/state") == Path("/state")


def test_a_user_without_a_home_folder_has_only_what_variables_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_home(monkeypatch)
    assert home_folder() is None
    assert user_folder("XDG_STATE_HOME", ".local/state") is None
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert user_folder("XDG_STATE_HOME", ".local/state") == Path("/state")


def test_what_is_needed_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    take_home(monkeypatch)
    assert needed(Path("/x"), "store", "FARLINE_STORE") == Path("/x")
    with pytest.raises(UsageError, match=r"store: .* set HOME or FARLINE_STORE"):
        needed(None, "store", "FARLINE_STORE")
    with pytest.raises(UsageError, match="~/x: the home folder is unknown"):
        expanded("~/x")


def test_the_home_folder_of_nobody_is_an_error_of_the_caller() -> None:
    with pytest.raises(UsageError, match="no such user"):
        expanded("~no-such-user/x")
