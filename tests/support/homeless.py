"""A user without a home folder, as in a container that runs with a number of its own for a user."""

from __future__ import annotations

import os
import pwd
from typing import NoReturn

import pytest

FOLDERS = (
    "HOME", "FARLINE_STORE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
)  # fmt: skip
"""Variables that would lead to a folder of the user's."""


def no_such_user(user: object) -> NoReturn:
    """In the place of `pwd.getpwuid`."""
    raise KeyError(user)


def take_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing says where the user's folders are until the test ends."""
    for name in FOLDERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_such_user)


if __name__ == "__main__":
    # The `farline` command for such a user.
    for variable in FOLDERS:
        os.environ.pop(variable, None)
    pwd.getpwuid = no_such_user
    from farline.cli import main

    main()
