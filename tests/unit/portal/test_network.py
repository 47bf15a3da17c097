"""Reservations on a network: what is committed is there, what is refused is not, nothing stays."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from farline.errors import BusyError, SystemFailure
from farline.portal import network as under_test
from farline.portal.database import Database
from farline.portal.network import Network, NetworkRefusedError
from farline.portal.reservations import Reservation, Reservations, Wish
from farline.portal.settings import HOLD_S, Settings
from tests.support.portals import NOW_S, Clock, Portal, made_sites, made_store, make_portal

G = 10**9
HOUR = 3600.0
PROGRAM = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
act, document = sys.argv[2], json.load(sys.stdin)
with (folder / "asked").open("a") as file:
    print(json.dumps([act, document]), file=file)
refuse = folder / f"refuse-{act}"
if refuse.exists():
    print("first\\n" + refuse.read_text(), file=sys.stderr)
    sys.exit(7)
print("\\nC-" + document["reservation"]["id"] + "\\nmore")
"""


class Operator:
    """The operator's program, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "program.py"
        program.write_text(PROGRAM)
        self.words = (sys.executable, str(program), str(folder))

    def refuse(self, act: str, reason: str | None) -> None:
        """From now on, or no longer."""
        path = self.folder / f"refuse-{act}"
        if reason is None:
            path.unlink()
        else:
            path.write_text(reason)

    @property
    def asked(self) -> list[tuple[str, dict[str, Any]]]:
        """Each act with its document."""
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        return [tuple(json.loads(line)) for line in lines]

    @property
    def acts(self) -> list[str]:
        """The acts alone."""
        return [act for act, _ in self.asked]


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    """The operator's program."""
    return Operator(tmp_path)


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


class Kept:
    """Reservations and the network behind them; made anew as a service that starts again."""

    def __init__(self, folder: Path, clock: Clock, operator: Operator) -> None:
        settings = Settings(folder, infrastructure=made_sites(), now=clock)
        database = Database(settings.database)
        self.reservations = Reservations(database, settings)
        self.network = Network(database, self.reservations, operator.words)

    def held(self, start_h: float = 1) -> Reservation:
        """One that is held."""
        start_s = NOW_S + start_h * HOUR
        return self.reservations.hold("ada", Wish("ANL", "BNL", G, start_s, start_s + HOUR))


@pytest.fixture
def kept(tmp_path: Path, clock: Clock, operator: Operator) -> Kept:
    """Over a folder."""
    return Kept(tmp_path / "state", clock, operator)


def test_the_program_gets_every_document_and_says_what_the_network_calls_it(
    kept: Kept, operator: Operator
) -> None:
    one = kept.held()
    kept.network.reserve(one)
    assert kept.network.name_of(one.id) == f"C-{one.id}"
    kept.network.reserve(one)
    ((act, document),) = operator.asked
    assert act == "reserve" and set(document) == {"reservation", "oscars", "nsi", "sense"}
    assert document["reservation"]["rate_bps"] == G
    assert document["nsi"]["criteria"]["p2ps"]["capacity"] == 1000
    kept.network.release(one)
    kept.network.release(one)
    assert operator.acts == ["reserve", "release"]
    assert kept.network.name_of(one.id) is None


def test_what_the_network_refuses_is_said_with_its_last_line_and_not_kept(
    kept: Kept, operator: Operator
) -> None:
    one = kept.held()
    operator.refuse("reserve", "no path\x1b[31m with 1 Gbit/s")
    with pytest.raises(NetworkRefusedError, match=r"refused: no path \[31m with 1 Gbit/s"):
        kept.network.reserve(one)
    kept.network.release(one)
    assert operator.acts == ["reserve"], "nothing is to be given back"
    operator.refuse("reserve", None)
    kept.network.reserve(one)
    assert kept.network.name_of(one.id)


def test_a_release_that_fails_is_tried_again_until_it_is_done(
    kept: Kept, operator: Operator
) -> None:
    one = kept.held()
    kept.network.reserve(one)
    operator.refuse("release", "controller is down")
    kept.network.release(kept.reservations.release(one.id))
    kept.network.sweep()
    assert operator.acts == ["reserve", "release", "release"]
    operator.refuse("release", None)
    kept.network.sweep()
    kept.network.sweep()
    assert operator.acts == ["reserve", "release", "release", "release"]


def test_what_was_asked_for_when_the_service_was_killed_is_given_back(
    kept: Kept, operator: Operator, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = kept.held()

    def killed(*_arguments: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        kept.network.reserve(one)
    monkeypatch.undo()
    again = Kept(tmp_path / "state", clock, operator)
    again.network.sweep()
    assert operator.acts == [], "it is held still, and may be committed"
    clock.at_s += HOLD_S + 1
    again.network.sweep()
    assert operator.acts == ["release"]
    again.network.sweep()
    assert operator.acts == ["release"]


def test_what_has_ended_by_the_clock_needs_no_release(
    kept: Kept, operator: Operator, clock: Clock
) -> None:
    one = kept.held()
    kept.network.reserve(one)
    kept.reservations.commit(one.id)
    clock.at_s += 3 * HOUR
    kept.network.sweep()
    kept.network.sweep()
    assert operator.acts == ["reserve"] and kept.network.name_of(one.id) is None


def test_a_program_that_cannot_be_asked_is_no_refusal(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = kept.held()
    monkeypatch.setattr(under_test, "WAIT_S", 0.2)
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    for words, said in (((str(slow),), "did not end within"), (("/nowhere/x",), "No such file")):
        kept.network._program = words
        with pytest.raises(SystemFailure, match=said):
            kept.network.reserve(one)


def test_a_slow_program_keeps_others_waiting_for_a_moment_alone(
    kept: Kept, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = kept.held(), kept.held(start_h=3)
    kept.network.reserve(first)
    monkeypatch.setattr(under_test, "TURN_S", 0.05)
    with kept.network._turn():
        with pytest.raises(BusyError, match="try again soon"):
            kept.network.reserve(second)
        kept.network.release(kept.reservations.release(first.id))
    assert operator.acts == ["reserve"]
    kept.network.sweep()
    assert operator.acts == ["reserve", "release"], "it is given back later"


@pytest.fixture
def portal(tmp_path: Path, operator: Operator) -> Iterator[Portal]:
    """A service with that network."""
    yield make_portal(tmp_path, store=made_store(tmp_path), network=operator.words)


def test_rest_commits_on_the_network_first(portal: Portal, operator: Operator) -> None:
    start = datetime.fromtimestamp(NOW_S + HOUR, UTC)
    end = start + timedelta(hours=2)
    asked = {"source": "ANL", "destination": "BNL", "rate_bps": G,
             "start": start.isoformat(), "end": end.isoformat()}  # fmt: skip
    held = portal.post("/v1/reservations", asked)
    assert held.status_code == 201 and held.json()["network"] is None, held.text
    place = held.headers["location"]
    operator.refuse("reserve", "all VLANs are in use")
    refused = portal.post(f"{place}/commit")
    assert refused.status_code == 409 and "all VLANs are in use" in refused.json()["detail"]
    assert portal.get(place).json()["phase"] == "held"
    operator.refuse("reserve", None)
    done = portal.post(f"{place}/commit").json()
    assert (done["phase"], done["network"]) == ("reserved", f"C-{done['id']}")
    page = portal.log_in().get("/reservations").text
    assert f"on the network: C-{done['id']}" in page and "No network is reserved" not in page
    assert portal.client.delete(place, headers=portal.headers()).json()["network"] is None
    assert operator.acts == ["reserve", "reserve", "release"]
