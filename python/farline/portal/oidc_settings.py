"""An issuer of OpenID Connect as a service is told of it: the file of `farline portal --oidc`."""

from __future__ import annotations

import tomllib
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farline.errors import SpecError, SystemFailure
from farline.portal.access import SCOPES


@dataclass(frozen=True)
class Rule:
    """Who may do what: all whose claim is, or has, this value; all, where no claim is named."""

    scopes: tuple[str, ...]
    claim: str | None = None
    value: str | None = None

    def fits(self, claims: Mapping[str, Any]) -> bool:
        """Whether it is about somebody with these claims."""
        if self.claim is None:
            return True
        found = claims.get(self.claim)
        return self.value in found if isinstance(found, list) else found == self.value


@dataclass(frozen=True)
class OidcSettings:
    """An issuer, what it knows this service as, and who may do what."""

    issuer: str
    client_id: str
    rules: tuple[Rule, ...]
    client_secret: str | None = None
    """None for a public client: PKCE alone protects the code."""
    label: str = "your organisation"
    user_claim: str = "sub"
    scopes: tuple[str, ...] = ("openid",)


def load_oidc(path: Path) -> OidcSettings:
    """Reads the file that `farline portal --oidc` names.

    Raises:
        SpecError: for what it must not say, with the key.
        SystemFailure: when it, or the file of the secret, cannot be read.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SpecError(f"{path}: {error}") from None
    except OSError as error:
        raise SystemFailure(f"{path}: {error.strerror}") from None
    try:
        return _settings(document, path.parent)
    except SpecError as error:
        raise SpecError(f"{path}: {error.message}") from None


def _settings(document: Mapping[str, Any], folder: Path) -> OidcSettings:
    known = {"issuer", "client_id", "client_secret_file", "label", "user_claim", "scopes", "allow"}
    if unknown := sorted(set(document) - known):
        raise SpecError(f"{unknown[0]}: unknown; allowed: {', '.join(sorted(known))}")
    rules = tuple(_rule(one, number) for number, one in enumerate(document.get("allow", [])))
    if not rules:
        raise SpecError("allow: nobody could log in; add a table [[allow]] with scopes = [..]")
    secret = _text(document, "client_secret_file", optional=True)
    scopes = ["openid", *_texts(document, "scopes", [])]
    return OidcSettings(
        issuer=_issuer(_text(document, "issuer") or ""),
        client_id=_text(document, "client_id") or "",
        rules=rules,
        client_secret=None if secret is None else _secret(folder / secret),
        label=_text(document, "label", optional=True) or OidcSettings.label,
        user_claim=_text(document, "user_claim", optional=True) or OidcSettings.user_claim,
        scopes=tuple(dict.fromkeys(scopes)),
    )


def _rule(one: Any, number: int) -> Rule:
    where = f"allow[{number}]"
    if not isinstance(one, Mapping) or set(one) - {"claim", "value", "scopes"}:
        raise SpecError(
            f"{where}: write a table with scopes, and claim and value unless the rule is for all"
        )
    claim, value = _text(one, "claim", optional=True), _text(one, "value", optional=True)
    if (claim is None) != (value is None):
        raise SpecError(f"{where}: claim and value must be set together")
    scopes = _texts(one, "scopes", [])
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        named = ", ".join(unknown) or "missing"
        raise SpecError(f"{where}.scopes: {named}; allowed: {', '.join(SCOPES)}")
    return Rule(tuple(scopes), claim, value)


def _text(document: Mapping[str, Any], key: str, optional: bool = False) -> str | None:
    found = document.get(key)
    if found is None and optional:
        return None
    if not isinstance(found, str) or not found:
        raise SpecError(f"{key}: {'missing' if found is None else 'must be a text'}")
    return found


def _texts(document: Mapping[str, Any], key: str, default: list[str]) -> list[str]:
    found = document.get(key, default)
    if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
        raise SpecError(f"{key}: must be a list of texts")
    return found


def checked_address(text: str, key: str) -> str:
    """An address of an issuer: by https, or on this host.

    Raises:
        SpecError: for any other.
    """
    try:
        found = urllib.parse.urlsplit(text)
    except ValueError as error:
        raise SpecError(f"{key}: {text!r}: {error}") from None
    is_here = found.hostname in ("127.0.0.1", "::1", "localhost")
    if found.scheme != "https" and not (found.scheme == "http" and is_here):
        raise SpecError(f"{key}: {text!r} must begin with https:// (or be on this host)")
    if not found.hostname or found.fragment:
        raise SpecError(f"{key}: {text!r} is not an address")
    return text


def _issuer(text: str) -> str:
    if "?" in text:
        raise SpecError(f"issuer: {text!r} must be an address without ?")
    return checked_address(text, "issuer")


def _secret(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SystemFailure(f"client_secret_file: {path}: {error}") from None
