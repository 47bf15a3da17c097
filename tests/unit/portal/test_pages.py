"""Pages as a browser without scripts gets them: whole, escaped, and only for who logged in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from farline.portal.access import LOGIN, SCOPES
from tests.support.portals import Portal, made_store, made_transfers, make_portal

SCRIPT = "<script>alert(1)</script>"
PAGES = ("/", "/paths/ANL/BNL", "/estimate", "/transfers", "/transfers/new", "/reservations",
         "/findings", "/campaigns", "/fairness", "/plans/new", "/plans/fairness",
         "/learn", "/learn/window", "/learn/instructor")  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which names are hostile."""
    rows = made_transfers(each=3)
    rows[0]["from_host"], rows[0]["tool"] = SCRIPT, SCRIPT
    return made_store(tmp_path_factory.mktemp("made"), rows)


@pytest.fixture
def portal(tmp_path: Path, store: Path) -> Iterator[Portal]:
    """A service with a folder that has hostile names."""
    made = make_portal(tmp_path, store=store)
    (tmp_path / "src" / f"a{SCRIPT.replace('/', '')}").mkdir(parents=True)
    made.service.endpoints.add("src", str(tmp_path / "src"))
    yield made


@pytest.fixture
def browser(portal: Portal) -> TestClient:
    """A browser that is logged in."""
    return portal.log_in()


def word_of(browser: TestClient, path: str = "/transfers/new") -> str:
    """What a page sends with each change."""
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', browser.get(path).text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there_and_seals_itself(browser: TestClient, path: str) -> None:
    answer = browser.get(path)
    if path in ("/findings", "/fairness") and answer.status_code == 202:
        assert answer.headers["refresh"] == "3", "computed while the page reloads by itself"
        return
    assert answer.status_code == 200, answer.text
    assert "<h1>" in answer.text and "default-src 'none'" in answer.headers[
        "content-security-policy"]  # fmt: skip
    assert not re.search(r"\son[a-z]+=|<style|style=|<script>", answer.text), "the policy refuses"
    assert "http://" not in answer.text and "https://" not in answer.text


