"""Who asks: a bearer token, or a browser's cookie with the page's word against forged requests."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

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

_bearer = HTTPBearer(auto_error=False, description="A token of `farline portal token`.")

Ask = Callable[..., Awaitable[Caller]]


class Guard:
    """Lets in who may; who is wrong too often has to wait."""

    def __init__(self, access: Access, allowance: Allowance, mistakes: Allowance) -> None:
        """`allowance` is by user, `mistakes` by address."""
        self._access, self._allowance, self._mistakes = access, allowance, mistakes

    def needs(self, scope: str) -> Any:
        """What a route depends on: the caller, whose token allows `scope`."""

        async def ask(request: Request, given: Annotated[Any, Depends(_bearer)] = None) -> Caller:
            return self.caller(request, given and given.credentials).checked(scope)

        return Depends(ask)

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
