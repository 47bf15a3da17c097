"""`farline profile` against a real server: campaigns, interruptions of every kind, what is kept."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from farline.store import Store
from tests.loopback.conftest import Start, results_of, rows_of
from tests.support.serving import Serving, farline, serving

GRID = ["--transport", "null", "-P", "1,2", "-l", "64K,1M", "-t", "0.1", "--seed", "3"]
PLACE = ("setting", "block", "slot", "reference")


def places(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Places in the campaign that are done, in the order in which they were done."""
    return [tuple(row[name] for name in PLACE) for row in rows if row["status"] == "complete"]


def test_a_campaign_over_tcp_and_udp(server: Serving, tmp_path: Path) -> None:
    results = results_of(
        tmp_path,
        server.ticket,
        """
        [campaign]
        repetitions = 2
        [fixed]
        duration_s = 0.3
        [grid]
        transport = ["tcp", "udp"]
        streams = [1, 2]
        [grid.tcp]
        congestion_control = ["reno", "bbr"]
        [fixed.udp]
        packet_bytes = 1400
        """,
    )
    assert len(results["settings"]) == 6
    rows = rows_of(tmp_path / "store", campaign=results["campaign"])
    assert len(rows) == 2 * (6 + 1)
    assert {row["udp.packet_bytes"] for row in rows if row["transport"] == "udp"} == {1400}
    for row in rows:
        record = json.loads(row["record"])
        assert record["client"]["host"]["kernel"] and record["server"]["host"]["kernel"]
        assert record["summary"] and record["verdict"]
        if row["transport"] == "tcp":
            granted = {s["granted"]["congestion_control"] for s in record["streams"]}
            assert row["tcp.congestion_control"] in granted
    assert len({row["seed"] for row in rows}) == len(rows)
    samples = Store(tmp_path / "store").samples([rows[0]["run_id"]])
    assert samples.num_rows > 0 and samples["bytes"].null_count == 0


def test_the_runs_of_a_campaign_share_a_control_connection(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        command = farline(
            tmp_path, "profile", server.ticket, *GRID, "--store", str(tmp_path / "store")
        )
        assert command.returncode == 0, command.stderr
        server.process.send_signal(signal.SIGTERM)
        said, _ = server.process.communicate(timeout=20)
    events = [json.loads(line) for line in said.splitlines()]
    sessions = [event for event in events if event["event"] == "session_started"]
    assert len(sessions) > 4 and not [event for event in events if event["event"] == "refused"]
    assert len({event["session"] for event in sessions}) == len(sessions)
    assert len({event["peer"] for event in sessions}) == 1


def test_ctrl_c_and_resume_make_the_same_runs(
    server: Serving, tmp_path: Path, start: Start
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    arguments = ["profile", server.ticket, *GRID, "--repetitions", "3"]
    assert farline(tmp_path, *arguments, "--store", str(whole)).returncode == 0
    process = start(tmp_path, *arguments, "--store", str(cut))
    wait_for_runs(cut, 4)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "resume with: farline profile TICKET --resume" in errors
    before = rows_of(cut)
    assert 4 <= len(places(before)) < 15
    again = farline(tmp_path, "profile", server.ticket, "--resume", "--store", str(cut))
    assert again.returncode == 0, again.stderr
    assert places(rows_of(cut)) == places(rows_of(whole))
    assert rows_of(cut)[: len(before)] == before


def test_a_bare_resume_without_the_ticket_records_nothing(
    server: Serving, tmp_path: Path, start: Start
) -> None:
    store = tmp_path / "store"
    process = start(tmp_path, "profile", server.ticket, *GRID, "--repetitions", "3",
                    "--name", "mycamp", "--store", str(store))  # fmt: skip
    wait_for_runs(store, 3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    before = rows_of(store)
    refused = farline(tmp_path, "profile", "--resume", "--store", str(store))
    assert (refused.returncode, refused.stdout) == (4, "")
    last = refused.stderr.splitlines()[-1]
    assert "ticket" in last and "farline profile TICKET --resume mycamp-" in last
    assert rows_of(store) == before
    assert farline(tmp_path, "trust", server.ticket).returncode == 0
    again = farline(tmp_path, "profile", "--resume", "mycamp", "--store", str(store))
    assert again.returncode == 0, again.stderr
    assert len(places(rows_of(store))) == 15
    assert farline(tmp_path, "trust", "--forget", server.address).returncode == 0


def test_killed_again_and_again_nothing_is_lost_or_repeated(
    server: Serving, tmp_path: Path, start: Start
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    arguments = ["profile", server.ticket, *GRID, "--repetitions", "3"]
    assert farline(tmp_path, *arguments, "--store", str(whole)).returncode == 0
    process = start(tmp_path, *arguments, "--store", str(cut))
    for runs in (3, 7):
        wait_for_runs(cut, runs)
        process.kill()
        process.communicate()
        process = start(tmp_path, "profile", server.ticket, "--resume", "--store", str(cut))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert places(rows_of(cut)) == places(rows_of(whole))


def test_a_server_that_vanishes_is_a_failure_and_the_campaign_can_go_on(
    tmp_path: Path, start: Start
) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    home.mkdir()
    with serving(home) as running:
        port = running.address.rpartition(":")[2]
        first = start(home, "profile", running.ticket, *GRID, "--repetitions", "2",
                      "--store", str(store))  # fmt: skip
        wait_for_runs(store, 3)
    with serving(home, "-p", port) as running:
        _, errors = first.communicate(timeout=90)
        if first.returncode != 0:
            assert "resume with" in errors
            again = farline(home, "profile", running.ticket, "--resume", "--store", str(store))
            assert again.returncode == 0, again.stderr
    rows = rows_of(store)
    assert len(set(places(rows))) == len(places(rows)) == 2 * 5
    assert all(row["error"] for row in rows if row["status"] == "failed")


def test_a_setting_the_server_does_not_allow_is_given_up(tmp_path: Path) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    home.mkdir()
    with serving(home, "--limit-time", "1s") as running:
        done = farline(
            home, "profile", running.ticket, "--transport", "null", "-t", "0.1,5",
            "--repetitions", "3", "--json", "--store", str(store),
        )  # fmt: skip
    assert done.returncode == 8, done.stderr
    short, long = json.loads(done.stdout)["settings"]
    assert (short["state"], long["state"]) == ("fixed", "abandoned")
    assert long["last_error"] and long["mean_bps"] is None


def test_no_server_is_said_in_one_line(tmp_path: Path) -> None:
    done = farline(
        tmp_path, "profile", "127.0.0.1:1", *GRID, "--repetitions", "1",
        "--store", str(tmp_path / "store"),
    )  # fmt: skip
    assert done.returncode == 5
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("farline: stopped: ") and "resume with" in last


def test_a_report_is_written(server: Serving, tmp_path: Path) -> None:
    done = farline(
        tmp_path, "profile", server.ticket, *GRID, "--repetitions", "2",
        "--store", str(tmp_path / "store"), "--report", str(tmp_path / "report"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = tmp_path / "report" / "report.html"
    assert f"report: {page}" in done.stdout
    assert page.stat().st_size > 10_000


def wait_for_runs(store: Path, runs: int, limit_s: float = 100.0) -> None:
    """Waits until so many runs are on disk."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        fresh = list((store / "fresh").glob("*.parquet")) if store.exists() else []
        if len(fresh) >= runs:
            return
        time.sleep(0.01)
    pytest.fail(f"no {runs} runs within {limit_s} s")
