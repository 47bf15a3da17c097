"""What a script gets that imports farline: jobs, servers, tables; over real sockets."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import farline
from farline.errors import (
    SpecError,
    SystemFailure,
    TimeoutFailure,
    UnreachableError,
    UsageError,
)
from farline.tools.events import FileSettled, SessionBegun, Stage, StreamSamples

pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores and known servers of a test are its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("FARLINE_STORE", raising=False)


@pytest.fixture
def server() -> Iterator[farline.Server]:
    with farline.serve() as running:
        yield running


SHORT: dict[str, Any] = {"duration_s": 0.4, "tcp": {"congestion_control": "reno"}}


def test_a_probe_is_followed_kept_and_tells_what_limited_it(server: farline.Server) -> None:
    run = farline.probe(server.ticket(), **SHORT)
    events = list(run)
    assert [event for event in events if isinstance(event, Stage)]
    assert [event for event in events if isinstance(event, StreamSamples)]
    assert run.wait() is run
    assert run.status == "complete"
    assert run.throughput_bps is not None and run.throughput_bps > 1e6
    assert run.verdict["line"]
    kept = farline.open_store().runs()
    assert kept["run_id"].to_pylist() == [run.record["run_id"]]


def test_events_are_given_from_the_beginning_to_each_who_asks(server: farline.Server) -> None:
    run = farline.probe(server.ticket(), keep=False, **SHORT)
    first = list(run)
    assert list(run) == first
    assert not (Path.home() / "none").exists()


def test_samples_are_an_arrow_table(server: farline.Server) -> None:
    run = farline.probe(server.ticket(), streams=2, **SHORT).wait()
    table = run.samples
    assert hasattr(table, "__arrow_c_stream__")
    assert set(table["stream"].to_pylist()) == {0, 1}
    assert sum(row or 0 for row in table["bytes"].to_pylist()) > 0


def test_a_run_draws_itself_without_its_ticket(server: farline.Server) -> None:
    ticket = server.ticket()
    run = farline.probe(ticket, **SHORT)
    assert "running" in run._repr_html_() or run.done
    run.wait()
    drawn = run._repr_html_()
    assert "<svg" in drawn and "limited by" in drawn
    secret = ticket.partition("farline://")[2].partition("@")[0]
    assert ticket not in drawn + repr(run)
    assert len(secret) > 20 and secret not in drawn + repr(run)


def test_a_probe_of_a_wrong_option_is_refused_before_anything_runs() -> None:
    with pytest.raises(SpecError, match=r"stream: unknown; did you mean streams\?"):
        farline.probe("127.0.0.1", stream=4)
    with pytest.raises(SpecError, match=r"tcp=\{\"congestion_control\""):
        farline.probe("127.0.0.1", congestion_control="reno")


def test_a_probe_of_nobody_fails_with_the_error_of_its_kind() -> None:
    run = farline.probe("127.0.0.1:9", keep=False)
    with pytest.raises(UnreachableError):
        run.wait()
    assert run.status == "failed"
    assert "failed" in run._repr_html_()


def test_a_cancelled_probe_ends_early_with_what_it_measured(server: farline.Server) -> None:
    begun = time.monotonic()
    run = farline.probe(server.ticket(), duration_s=30, tcp={"congestion_control": "reno"})
    for event in run:
        if isinstance(event, StreamSamples):
            break
    with pytest.raises(TimeoutFailure):
        run.wait(timeout_s=0.01)
    run.cancel()
    run.wait()
    assert run.status == "cancelled"
    assert time.monotonic() - begun < 20
    assert run.throughput_bps is not None


def test_an_event_loop_goes_on_while_a_probe_runs(server: farline.Server) -> None:
    async def both() -> tuple[int, int, farline.Run]:
        ticks = seen = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.02)
                ticks += 1

        ticking = asyncio.create_task(tick())
        run = farline.probe(server.ticket(), **SHORT)
        async for _event in run:
            seen += 1
        await run
        ticking.cancel()
        return ticks, seen, run

    ticks, seen, run = asyncio.run(both())
    assert ticks >= 5
    assert seen == len(list(run))


def test_a_cancelled_task_cancels_its_job(server: farline.Server) -> None:
    async def abandoned() -> farline.Run:
        run = farline.probe(server.ticket(), duration_s=30, tcp={"congestion_control": "reno"})
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(run, 0.5)
        return run

    run = asyncio.run(abandoned())
    run.wait(timeout_s=20)
    assert run.status == "cancelled"


def test_a_copy_tells_each_name_and_what_it_came_to(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(5):
        (source / f"file-{number}").write_bytes(bytes([number]) * 1000)
    done = farline.copy(f"{source}/", tmp_path / "there", exclude=["file-4"], tell_files=True)
    events = list(done)
    assert [event for event in events if isinstance(event, SessionBegun)]
    names = {e.line["path"] for e in events if isinstance(e, FileSettled)}
    assert {f"file-{n}" for n in range(4)} <= names
    done.wait()
    assert done.report["copied"] == {"files": 4, "bytes": 4000}
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == sorted(names - {"."})
    assert "4 files" in done._repr_html_()


def test_one_pattern_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for name in ("a.dat", "a.tmp", "b.log"):
        (tmp_path / "source" / name).touch()
    given: list[tuple[dict[str, Any], list[str]]] = [
        ({"exclude": "*.tmp"}, ["a.dat", "b.log"]),
        ({"include": "a*", "exclude": ["*"]}, ["a.dat", "a.tmp"]),
        ({"filters": "- *.log"}, ["a.dat", "a.tmp"]),
    ]
    for number, (patterns, names) in enumerate(given):
        there = tmp_path / f"there-{number}"
        farline.copy(f"{tmp_path}/source/", there, **patterns).wait()
        assert sorted(path.name for path in there.iterdir()) == names


def test_a_copy_over_a_ticket_and_back(server: farline.Server, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "data.bin").write_bytes(b"x" * 300_000)
    push = server.ticket(write=tmp_path / "vault")
    farline.copy(tmp_path / "data.bin", f"{push}#data.bin").wait()
    pull = server.ticket(read=tmp_path / "vault")
    farline.copy(f"{pull}#data.bin", tmp_path / "back.bin").wait()
    assert (tmp_path / "back.bin").read_bytes() == b"x" * 300_000


def test_a_copy_of_which_names_fail_raises_and_says_which(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "there"
    source.mkdir()
    target.mkdir()
    (source / "one").write_text("new")
    (target / "one").write_text("longer and older")
    job = farline.copy(f"{source}/", target)
    with pytest.raises(farline.PartialCopy, match=r"1 of .* failed.*one"):
        job.wait()
    assert (target / "one").read_text() == "longer and older"
    assert job.report["failed"]["files"] == 1


def test_a_bound_on_deletions_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="max_delete: needs delete=True"):
        farline.copy(tmp_path, tmp_path / "there", max_delete=5)


def test_a_block_ends_with_what_its_job_failed_with() -> None:
    with pytest.raises(UnreachableError), farline.probe("127.0.0.1:9", keep=False):
        pass


def test_a_server_makes_its_folder_and_keeps_its_key_there(tmp_path: Path) -> None:
    prints = []
    for _ in range(2):
        with farline.serve(state_dir=tmp_path / "made" / "here") as server:
            prints.append(server.fingerprint)
    assert prints[0] == prints[1]


def test_a_server_that_cannot_listen_leaves_nothing(
    server: farline.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    port = int(server.address.rpartition(":")[2])
    with pytest.raises(SystemFailure):
        farline.serve(port=port)
    assert list(tmp_path.iterdir()) == []


def test_a_copy_deletes_no_more_than_it_may(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "there"
    source.mkdir()
    target.mkdir()
    (source / "kept").write_text("a")
    for name in ("b", "c"):
        (target / name).write_text(name)
    with pytest.raises(farline.FarlineError):
        farline.copy(f"{source}/", target, delete=True, max_delete=1).wait()
    assert sorted(p.name for p in target.iterdir() if p.name in "bc") == ["b", "c"]
    farline.copy(f"{source}/", target, delete=True, max_delete=2).wait()
    assert sorted(p.name for p in target.iterdir()) == ["kept"]


def test_a_server_tells_its_sessions(server: farline.Server) -> None:
    farline.probe(server.ticket(), **SHORT).wait()
    kinds = []
    for event in server:
        kinds.append(event.kind)
        if event.kind == "session_ended":
            break
    assert kinds[0] == "session_started"


def test_a_program_that_forgets_its_job_ends_all_the_same(server: farline.Server) -> None:
    script = textwrap.dedent(
        f"""
        import farline
        run = farline.probe({server.ticket()!r}, duration_s=60, keep=False)
        next(iter(run))
        print("begun", flush=True)
        """
    )
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "begun\n", done.stderr
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begun < 30


def test_importing_farline_imports_nothing_heavy() -> None:
    script = "import farline, sys, json; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run(
        [sys.executable, "-X", "frozen_modules=on", "-c", script],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    loaded = set(json.loads(out))
    assert not loaded & {"numpy", "pyarrow", "click", "rich", "ibis", "duckdb", "pandas"}
    assert "farline._native" not in loaded
