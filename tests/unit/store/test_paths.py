"""What a store knows of paths: past transfers of any origin, and the choices made from them."""

from __future__ import annotations

import datetime
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from farline.spec.infrastructure_text import read_infrastructure
from farline.store import RunBundle, Store
from farline.store.paths import HostsNow, PathEnds, StoredChoice, forget_path, path_history
from farline.store.paths.choices import choice_path, forget_choice, read_choice, write_choice
from farline.store.paths.past_transfer import bare_host
from farline.store.transfers import transfer_schema
from tests.support.runs import CLIENT, RECEIVER, SENDER, SERVER, report, run_record, stream

NOW_S = datetime.datetime(2026, 11, 21, 20, tzinfo=datetime.UTC).timestamp()


def kept(store: Store, number: int, **more: Any) -> str:
    """A run of 10 s at 800 Mbit/s over 40 ms, kept; its name."""
    way = {
        "total_bps": 8e8, "steady_bps": 9e8, "omitted_s": 1.0, "warmup_rule": "mser-5",
        "bytes": 10**9, "elapsed_s": 10.0,
    }  # fmt: skip
    direction = (more.get("spec") or {}).get("direction", "forward")
    summary = {
        "forward": way if direction != "reverse" else None,
        "reverse": way if direction != "forward" else None,
        "retransmits": 3, "min_rtt_us": 40_000, "cpu_s_per_gb": 0.5,
    }  # fmt: skip
    record = run_record(run_id=f"01JD{number:022d}", **{"summary": summary, **more})
    store.append(RunBundle(record, {}))
    return str(record["run_id"])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_probe_becomes_a_row_with_what_chooses_and_estimates_need(store: Store) -> None:
    name = kept(store, 1, spec={"streams": 8})
    (row,) = path_history(store)
    assert (row.kind, row.tool, row.source, row.path) == ("probe", "farline", name, "near > far")
    assert (row.streams, row.parallelism, row.concurrency) == (8, 8, 1)
    assert (row.rate_bps, row.steady_bps, row.bytes, row.duration_s) == (8e8, 9e8, 10**9, 10.0)
    assert (row.rtt_ms, row.retransmits, row.cpu_s_per_gb) == (40.0, 3, 0.5)
    # The smaller of the sender's tcp_wmem[2] and the receiver's tcp_rmem[2].
    assert row.window_bytes == 4_194_304
    assert (row.from_kernel, row.to_kernel) == ("6.1.0", "6.1.0")
    assert (row.started_s, row.ended_s) == (NOW_S, NOW_S + 10)
    assert row.sound


def test_a_run_in_reverse_was_sent_by_the_server(store: Store) -> None:
    kept(store, 1, spec={"direction": "reverse"})
    (row,) = path_history(store)
    assert (row.from_host, row.to_host) == ("far", "near")


@pytest.mark.parametrize("addressed", ["far", "far.example", "FAR.example:5470", "far.example:1"])
def test_a_path_is_found_by_any_name_of_its_hosts(store: Store, addressed: str) -> None:
    kept(store, 1)
    assert len(path_history(store, PathEnds.between("near", addressed))) == 1
    assert path_history(store, PathEnds.between(addressed, "near")) == ()
    assert path_history(store, PathEnds.between("near", "elsewhere")) == ()


def test_what_says_nothing_of_a_path_is_left_out(store: Store) -> None:
    kept(store, 1, status="failed", error={"kind": "timeout", "message": "no answer"})
    kept(store, 2, spec={"direction": "bidirectional"})
    stopped = kept(store, 3, status="partial", error={"kind": "interrupted", "message": "stop"})
    kept(store, 4, status="partial", error={"kind": "system", "message": "disk full"})
    assert [row.source for row in path_history(store)] == [stopped]


