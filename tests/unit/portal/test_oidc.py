"""Login at an issuer: who comes back with what the issuer signed is in, and nobody else."""

from __future__ import annotations

import dataclasses
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from farline.errors import SpecError, SystemFailure
from farline.portal.app import create_service
from farline.portal.oidc import LOGIN_S
from farline.portal.oidc_settings import OidcSettings, Rule, load_oidc
from farline.portal.settings import Settings
from tests.support.issuer import CLIENT, SECRET, Issuer, issuing, new_key
from tests.support.portals import made_sites, made_store

RULES = (
    Rule(("see", "estimate")),
    Rule(("move",), "groups", "dtn-users"),
    Rule(("operate",), "role", "admin"),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small store."""
    return made_store(tmp_path_factory.mktemp("made"))


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An issuer on this host."""
    with issuing() as found:
        yield found


class Clock:
    """The service's time."""

    ahead_s = 0.0

    def __call__(self) -> float:
        """POSIX seconds."""
        return time.time() + self.ahead_s


class Site:
    """A service with that issuer, and its browsers."""

    def __init__(self, folder: Path, store: Path, issuer: Issuer, **changes: Any) -> None:
        self.clock = Clock()
        oidc = OidcSettings(issuer.url, CLIENT, RULES, SECRET, "Example Lab")
        settings = Settings(
            folder / "state", store, made_sites(), now=self.clock,
            oidc=dataclasses.replace(oidc, **changes),
        )  # fmt: skip
        self.service = create_service(settings)
        self.browser = self.another()

    def another(self) -> TestClient:
        """Another browser."""
        return TestClient(self.service.app, base_url="http://localhost", follow_redirects=False)

    def begin(self, browser: TestClient | None = None) -> str:
        """Where the browser is sent."""
        answer = (browser or self.browser).get("/login/begin")
        assert answer.status_code == 303
        return str(answer.headers["location"])

    def back(self, query: dict[str, str], browser: TestClient | None = None) -> Any:
        """The browser comes back."""
        return (browser or self.browser).get("/login/return", params=query)


@pytest.fixture
def site(tmp_path: Path, store: Path, issuer: Issuer) -> Site:
    """A service with that issuer."""
    return Site(tmp_path, store, issuer)


def test_who_logs_in_at_the_issuer_is_in_with_what_the_rules_allow(
    site: Site, issuer: Issuer
) -> None:
    assert "Log in with Example Lab" in site.browser.get("/login").text
    place = site.begin()
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(place).query))
    assert place.startswith(f"{issuer.url}/authorize?")
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert asked["redirect_uri"] == "http://localhost/login/return"
    issuer.claims = {"groups": ["staff", "dtn-users"]}
    answer = site.back(issuer.answer(place))
    assert answer.status_code == 200 and answer.headers["refresh"] == "0; url=/"
    cookies = "\n".join(answer.headers.get_list("set-cookie")).lower()
    assert "httponly" in cookies and "samesite=strict" in cookies
    page = site.browser.get("/transfers/new")
    assert page.status_code == 200 and "oidc:ada" in page.text
    scopes = site.service.access.caller(site.browser.cookies["farline_portal"], "session").scopes
    assert scopes == {"see", "estimate", "move"}


def test_a_login_is_finished_once_and_by_the_browser_that_began_it(
    site: Site, issuer: Issuer
) -> None:
    query = issuer.answer(site.begin())
    victim = site.another()
    assert site.back(query, victim).status_code == 401, "a link that somebody was sent"
    site.begin(victim)
    assert site.back(query, victim).status_code == 401, "in the midst of a login of one's own"
    assert "farline_portal" not in victim.cookies
    assert site.back(query).status_code == 200
    assert site.back(query).status_code == 401


def test_a_login_ends_by_itself(site: Site, issuer: Issuer) -> None:
    query = issuer.answer(site.begin())
    site.clock.ahead_s = LOGIN_S + 1
    answer = site.back(query)
    assert answer.status_code == 401 and "expired" in answer.text


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"iss": "https://elsewhere.example"}, "its issuer"),
    ({"aud": "another client"}, "its audience"),
    ({"aud": [CLIENT, "another"]}, "for whom it was made"),
    ({"aud": None}, "its audience"),
    ({"nonce": "replayed"}, "the nonce"),
    ({"nonce": None}, "the nonce"),
    ({"exp": 1_600_000_000}, "its expiry"),
    ({"exp": None}, "its expiry"),
    ({"exp": "never"}, "its expiry"),
    ({"iat": 4_000_000_000}, "when it was issued"),
    ({"nbf": 4_000_000_000}, "when it begins"),
    ({"sub": None}, "no claim &#39;sub&#39;"),
    ({"sub": 7}, "no claim &#39;sub&#39;"),
    ({"sub": "a\nb"}, "no claim &#39;sub&#39;"),
]


