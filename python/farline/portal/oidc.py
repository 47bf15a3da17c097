"""Login by OpenID Connect: the authorization code flow with PKCE, against any issuer.

The browser goes to the issuer and comes back with a code; the service exchanges it, and believes
of the ID token what OpenID Connect Core 1.0 (section 3.1.3.7) lets it believe: issuer, audience,
signature by a key of the issuer's, times, and the nonce of this login. What a person may do
follows from rules over the token's claims; who matches none may do nothing. Sources: OpenID
Connect Core 1.0 and Discovery 1.0; RFC 6749, section 4.1; RFC 7636 (PKCE, S256); RFC 9207 (issuer
in the answer).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import secrets
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from farline.errors import AuthError, SystemFailure
from farline.portal.access import ForbiddenError, checked_scopes
from farline.portal.database import Database
from farline.portal.oidc_settings import OidcSettings, checked_address
from farline.spec.extras import missing_text

RETURN = "/login/return"
"""Where an issuer sends the browser back to."""

LOGIN_S = 600.0
"""How long a person may take at the issuer."""

MOST_LOGINS = 1000
"""Logins under way; beyond that the oldest is forgotten."""

SKEW_S = 60.0
"""How far the issuer's clock may be from ours."""

WAIT_S = 10.0
MOST_BYTES = 1 << 20
KEYS_S = 3600.0
"""How long the issuer's description and keys are kept."""

LEAST_S = 30.0
"""Least time between two fetches of them, whatever tokens come."""

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
              "EdDSA")  # fmt: skip
"""Signatures by a key that only the issuer has."""

USER_PREFIX = "oidc:"
"""Before names that an issuer gives: none of them is a user of `farline portal token`."""


class LoginError(AuthError):
    """A login at the issuer that came to nothing."""


