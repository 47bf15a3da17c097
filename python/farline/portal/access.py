"""Who may do what: tokens, browser sessions and the one-time token of a start.

A token is 256 random bits, so one SHA-256 of it is as good as a slow hash; only that is kept. What
is presented is hashed and looked for, which tells an attacker's clock nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from farline.errors import AuthError, UsageError
from farline.portal.database import Database, Row

SCOPES = {
    "see": "read paths, measurements, campaigns, findings, and one's own transfers",
    "estimate": "estimate transfers",
    "move": "copy files, and reserve for it",
    "operate": "see and stop what others do, and read the audit",
}
"""What a token may allow, with what it means."""

BEARER, SESSION, LOGIN = "bearer", "session", "login"
PREFIX = {BEARER: "flp_", SESSION: "fls_", LOGIN: "flo_"}
"""How a token of each kind begins, so that one that leaked is recognised."""

TOKEN_S = 30 * 86_400.0
SESSION_S = 12 * 3600.0
LOGIN_S = 600.0


class ForbiddenError(AuthError):
    """Who asks is known, and may not."""


@dataclass(frozen=True)
class Caller:
    """Somebody who has shown a token."""

    user: str
    token_id: str
    kind: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        """Whether the token allows it."""
        return scope in self.scopes

    def checked(self, scope: str) -> Caller:
        """Itself.

        Raises:
            ForbiddenError: when its token does not allow it.
        """
        if self.may(scope):
            return self
        raise ForbiddenError(
            f"this token does not allow '{scope}', only {', '.join(sorted(self.scopes))}; make one"
            f" with farline portal token --scope {scope}"
        )

    def sees(self, user: str) -> bool:
        """Whether what belongs to `user` is for this caller's eyes."""
        return user == self.user or self.may("operate")


class Access:
    """Makes tokens, and says who shows one."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database, self._now = database, now

    def make(
        self, kind: str, user: str, scopes: Iterable[str], lifetime_s: float
    ) -> tuple[str, str]:
        """A new token and its id; the text is nowhere else.

        Raises:
            UsageError: for scopes or a user that cannot be.
        """
        wanted = checked_scopes(scopes)
        if not user.strip() or not user.isprintable() or len(user) > 100:
            raise UsageError(f"user: {user!r} is not a name of 1 to 100 printable characters")
        text, now = PREFIX[kind] + secrets.token_urlsafe(32), self._now()
        token_id = secrets.token_hex(6)
        row = (token_id, kind, user, " ".join(wanted), _hash(text), now, now + lifetime_s)
        with self._database.write() as write:
            write.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", row)
        return text, token_id

    def caller(self, text: str, *kinds: str) -> Caller:
        """Who shows this token, which is of one of these kinds.

        Raises:
            AuthError: when there is no such token, or not any more.
        """
        found = self._database.row("SELECT * FROM tokens WHERE hash = ?", (_hash(text),))
        if found is None or found["kind"] not in kinds:
            raise AuthError("unknown token; make one with farline portal token")
        if found["revoked_s"] is not None:
            raise AuthError("this token was revoked; make one with farline portal token")
        if found["expires_s"] <= self._now():
            raise AuthError("this token has expired; make one with farline portal token")
        return _caller(found)

    def exchange(self, text: str) -> str:
        """A browser session for a one-time token, which is used up, or for a bearer token.

        Raises:
            AuthError: as `caller`.
        """
        found = self.caller(text, LOGIN, BEARER)
        if found.kind == LOGIN:
            self.revoke(found.token_id)
        session, _ = self.make(SESSION, found.user, found.scopes, SESSION_S)
        return session

    def revoke(self, token_id: str) -> None:
        """Ends a token for good; nobody can use it a second time.

        Raises:
            AuthError: when it had ended before.
        """
        with self._database.write() as write:
            done = write.execute(
                "UPDATE tokens SET revoked_s = ? WHERE id = ? AND revoked_s IS NULL",
                (self._now(), token_id),
            )
        if done.rowcount != 1:
            raise AuthError(f"token {token_id}: unknown, or revoked before")

    def tokens(self) -> Sequence[dict[str, Any]]:
        """Bearer tokens that work, without their texts; the newest first."""
        rows = self._database.rows(
            "SELECT id, user, scopes, created_s, expires_s FROM tokens WHERE kind = ? AND"
            " revoked_s IS NULL AND expires_s > ? ORDER BY created_s DESC",
            (BEARER, self._now()),
        )
        return [{**dict(row), "scopes": row["scopes"].split()} for row in rows]

    def sweep(self) -> None:
        """Forgets tokens that ended a month ago."""
        with self._database.write() as write:
            write.execute("DELETE FROM tokens WHERE expires_s < ?", (self._now() - TOKEN_S,))


def csrf_of(session: str) -> str:
    """What a page of a browser session sends with each change, so that no other page can."""
    return hmac.new(session.encode(), b"farline portal csrf", hashlib.sha256).hexdigest()


def checked_scopes(scopes: Iterable[str]) -> list[str]:
    """The scopes in their order, each once.

    Raises:
        UsageError: for one that there is not, or none at all.
    """
    wanted = set(scopes)
    unknown = sorted(wanted - set(SCOPES))
    if unknown or not wanted:
        raise UsageError(f"scope: {', '.join(unknown) or 'missing'}; allowed: {', '.join(SCOPES)}")
    return [scope for scope in SCOPES if scope in wanted]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _caller(row: Row) -> Caller:
    return Caller(row["user"], row["id"], row["kind"], frozenset(row["scopes"].split()))