@pytest.mark.parametrize(("claims", "said"), WRONG, ids=[str(one) for one, _ in WRONG])
def test_a_token_that_is_wrong_in_anything_lets_nobody_in(
    site: Site, issuer: Issuer, claims: dict[str, Any], said: str
) -> None:
    issuer.claims = claims
    answer = site.back(issuer.answer(site.begin()))
    assert answer.status_code == 401 and said in answer.text
    assert "farline_portal" not in site.browser.cookies
    assert site.browser.get("/").headers["location"] == "/login"


def test_two_audiences_are_right_where_the_token_was_made_for_this_one(
    site: Site, issuer: Issuer
) -> None:
    issuer.claims = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert site.back(issuer.answer(site.begin())).status_code == 200


def test_a_key_that_the_issuer_does_not_publish_signs_nothing(site: Site, issuer: Issuer) -> None:
    query = issuer.answer(site.begin())
    known = issuer.keys
    issuer.keys = [new_key("first")]
    token = issuer.token(issuer.codes[query["code"]])
    issuer.keys = known
    issuer.answers["/token"] = (200, f'{{"id_token": "{token}"}}'.encode())
    answer = site.back(query)
    assert answer.status_code == 401 and "signature of the ID token" in answer.text


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_without_a_key_of_the_issuer_is_none(
    site: Site, issuer: Issuer, algorithm: str
) -> None:
    import base64
    import hashlib
    import hmac
    import json

    query = issuer.answer(site.begin())
    grant = issuer.codes[query["code"]]
    claims = {"iss": issuer.url, "aud": CLIENT, "sub": "root", "nonce": grant["nonce"],
              "iat": int(time.time()), "exp": int(time.time()) + 60}  # fmt: skip
    parts = [{"alg": algorithm, "kid": "first"}, claims]
    text = b".".join(
        base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in parts
    )
    # The public key as the secret: what a careless reader takes for right.
    public = json.dumps(issuer.keys[0].as_dict(private=False)).encode()
    seal = hmac.new(public, text, hashlib.sha256).digest() if algorithm == "HS256" else b""
    token = text + b"." + base64.urlsafe_b64encode(seal).rstrip(b"=")
    issuer.answers["/token"] = (200, b'{"id_token": "' + token + b'"}')
    assert site.back(query).status_code == 401


def test_keys_that_are_changed_at_the_issuer_are_fetched_again(site: Site, issuer: Issuer) -> None:
    assert site.back(issuer.answer(site.begin())).status_code == 200
    issuer.keys = [new_key("second", "EC")]
    issuer.algorithm = "ES256"
    assert site.back(issuer.answer(site.begin(site.another()))).status_code == 401
    site.clock.ahead_s = 31
    browser = site.another()
    assert site.back(issuer.answer(site.begin(browser)), browser).status_code == 200
    asked = issuer.asked.count("/keys")
    for _ in range(3):
        site.back(issuer.answer(site.begin()))
    assert issuer.asked.count("/keys") == asked, "kept, whatever comes"


BROKEN: list[tuple[str, int, bytes, str]] = [
    ("/token", 400, b'{"error": "invalid_grant", "error_description": "<b>no</b>"}', "&lt;b&gt;no"),
    ("/token", 500, b"oops", "HTTP status 500"),
    ("/token", 200, b"{}", "no ID token"),
    ("/token", 200, b"[1]", "not a JSON document"),
    ("/token", 200, b"[" * 100_000, "not a JSON document"),
    ("/token", 302, b"", "HTTP status 302"),
    ("/keys", 200, b'{"keys": {}}', "no set of keys"),
    ("/keys", 200, b'{"keys": [{"kty": "oct", "k": "AAAA"}]}', "signature of the ID token"),
]


@pytest.mark.parametrize(("path", "status", "body", "said"), BROKEN)
def test_an_issuer_that_answers_wrongly_is_an_error_in_words(
    site: Site, issuer: Issuer, path: str, status: int, body: bytes, said: str
) -> None:
    query = issuer.answer(site.begin())
    issuer.answers[path] = (status, body)
    answer = site.back(query)
    assert answer.status_code == 401 and said in answer.text


