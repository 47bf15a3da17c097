"""Experiments of the service as they really run: on an emulated line, in turn, stopped in order."""

from __future__ import annotations

import contextlib
import os
import random
import re
import threading
import time
from pathlib import Path

import pytest
import requests

from farline.portal.experiment_keeper import ATTEMPT, BEGUN, PLAN, work
from farline.portal.job_folder import JobFolder
from farline.store import Store
from tests.support.portals import Process, make_portal, portal_process

LONG = os.environ.get("FARLINE_LONG") == "1"
KILLS = 50 if LONG else 2

QUICK = """
[campaign]
name = "quick"
repetitions = 1
reference = "none"
count_invalid = true
[fixed]
duration_s = "{duration}"
[grid]
streams = [1, 2]
[path]
rate_bps = "20Mbit"
rtt_s = "10ms"
"""


FAIR = """
[fairness]
name = "quick"
loads = "100%"
repetitions = 1
duration_s = "2s"
omit_s = "0.5s"
lead_s = "0.5s"
count_invalid = true
[subject.udt]
transport = "udt"
[path]
rate_bps = "20Mbit"
rtt_s = "5ms"
"""


def ordered(folder: Path, name: str, duration: str = "0.5s", most_s: float = 120.0) -> JobFolder:
    """A folder with an order."""
    made = JobFolder(folder / name)
    made.make()
    (made.path / PLAN).write_text(QUICK.format(duration=duration))
    store = str(made.path / "store")
    made.give_order({"verb": "profile", "store": store, "most_s": most_s})
    return made


def test_a_plan_is_measured_and_leaves_its_bars(tmp_path: Path) -> None:
    folder = ordered(tmp_path, "one")
    work(folder)
    end = folder.end(ATTEMPT)
    assert end is not None and (end["exit_code"], end["error"]) == (0, None), end
    assert [one["label"] for one in end["bars"]] == ["1", "2"]
    assert all(1e6 < one["mean_bps"] < 20e6 for one in end["bars"])
    assert len(Store(tmp_path / "one" / "store", create=False).runs()) == 2
    before = (folder.path / "end-1.json").stat().st_mtime_ns
    work(folder)
    assert (folder.path / "end-1.json").stat().st_mtime_ns == before, "nothing runs twice"


def test_a_fairness_plan_is_measured_and_is_on_the_page_fairness(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "fair")
    folder.make()
    (folder.path / PLAN).write_text(FAIR)
    store = tmp_path / "store"
    folder.give_order({"verb": "fairness", "store": str(store), "most_s": 120.0})
    work(folder)
    end = folder.end(ATTEMPT)
    assert end is not None and (end["exit_code"], end["error"]) == (0, None), end
    browser, until_s = make_portal(tmp_path, store=store).log_in(), time.monotonic() + 60
    while (listed := browser.get("/fairness")).status_code == 202:
        assert time.monotonic() < until_s, "it is never worked out"
        time.sleep(0.1)
    (address,) = re.findall(r'href="(/fairness/quick[^"]*)"', listed.text)
    while (shown := browser.get(address)).status_code == 202:
        assert time.monotonic() < until_s, "it is never worked out"
        time.sleep(0.1)
    assert "UDT" in shown.text and "a line of 20.0 Mbit/s" in shown.text


@pytest.mark.timeout(3600 if LONG else 300)
def test_killed_at_any_moment_no_campaign_is_lost_and_none_runs_twice(tmp_path: Path) -> None:
    draw, known = random.Random(None if LONG else 7), set[str]()
    store = tmp_path / "store"
    with portal_process(tmp_path, "--store", str(store)) as portal:
        person = Person(portal)
        for number in range(KILLS):
            asks = threading.Thread(target=person.begin, args=(f"round{number}",))
            asks.start()
            time.sleep(draw.uniform(0, 1.5))
            portal.stop()
            asks.join(60)
            portal.start()
            if not person.begun() - known:  # the newest twenty are listed
                person.begin(f"round{number}")
            (new,) = person.begun() - known
            known.add(new)
            until_s = time.monotonic() + 120
            while (state := person.state(new)) in ("queued", "running"):
                assert time.monotonic() < until_s, "it never ends"
                time.sleep(0.2)
            assert state == "succeeded", person.page(f"/experiments/{new}")
        assert person.answered <= known, "what was confirmed is there"
        names = [row["campaign"] for row in portal.ask("/v1/campaigns")]
    assert sorted(re.sub("-.*", "", name) for name in names) == sorted(
        f"round{number}" for number in range(KILLS)
    )
    assert len(Store(store, create=False).runs()) == 2 * KILLS, "two settings each, and no more"


class Person:
    """Somebody at a browser, who goes on after a restart of the service."""

    def __init__(self, portal: Process) -> None:
        """Logs in."""
        self._portal, self._session = portal, requests.Session()
        self.answered: set[str] = set()
        """Experiments of which the service has said that they were begun."""
        self._session.post(f"{portal.url}/login", {"token": portal.token}, timeout=30)

    def begin(self, name: str) -> None:
        """Starts a plan in the editor; it may never be answered."""
        plan = QUICK.format(duration="0.5s").replace('"quick"', f'"{name}"')
        with contextlib.suppress(requests.RequestException):
            (word,) = set(re.findall(r'name="csrf" value="(\w+)"', self.page("/plans/new")))
            form = {"csrf": word, "act": "start", "plan": plan}
            answer = self._session.post(f"{self._portal.url}/plans", form, timeout=60)
            self.answered |= set(re.findall(r"/experiments/(\w+)$", answer.url))

    def begun(self) -> set[str]:
        """Experiments that the editor lists."""
        return set(re.findall(r'href="/experiments/(\w+)"', self.page("/plans/new")))

    def state(self, name: str) -> str:
        """How one is."""
        (found,) = re.findall(r'class="state (\w+)"', self.page(f"/experiments/{name}"))
        return str(found)

    def page(self, path: str) -> str:
        """The text of a page."""
        return str(self._session.get(self._portal.url + path, timeout=60).text)


def test_a_stop_ends_the_run_in_order(tmp_path: Path) -> None:
    folder = ordered(tmp_path, "long", "60s")
    thread = threading.Thread(target=work, args=(folder,))
    thread.start()
    until_s = time.monotonic() + 30
    while not folder.log.exists() or "campaign" not in folder.log.read_text():
        assert time.monotonic() < until_s, "it never began"
        time.sleep(0.1)
    folder.ask_to_stop()
    thread.join(45)
    end = folder.end(ATTEMPT)
    assert not thread.is_alive() and end is not None and end["stopped"] and end["exit_code"] != 0


def test_one_machine_measures_one_thing_at_a_time(tmp_path: Path) -> None:
    from farline.portal.experiment_keeper import TURN
    from farline.store.disk import locked

    folder = ordered(tmp_path, "waits")
    with locked(tmp_path / TURN, exclusive=True):
        thread = threading.Thread(target=work, args=(folder,))
        thread.start()
        time.sleep(1.0)
        assert not (folder.path / BEGUN).exists(), "another has the turn"
        folder.ask_to_stop()
        thread.join(10)
    end = folder.end(ATTEMPT)
    assert end is not None and end["stopped"] and end["bars"] == []