@pytest.mark.parametrize("path", PAGES)
def test_who_has_not_logged_in_is_sent_to_do_so(portal: Portal, path: str) -> None:
    answer = portal.client.get(path, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


def test_a_one_time_token_is_used_up_and_the_cookie_is_closed_to_scripts(portal: Portal) -> None:
    token, _ = portal.service.access.make(LOGIN, "ada", SCOPES, 60)
    browser = TestClient(portal.service.app, base_url="http://localhost", follow_redirects=False)
    answer = browser.post("/login", data={"token": token})
    cookie = answer.headers["set-cookie"].lower()
    assert answer.status_code == 303 and "httponly" in cookie and "samesite=strict" in cookie
    assert browser.get("/").status_code == 200
    again = portal.client.post("/login", data={"token": token})
    assert again.status_code == 401 and "revoked" in again.text and token not in again.text


def test_after_logging_out_the_session_is_over(browser: TestClient) -> None:
    held = dict(browser.cookies)
    assert browser.post("/logout", data={"csrf": word_of(browser)}).status_code == 303
    browser.cookies.update(held)
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize("path", ["/transfers", "/reservations", "/logout"])
@pytest.mark.parametrize("word", [None, "0" * 64, "é"])
def test_a_form_of_another_site_changes_nothing(
    browser: TestClient, path: str, word: str | None
) -> None:
    data = {"source": "src", "destination": "src"} | ({} if word is None else {"csrf": word})
    assert browser.post(path, data=data).status_code == 403


def test_the_cookie_alone_changes_nothing_by_rest(portal: Portal, browser: TestClient) -> None:
    body = {"source": {"endpoint": "src"}, "destination": {"endpoint": "src", "path": "x"}}
    assert browser.post("/v1/transfers", json=body).status_code == 403
    headers = {"X-CSRF-Token": word_of(browser)}
    assert browser.post("/v1/transfers", json=body, headers=headers).status_code == 201


def test_a_transfer_is_begun_watched_and_cancelled(portal: Portal, browser: TestClient) -> None:
    word = word_of(browser)
    data = {"csrf": word, "source": "src", "destination": "src", "destination_path": "copy",
            "streams": "2", "total_rate_bps": "1Gbit/s", "label": SCRIPT, "key": "k"}  # fmt: skip
    begun = browser.post("/transfers", data=data)
    assert begun.status_code == 303, begun.text
    where = begun.headers["location"]
    assert browser.post("/transfers", data=data).headers["location"] == where, "sent twice"
    page = browser.get(where).text
    assert "Queued" in page and SCRIPT not in page and "&lt;script&gt;" in page
    assert browser.post(f"{where}/cancel", data={"csrf": word}).status_code == 303
    portal.service.runner.look()
    assert "Cancelled" in browser.get(where).text
    assert SCRIPT not in browser.get("/transfers").text


@pytest.mark.parametrize("field, value", [
    ("streams", "many"), ("streams", "0"), ("total_rate_bps", "fast"), ("source", "nowhere"),
    ("source_path", "../../etc"), ("overwrite", SCRIPT), ("source", ""),
])  # fmt: skip
def test_what_a_form_has_wrong_is_said_on_its_page(
    browser: TestClient, field: str, value: str
) -> None:
    data = {"csrf": word_of(browser), "source": "src", "destination": "src", field: value}
    answer = browser.post("/transfers", data=data)
    assert answer.status_code == 422 and "Not done." in answer.text and SCRIPT not in answer.text


def test_hostile_names_are_shown_and_do_not_run(browser: TestClient) -> None:
    for path in ("/", "/estimate", "/transfers/new?source=src", "/findings"):
        assert SCRIPT not in browser.get(path).text
    assert "a&lt;script&gt;" in browser.get("/transfers/new?source=src").text
    for path in (f"/estimate?source={SCRIPT}&destination=BNL&size=1GB", f"/paths/{SCRIPT}/BNL",
                 f"/transfers/new?source=src&source_path={SCRIPT}", f"/problems/{SCRIPT}",
                 f"/reservations?source={SCRIPT}", f"/transfers/{SCRIPT}"):  # fmt: skip
        assert SCRIPT not in browser.get(path).text


def test_an_estimate_is_drawn_with_what_to_reserve(browser: TestClient) -> None:
    page = browser.get("/estimate?source=ANL&destination=BNL&size=200GB&deadline=36h").text
    assert page.count("<rect") == 3 and "What to reserve" in page and "Deadline" in page
    wrong = browser.get("/estimate?source=ANL&destination=BNL&size=12")
    assert browser.get("/estimate?source=ANL&destination=BNL").status_code == 422
    assert wrong.status_code == 200, "bare bytes are a size"


def test_a_reservation_is_held_committed_and_released(browser: TestClient) -> None:
    word = word_of(browser, "/reservations")
    data = {"csrf": word, "source": "ANL", "destination": "BNL", "rate": "6Gbit/s",
            "start": "2026-11-26 00:00", "end": "2026-11-26 06:00"}  # fmt: skip
    where = browser.post("/reservations", data=data).headers["location"]
    name = where.partition("#")[2]
    refused = browser.post("/reservations", data=data)
    assert refused.status_code == 409
    assert "2026-11-26 06:00 UTC" in refused.text, "the first time at which it is free"
    assert "No network is reserved" in refused.text
    for act, state in (("commit", "Reserved"), ("release", "Released")):
        assert browser.post(f"/reservations/{name}/{act}", data={"csrf": word}).status_code == 303
        assert state in browser.get("/reservations").text


def test_what_is_not_there_is_a_page_too(browser: TestClient) -> None:
    for path in ("/nothing", "/transfers/none", "/static/../app.py", "/static/x", "/paths/a/b"):
        answer = browser.get(path)
        assert answer.status_code == 404 and "<h1>Not found</h1>" in answer.text
    assert "/v1/nothing" and browser.get("/v1/nothing").json()["status"] == 404


def test_who_may_only_look_sees_no_buttons(portal: Portal) -> None:
    browser = TestClient(portal.service.app, base_url="http://localhost", follow_redirects=False)
    browser.post("/login", data={"token": portal.token("eve", ("see",))})
    assert "New transfer" not in browser.get("/transfers").text
    assert browser.get("/transfers/new").status_code == 403
    answer: Any = browser.post("/reservations", data={"csrf": word_of(browser, "/")})
    assert answer.status_code == 403
