"""What held a copy back: each cause is found, and none is named where nothing stands out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.findings.copy_figures import STAGES, copy_figures_of
from farline.findings.copy_verdict import quick_verdict, remedy_of_copy, time_shares
from farline.findings.rules.copies import RULES
from farline.findings.verdict import verdict
from farline.spec._types import CopyReport, RunRecord, Verdict
from tests.support.draws import draws
from tests.support.kept_copies import make_copy_end, make_report, make_tally
from tests.support.runs import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    columns,
    report,
    run_record,
    steady_rows,
    stream,
)

S = 1_000_000
IDLE = report("far", user_s=0.1, system_s=0.1)
QUIET_SAMPLES = columns(steady_rows([1e9] * 10, end=CLIENT, role=SENDER))


def copy_record(
    copy: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **more: Any
) -> RunRecord:
    """A push of 1 GB in 10 s between two quiet hosts, over one stream."""
    asked = {"sources": ["/data/"], "destination": "/archive", **(copy or {})}
    ends = {"client": report("near", user_s=0.1, system_s=0.1), "server": IDLE}
    told = {"copy": cast(CopyReport, more.pop("report", make_report()))}
    return run_record(
        stream(CLIENT, SENDER, thread_cpu_us=100_000),
        stream(SERVER, RECEIVER, thread_cpu_us=100_000),
        **{**ends, **told, **more}, spec={"duration_s": None, "copy": asked, **(spec or {})},
    )  # fmt: skip


def told(record: RunRecord) -> Verdict:
    """The verdict, which is the quick one wherever that has something to say."""
    whole, quick = verdict(record, QUIET_SAMPLES), quick_verdict(record)
    if quick is not None:
        assert (quick["limit"], quick["line"]) == (whole["limit"], whole["line"])
    return whole


def ends(sender: dict[str, Any] | None = None, receiver: dict[str, Any] | None = None) -> Any:
    return make_report(
        sender=make_copy_end(**(sender or {})), receiver=make_copy_end(**(receiver or {}))
    )


def test_nothing_stands_out() -> None:
    record = copy_record(report=ends({"stream_us": 5 * S, "file_us": 2 * S}))
    found = told(record)
    assert found["limit"] == "unknown"
    assert "no single limit stands out at 800 Mbit/s" in found["line"]
    assert quick_verdict(record) is None
    assert found["evidence"][0].startswith("10 files, 954 MiB in 10 s: 1 files/s, 800 Mbit/s")


def test_a_disk_that_readers_wait_for() -> None:
    record = copy_record(report=ends({"file_us": 9 * S, "starved_us": 0}))
    found = told(record)
    assert found["limit"] == "sender-disk"
    assert (
        "sender disk: 1 thread spent 88 % of the time reading and waiting for it" in found["line"]
    )
    assert "more threads for files: --readers 4" in found["remedies"]
    assert "many requests in flight: --read-engine uring" in found["remedies"]


def test_a_disk_that_writers_wait_for() -> None:
    busy = {"file_us": 70 * S, "threads": 8, "engine": "direct", "starved_us": 8 * S}
    found = told(copy_record(report=ends(receiver=busy)))
    assert found["limit"] == "receiver-disk"
    assert "8 threads spent 87 % of the time writing" in found["line"]
    assert "more threads for files: --writers 16" in found["remedies"]


def test_io_uring_has_enough_under_way_with_one_thread() -> None:
    busy = {"file_us": 9 * S, "threads": 1, "engine": "uring"}
    assert told(copy_record(report=ends(receiver=busy)))["remedies"] == ["a faster disk there"]


def test_the_end_that_waits_longer_is_named() -> None:
    found = told(copy_record(report=ends({"file_us": 6 * S}, {"file_us": 9 * S})))
    assert found["limit"] == "receiver-disk"


@pytest.mark.parametrize("place", [{"file_system": "tmpfs"}, {"engine": "null"},
                                   {"engine": "memory"}])  # fmt: skip
def test_where_there_is_no_disk_none_is_named(place: dict[str, str]) -> None:
    found = told(copy_record(report=ends({"file_us": 9 * S, **place}, {"file_us": 9 * S, **place})))
    assert found["limit"] == "unknown"


def test_reading_from_the_page_cache_is_no_disk() -> None:
    busy = report("near", user_s=1.0, system_s=8.0)
    found = told(copy_record(client=busy, report=ends({"file_us": 9 * S})))
    assert found["limit"] != "sender-disk"


def test_syncing_is_the_receivers_disk() -> None:
    record = copy_record(report=ends(receiver={"sync_us": 7 * S}))
    found = told(record)
    assert found["limit"] == "receiver-disk"
    assert "flushing data to the device takes 70 % of the run's time" in found["line"]
    assert any("--no-fsync" in remedy for remedy in found["remedies"])
    quick = told(copy_record({"fsync": False}, report=ends(receiver={"sync_us": 7 * S})))
    assert not any("--no-fsync" in remedy for remedy in quick["remedies"])


def test_many_names() -> None:
    small = ends(receiver={"name_us": 6 * S, "file_us": 1 * S, "sync_us": 2 * S})
    small["copied"] = make_tally(10_000, 10_000 * 10_240)
    found = told(copy_record(report=small))
    assert found["limit"] == "file-names"
    assert "opening, renaming and closing 10,000 files takes 60 %" in found["line"]
    assert "600 us per file" in found["line"] or "600 µs per file" in found["line"]


def test_names_beside_much_else_are_not_the_cause() -> None:
    busy = ends(receiver={"name_us": 4 * S, "file_us": 9 * S})
    assert told(copy_record(report=busy))["limit"] == "receiver-disk"


def test_a_thread_that_hashes_and_seals() -> None:
    busy = report("near", user_s=9.0, system_s=0.9)
    times = {"hash_us": 4 * S, "cipher_us": 3 * S, "stream_us": 3 * S}
    record = copy_record(client=busy, report=ends(times))
    record["streams"][0]["thread_cpu_us"] = 9_700_000
    found = told(record)
    assert found["limit"] == "sender-cpu"
    assert (
        "97 % of one CPU (hashing 40 % and encryption 30 % of its threads' time)" in found["line"]
    )
    assert any("--cipher none" in remedy for remedy in found["remedies"])
    assert any("--hash xxh3" in remedy for remedy in found["remedies"])
    assert "more streams on other CPUs: --streams 4" in found["remedies"]


def test_a_thread_that_waits_for_a_cpu_is_told_so() -> None:
    record = copy_record(report=ends({"file_us": 5 * S, "file_system": "tmpfs"}))
    record["streams"][0]["thread_cpu_us"] = 3_000_000
    record["streams"][0]["thread_wait_us"] = 6_500_000
    found = told(record)
    assert found["limit"] == "sender-cpu"
    assert "and is runnable but waiting for a CPU 65 % of the time" in found["line"]
    assert found["remedies"][0] == "less other work on that host"


@pytest.mark.parametrize(
    ("name", "allowed", "is_told"),
    [("bbr", "cubic", True), ("bbr", "reno", False), ("cubic", "cubic", False)],
)
def test_bbr_has_a_cheaper_one_where_a_cpu_is_full(name: str, allowed: str, is_told: bool) -> None:
    client = report("near", user_s=9.0, system_s=0.9)
    client["host"] = {**client["host"], "allowed_congestion_controls": [allowed]}
    record = copy_record(client=client)
    record["streams"][0]["thread_cpu_us"] = 9_700_000
    record["streams"][0]["granted"]["congestion_control"] = name
    found = any("--congestion cubic" in remedy for remedy in told(record)["remedies"])
    assert found == is_told


def test_a_queue_on_loopback_is_no_path() -> None:
    samples = columns(
        steady_rows([1e9] * 10, end=CLIENT, role=SENDER, busy_us=100_000, rtt_us=4_000,
                    receive_window_limited_us=0, send_buffer_limited_us=0, cwnd_limited_us=0)
    )  # fmt: skip
    record = copy_record(server=report("near", user_s=0.1, system_s=0.1))
    record["streams"][0]["min_rtt_us"] = 5
    assert verdict(record, samples)["limit"] == "path"
    for one in record["streams"]:
        one["granted"]["local"], one["granted"]["remote"] = "127.0.0.1:1", "127.0.0.1:2"
    assert verdict(record, samples)["limit"] == "unknown"


def test_a_dear_cipher_has_a_cheaper_one() -> None:
    busy = report("near", user_s=9.0, system_s=0.9)
    dear = ends({"cipher_us": 5 * S}) | {"cipher": "aes256-gcm"}
    record = copy_record(client=busy, report=dear)
    record["streams"][0]["thread_cpu_us"] = 9_700_000
    assert "a cheaper cipher: --cipher aes128-gcm" in told(record)["remedies"]


def test_a_host_whose_cpus_are_all_busy() -> None:
    busy = report("far", user_s=30.0, system_s=9.0)
    found = told(copy_record(server=busy, report=ends(receiver={"hash_us": 20 * S})))
    assert found["limit"] == "receiver-cpu"
    assert "uses 98 % of the host's 4 CPUs" in found["line"]


@pytest.mark.parametrize(("copy", "spec", "flag"), [
    ({"total_rate_bps": 800_000_000}, {}, "--bwlimit"),
    ({}, {"rate_bps": 810_000_000}, "--rate"),
    ({"total_rate_bps": 10**10}, {"tcp": {"pacing_rate_bps": 800_000_000}}, "--fq-rate"),
])  # fmt: skip
def test_a_rate_that_was_asked_for(copy: dict[str, Any], spec: dict[str, Any], flag: str) -> None:
    found = told(copy_record(copy, spec))
    assert found["limit"] == "rate"
    assert found["remedies"] == [f"a higher rate, or no limit: {flag} 0"]


def test_a_rate_that_was_not_reached_is_not_the_cause() -> None:
    assert told(copy_record({"total_rate_bps": 10**10}))["limit"] == "unknown"


def test_what_moved_nothing_is_not_judged() -> None:
    there = make_report(copied=make_tally(), present=make_tally(10, 10**9))
    assert told(copy_record(report=there))["line"] == "nothing to copy: 10 files already present"
    assert "dry run" in told(copy_record({"dry_run": True}))["line"]
    failed = copy_record(status="failed", error={"kind": "timeout", "message": "30 s of silence"})
    assert told(failed)["line"] == "the copy failed: 30 s of silence"


def test_a_copy_that_was_over_at_once_has_no_limit() -> None:
    record = copy_record(run_s=0.009, report=ends({"name_us": 9000}))
    for one in record["streams"]:
        one["elapsed_us"] = 9000
    assert "(9.00 ms of data)" in told(record)["line"]


def test_the_path_is_judged_by_the_rules_of_runs() -> None:
    samples = columns(
        steady_rows([1e9] * 10, end=CLIENT, role=SENDER, busy_us=100_000,
                    receive_window_limited_us=80_000, send_buffer_limited_us=0,
                    cwnd_limited_us=0, rtt_us=100_000, receive_window_bytes=6_000_000)
    )  # fmt: skip
    record = copy_record(report=ends({"stream_us": 9 * S}))
    for one in record["streams"]:
        one["granted"]["receive_buffer_bytes"] = 6_291_456
    found = verdict(record, samples)
    assert found["limit"] == "receive-window"
    assert any("tcp_rmem" in remedy for remedy in found["remedies"])
    assert "more streams to share the path: --streams 4" in found["remedies"]
    assert not any(" -P " in remedy for remedy in found["remedies"])


def test_a_copy_that_gives_way_says_so() -> None:
    assert told(copy_record({"give_way": True}))["line"].endswith("(--yield)")


def test_streams_of_messages_are_not_judged() -> None:
    rows = steady_rows([1e9] * 10, end=CLIENT, role=SENDER)
    extra = steady_rows([9e9] * 10, end=CLIENT, role=SENDER, stream=1)
    plain = copy_record()
    loud = copy_record()
    loud["streams"] += [
        stream(CLIENT, SENDER, 1, bytes=10**11, thread_cpu_us=10_000_000),
        stream(SERVER, RECEIVER, 1, bytes=10**11, thread_cpu_us=10_000_000),
    ]
    assert verdict(loud, columns(rows + extra)) == verdict(plain, columns(rows))


def test_a_pull_is_judged_from_its_own_ends() -> None:
    record = copy_record(spec={"direction": "reverse"}, report=ends({"file_us": 9 * S}))
    record["streams"] = [stream(SERVER, SENDER), stream(CLIENT, RECEIVER)]
    found = told(record)
    assert found["limit"] == "sender-disk"
    assert "reverse" in found["evidence"][1]


def test_time_shares_are_of_all_that_was_accounted_for() -> None:
    record = copy_record(report=ends({"file_us": 3 * S, "stream_us": S}))
    assert time_shares(copy_figures_of(record).sender) == {"reading": 0.75, "sending": 0.25}


def test_remedies_speak_of_options_that_copies_have() -> None:
    assert remedy_of_copy("a larger block: -l 1M") is None
    assert remedy_of_copy("a longer run: -t 30") is None
    assert remedy_of_copy("another congestion control: -C bbr") == (
        "another congestion control: --congestion bbr"
    )


def test_a_report_of_one_end_only_is_judged() -> None:
    assert told(copy_record(server=None))["limit"] == "unknown"


@given(
    st.lists(st.integers(0, 10**8), min_size=14, max_size=14),
    st.integers(0, 10**7),
    st.integers(0, 256),
)
@draws(200)
def test_any_report_gets_one_verdict(times: list[int], elapsed_us: int, threads: int) -> None:
    names = [f"{name}_us" for name in STAGES]
    both = [dict(zip(names, part, strict=True)) for part in (times[:7], times[7:])]
    record = copy_record(
        report=ends(*(part | {"threads": threads} for part in both)), run_s=elapsed_us / 1e6
    )
    for one in record["streams"]:
        one["elapsed_us"] = elapsed_us
    found = told(record)
    assert "\n" not in found["line"]
    assert all(0 <= share <= 1 for end in copy_figures_of(record).ends
               for share in time_shares(end).values())  # fmt: skip
    fits = [hit for rule in RULES if (hit := rule(copy_figures_of(record)))]
    assert not fits or found["limit"] == fits[0].limit


def test_the_quick_verdict_needs_no_numpy() -> None:
    program = (
        "import sys; from farline.findings.copy_verdict import quick_verdict\n"
        "from farline.profiles.copy_summary import light_summary\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.stdout.strip() == "False"


def test_no_share_is_more_than_all_of_it() -> None:
    record = copy_record(
        report=ends({"sync_us": 90 * S}), spec={"rate_bps": 1_000_000}, run_s=2.0,
    )  # fmt: skip
    for one in record["streams"]:
        one["elapsed_us"], one["thread_cpu_us"], one["thread_wait_us"] = 600_000, 3 * S, S
    assert "rate: 100 % of the requested 1.00 Mbit/s" in told(record)["line"]
    record["spec"].pop("rate_bps")
    found = told(record)
    assert "uses 100 % of one CPU" in found["line"]
    shares = [int(share) for share in re.findall(r"(\d+) %", " ".join(found["evidence"]))]
    assert max(shares, default=0) <= 100


def test_a_remedy_keeps_the_options_of_other_commands() -> None:
    sysctl = "on the receiver: sysctl -w net.core.rmem_max=1 (`farline host --rtt 1ms -P 1`)"
    assert remedy_of_copy(sysctl) == sysctl
    assert remedy_of_copy("a larger buffer: -w 2MiB") == "a larger buffer: --window 2MiB"
