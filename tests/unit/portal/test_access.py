"""Tokens: what is kept of them, what they allow, when they end."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.errors import AuthError, BusyError, UsageError
from farline.portal.access import BEARER, LOGIN, SESSION, SESSION_S, Access, ForbiddenError
from farline.portal.allowance import Allowance
from farline.portal.database import Database
from tests.support.portals import Clock


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def access(tmp_path: Path, clock: Clock) -> Access:
    """Tokens in a file."""
    return Access(Database(tmp_path / "portal.sqlite"), clock)


def test_a_token_says_who_shows_it_and_what_that_may(access: Access) -> None:
    text, token_id = access.make(BEARER, "ada", ["move", "see"], 60)
    found = access.caller(text, BEARER)
    assert (found.user, found.token_id) == ("ada", token_id)
    assert found.scopes == frozenset({"see", "move"})
    with pytest.raises(ForbiddenError, match="does not allow 'operate'"):
        found.checked("operate")


def test_no_token_is_kept_in_readable_form(access: Access, tmp_path: Path) -> None:
    text, _ = access.make(BEARER, "ada", ["see"], 60)
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert text.encode() not in held and text[4:].encode() not in held
    assert (tmp_path / "portal.sqlite").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("wrong", ["", "flp_", "flp_x", "\udcff", "é" * 50])
def test_another_text_is_nobody(access: Access, wrong: str) -> None:
    access.make(BEARER, "ada", ["see"], 60)
    with pytest.raises(AuthError, match="unknown token"):
        access.caller(wrong, BEARER)


def test_a_token_expires_and_can_be_revoked(access: Access, clock: Clock) -> None:
    first, _ = access.make(BEARER, "ada", ["see"], 60)
    second, second_id = access.make(BEARER, "ada", ["see"], 600)
    clock.at_s += 60
    with pytest.raises(AuthError, match="expired"):
        access.caller(first, BEARER)
    access.revoke(second_id)
    with pytest.raises(AuthError, match="revoked"):
        access.caller(second, BEARER)
    assert access.tokens() == []


def test_a_one_time_token_opens_one_session(access: Access, clock: Clock) -> None:
    text, _ = access.make(LOGIN, "ada", ["see"], 60)
    session = access.exchange(text)
    assert access.caller(session, SESSION).user == "ada"
    with pytest.raises(AuthError, match="revoked"):
        access.exchange(text)
    clock.at_s += SESSION_S
    with pytest.raises(AuthError, match="expired"):
        access.caller(session, SESSION)


def test_a_kind_of_token_is_not_taken_for_another(access: Access) -> None:
    session = access.exchange(access.make(LOGIN, "ada", ["see"], 60)[0])
    bearer, _ = access.make(BEARER, "ada", ["see"], 60)
    for text, kind in ((session, BEARER), (bearer, SESSION)):
        with pytest.raises(AuthError):
            access.caller(text, kind)


@pytest.mark.parametrize("user, scopes", [("", ["see"]), ("a\nb", ["see"]), ("ada", []),
                                          ("ada", ["fly"])])  # fmt: skip
def test_what_is_no_user_or_scope_is_refused(access: Access, user: str, scopes: list[str]) -> None:
    with pytest.raises(UsageError):
        access.make(BEARER, user, scopes, 60)


def test_an_allowance_fills_again(clock: Clock) -> None:
    allowance = Allowance(2.0, 3.0, clock)
    for _ in range(3):
        allowance.take("ada", "requests")
    with pytest.raises(BusyError) as refused:
        allowance.take("ada", "requests")
    assert refused.value.retry_after_s == pytest.approx(0.5)
    allowance.take("bob", "requests")
    clock.at_s += 0.5
    allowance.take("ada", "requests")