def test_the_slower_interface_that_carried_the_streams_is_the_capacity(store: Store) -> None:
    near, far = report("near"), report("far")
    for end, address, speed in ((near, "10.0.0.1", 10), (far, "10.0.0.2", 40)):
        card: Any = {"addresses": [address], "speed_bps": speed * 10**9}
        other: Any = {"addresses": ["192.0.2.1"], "speed_bps": 10**9}
        end["host"]["interfaces"] = [card, other]
    kept(store, 1, client=near, server=far)
    (row,) = path_history(store)
    assert (row.nic_bps, row.capacity_bps) == (10**10, 10**10)


def test_a_rate_that_was_asked_for_is_not_what_the_path_gives(store: Store) -> None:
    kept(store, 1, spec={"rate_bps": 10**8})
    (row,) = path_history(store)
    assert row.capped
    assert not row.sound


def test_the_newest_are_given_where_there_are_too_many(store: Store) -> None:
    names = [kept(store, number) for number in range(1, 6)]
    assert [row.source for row in path_history(store, limit=2)] == names[-2:]


def log_of(store: Store, folder: Path, **columns: Any) -> None:
    """A log of one transfer, taken in."""
    row = {
        "tool": "gridftp", "modality": "E", "bytes": 64 * 10**8, "rate_bps": 2e9, "complete": True,
        "from_host": "Near", "to_host": "far", "duration_s": 25.6, "files": 64, "parallelism": 4,
        "concurrency": 8, "source": "transfer.log", **columns,
    }  # fmt: skip
    table = pa.Table.from_pylist([row], schema=transfer_schema())
    log = folder / f"{row['source']}"
    log.write_text(str(row))
    store.append_transfers([table], log, reader="test 1")


def test_rows_of_logs_stand_beside_our_own(store: Store, tmp_path: Path) -> None:
    kept(store, 1)
    log_of(store, tmp_path)
    log_of(store, tmp_path, source="other.log", complete=False, rate_bps=None)
    ingested, probe = path_history(store, PathEnds.between("near", "far"))
    assert (probe.kind, ingested.kind, ingested.tool) == ("probe", "ingested", "gridftp")
    assert (ingested.parallelism, ingested.concurrency, ingested.file_bytes) == (4, 8, 1e8)
    assert ingested.ended_s is None


def test_a_transfer_that_two_logs_tell_is_one_witness(store: Store, tmp_path: Path) -> None:
    began = datetime.datetime(2026, 3, 1, 10, 0, tzinfo=datetime.UTC)
    log_of(store, tmp_path, started_at=began)
    log_of(store, tmp_path, started_at=began, source="copy-of-it.log")
    log_of(store, tmp_path, started_at=began, source="another.log", bytes=32 * 10**8)
    assert [row.bytes for row in path_history(store)] == [32 * 10**8, 64 * 10**8]
    # Without a time nobody can tell: two transfers may be alike.
    log_of(store, tmp_path, source="no-time.log")
    log_of(store, tmp_path, source="no-time-2.log")
    assert len(path_history(store)) == 4


def test_sites_name_a_path_and_say_what_rows_do_not(store: Store, tmp_path: Path) -> None:
    log_of(store, tmp_path)
    (row,) = path_history(store, infrastructure=read_infrastructure(SITES, "sites"))
    assert (row.path, row.rtt_ms, row.capacity_bps) == ("west > east", 65.0, 1e10)


SITES = """
[sites.west]
hosts = ["near"]
[sites.east]
hosts = ["far", "far.example"]
[connections."west - east"]
rtt_ms = "65ms"
capacity_bps = "10Gbit"
"""


def test_a_forgotten_path_begins_anew_and_its_runs_stay(store: Store) -> None:
    kept(store, 1)
    ends = PathEnds.between("near", "far")
    assert forget_path(store, ends, now_s=NOW_S + 60) == 1
    assert path_history(store, ends) == ()
    assert len(store.runs()) == 1
    later = "2026-11-22T20:00:00.000000Z"
    assert path_history(store, ends, limit=9) == ()
    name = kept(store, 2, started_at=later)
    assert [row.source for row in path_history(store, ends)] == [name]


def test_a_stream_record_without_an_address_has_no_interface(store: Store) -> None:
    kept(store, 1, streams=[stream(CLIENT, SENDER, local=None), stream(SERVER, RECEIVER)])
    (row,) = path_history(store)
    assert row.nic_bps is None


