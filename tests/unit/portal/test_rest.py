"""REST as a program meets it: documents, problems, who may what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from farline.estimating import Question, TransferEstimate
from farline.estimating.estimate import PathHistory
from farline.portal.access import SCOPES
from farline.portal.job_folder import JobFolder
from tests.support.portals import NOW_S, Portal, made_store, make_portal

ANL_BNL = {"source": "ANL", "destination": "BNL"}
SECRET = "farline://dtn.example.org:5470/SECRETTICKET?key=sha256-" + "A" * 43 + "#data"
WISH = {**ANL_BNL, "rate_bps": 6 * 10**9, "start": "2026-11-26T00:00:00Z",
        "end": "2026-11-26T06:00:00Z"}  # fmt: skip
COPY = {"source": {"endpoint": "src"}, "destination": {"endpoint": "dst", "path": "in"}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of twenty paths."""
    return made_store(tmp_path_factory.mktemp("made"))


@pytest.fixture
def portal(tmp_path: Path, store: Path) -> Iterator[Portal]:
    """A service with two folders and a server behind a ticket."""
    made = make_portal(tmp_path, store=store)
    for name in ("src", "dst"):
        (tmp_path / name).mkdir()
        made.service.endpoints.add(name, str(tmp_path / name))
    made.service.endpoints.add("server", SECRET)
    yield made


def problem(answer: Any, status: int) -> dict[str, Any]:
    """The problem document of an answer that is one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert found["status"] == status and found["type"] == f"/problems/{found['kind']}"
    return found


def test_an_estimate_is_the_document_of_the_command(portal: Portal) -> None:
    found = portal.post("/v1/estimates", {**ANL_BNL, "bytes": 10**12, "files": 40,
                                          "deadline": "2026-11-26T12:00:00Z"})  # fmt: skip
    assert found.status_code == 200
    document = found.json()
    assert document["schema"] == 1 and document["basis"] == "own-path"
    assert document["transfers"] == 24 and document["meets_deadline"] is True
    assert 3e9 < document["rate_bps"] < 1e10
    low, high = (document["intervals"][1][f"duration_{end}_s"] for end in ("low", "high"))
    assert low <= document["duration_s"] <= high
    assert document["reservation"]["start"] == document["start"]


def test_a_path_that_is_asked_for_first_keeps_nobody_waiting(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its history is gone through in a thread, while the loop answers others."""
    in_loop: list[bool] = []
    real = PathHistory.estimate

    def noted(self: PathHistory, question: Question) -> TransferEstimate:
        in_loop.append(asyncio._get_running_loop() is not None)
        return real(self, question)

    monkeypatch.setattr(PathHistory, "estimate", noted)
    for confidence in (0.9, 0.9, 0.8, 0.8):
        asked = {**ANL_BNL, "bytes": 10**12, "confidence": confidence}
        assert portal.post("/v1/estimates", asked).status_code == 200
    assert in_loop == [False, True, False, True]


@pytest.mark.parametrize("more, words", [
    ({"bytes": -1}, "bytes: "), ({"bytes": 1, "speed": 2}, "speed: "),
    ({"bytes": 1, "deadline": "2020-01-01T00:00:00Z"}, "deadline: "),
    ({"bytes": 1, "start": "2026-11-26T00:00:00"}, "start: "), ({}, "bytes: "),
    ({"bytes": 1, "source": "a\u0000b"}, "source: "),
])  # fmt: skip
def test_what_is_not_allowed_is_named(portal: Portal, more: dict[str, Any], words: str) -> None:
    found = problem(portal.post("/v1/estimates", ANL_BNL | more), 422)
    assert words in found["detail"] and found["kind"] == "spec"


def test_text_that_is_no_json_is_a_bad_request(portal: Portal) -> None:
    headers = portal.headers() | {"content-type": "application/json"}
    answer = portal.client.post("/v1/estimates", content=b"{", headers=headers)
    assert problem(answer, 400)["kind"] == "spec"
    huge = portal.client.post("/v1/estimates", content=b" " * (1 << 21), headers=headers)
    assert "longer than" in problem(huge, 413)["detail"]