class OidcLogins:
    """Logins under way at one issuer."""

    def __init__(
        self, settings: OidcSettings, database: Database, now: Callable[[], float]
    ) -> None:
        """`now` gives POSIX seconds."""
        self._settings, self._database, self._now = settings, database, now
        self._issuer = _Issuer(settings.issuer, now)

    @property
    def label(self) -> str:
        """What the button says after "Log in with"."""
        return self._settings.label

    def begin(self, return_to: str) -> tuple[str, str]:
        """Where the browser goes, and the word by which it is known when it comes back.

        Raises:
            LoginError: when the issuer does not answer as one.
        """
        place = self._issuer.place("authorization_endpoint")
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        now = self._now()
        with self._database.write() as write:
            write.execute("DELETE FROM logins WHERE created_s < ?", (now - LOGIN_S,))
            write.execute(
                "DELETE FROM logins WHERE state NOT IN (SELECT state FROM logins"
                " ORDER BY created_s DESC LIMIT ?)",
                (MOST_LOGINS - 1,),
            )
            row = (_digest(state), nonce, verifier, return_to, now)
            write.execute("INSERT INTO logins VALUES (?, ?, ?, ?, ?)", row)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
        query = urllib.parse.urlencode({
            "response_type": "code", "client_id": self._settings.client_id,
            "redirect_uri": return_to, "scope": " ".join(self._settings.scopes), "state": state,
            "nonce": nonce, "code_challenge": challenge.rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        })  # fmt: skip
        return f"{place}{'&' if '?' in place else '?'}{query}", state

    def finish(self, query: Mapping[str, str], word: str | None) -> tuple[str, list[str]]:
        """Who came back, and what they may do. A login is finished once, by the browser that began.

        Raises:
            LoginError: when it was begun elsewhere, too long ago, or the issuer says no.
            ForbiddenError: for somebody whom no rule allows anything.
        """
        state = query.get("state", "")
        if not state or word is None or not secrets.compare_digest(_digest(state), _digest(word)):
            raise LoginError("this login was not started in this browser: log in again")
        with self._database.write() as write:
            found = write.execute(
                "DELETE FROM logins WHERE state = ? RETURNING *", (_digest(state),)
            ).fetchone()
        if found is None or found["created_s"] < self._now() - LOGIN_S:
            raise LoginError("this login has expired: log in again")
        if query.get("iss") not in (None, self._settings.issuer):
            raise LoginError("the answer is from another issuer than the one that was asked")
        if "error" in query:
            said = query.get("error_description") or query["error"]
            raise LoginError(f"{self._settings.label} refused: {_plain(said)}")
        token = self._exchange(query.get("code", ""), found["verifier"], found["return_to"])
        claims = self._issuer.claims_of(token, self._settings.client_id, found["nonce"])
        return self._user(claims), self._scopes(claims)

    def _exchange(self, code: str, verifier: str, return_to: str) -> str:
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": return_to,
            "client_id": self._settings.client_id, "code_verifier": verifier,
        }  # fmt: skip
        headers = {}
        if self._settings.client_secret is not None:
            pair = (self._settings.client_id, self._settings.client_secret)
            both = ":".join(urllib.parse.quote(one, safe="") for one in pair)
            headers["Authorization"] = "Basic " + base64.b64encode(both.encode()).decode()
        answer = _fetch(self._issuer.place("token_endpoint"), form, headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise LoginError("the issuer gave no ID token: does the client have the scope openid?")
        return token

    def _user(self, claims: Mapping[str, Any]) -> str:
        claim = self._settings.user_claim
        found = claims.get(claim)
        if claim == "email" and claims.get("email_verified") is not True:
            raise LoginError("the issuer has not verified this e-mail address")
        if not isinstance(found, str) or not found.strip() or not found.isprintable():
            raise LoginError(f"the issuer's token has no claim {claim!r} to call its user by")
        return (USER_PREFIX + found)[:100]

    def _scopes(self, claims: Mapping[str, Any]) -> list[str]:
        allowed = {one for rule in self._settings.rules if rule.fits(claims) for one in rule.scopes}
        if not allowed:
            raise ForbiddenError(
                "your login is valid, but no rule of this service allows access: ask its operator"
            )
        return checked_scopes(allowed)


class _Issuer:
    """What an issuer publishes of itself, fetched when it is needed and kept for a while."""

    def __init__(self, url: str, now: Callable[[], float]) -> None:
        self._url, self._now = url, now
        self._lock = threading.Lock()
        self._about: Mapping[str, Any] = {}
        self._keys: Sequence[Mapping[str, Any]] = ()
        self._about_s = self._keys_s = float("-inf")

    def place(self, name: str) -> str:
        """An endpoint of the issuer.

        Raises:
            LoginError: when there is none.
        """
        with self._lock:
            if self._now() - self._about_s > KEYS_S:
                self._about = self._described()
                self._about_s = self._now()
        found = self._about.get(name)
        if not isinstance(found, str):
            raise LoginError(f"{self._url} does not say where its {name} is")
        return checked_address(found, name)

    def claims_of(self, token: str, audience: str, nonce: str) -> Mapping[str, Any]:
        """What an ID token says, once everything about it is right.

        Raises:
            LoginError: when something is not.
        """
        claims = self._signed(token)
        now = self._now()
        audiences = claims.get("aud")
        audiences = audiences if isinstance(audiences, list) else [audiences]
        expires_s, issued_s = _time(claims.get("exp")), _time(claims.get("iat"))
        begins_s = _time(claims.get("nbf", now))
        checks = {
            "its issuer": claims.get("iss") == self._url,
            "its audience": audience in audiences,
            "for whom it was made": len(audiences) == 1 or claims.get("azp") == audience,
            "the nonce of this login": claims.get("nonce") == nonce,
            "its expiry": expires_s > now - SKEW_S,
            "when it was issued": 0 < issued_s < now + SKEW_S,
            "when it begins": 0 < begins_s < now + SKEW_S,
        }
        for what, is_right in checks.items():
            if not is_right:
                raise LoginError(f"the issuer's ID token is wrong in {what}")
        return claims

    def _signed(self, token: str) -> Mapping[str, Any]:
        """The claims of a token that a key of the issuer's has signed."""
        if len(token) > MOST_BYTES:
            raise LoginError("the issuer's ID token is too long")
        try:
            return _decoded(token, self._known_keys(anew=False))
        except ValueError:
            # It may have been signed by a key that is newer than those kept.
            pass
        try:
            return _decoded(token, self._known_keys(anew=True))
        except ValueError as error:
            why = _plain(str(error))
            raise LoginError(f"the signature of the ID token is not the issuer's: {why}") from None

    def _known_keys(self, anew: bool) -> Sequence[Mapping[str, Any]]:
        place = self.place("jwks_uri")
        with self._lock:
            age_s = self._now() - self._keys_s
            if age_s > (LEAST_S if anew else KEYS_S):
                keys = _fetch(place).get("keys")
                if not isinstance(keys, list):
                    raise LoginError(f"{place} has no set of keys")
                # Only what signs, and never a key that both ends share.
                self._keys = [
                    one for one in keys
                    if isinstance(one, Mapping) and one.get("kty") in ("RSA", "EC", "OKP")
                    and one.get("use", "sig") == "sig"
                ]  # fmt: skip
                self._keys_s = self._now()
            return self._keys

    def _described(self) -> Mapping[str, Any]:
        place = f"{self._url.rstrip('/')}/.well-known/openid-configuration"
        about = _fetch(place)
        if about.get("issuer") != self._url:
            named = _plain(str(about.get("issuer")))
            raise LoginError(f"{place} is of the issuer {named}, not of {self._url}")
        return about


def _decoded(token: str, keys: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The claims of a token that one of these keys has signed.

    Raises:
        ValueError: when none has.
    """
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet
    from joserfc.jwt import decode

    try:
        # Keys of the issuer's, in the form of RFC 7517.
        given: Any = {"keys": list(keys)}
        return decode(token, KeySet.import_key_set(given), algorithms=list(ALGORITHMS)).claims
    except (JoseError, KeyError, TypeError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def check_installed() -> None:
    """Refuses to begin where a login could not end.

    Raises:
        SystemFailure: that says what to install.
    """
    try:
        import joserfc  # noqa: F401
    except ImportError as error:
        text = missing_text("login by OpenID Connect", error)
        raise SystemFailure(text or str(error)) from None


class _Refusal(urllib.request.HTTPRedirectHandler):
    """An issuer's endpoints answer themselves."""

    def redirect_request(self, *_arguments: Any) -> None:
        """Follows nothing."""


def _fetch(
    place: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """A JSON document of the issuer's.

    Raises:
        LoginError: when it does not give one.
    """
    data = None if form is None else urllib.parse.urlencode(form).encode()
    asked = urllib.request.Request(place, data, {"Accept": "application/json", **(headers or {})})
    opener = urllib.request.build_opener(_Refusal)
    try:
        with opener.open(asked, timeout=WAIT_S) as answer:
            text = answer.read(MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        said = _refusal(error)
        raise LoginError(f"{place}: {said}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise LoginError(f"{place} does not answer: {_plain(str(why))}") from None
    try:
        found = json.loads(text) if len(text) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise LoginError(f"{place}: the answer is not a JSON document")
    return found


def _refusal(error: urllib.error.HTTPError) -> str:
    """What an error of RFC 6749, section 5.2, says; its number otherwise."""
    try:
        found = json.loads(error.read(MOST_BYTES))
        said = found.get("error_description") or found["error"]
    except (OSError, ValueError, KeyError, AttributeError, RecursionError):
        return f"HTTP status {error.code}"
    return _plain(str(said))


def _plain(text: str) -> str:
    """Another's text on one line of a page."""
    line = "".join(one if one.isprintable() else " " for one in text)
    return line[:200]


def _time(value: Any) -> float:
    """POSIX seconds; 0 for what is no time."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else 0.0


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
