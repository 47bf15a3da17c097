"""Who asks: a bearer token, or a browser's cookie with the page's word against forged requests."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from fastapi.security.utils import get_authorization_scheme_param

from farline.errors import AuthError
from farline.portal.access import (
    BEARER,
    SESSION,
    SESSION_S,
    Access,
    Caller,
    ForbiddenError,
    csrf_of,
)
from farline.portal.allowance import Allowance

COOKIE = "farline_portal"
CSRF_HEADER = "X-CSRF-Token"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Bearer(SecurityBase):
    """What a route depends on, as the description has it: a token that allows a scope.

    One dependency and not one that depends on another: each costs every request a tenth of a
    millisecond.
    """

    def __init__(self, guard: Guard, scope: str) -> None:
        self.model = HTTPBearer(description="A token of `farline portal token`.")
        self.scheme_name = "HTTPBearer"
        self._guard, self._scope = guard, scope

    async def __call__(self, request: Request) -> Caller:
        """The caller.

        Raises:
            AuthError: when nobody is known, or the token does not allow it.
            BusyError: for too many requests, or too many mistakes.
        """
        word, token = get_authorization_scheme_param(request.headers.get("Authorization"))
        is_bearer = word.lower() == "bearer" and token != ""
        return self._guard.caller(request, token if is_bearer else None).checked(self._scope)


class Guard:
    """Lets in who may; who is wrong too often has to wait."""

    def __init__(self, access: Access, allowance: Allowance, mistakes: Allowance) -> None:
        """`allowance` is by user, `mistakes` by address."""
        self._access, self._allowance, self._mistakes = access, allowance, mistakes

    def needs(self, scope: str) -> Any:
        """What a route depends on: the caller, whose token allows `scope`."""
        return Depends(Bearer(self, scope))

    def caller(self, request: Request, token: str | None) -> Caller:
        """Who asks.

        Raises:
            AuthError: when nobody is known; ForbiddenError for a forged request.
            BusyError: for too many requests, or too many mistakes.
        """
        try:
            found = self._known(request, token)
        except ForbiddenError:
            raise
        except AuthError:
            if token is not None or COOKIE in request.cookies:
                self._note_mistake(request)
            raise
        self._allowance.take(found.user, "requests")
        return found

    def person(self, request: Request, word: str | None = None) -> Caller:
        """Who looks at a page; a change needs the `word` that the page's form sent along.

        Raises:
            AuthError: when nobody has logged in; ForbiddenError for a forged request.
            BusyError: for too many requests.
        """
        session = request.cookies.get(COOKIE)
        if session is None:
            raise AuthError("log in first")
        found = self._access.caller(session, SESSION)
        if request.method not in SAFE:
            check_word(session, word or "")
        self._allowance.take(found.user, "requests")
        return found

    def enter(self, request: Request, token: str) -> str:
        """A browser session for a one-time or a bearer token.

        Raises:
            AuthError: when the token does not work; BusyError after too many that did not.
        """
        try:
            return self._access.exchange(token)
        except AuthError:
            self._note_mistake(request)
            raise

    def enter_by(
        self, request: Request, finish: Callable[[], tuple[str, Sequence[str]]]
    ) -> tuple[Caller, str]:
        """Who an issuer says has logged in, and a browser session.

        Raises:
            AuthError: as `finish` does; BusyError after too many that came to nothing.
        """
        try:
            user, scopes = finish()
        except AuthError:
            self._note_mistake(request)
            raise
        session, _ = self._access.make(SESSION, user, scopes, SESSION_S)
        return self._access.caller(session, SESSION), session

    def _note_mistake(self, request: Request) -> None:
        """Who shows a token that works is let in, whatever others do from the same address."""
        address = request.client.host if request.client else "unknown"
        self._mistakes.take(address, "wrong tokens from this address")

    def _known(self, request: Request, token: str | None) -> Caller:
        if token is not None:
            return self._access.caller(token, BEARER)
        session = request.cookies.get(COOKIE)
        if session is None:
            raise AuthError("no token: send 'Authorization: Bearer TOKEN', or log in")
        found = self._access.caller(session, SESSION)
        if request.method not in SAFE:
            check_word(session, request.headers.get(CSRF_HEADER, ""))
        return found


def check_word(session: str, word: str) -> None:
    """Refuses a change that none of the session's own pages sent.

    Raises:
        ForbiddenError: when the word is not that of the session.
    """
    if not hmac.compare_digest(csrf_of(session).encode(), word.encode("utf-8", "replace")):
        raise ForbiddenError("this request did not come from a page of this session: reload it")
