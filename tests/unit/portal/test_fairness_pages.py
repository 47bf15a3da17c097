"""The pages of fairness measurements: verdicts, measures, curves, and the trials behind them."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farline.store import Store
from tests.support.contending import made_measurement
from tests.support.portals import Portal, make_portal


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store with a measurement of two transfers, and its name."""
    folder = tmp_path_factory.mktemp("fair")
    return folder, made_measurement(Store(folder))


@pytest.fixture
def portal(tmp_path: Path, measured: tuple[Path, str]) -> Iterator[Portal]:
    """A service over that store."""
    yield make_portal(tmp_path, store=measured[0])


def worked_out(portal: Portal, path: str) -> str:
    """A page once it is worked out: a busy machine may first say that it is not yet."""
    browser, until_s = portal.log_in(), time.monotonic() + 60
    while (answer := browser.get(path)).status_code == 202:
        assert time.monotonic() < until_s, "it is never worked out"
        time.sleep(0.1)
    return answer.text


def test_the_list_has_each_measurement_with_its_verdicts(
    portal: Portal, measured: tuple[Path, str]
) -> None:
    text = worked_out(portal, "/fairness")
    assert f'href="/fairness/{measured[1]}"' in text
    assert "TCP cubic: " in text and "UDT: " in text and "testbed dumbbell" in text


def test_a_measurement_has_measures_curves_and_every_trial(
    portal: Portal, measured: tuple[Path, str]
) -> None:
    text = worked_out(portal, f"/fairness/{measured[1]}")
    for column in ("Jain", "Harm", "Share", "Part of the transfer"):
        assert column in text
    pictures = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", text)
    assert len(pictures) == 3 and all(b"<svg" in base64.b64decode(one) for one in pictures)
    trials = re.findall(r"<td class=\"number\">(\d+) %</td></tr>", text)
    assert len(trials) == 2 * 4 * 2, "transfers, loads, repetitions"
    assert all(0 <= int(part) <= 100 for part in trials)
    assert '<b class="bad">no</b>' in text, "an expectation that does not hold"


def test_programs_get_the_same_list(portal: Portal, measured: tuple[Path, str]) -> None:
    until_s = time.monotonic() + 60
    while (answer := portal.get("/v1/fairness")).status_code == 202:
        assert time.monotonic() < until_s, "it is never worked out"
        time.sleep(0.1)
    (one,) = answer.json()
    assert (one["name"], one["state"]) == (measured[1], "measured")
    assert one["began"].endswith("Z") and one["target"] == "testbed dumbbell"
    assert len(one["verdicts"]) == 2 and any("UDT: " in line for line in one["verdicts"])


def test_a_measurement_that_is_not_there_is_not_found(portal: Portal) -> None:
    answer = portal.log_in().get("/fairness/nothing")
    assert answer.status_code == 404 and "no such measurement" in answer.text


def test_a_damaged_measurement_does_not_hide_the_others(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    name = made_measurement(store)
    (tmp_path / "store" / "contention" / "broken.json").write_text("{")
    text = worked_out(make_portal(tmp_path, store=tmp_path / "store"), "/fairness")
    assert f'href="/fairness/{name}"' in text and "cannot be read" in text


def test_an_empty_store_says_how_to_measure(tmp_path: Path) -> None:
    text = make_portal(tmp_path).log_in().get("/fairness").text
    assert "farline fairness --transport udt" in text