def test_a_reservation_from_hold_to_release(portal: Portal) -> None:
    held = portal.post("/v1/reservations", WISH)
    assert held.status_code == 201
    one = held.json()
    assert (one["phase"], one["held_until"]) == ("held", "2026-11-25T10:01:40Z")
    where = held.headers["location"]
    refused = problem(portal.post("/v1/reservations", WISH, "bob"), 409)
    assert refused["available_bps"] == 4 * 10**9 and refused["kind"] == "limit"
    assert refused["next_window"]["start"] == "2026-11-26T06:00:00+00:00"
    assert portal.post(f"{where}/commit").json()["phase"] == "reserved"
    assert portal.post(f"{where}/commit").json()["phase"] == "reserved"
    span = {"start": "2026-11-25T23:00:00Z", "end": "2026-11-26T07:00:00Z"}
    spans = portal.get("/v1/paths/ANL/BNL/availability", params=span).json()["spans"]
    assert [one["available_bps"] for one in spans] == [10**10, 4 * 10**9, 10**10]
    assert portal.get(where, params={"format": "oscars"}).json()["phase"] == "RESERVED"
    gone = portal.client.delete(where, headers=portal.headers())
    assert gone.json()["phase"] == "released"
    problem(portal.post(f"{where}/commit"), 409)
    assert portal.get("/v1/reservations").json()[0]["phase"] == "released"