CHOICE = StoredChoice(
    "far.example", True, NOW_S, 16, None, None, 2e9, 1.5e9, 2.5e9, "3 samples", "noise",
    rtt_ms=40.0, here_kernel="6.1.0", there_kernel="5.14.0", nic_bps=10**10,
)  # fmt: skip


def test_a_choice_is_found_by_host_and_direction(store: Store) -> None:
    write_choice(store.layout.paths, store.layout.temp, CHOICE)
    assert read_choice(store.layout.paths, "FAR.example", True) == CHOICE
    assert read_choice(store.layout.paths, "far.example", False) is None
    assert forget_choice(store.layout.paths, "far.example", True)
    assert not forget_choice(store.layout.paths, "far.example", True)
    assert read_choice(store.layout.paths, "far.example", True) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 1}', '{"schema": 2}', "\0" * 40])
def test_a_damaged_choice_is_no_choice(store: Store, text: str) -> None:
    path = write_choice(store.layout.paths, store.layout.temp, CHOICE)
    path.write_text(text)
    assert read_choice(store.layout.paths, "far.example", True) is None


def test_a_choice_with_an_impossible_count_is_no_choice(store: Store) -> None:
    path = write_choice(store.layout.paths, store.layout.temp, CHOICE)
    path.write_text(path.read_text().replace('"streams": 16', '"streams": 1000000'))
    assert read_choice(store.layout.paths, "far.example", True) is None


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (HostsNow(rtt_ms=90.0), "RTT was 40 ms and is 90 ms"),
        (HostsNow(here_kernel="6.6.0"), "this host's kernel was 6.1.0"),
        (HostsNow(there_kernel="6.6.0"), "the other host's kernel"),
        (HostsNow(nic_bps=10**11), "interface had 10 Gbit/s and has 100"),
    ],
)
def test_a_changed_host_or_route_is_noticed(now: HostsNow, word: str) -> None:
    (change,) = CHOICE.changes(now, NOW_S)
    assert word in change


@pytest.mark.parametrize(("then_ms", "now_ms"), [(0.001, 1.0), (2.0, 3.5), (40.0, 59.0)])
def test_a_small_difference_of_round_trips_is_the_same_path(then_ms: float, now_ms: float) -> None:
    choice = replace(CHOICE, rtt_ms=then_ms)
    assert choice.changes(HostsNow(rtt_ms=now_ms), NOW_S) == ()


@pytest.mark.parametrize(
    ("now_ms", "said"),
    [
        (40.0, ""), (130.0, ""), (20.0, ""),
        (140.0, "the RTT was 40 ms (90 ms under load) and is 140 ms"),
        (10.0, "the RTT was 40 ms (90 ms under load) and is 10 ms"),
    ],
)  # fmt: skip
def test_a_handshake_that_waits_in_the_queue_of_others_is_the_same_path(
    now_ms: float, said: str
) -> None:
    choice = replace(CHOICE, loaded_rtt_ms=90.0)
    assert "".join(choice.changes(HostsNow(rtt_ms=now_ms), NOW_S)) == said


def test_an_unchanged_path_is_trusted_for_a_month() -> None:
    same = HostsNow(41.0, "6.1.0", "5.14.0", 10**10)
    assert CHOICE.changes(same, NOW_S + 29 * 86_400) == ()
    (age,) = CHOICE.changes(same, NOW_S + 45 * 86_400)
    assert age == "it is 45 days old"


@pytest.mark.parametrize(
    ("text", "bare"),
    [("Far:5470", "far"), ("[2001:DB8::1]:22", "2001:db8::1"), ("2001:db8::1", "2001:db8::1")],
)
def test_a_host_is_itself_with_any_port(text: str, bare: str) -> None:
    assert bare_host(text) == bare


def test_no_name_of_a_host_leads_out_of_the_folder(tmp_path: Path) -> None:
    path = choice_path(tmp_path, "../../etc/passwd%00", True)
    assert path.parent == tmp_path
    assert os.sep not in path.name