def test_an_issuer_that_is_another_or_is_not_there_is_told(site: Site, issuer: Issuer) -> None:
    issuer.answers["/.well-known/openid-configuration"] = (200, b'{"issuer": "https://other"}')
    answer = site.browser.get("/login/begin")
    assert answer.status_code in (303, 401), answer.text


def test_the_issuer_may_refuse_and_says_why(site: Site, issuer: Issuer) -> None:
    query = issuer.answer(site.begin())
    refused = {"state": query["state"], "error": "access_denied",
               "error_description": "<script>x</script>"}  # fmt: skip
    answer = site.back(refused)
    assert answer.status_code == 401 and "Example Lab refused: &lt;script&gt;" in answer.text


def test_an_answer_of_another_issuer_is_not_taken(site: Site, issuer: Issuer) -> None:
    query = {**issuer.answer(site.begin()), "iss": "https://mixed.example"}
    assert "another issuer" in site.back(query).text


def test_who_fits_no_rule_may_do_nothing(tmp_path: Path, store: Path, issuer: Issuer) -> None:
    strict = Site(tmp_path, store, issuer, rules=RULES[1:])
    answer = strict.back(issuer.answer(strict.begin()))
    assert answer.status_code == 403 and "no rule" in answer.text
    assert "farline_portal" not in strict.browser.cookies


def test_an_address_counts_only_where_the_issuer_has_verified_it(
    tmp_path: Path, store: Path, issuer: Issuer
) -> None:
    mails = Site(tmp_path, store, issuer, user_claim="email")
    for verified, status in ((None, 401), (False, 401), ("true", 401), (True, 200)):
        issuer.claims = {"email": "ada@lab.example", "email_verified": verified}
        assert mails.back(issuer.answer(mails.begin())).status_code == status, verified


def test_wrong_logins_from_one_address_have_to_wait(site: Site) -> None:
    statuses = [site.back({"state": "x", "code": "y"}).status_code for _ in range(30)]
    assert statuses[0] == 401 and statuses[-1] == 429


def test_without_an_issuer_there_is_no_way_to_one(tmp_path: Path, store: Path) -> None:
    service = create_service(Settings(tmp_path / "state", store, made_sites()))
    browser = TestClient(service.app, base_url="http://localhost", follow_redirects=False)
    assert browser.get("/login/begin").status_code == 404
    assert "Log in with" not in browser.get("/login").text


FILE = """
issuer = "https://login.example.org/realms/lab"
client_id = "farline"
client_secret_file = "secret"
label = "Example Lab"
[[allow]]
scopes = ["see"]
[[allow]]
claim = "groups"
value = "dtn"
scopes = ["move", "estimate"]
"""


def test_the_file_is_read_with_its_secret_beside_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush\n")
    (tmp_path / "oidc.toml").write_text(FILE)
    found = load_oidc(tmp_path / "oidc.toml")
    assert (found.client_secret, found.label, found.scopes) == ("hush", "Example Lab", ("openid",))
    assert found.rules[1] == Rule(("move", "estimate"), "groups", "dtn")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("https://login", "http://login"), "must begin with https://"),
        (("https://login", "https://login?x="), "without ?"),
        (('client_id = "farline"', ""), "client_id: missing"),
        (('label = "Example Lab"', "label = 7"), "label: must be a text"),
        (("label", "lable"), "lable: unknown"),
        (('["see"]', '["fly"]'), "allow[0].scopes: fly"),
        (('["see"]', "[]"), "allow[0].scopes: missing"),
        (('value = "dtn"', ""), "claim and value must be set together"),
        (("[[allow]]", "[[other]]"), "other: unknown"),
        (("client_id", "= x"), "oidc.toml"),
    ],
)
def test_a_file_that_cannot_be_is_refused_by_its_key(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    (tmp_path / "secret").write_text("hush")
    (tmp_path / "oidc.toml").write_text(FILE.replace(*change))
    with pytest.raises(SpecError) as refusal:
        load_oidc(tmp_path / "oidc.toml")
    assert said in refusal.value.message


def test_a_secret_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "oidc.toml").write_text(FILE)
    with pytest.raises(SystemFailure, match="client_secret_file"):
        load_oidc(tmp_path / "oidc.toml")
