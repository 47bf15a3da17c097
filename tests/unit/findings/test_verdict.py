"""What limited a run: each rule on a record that shows it, and nothing else."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from farline.findings.figures import Figures, figures_of
from farline.findings.rules.table import RULES
from farline.findings.verdict import judge, verdict
from farline.spec._types import RunRecord, Verdict
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

BUSY: dict[str, Any] = {
    "busy_us": 100_000,
    "receive_window_limited_us": 0,
    "send_buffer_limited_us": 0,
    "cwnd_limited_us": 100_000,
    "rtt_us": 100_000,
    "cwnd_bytes": 4 << 20,
    "receive_window_bytes": 3 << 20,
    "pacing_rate_bps": 900_000_000,
}


def rows(**more: Any) -> list[dict[str, int]]:
    return steady_rows([800e6] * 100, end=CLIENT, role=SENDER, **(BUSY | more))


def judged(record: RunRecord | None = None, **more: Any) -> Verdict:
    return verdict(record or run_record(), columns(rows(**more)))


def test_receiver_window_under_autotuning_names_tcp_rmem() -> None:
    receiver = stream(SERVER, RECEIVER, receive_buffer_bytes=6 << 20)
    record = run_record(stream(CLIENT, SENDER), receiver)
    found = judged(record, receive_window_limited_us=80_000, cwnd_limited_us=20_000)
    assert found["limit"] == "receive-window"
    assert "80 %" in found["line"] and "net.ipv4.tcp_rmem[2] = 6.00 MiB" in found["line"]
    assert 'sysctl -w net.ipv4.tcp_rmem="4096 131072 12582912"' in found["remedies"][0]
    assert any("bandwidth-delay product" in line for line in found["evidence"])


def test_receiver_window_of_an_explicit_buffer_names_rmem_max() -> None:
    asked = {"receive_buffer_bytes": 1 << 20}
    record = run_record(
        stream(CLIENT, SENDER),
        stream(SERVER, RECEIVER, receive_buffer_bytes=425_984),
        spec={"tcp": asked},
    )
    found = judged(record, receive_window_limited_us=80_000)
    assert "net.core.rmem_max = 208 KiB" in found["line"]
    assert found["remedies"] == ["on the receiver: sysctl -w net.core.rmem_max=1048576"]


def test_receiver_window_of_a_granted_buffer_is_the_callers_choice() -> None:
    record = run_record(
        stream(CLIENT, SENDER),
        stream(SERVER, RECEIVER, receive_buffer_bytes=2 << 16),
        spec={"tcp": {"receive_buffer_bytes": 1 << 16}},
    )
    found = judged(record, receive_window_limited_us=80_000)
    assert "the requested buffer of 64.0 KiB caps it" in found["line"]
    assert "-w 128KiB" in found["remedies"][0]


def closed_window(
    *, cpu_us: int, wait_us: int = 0, window: int = 257 << 10, **spec: Any
) -> Verdict:
    """A receiver whose buffer has grown to 1 MiB of the 6 MiB that it may have."""
    receiver = stream(
        SERVER,
        RECEIVER,
        receive_buffer_bytes=1 << 20,
        thread_cpu_us=cpu_us,
        thread_wait_us=wait_us,
    )
    return judged(
        run_record(stream(CLIENT, SENDER), receiver, spec=spec),
        receive_window_limited_us=80_000,
        receive_window_bytes=window,
    )


@pytest.mark.parametrize(
    ("wait_us", "remedy"),
    [
        (0, "no copy on the receiver: --receive-mode discard shows how much of it is copying"),
        (2_500_000, "less other work on that host"),
    ],
)
def test_a_window_closed_by_a_busy_receiver_is_its_cpu(wait_us: int, remedy: str) -> None:
    found = closed_window(cpu_us=6_500_000 - wait_us, wait_us=wait_us)
    assert found["limit"] == "receiver-cpu"
    assert "reads too slowly, so its window closed (senders waited for it 80 %" in found["line"]
    assert remedy in found["remedies"]
    assert not any("sysctl" in remedy for remedy in found["remedies"])


@pytest.mark.parametrize("window", [257 << 10, 1 << 20])
def test_a_window_closed_while_the_buffer_may_grow_blames_no_sysctl(window: int) -> None:
    found = closed_window(cpu_us=3_000_000, window=window)
    assert found["limit"] == "receive-window"
    assert found["line"].endswith(
        "the window closed although the receive buffer can still grow: "
        "the receiving program reads in bursts"
    )
    assert found["remedies"] == [
        "a larger block: -l 1M",
        "a CPU for each stream: --client-cpus, --server-cpus",
    ]
    assert "receive buffer at the end: 1.00 MiB, which can grow to 6.00 MiB" in found["evidence"]


def test_a_buffer_asked_for_is_not_the_cap_of_a_window_far_below_it() -> None:
    asked = {"receive_buffer_bytes": 1 << 19}
    assert "caps it" in closed_window(cpu_us=0, window=400 << 10, tcp=asked)["line"]
    found = closed_window(cpu_us=0, window=100 << 10, tcp=asked)
    assert "caps it" not in found["line"] and "can still grow" not in found["line"]
    assert "reads in bursts" in found["line"]


def test_a_remedy_is_not_what_the_run_did_already() -> None:
    idle: dict[str, Any] = {"busy_us": 30_000, "cwnd_limited_us": 0}
    assert judged(**idle)["remedies"] == [
        "a larger block: -l 1M",
        "a CPU for each stream: --client-cpus, --server-cpus",
        "more streams: -P 4",
    ]
    pinned = [stream(CLIENT, SENDER, cpu=0), stream(SERVER, RECEIVER, cpu=1)]
    record = run_record(*pinned, spec={"block_bytes": 1 << 20, "streams": 4})
    assert judged(record, **idle)["remedies"] == ["a larger block: -l 2MiB"]


@pytest.mark.parametrize(("streams", "cpus", "wanted"), [(2, 16, 4), (4, 16, 8), (12, 16, 16)])
def test_more_streams_are_as_many_as_there_are_cpus_for(
    streams: int, cpus: int, wanted: int
) -> None:
    near, far = report("near"), report("far")
    near["host"]["cpu"]["online"] = far["host"]["cpu"]["online"] = cpus
    record = run_record(client=near, server=far, spec={"streams": streams})
    remedies = judged(record, busy_us=30_000, cwnd_limited_us=0)["remedies"]
    assert f"more streams: -P {wanted}" in remedies


@pytest.mark.parametrize(
    ("used", "allowed", "proposed"),
    [
        ("cubic", ["cubic", "bbr"], True),
        ("cubic", ["cubic"], False),
        ("bbr", ["cubic", "bbr"], False),
    ],
)
def test_another_congestion_control_is_one_that_is_allowed(
    used: str, allowed: list[str], proposed: bool
) -> None:
    client = report("near")
    client["host"]["allowed_congestion_controls"] = allowed
    sender = stream(CLIENT, SENDER, retransmits=500, congestion_control=used)
    found = judged(run_record(sender, stream(SERVER, RECEIVER), client=client))
    assert "losses keep the window of" in found["line"]
    assert ("another congestion control: -C bbr" in found["remedies"]) is proposed


def test_send_buffer() -> None:
    found = judged(send_buffer_limited_us=70_000)
    assert found["limit"] == "send-buffer"
    assert "net.ipv4.tcp_wmem[2] = 4.00 MiB at the sender caps it" in found["line"]


@pytest.mark.parametrize(
    ("sender_us", "receiver_us", "limit"),
    [(9_800_000, 5_000_000, "sender-cpu"), (9_500_000, 9_900_000, "receiver-cpu")],
)
def test_a_full_cpu_comes_before_windows(sender_us: int, receiver_us: int, limit: str) -> None:
    record = run_record(
        stream(CLIENT, SENDER, thread_cpu_us=sender_us),
        stream(SERVER, RECEIVER, thread_cpu_us=receiver_us),
    )
    found = judged(record, receive_window_limited_us=90_000)
    assert found["limit"] == limit
    assert "of one CPU" in found["line"] and found["remedies"]


def test_a_thread_that_waits_for_a_cpu_is_cpu_limited_by_others() -> None:
    sender = stream(CLIENT, SENDER, thread_cpu_us=5_000_000, thread_wait_us=4_500_000)
    found = judged(run_record(sender, stream(SERVER, RECEIVER)), busy_us=30_000)
    assert found["limit"] == "sender-cpu"
    assert "uses 50 % of one CPU and is runnable but waiting for a CPU 45 %" in found["line"]
    assert found["remedies"][0] == "less other work on that host"


def test_a_sender_idle_for_want_of_a_cpu_is_cpu_limited() -> None:
    sender = stream(CLIENT, SENDER, thread_cpu_us=2_000_000, thread_wait_us=6_000_000)
    found = judged(run_record(sender, stream(SERVER, RECEIVER)), busy_us=35_000)
    assert found["limit"] == "sender-cpu"
    assert "nothing to send 65 % of the time; a sender thread was runnable but" in found["line"]


def test_all_cpus_of_one_host_in_use_by_both_ends() -> None:
    near: dict[str, Any] = {"local": "127.0.0.1:1", "remote": "127.0.0.1:2"}
    record = run_record(
        stream(CLIENT, SENDER, **near),
        stream(SERVER, RECEIVER, **near),
        client=report("one", user_s=19.0),
        server=report("one", user_s=18.0),
    )
    found = judged(record)
    assert found["limit"] == "sender-cpu"
    assert "both ends together use 98 % of the host's 4 CPUs" in found["line"]


def test_a_rate_that_is_reached_is_the_limit() -> None:
    found = judged(run_record(spec={"rate_bps": 820_000_000}))
    assert (found["limit"], found["remedies"]) == ("rate", ["a higher rate, or no limit: -b 0"])
    found = judged(run_record(spec={"tcp": {"pacing_rate_bps": 800_000_000}}))
    assert "--fq-rate 0" in found["remedies"][0]


def test_a_rate_that_is_not_reached_is_not() -> None:
    assert judged(run_record(spec={"rate_bps": 2_000_000_000}))["limit"] != "rate"


def test_an_idle_sender_is_the_application() -> None:
    found = judged(busy_us=30_000, cwnd_limited_us=30_000)
    assert found["limit"] == "application"
    assert "nothing to send 70 % of the time" in found["line"]
    assert found["line"].endswith("for 100 % of the rest the congestion window held them back")
    found = judged(busy_us=30_000, cwnd_limited_us=0)
    assert found["line"].endswith("the network did not hold them back")


def test_a_standing_queue_is_a_full_path() -> None:
    record = run_record(stream(CLIENT, SENDER, min_rtt_us=20_000), stream(SERVER, RECEIVER))
    found = judged(record)
    assert found["limit"] == "path"
    assert "wait 80.0 ms in queues" in found["line"]


def test_a_full_interface_is_a_full_path() -> None:
    client = report("near")
    client["host"]["interfaces"] = [
        {
            "name": "eth0", "addresses": ["10.0.0.1/24"], "mtu_bytes": 1500, "up": True,
            "driver": None, "speed_bps": 850_000_000, "numa_node": None, "qdisc": None,
            "tx_queue_packets": None, "offloads": {},
        }
    ]  # fmt: skip
    found = judged(run_record(client=client))
    assert found["limit"] == "path"
    assert "94 % of the interface's 850 Mbit/s" in found["line"]


def test_losses_hold_the_congestion_window() -> None:
    record = run_record(stream(CLIENT, SENDER, retransmits=500), stream(SERVER, RECEIVER))
    found = judged(record)
    assert found["limit"] == "cwnd"
    assert "500 segments retransmitted" in found["line"] and "cubic" in found["line"]


def test_a_window_that_still_grows_wants_a_longer_run() -> None:
    grown = rows()
    for index, row in enumerate(grown):
        row["cwnd_bytes"] = (index + 1) << 14
    found = verdict(run_record(), columns(grown))
    assert found["limit"] == "cwnd"
    assert "still grew" in found["line"]
    assert found["remedies"] == ["a longer run: -t 30", "leave the start-up out: -O 5"]
    record = run_record(spec={"duration_s": 30.0, "omit_s": 5.0})
    assert verdict(record, columns(grown))["remedies"] == ["a longer run: -t 60"]


def test_bbr_paces() -> None:
    record = run_record(stream(CLIENT, SENDER, congestion_control="bbr"), stream(SERVER, RECEIVER))
    found = judged(record)
    assert "bbr paces each stream at 900 Mbit/s" in found["line"]
    assert "another congestion control: -C cubic" in found["remedies"]


@pytest.mark.parametrize("pacing_bps", [600_000_000, 2_400_000_000])
def test_a_pacing_rate_far_from_what_was_reached_is_not_the_limit(pacing_bps: int) -> None:
    record = run_record(stream(CLIENT, SENDER, congestion_control="bbr"), stream(SERVER, RECEIVER))
    assert "paces" not in judged(record, pacing_rate_bps=pacing_bps)["line"]


def test_a_window_that_allowed_far_more_is_not_the_limit() -> None:
    """4 MiB over 10 ms allow 3.4 Gbit/s where 0.8 were reached."""
    assert judged(rtt_us=10_000)["limit"] == "unknown"


def test_a_window_without_losses_is_still_the_window() -> None:
    assert "waited for it 100 %" in judged()["line"]


def test_zero_copy_that_copied_is_told_in_the_line() -> None:
    record = run_record(
        stream(CLIENT, SENDER, zerocopy_copied_bytes=750, zerocopy_true_bytes=250),
        stream(SERVER, RECEIVER),
    )
    assert judged(record)["line"].endswith("the kernel still copied 75 % of 1000 B")


def test_the_null_transport_shows_the_harness() -> None:
    found = judged(run_record(spec={"transport": "null"}))
    assert found["limit"] == "harness"
    assert "800 Mbit/s" in found["line"]


def test_a_rate_that_was_set_is_the_limit_before_the_harness() -> None:
    found = judged(run_record(spec={"transport": "null", "rate_bps": 800_000_000}))
    assert found["limit"] == "rate"
    assert judged(run_record(spec={"transport": "null", "rate_bps": 10**10}))["limit"] == "harness"


def test_a_failed_run_has_no_limit() -> None:
    record = run_record(status="failed", error={"kind": "busy", "message": "no room"})
    found = judged(record)
    assert (found["limit"], found["line"]) == ("unknown", "the run failed: no room")


def test_nothing_received_is_nothing_judged() -> None:
    record = run_record(stream(CLIENT, SENDER, bytes=0), stream(SERVER, RECEIVER, bytes=0))
    assert "no data arrived" in judged(record)["line"]


def test_both_ways_judge_the_slower() -> None:
    record = run_record(
        stream(CLIENT, SENDER, 0),
        stream(SERVER, RECEIVER, 0),
        stream(SERVER, SENDER, 1, thread_cpu_us=9_900_000),
        stream(CLIENT, RECEIVER, 1, bytes=500_000_000),
        spec={"direction": "bidirectional"},
    )
    found = judged(record)
    assert found["limit"] == "sender-cpu"
    assert found["line"].startswith("reverse (the slower direction): ")


def udp(receiver: dict[str, Any], sender: dict[str, Any] | None = None, **spec: Any) -> Verdict:
    record = run_record(
        stream(CLIENT, SENDER, packets=1000, **(sender or {})),
        stream(SERVER, RECEIVER, packets=900, **receiver),
        spec={"transport": "udp", **spec},
    )
    return verdict(record, columns([]))


def test_datagrams_lost_by_a_slow_reader() -> None:
    found = udp({"lost_packets": 100, "thread_cpu_us": 9_000_000})
    assert found["limit"] == "receiver-cpu"
    assert "10 % of 1000 datagrams lost" in found["line"]


def test_datagrams_lost_on_one_host_overflowed_the_buffer() -> None:
    near: dict[str, Any] = {"local": "127.0.0.1:1", "remote": "127.0.0.1:2"}
    record = run_record(
        stream(CLIENT, SENDER, packets=1000, **near),
        stream(SERVER, RECEIVER, lost_packets=100, **near),
        spec={"transport": "udp"},
        client=report("one"),
        server=report("one"),
    )
    found = verdict(record, columns([]))
    assert found["limit"] == "receive-buffer"
    assert any("net.core.rmem_max" in remedy for remedy in found["remedies"])


def test_datagrams_lost_on_the_way_even_at_the_rate_asked_for() -> None:
    found = udp({"lost_packets": 100}, rate_bps=800_000_000)
    assert found["limit"] == "path"


def test_datagrams_at_the_rate_asked_for() -> None:
    assert udp({}, rate_bps=800_000_000)["limit"] == "rate"


def test_a_sender_that_cannot_keep_the_rate() -> None:
    found = udp({}, {"thread_cpu_us": 8_500_000}, rate_bps=2_000_000_000)
    assert found["limit"] == "sender-cpu"


def test_a_sender_that_waits_for_its_socket() -> None:
    assert udp({}, rate_bps=0)["limit"] == "send-buffer"


def test_remedies_for_datagrams_are_not_what_the_run_did_already() -> None:
    lossy: dict[str, Any] = {"lost_packets": 100}
    assert "shorter bursts: --batch 8" in udp(lossy)["remedies"]
    found = udp(lossy | {"receive_buffer_bytes": 16 << 20}, {"batch_packets": 8})
    assert not any("--batch" in remedy for remedy in found["remedies"])
    assert any("--receive-buffer 32MiB" in remedy for remedy in found["remedies"])
    slow = lossy | {"thread_cpu_us": 9_000_000, "gro": True}
    assert "fewer wake-ups: larger --packet" in udp(slow)["remedies"]
    behind = udp({}, {"thread_cpu_us": 8_500_000, "gso": True}, rate_bps=2_000_000_000)
    assert behind["remedies"] == ["larger datagrams: --packet", "more streams: -P 4"]


def test_every_verdict_carries_the_common_figures_and_warnings() -> None:
    client = report("near", steal_s=4.0)
    client["version"]["profile"] = "debug"
    evidence = " ".join(judged(run_record(client=client))["evidence"])
    for part in (
        "throughput 800 Mbit/s",
        "round-trip time 100 ms",
        "debug build",
        "hypervisor took",
    ):
        assert part in evidence


def judged_streams(moved: list[int], elapsed_us: int = 10_000_000, **spec: Any) -> Verdict:
    """The verdict of a run whose streams moved these bytes."""
    ends = ((CLIENT, SENDER), (SERVER, RECEIVER))
    record = run_record(
        *(
            stream(*end, number, bytes=each, elapsed_us=elapsed_us)
            for end in ends
            for number, each in enumerate(moved)
        ),
        spec={"streams": len(moved), **spec},
    )
    return judged(record)


def evidence_of_streams(times: float, streams: int = 4, elapsed_us: int = 10_000_000) -> list[str]:
    """Streams alike but for the last, which moved one of `times`."""
    moved = [1_000_000_000] * (streams - 1) + [round(1_000_000_000 / times)]
    found = judged_streams(moved, elapsed_us)
    return [line for line in found["evidence"] if "unequal" in line]


def test_streams_of_very_different_rates_are_said_to_be_unequal() -> None:
    line = "rates of the 4 streams are unequal: 160 Mbit/s to 800 Mbit/s"
    assert evidence_of_streams(5) == [line]
    assert evidence_of_streams(4.9) == []
    assert evidence_of_streams(5, streams=3) == []
    assert evidence_of_streams(5, elapsed_us=40_000) == []


def test_a_stream_that_moved_nothing_is_told() -> None:
    line = "rates of the 8 streams are unequal: 0.00 bit/s to 800 Mbit/s"
    assert evidence_of_streams(1e12, streams=8) == [line]


MB = 1_000_000


def test_a_stream_that_carried_most_of_the_bytes_is_a_remark_with_advice() -> None:
    alike = judged_streams([1000 * MB] * 4)
    found = judged_streams([1400 * MB, 2200 * MB, 200 * MB, 200 * MB], elapsed_us=3_000_000)
    assert found["limit"] == alike["limit"] and "one stream" not in found["line"]
    assert "one stream of 4 carried 55 % of the bytes" in found["evidence"]
    bundled, late = found["remedies"][len(alike["remedies"]) :]
    assert "bundled by a hash" in bundled and "--samples" in late


@pytest.mark.parametrize(
    ("moved", "more"),
    [
        ([1000 * MB] * 4, {}),
        ([900 * MB, 300 * MB, 300 * MB, 300 * MB], {}),
        ([2200 * MB, 200 * MB, 200 * MB], {}),
        ([2200 * MB, 200 * MB, 200 * MB, 200 * MB], {"elapsed_us": 2_900_000}),
        ([2200 * MB, 200 * MB, 200 * MB, 200 * MB], {"transport": "quic"}),
        ([2200 * MB], {"streams": 4}),
        ([0, 0, 0, 0], {}),
    ],
    ids=["alike", "half", "three streams", "short", "not TCP", "streams missing", "nothing moved"],
)
def test_no_stream_is_named_as_the_one_that_carried_most(
    moved: list[int], more: dict[str, Any]
) -> None:
    found = judged_streams(moved, **more)
    assert not any("one stream" in line for line in found["evidence"])
    assert not any("bundled" in remedy for remedy in found["remedies"])


def test_when_nothing_stands_out_it_says_so() -> None:
    found = judged(cwnd_limited_us=10_000)
    assert (found["limit"], found["remedies"]) == ("unknown", [])


def test_no_rule_fails_on_a_run_of_which_nothing_is_known() -> None:
    record = run_record(client=None, server=None)
    figures = figures_of(record, columns([]), CLIENT)
    for rule in RULES:
        if {"tcp", "udp"} & {*rule.transports}:
            rule.find(figures)
    assert judge(figures).limit == "unknown"
    assert {field.name for field in fields(Figures)} == set(vars(figures))


def over_link(rate_bps: int, sender_bytes: int) -> RunRecord:
    from tests.support.paths import make_path

    moved = {"bytes": sender_bytes}
    streams = [stream(CLIENT, SENDER, **moved), stream(SERVER, RECEIVER, **moved)]
    path = {**make_path(), "rate_bps": rate_bps}
    return run_record(*streams, path=path)


def test_an_emulated_link_that_is_full_is_the_path() -> None:
    # 1448 of 1538 bytes on the wire are payload: 941 Mbit/s of a gigabit.
    found = judged(over_link(10**9, 1_170_000_000))
    assert found["limit"] == "path"
    assert "99 % of the emulated link's payload rate" in found["line"]
    assert any("at most 941 Mbit/s of payload" in line for line in found["evidence"])


def test_an_emulated_link_with_room_is_not() -> None:
    found = judged(over_link(10**10, 1_170_000_000))
    assert "emulated link" not in found["line"]
    assert any("at most 9.41 Gbit/s of payload" in line for line in found["evidence"])


def test_bbr_with_losses_in_its_start_up_alone_is_not_held_down_by_them() -> None:
    sender = stream(CLIENT, SENDER, retransmits=9000)
    sender["granted"] = {**sender["granted"], "congestion_control": "bbr"}
    record = run_record(sender, stream(SERVER, RECEIVER))
    early = [row | {"retransmits": 4500 if index < 2 else 0} for index, row in enumerate(rows())]
    assert "losses keep the window of" not in verdict(record, columns(early))["line"]
    spread = [row | {"retransmits": 90} for row in rows()]
    assert "losses keep the window of" in verdict(record, columns(spread))["line"]


def test_a_link_that_was_full_after_the_start_up_is_the_limit() -> None:
    record = run_record(stream(CLIENT, SENDER), stream(SERVER, RECEIVER))
    arriving = steady_rows([2e8] * 10 + [8e8] * 90, end=SERVER, role=RECEIVER)
    samples = columns([*rows(), *arriving])
    figures = replace(
        figures_of(record, samples, CLIENT), throughput_bps=7.4e8, path_payload_bps=8.0e8
    )
    found = judge(figures)
    assert found.limit == "path" and "100 % after the start-up" in found.line
    assert judge(replace(figures, throughput_bps=6e8)).limit != "path"


@pytest.mark.parametrize(
    "note",
    [
        "rate limited to 800 Mbit/s per stream: the server allows 800 Mbit/s in total",
        "rate limited to 800000000 bit/s per stream: the server allows 800000000 bit/s in total",
        "rate_bps is 800000000 bit/s on each stream: the server allows 800000000 bit/s over all",
    ],
)
def test_a_rate_that_the_server_sets_is_not_answered_with_a_higher_one(note: str) -> None:
    record = run_record(
        stream(CLIENT, SENDER), stream(SERVER, RECEIVER),
        spec={"rate_bps": 800_000_000}, server_notes=[note],
    )  # fmt: skip
    found = judged(record)
    assert found["limit"] == "rate"
    assert found["line"] == "rate: reached the server's limit of 800 Mbit/s"
    assert not any("higher rate" in remedy for remedy in found["remedies"])
    with_ticket, without = found["remedies"]
    assert with_ticket.endswith("farline ticket make HOST --limit-rate RATE")
    assert without.endswith("farline serve --anonymous-rate RATE")


def test_a_run_of_a_few_bytes_names_no_limit_and_no_share_of_a_cpu() -> None:
    few = {"bytes": 100, "elapsed_us": 274, "thread_cpu_us": 400, "thread_wait_us": 600}
    found = judged(run_record(stream(CLIENT, SENDER, **few), stream(SERVER, RECEIVER, **few)))
    assert found["line"].startswith("too short to tell what limited it")
    assert not any("CPU" in line for line in found["evidence"])
    figures = figures_of(
        run_record(stream(CLIENT, SENDER, **few), stream(SERVER, RECEIVER, **few)),
        columns(rows()), SERVER,
    )  # fmt: skip
    assert figures.sender_cpu + figures.sender_wait <= 1