def test_the_same_key_makes_one_transfer(portal: Portal) -> None:
    key = {"Idempotency-Key": "one"}
    first, again = (portal.post("/v1/transfers", COPY, **key) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    other = COPY | {"label": "another"}
    assert "another request" in problem(portal.post("/v1/transfers", other, **key), 422)["detail"]
    assert portal.post("/v1/transfers", COPY, "bob", **key).status_code == 201
    assert len(portal.get("/v1/transfers").json()) == 2


def test_a_waiting_transfer_is_paused_resumed_and_cancelled(portal: Portal) -> None:
    where = portal.post("/v1/transfers", COPY).headers["location"]
    runner = portal.service.runner
    assert portal.post(f"{where}/pause").json()["wanted"] == "pause"
    runner.look()
    assert portal.get(where).json()["state"] == "paused"
    assert portal.post(f"{where}/resume").json()["state"] == "queued"
    portal.post(f"{where}/cancel")
    runner.look()
    assert portal.get(where).json()["state"] == "cancelled"
    assert portal.post(f"{where}/cancel").json()["state"] == "cancelled"
    assert "cannot be resumed" in problem(portal.post(f"{where}/resume"), 409)["detail"]
    assert "not running" in problem(portal.post(f"{where}/adjust", {"streams": 4}), 422)["detail"]
    problem(portal.get(f"{where}/receipt"), 404)


@pytest.mark.parametrize("more", [
    {"source": {"endpoint": "nowhere"}}, {"source": {"endpoint": "src", "path": "../x"}},
    {"destination": {"endpoint": "dst", "path": "/etc"}}, {"options": {"streams": 0}},
    {"options": {"delete": True}}, {"reservation": "0123456789ab"}, {"label": "a\nb"},
])  # fmt: skip
def test_a_transfer_that_cannot_be_is_refused(portal: Portal, more: dict[str, Any]) -> None:
    answer = portal.post("/v1/transfers", COPY | more)
    problem(answer, 404 if "reservation" in more else 422)
    assert portal.get("/v1/transfers").json() == []


def test_others_neither_see_nor_stop_what_is_not_theirs(portal: Portal) -> None:
    where = portal.post("/v1/transfers", COPY).headers["location"]
    held = portal.post("/v1/reservations", WISH).headers["location"]
    bob = portal.headers("bob", ("see", "move"))
    for path in (where, held, f"{where}/events", f"{where}/receipt"):
        problem(portal.client.get(path, headers=bob), 404)
    problem(portal.client.post(f"{where}/cancel", headers=bob), 404)
    problem(portal.client.delete(held, headers=bob), 404)
    for path in ("/v1/transfers", "/v1/reservations"):
        assert portal.client.get(path, headers=bob).json() == []
    assert portal.get("/v1/transfers", "operator").json() != []


@pytest.mark.parametrize("scope, method, path", [
    ("see", "POST", "/v1/estimates"), ("see", "POST", "/v1/transfers"),
    ("estimate", "GET", "/v1/paths"), ("move", "GET", "/v1/audit"), ("move", "GET", "/v1/metrics"),
    ("estimate", "POST", "/v1/reservations"), ("see", "GET", "/v1/endpoints/src/files"),
])  # fmt: skip
def test_a_token_allows_what_it_says(portal: Portal, scope: str, method: str, path: str) -> None:
    answer = portal.client.request(method, path, headers=portal.headers("ada", (scope,)), json={})
    assert "--scope" in problem(answer, 403)["detail"]


def test_without_a_token_nothing_is_answered(portal: Portal) -> None:
    paths = portal.client.get("/v1/openapi.json").json()["paths"]
    assert len(paths) >= 20
    for path, methods in paths.items():
        for method in methods:
            answer = portal.client.request(method, path.replace("{name}", "x"))
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"


def test_wrong_tokens_are_slowed_down_and_right_ones_are_not(portal: Portal) -> None:
    wrong = {"Authorization": "Bearer flp_wrong"}
    answers = [portal.client.get("/v1/me", headers=wrong).status_code for _ in range(30)]
    assert answers[0] == 401 and answers[-1] == 429
    assert portal.get("/v1/me").json() == {"user": "ada", "scopes": sorted(SCOPES)}


def test_a_user_who_asks_too_often_has_to_wait(tmp_path: Path) -> None:
    portal = make_portal(tmp_path, requests_per_s=2.0)
    answers = [portal.get("/v1/me") for _ in range(8)]
    assert problem(answers[-1], 429)["kind"] == "busy"
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_every_act_is_in_the_audit_and_no_secret_is(portal: Portal) -> None:
    where = portal.post("/v1/transfers", COPY | {"destination": {"endpoint": "server"}})
    assert where.status_code == 201, where.text
    portal.post(f"{where.headers['location']}/cancel")
    portal.post("/v1/reservations", WISH)
    rows = portal.get("/v1/audit").json()
    assert [row["act"] for row in rows] == [
        "reservation.hold", "transfer.cancel", "transfer.create"]  # fmt: skip
    assert {row["user"] for row in rows} == {"ada"}
    for path in ("/v1/audit", "/v1/transfers", "/v1/endpoints", "/v1/metrics"):
        text = portal.get(path).text
        assert "SECRETTICKET" not in text and portal.token() not in text


def test_paths_runs_and_findings_are_read(portal: Portal) -> None:
    paths = portal.get("/v1/paths").json()
    assert len(paths) == 20 and {one["transfers"] for one in paths} == {24}
    one = portal.get("/v1/paths/ANL/BNL", params={"limit": 3}).json()
    assert one["path"]["capacity_bps"] == 1e10 and len(one["transfers"]) == 3
    assert one["transfers"][0]["ended"] >= one["transfers"][1]["ended"]
    problem(portal.get("/v1/paths/ANL/MARS"), 404)
    problem(portal.get("/v1/runs/nothing"), 404)
    assert portal.get("/v1/runs").json() == [] and portal.get("/v1/campaigns").json() == []
    assert len(portal.get("/v1/profiles").json()) == 10


def test_figures_for_prometheus(portal: Portal) -> None:
    portal.post("/v1/transfers", COPY)
    text = portal.get("/v1/metrics").text
    assert 'farline_portal_transfers{state="queued"} 1' in text
    assert 'farline_portal_requests_total{status="201"} 1' in text


def test_events_go_on_where_a_listener_was(portal: Portal) -> None:
    where = portal.post("/v1/transfers", COPY).headers["location"]
    folder = JobFolder(portal.settings.jobs / where.rpartition("/")[2])
    folder.make()
    lines = [json.dumps({"event": "progress", "data": {"bytes": n}}) for n in range(3)]
    folder.events.write_text("\n".join(lines) + '\n{"event": "progr')
    portal.post(f"{where}/cancel")
    portal.service.runner.look()
    found = portal.get(f"{where}/events").text
    events = [part for part in found.split("\n\n") if part.startswith("id: ")]
    assert [json.loads(one.partition("data: ")[2])["bytes"] for one in events] == [0, 1, 2]
    assert found.endswith("event: close\ndata: {}\n\n")
    after = events[0].partition("\n")[0].removeprefix("id: ")
    rest = portal.client.get(
        f"{where}/events", headers=portal.headers() | {"Last-Event-ID": after}
    ).text
    assert '"bytes": 0' not in rest and '"bytes": 1' in rest


def test_another_name_of_the_host_is_not_answered(portal: Portal) -> None:
    answer = portal.client.get("/v1/me", headers=portal.headers() | {"Host": "evil.example.org"})
    assert answer.status_code == 400


def test_another_method_is_answered_with_those_that_there_are(portal: Portal) -> None:
    answer = portal.client.put("/v1/reservations", headers=portal.headers())
    assert problem(answer, 405)["kind"] == "usage" and answer.headers["allow"] == "GET, POST"


def test_the_clock_ends_what_is_old(portal: Portal) -> None:
    held = portal.post("/v1/reservations", WISH).headers["location"]
    portal.clock.at_s = NOW_S + 901
    assert portal.get(held).json()["phase"] == "expired"


def test_a_whole_copy_of_the_database_is_a_service_again(portal: Portal, tmp_path: Path) -> None:
    from farline.portal.database import Database

    held = portal.post("/v1/reservations", WISH).json()["id"]
    Database(portal.settings.database).copy_to(tmp_path / "copy.sqlite")
    other = tmp_path / "other" / "state"
    other.mkdir(parents=True)
    (tmp_path / "copy.sqlite").rename(other / "portal.sqlite")
    restored = make_portal(tmp_path / "other")
    client = TestClient(restored.service.app, base_url="http://localhost")
    found = client.get(f"/v1/reservations/{held}", headers=portal.headers()).json()
    assert found["rate_bps"] == 6 * 10**9
