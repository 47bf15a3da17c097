"""`farline fairness` on a real dumbbell: the router counts, both sides are kept, all is removed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from farline.store import Store
from farline.testbeds import list_beds
from farline.testbeds.state import DIRECTORY_VARIABLE
from tests.netns.conftest import FARLINE

pytestmark = pytest.mark.netns

LINE = ("--link-rate", "100Mbit", "--rtt", "5ms", "--count-invalid", "--no-reference")


@pytest.fixture(autouse=True)
def own_directory(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beds of this test alone."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path_factory.mktemp("beds")))


def fairness(store: Path, *words: str) -> dict[str, Any]:
    command = [str(FARLINE), "fairness", *words, "--json", "--store", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.alone
def test_a_blast_harms_one_cubic_flow_and_is_said_to(tmp_path: Path) -> None:
    document = fairness(
        tmp_path, "--transport", "rbudp", *LINE, "--load", "80%", "--repetitions", "1",
        "-t", "2", "-O", "0.5", "--lead", "1s",
    )  # fmt: skip
    (transfer,) = document["transfers"]
    (load,) = transfer["loads"]
    measures = {name: one["mean"] for name, one in load["measures"].items()}
    assert document["rates"] == "wire" and document["capacity_bps"] == 100e6
    assert measures["harm"] > 0.5
    assert 0.8 < measures["utilisation"] <= 1.01
    assert 70e6 < measures["background_alone_bps"] < 95e6
    assert transfer["verdict"]["level"] == "unfit"
    assert "use it on dedicated paths only" in transfer["verdict"]["line"]
    rows = Store(tmp_path).runs().to_pylist()
    assert sorted(row["client_host"] for row in rows) == [
        "background-source", "background-source", "source", "source",
    ]  # fmt: skip
    assert list_beds() == []


@pytest.mark.alone
def test_other_peoples_tools_are_counted_by_the_router_too(tmp_path: Path) -> None:
    document = fairness(
        tmp_path, "--tool", "iperf3", "-C", "cubic", "--background", "iperf3:cubic", *LINE,
        "--load", "50%", "--repetitions", "1", "-t", "3", "-O", "1", "--lead", "1s",
    )  # fmt: skip
    (transfer,) = document["transfers"]
    assert transfer["text"] == "iperf3 TCP cubic"
    measures = {name: one["mean"] for name, one in transfer["loads"][0]["measures"].items()}
    # Payload of 1448 bytes has 1538 on the wire.
    assert measures["background_alone_bps"] == pytest.approx(50e6 * 1538 / 1448, rel=0.05)
    assert 0.8 < measures["utilisation"] <= 1.01
    rows = Store(tmp_path).runs().to_pylist()
    assert {row["tool"] for row in rows} == {"iperf3"}
