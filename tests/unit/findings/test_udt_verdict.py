"""What limited a UDT run: each rule on a record that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from farline.findings.figures import figures_of
from farline.findings.rules.table import RULES
from farline.findings.udt_text import evidence
from farline.findings.verdict import verdict
from farline.spec._types import EndReport, RunRecord, Verdict
from tests.support.paths import make_path
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

PAYLOAD = 1456
GRANTED: dict[str, Any] = {
    "mss_bytes": None,
    "packet_bytes": PAYLOAD + 16,
    "congestion_control": "bbr",
    "send_buffer_bytes": 8 << 20,
    "receive_buffer_bytes": 128 << 20,
    "gso": True,
    "gro": True,
    "min_rtt_us": 99_000,
}
BUSY: dict[str, int] = {
    "packets": 6_868,
    "busy_us": 100_000,
    "receive_window_limited_us": 0,
    "send_buffer_limited_us": 0,
    "cwnd_limited_us": 100_000,
    "paced_wait_us": 0,
    "rtt_us": 100_000,
    "cwnd_bytes": 20_000 * PAYLOAD,
    "flow_window_packets": 40_000,
    "flight_packets": 6_800,
    "pacing_rate_bps": 820_000_000,
    "link_capacity_bps": 9_000_000_000,
}


def judged(
    sender: dict[str, Any] | None = None,
    receiver: dict[str, Any] | None = None,
    *,
    free_bytes: int = 1 << 30,
    rates: list[float] | None = None,
    record: dict[str, Any] | None = None,
    udt: dict[str, Any] | None = None,
    **gauges: int,
) -> Verdict:
    """The verdict on a forward run of 800 Mbit/s over 100 ms."""
    run = _record(sender or {}, receiver or {}, record or {}, udt or {})
    sent = steady_rows(rates or [800e6] * 100, end=CLIENT, role=SENDER, **(BUSY | gauges))
    came = steady_rows(
        [800e6] * 100, end=SERVER, role=RECEIVER, receive_buffer_free_bytes=free_bytes
    )
    return verdict(run, columns(sent + came))


def _record(
    sender: dict[str, Any], receiver: dict[str, Any], more: dict[str, Any], udt: dict[str, Any]
) -> RunRecord:
    spec = {"transport": "udt", "block_bytes": 131_072, "udt": udt, **more.pop("spec", {})}
    return run_record(
        stream(CLIENT, SENDER, packets=686_800, **(GRANTED | sender)),
        stream(SERVER, RECEIVER, packets=686_800, **(GRANTED | receiver)),
        spec=spec,
        **more,
    )


def with_mtu(hostname: str, address: str, mtu_bytes: int) -> EndReport:
    end = report(hostname)
    end["host"]["interfaces"] = [
        {
            "name": "eth0", "addresses": [f"{address}/24"], "mtu_bytes": mtu_bytes, "up": True,
            "driver": None, "speed_bps": None, "numa_node": None, "qdisc": None,
            "tx_queue_packets": None, "offloads": {},
        }
    ]  # fmt: skip
    return end


def test_a_receive_buffer_that_caps_the_window_is_named_with_a_larger_one() -> None:
    found = judged(
        udt={"receive_buffer_bytes": 10 << 20},
        free_bytes=9 << 20,
        receive_window_limited_us=90_000,
        flow_window_packets=7_200,
    )
    assert found["limit"] == "receive-window"
    assert "waited for it 90 % of their busy time; the receive buffer of 10.0 MiB" in found["line"]
    assert found["remedies"] == ["a larger buffer: --receive-buffer 20MiB"]
    assert any(
        "a window of 10.0 MiB over a round-trip time of 100 ms allows 839" in e
        for e in found["evidence"]
    )


def test_a_flow_window_smaller_than_the_buffer_is_the_cap() -> None:
    found = judged(
        udt={"flow_window_packets": 7_000}, receive_window_limited_us=90_000, cwnd_limited_us=0
    )
    assert "the flow window of 7000 packets caps it" in found["line"]
    assert found["remedies"][0].startswith("a larger window: --flow-window 14")


def test_a_full_window_is_the_limit_though_a_model_paces_at_what_it_lets_through() -> None:
    flow: dict[str, Any] = {"flow_window_packets": 600}
    full: dict[str, Any] = {
        "flight_packets": 552,
        "cwnd_bytes": 1_446 * PAYLOAD,
        "paced_wait_us": 73_000,
    }
    found = judged(udt=flow, receive_window_limited_us=27_000, flow_window_packets=600, **full)
    assert found["limit"] == "receive-window"
    assert "552 of its 600 packets in flight; the flow window of 600 packets" in found["line"]
    found = judged(udt={"send_buffer_bytes": 600 * PAYLOAD}, **full)
    assert found["limit"] == "send-buffer"


@pytest.mark.parametrize(("cpu_us", "limit"), [(6_500_000, "receiver-cpu"), (1, "receive-window")])
def test_a_window_closed_by_its_reader_is_the_readers(cpu_us: int, limit: str) -> None:
    found = judged(
        receiver={"thread_cpu_us": cpu_us},
        udt={"receive_buffer_bytes": 64 << 20},
        free_bytes=4 << 20,
        receive_window_limited_us=80_000,
    )
    assert found["limit"] == limit
    assert "its buffer filled up" in found["line"]
    assert "6.2 % of the receive buffer was free on average" in found["evidence"]


def test_a_receive_buffer_is_never_less_than_32_packets() -> None:
    found = judged(
        receiver={"thread_cpu_us": 1},
        udt={"receive_buffer_bytes": 1},
        free_bytes=32 * (PAYLOAD + 16) // 16,
        receive_window_limited_us=80_000,
    )
    assert "6.2 % of the receive buffer was free on average" in found["evidence"]


def test_a_send_buffer_full_of_packets_under_way_is_named() -> None:
    found = judged(udt={"send_buffer_bytes": 10 << 20}, send_buffer_limited_us=70_000)
    assert found["limit"] == "send-buffer"
    assert "full of packets in flight 70 % of the busy time" in found["line"]
    assert found["remedies"] == ["a larger buffer: --send-buffer 20MiB"]


def test_a_buffer_is_proposed_as_large_as_the_emulated_link_needs() -> None:
    path = {**make_path(), "rate_bps": 10_000_000_000}
    found = judged(
        udt={"send_buffer_bytes": 10 << 20}, record={"path": path}, send_buffer_limited_us=70_000
    )
    # Twice 9.47 Gbit/s over 100 ms.
    assert found["remedies"] == ["a larger buffer: --send-buffer 226MiB"]


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_a_full_thread_comes_first_and_larger_packets_help(role: str) -> None:
    streams = {role: {"thread_cpu_us": 9_700_000, "packet_bytes": 1472, "gso": False}}
    ends = {
        "client": with_mtu("near", "10.0.0.1", 9000),
        "server": with_mtu("far", "10.0.0.2", 9000),
    }
    found = judged(**streams, record=ends, receive_window_limited_us=90_000)  # type: ignore[arg-type]
    assert found["limit"] == f"{role}-cpu"
    assert found["remedies"][0] == "larger packets, as the MTU allows: --packet 8972"
    assert "packets of 1472 B, although the MTU of both ends allows 8972 B" in found["evidence"]
    assert ("fewer calls: --gso on" in found["remedies"]) == (role == "sender")


def test_an_ordered_rate_that_is_reached_is_the_limit() -> None:
    found = judged(record={"spec": {"rate_bps": 810_000_000}})
    assert (found["limit"], found["remedies"]) == ("rate", ["a higher rate, or no limit: -b 0"])


def test_a_fixed_rate_beyond_the_path_is_lost() -> None:
    found = judged(
        {"congestion_control": "fixed"},
        {"lost_packets": 200_000},
        record={"spec": {"rate_bps": 2_000_000_000}},
    )
    assert found["limit"] == "path"
    assert "800 Mbit/s of the requested 2.00 Gbit/s arrived" in found["line"]
    assert found["remedies"][0] == "the rate that arrived: -b 0.8G"


def test_losses_by_chance_hold_the_native_control_but_not_the_model() -> None:
    lost = {"lost_packets": 700}
    found = judged({"congestion_control": "native", "retransmits": 700}, lost)
    assert found["limit"] == "cwnd"
    assert "losses slow native down (700 of 686800 packets lost, 0.1 %)" in found["line"]
    assert "no queue stands on average: random losses, or a short queue" in found["line"]
    assert found["remedies"][0] == "a control that ignores random losses: -C bbr"
    assert "losses slow" not in judged(receiver=lost)["line"]


def test_a_standing_queue_is_a_full_path_and_the_reason_of_losses() -> None:
    found = judged({"min_rtt_us": 20_000, "congestion_control": "reno"}, {"lost_packets": 700})
    assert found["limit"] == "path"
    assert "wait 80.0 ms in queues on top of 20.0 ms; 700 of 686800 packets lost" in found["line"]
    assert any("by packet pairs: 9.00 Gbit/s" in line for line in found["evidence"])


def test_losses_on_one_host_are_the_udp_sockets() -> None:
    near: dict[str, Any] = {"local": "127.0.0.1:1", "remote": "127.0.0.1:2"}
    ends = {"client": report("one"), "server": report("one")}
    lost = near | {"lost_packets": 700, "receive_buffer_bytes": 425_984}
    larger = "a larger buffer of the socket: --udp-receive-buffer 64MiB"
    allow = "allow it: sysctl -w net.core.rmem_max=67108864"
    found = judged(near, lost, record=ends, udt={"udp_receive_buffer_bytes": 212_992})
    assert found["limit"] == "receive-buffer"
    assert found["remedies"][:2] == [larger, allow]
    assert judged(near, lost, record=ends)["remedies"][0] == allow
    lost["receive_buffer_bytes"] = 128 << 20
    assert "less than arrived: -b 0.72G" in judged(near, lost, record=ends)["remedies"]


def test_losses_that_a_host_under_the_emulator_counted_are_the_udp_sockets() -> None:
    path = make_path()
    path["stamp"]["receive_buffer_drops"] = 650
    path["rate_bps"] = 10_000_000_000
    found = judged(receiver={"lost_packets": 700}, record={"path": path})
    assert found["limit"] == "receive-buffer"
    assert "650 dropped by the hosts" in found["line"]


@pytest.mark.parametrize(("drops", "limit"), [(7, "cwnd"), (8, "receive-buffer")])
def test_a_few_drops_do_not_explain_what_a_link_was_told_to_lose(drops: int, limit: str) -> None:
    path = {**make_path(loss=0.001), "rate_bps": 10_000_000_000}
    path["stamp"]["receive_buffer_drops"] = drops
    found = judged({"congestion_control": "native"}, {"lost_packets": 700}, record={"path": path})
    assert found["limit"] == limit


def test_losses_where_no_link_loses_packets_came_from_a_queue() -> None:
    path = {**make_path(), "rate_bps": 10_000_000_000}
    found = judged({"congestion_control": "native"}, {"lost_packets": 700}, record={"path": path})
    assert "no link drops packets on purpose" in found["line"]
    lossy = {**make_path(loss=0.001), "rate_bps": 10_000_000_000}
    found = judged({"congestion_control": "native"}, {"lost_packets": 700}, record={"path": lossy})
    assert "the path drops packets on purpose" in found["line"]


def test_an_emulated_link_that_is_full_is_the_path() -> None:
    # 1456 of 1538 bytes on the wire are payload: 947 Mbit/s of a gigabit.
    moved = {"bytes": 1_170_000_000}
    found = judged(moved, moved, record={"path": make_path()})
    assert found["limit"] == "path"
    assert "99 % of the emulated link's payload rate" in found["line"]
    assert any("at most 947 Mbit/s of payload" in line for line in found["evidence"])


def test_a_model_that_has_found_the_link_is_limited_by_the_path() -> None:
    moved = {"bytes": 1_075_000_000}
    found = judged(moved, moved, record={"path": make_path()},
                   paced_wait_us=79_000, pacing_rate_bps=940_000_000)  # fmt: skip
    assert found["limit"] == "path"
    assert "91 % of what the link carries, start-up included; bbr has found its" in found["line"]
    found = judged(
        moved | {"congestion_control": "reno"}, moved | {"lost_packets": 900},
        record={"path": make_path()},
    )  # fmt: skip
    assert found["line"].endswith("start-up included; 900 of 686800 packets lost, 0.13 %")


def test_an_ordered_rate_that_is_missed_for_want_of_a_cpu_names_the_sender() -> None:
    late = {"thread_wait_us": 1_500_000}
    found = judged(late, record={"spec": {"rate_bps": 1_000_000_000}},
                   paced_wait_us=95_000, pacing_rate_bps=1_000_000_000)  # fmt: skip
    assert found["limit"] == "sender-cpu"
    assert (
        "80 % of the requested 1.00 Gbit/s reached" in found["line"]
        and "waits 15 %" in found["line"]
    )


def test_a_packet_is_no_larger_than_the_emulated_links_take() -> None:
    ends = {
        "client": with_mtu("near", "10.0.0.1", 9000),
        "server": with_mtu("far", "10.0.0.2", 9000),
    }
    said = judged(record={**ends, "path": make_path()})["evidence"]
    assert not any("MTU" in line for line in said)


def test_pacing_that_senders_wait_for_is_the_congestion_controls() -> None:
    found = judged(paced_wait_us=80_000)
    assert found["limit"] == "cwnd"
    assert "bbr paces each stream at 820 Mbit/s; senders waited for it 80 %" in found["line"]
    assert "another congestion control: -C native" in found["remedies"]


def test_a_rate_that_still_grows_wants_a_longer_run() -> None:
    found = judged(rates=[n * 16e6 for n in range(100)], paced_wait_us=80_000)
    assert "the rate of bbr still grew by 6" in found["line"]
    assert found["remedies"] == ["a longer run: -t 30", "leave the start-up out: -O 5"]


def test_a_rate_that_goes_up_and_down_does_not_grow() -> None:
    found = judged(rates=[900e6] * 33 + [400e6] * 33 + [900e6] * 34, paced_wait_us=80_000)
    assert "still grew" not in found["line"]


def test_a_congestion_window_that_is_full_is_the_limit() -> None:
    found = judged(flight_packets=18_000)
    assert found["limit"] == "cwnd"
    assert "congestion window: senders waited for it 100 %" in found["line"]


def test_an_idle_sender_is_the_application() -> None:
    found = judged(busy_us=30_000, cwnd_limited_us=30_000)
    assert found["limit"] == "application"
    assert "nothing to send 70 % of the time" in found["line"]


def test_where_nothing_else_held_it_back_the_busier_thread_is_named() -> None:
    found = judged({"thread_cpu_us": 7_000_000}, cwnd_limited_us=10_000)
    assert found["limit"] == "sender-cpu"
    assert "nothing else held the run back; its thread uses 70 % of one CPU" in found["line"]


def test_every_verdict_says_packets_and_windows() -> None:
    evidence = " ".join(judged({"retransmits": 12}, {"lost_packets": 10})["evidence"])
    assert "686800 packets sent, 12 of them retransmissions; 10 of 686800 packets lost" in evidence
    assert "6800 packets in flight on average; allowed: 20000 by the congestion" in evidence


def test_no_rule_fails_on_a_run_of_which_nothing_is_known() -> None:
    record = run_record(client=None, server=None, spec={"transport": "udt"})
    for known in (record, {**record, "streams": []}):
        figures = figures_of(known, columns([]), CLIENT)  # type: ignore[arg-type]
        for rule in RULES:
            if "udt" in rule.transports:
                rule.find(figures)
        assert evidence(figures)
