"""Experiments of the service as they really run: on an emulated line, in turn, stopped in order."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

from farline.portal.experiment_keeper import ATTEMPT, BEGUN, PLAN, work
from farline.portal.job_folder import JobFolder
from farline.store import Store
from tests.support.portals import make_portal

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
