"""An OpenID Connect issuer for tests: discovery, keys and the token endpoint on loopback.

The authorization endpoint is the test's: `answer` says what the browser comes back with.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

CLIENT, SECRET = "farline portal", "a secret: with/signs"


@dataclass
class Issuer:
    """What the issuer knows, does, and may do wrong."""

    url: str = ""
    keys: list[Any] = field(default_factory=list)
    algorithm: str = "RS256"
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    """What the next token says besides what it must; None leaves a claim out."""
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """What is answered at a path instead."""
    asked: list[str] = field(default_factory=list)

    def answer(self, place: str, subject: str = "ada") -> dict[str, str]:
        """A person has agreed: what the browser brings back from `place`."""
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(place).query))
        code = hashlib.sha256(place.encode()).hexdigest()
        self.codes[code] = {**query, "sub": subject}
        return {"code": code, "state": query["state"], "iss": self.url}

    def token(self, grant: dict[str, str]) -> str:
        """The ID token of a grant."""
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": CLIENT, "sub": grant["sub"], "nonce": grant["nonce"],
            "iat": now, "exp": now + 300, **self.claims,
        }  # fmt: skip
        said = {name: value for name, value in claims.items() if value is not None}
        key = self.keys[-1]
        return jwt.encode({"alg": self.algorithm, "kid": key.kid}, said, key)

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """What the token endpoint answers."""
        pair = ":".join(urllib.parse.quote(one, safe="") for one in (CLIENT, SECRET))
        expected = "Basic " + base64.b64encode(pair.encode()).decode()
        grant = self.codes.pop(form.get("code", ""), None)
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        digest = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        if authorization != expected:
            return 401, {"error": "invalid_client"}
        if grant is None or form.get("redirect_uri") != grant["redirect_uri"]:
            return 400, {"error": "invalid_grant", "error_description": "no such code"}
        if digest != grant["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": "wrong verifier"}
        return 200, {"id_token": self.token(grant), "access_token": "x", "token_type": "Bearer"}

    def about(self) -> dict[str, Any]:
        """Its description."""
        ends = {"authorization": "authorize", "token": "token"}
        places = {f"{name}_endpoint": f"{self.url}/{path}" for name, path in ends.items()}
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **places}


def new_key(kid: str, kind: str = "RSA") -> Any:
    """A key that signs."""
    options: Any = {"kid": kid, "use": "sig"}
    if kind == "EC":
        return ECKey.generate_key("P-256", options)
    return RSAKey.generate_key(2048, options)


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer that answers for as long as the block runs."""
    issuer = Issuer(keys=[new_key("first")])

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix("/realm")
            issuer.asked.append(path)
            if path == "/.well-known/openid-configuration":
                self._say(200, issuer.about(), path)
            elif path == "/keys":
                public = KeySet(issuer.keys).as_dict(private=False)
                self._say(200, dict(public), path)
            else:
                self._say(404, {}, path)

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = dict(urllib.parse.parse_qsl(text))
            status, document = issuer.exchange(form, self.headers.get("Authorization", ""))
            self._say(status, document, self.path.removeprefix("/realm"))

        def _say(self, status: int, document: Any, path: str) -> None:
            status, body = issuer.answers.get(path, (status, json.dumps(document).encode()))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 302:
                self.send_header("Location", issuer.url)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    issuer.url = f"http://127.0.0.1:{server.server_address[1]}/realm"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
