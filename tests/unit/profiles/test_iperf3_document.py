"""The iperf3 shape: keys of real documents, and what readers of them compute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from farline.profiles.intervals import intervals_of
from farline.profiles.iperf3_document import end_document, iperf3_document
from farline.spec._types import RunRecord
from tests.support.runs import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    columns,
    run_record,
    steady_rows,
    stream,
)

REAL = Path(__file__).parents[2] / "data" / "iperf3"
TCP = {"retransmits": 1, "rtt_us": 100, "rttvar_us": 5, "cwnd_bytes": 1 << 20}
TCP |= {"receive_window_bytes": 1 << 20, "path_mtu_bytes": 65535}


def real(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((REAL / f"iperf3-{name}.json").read_text())
    return document


def keys(document: object, path: str = "") -> set[str]:
    """Every path in a document; entries of a list share one."""
    if isinstance(document, dict):
        return {
            p
            for key, value in document.items()
            for p in {f"{path}.{key}"} | keys(value, f"{path}.{key}")
        }
    if isinstance(document, list):
        return {p for value in document for p in keys(value, f"{path}[]")}
    return set()  # fmt: skip


def forward(**spec: Any) -> dict[str, Any]:
    streams = range(4)
    record = run_record(
        *(stream(CLIENT, SENDER, number, retransmits=30) for number in streams),
        *(stream(SERVER, RECEIVER, number) for number in streams),
        spec={"streams": 4, "block_bytes": 131_072, "rate_bps": 0, **spec},
    )
    rows = [
        row
        for number in streams
        for row in steady_rows([250e6] * 30, end=CLIENT, role=SENDER, stream=number, **TCP)
    ]
    return iperf3_document(record, columns(rows), 1.0)


def reverse() -> dict[str, Any]:
    record = run_record(
        stream(SERVER, SENDER), stream(CLIENT, RECEIVER), spec={"direction": "reverse"}
    )
    rows = steady_rows([500e6] * 20, end=CLIENT, role=RECEIVER)
    return iperf3_document(record, columns(rows), 1.0)


def udp() -> dict[str, Any]:
    record = run_record(
        stream(CLIENT, SENDER, packets=1000, bytes=1_400_000, congestion_control=None),
        stream(SERVER, RECEIVER, packets=990, bytes=1_386_000, lost_packets=10, jitter_ns=7_000,
               congestion_control=None, reordered_packets=3),
        spec={"transport": "udp", "udp": {"packet_bytes": 1400}},
    )  # fmt: skip
    rows = steady_rows([400e6] * 30, end=CLIENT, role=SENDER, packets=35)
    return iperf3_document(record, columns(rows), 1.0)


@pytest.mark.parametrize(
    ("made", "name"),
    [(forward(), "tcp-P4"), (reverse(), "tcp-reverse-serverout"), (udp(), "udp")],
)
def test_every_key_of_a_real_document_is_there(made: dict[str, Any], name: str) -> None:
    wanted = keys(real(name)) - {".server_output_text"}
    if name == "udp":
        wanted -= {".start.tcp_mss_default"}
    assert wanted - keys(made) == set()


def test_types_are_those_of_a_real_document() -> None:
    made, wanted = forward(), real("tcp-P4")
    for place in (("intervals", 0, "streams", 0), ("intervals", 0, "sum"), ("end", "sum_sent")):
        ours, theirs = made, wanted
        for step in place:
            ours, theirs = ours[step], theirs[step]  # type: ignore[index]
        for key, value in theirs.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            assert isinstance(ours[key], int | float) if number else type(ours[key]) is type(value)


def test_a_panel_reads_the_same_figures() -> None:
    """What exporters and panels take: rates of the sums, losses, CPU, congestion control."""
    made = forward()
    assert made["end"]["sum_received"]["bits_per_second"] == pytest.approx(4 * 800e6)
    assert made["end"]["sum_sent"]["retransmits"] == 120
    assert made["end"]["sender_tcp_congestion"] == "cubic"
    assert made["end"]["cpu_utilization_percent"]["host_total"] == pytest.approx(20)
    per_second = [entry["sum"]["bits_per_second"] for entry in made["intervals"]]
    assert per_second == pytest.approx([1e9] * 3)
    assert all(entry["sum"]["retransmits"] == 40 for entry in made["intervals"])
    assert [s["sender"]["mean_rtt"] for s in made["end"]["streams"]] == [100] * 4


def test_datagrams_lost_and_late_are_the_receivers() -> None:
    end = udp()["end"]
    assert end["sum"]["lost_packets"] == 10
    assert end["sum"]["lost_percent"] == pytest.approx(1.0)
    assert end["sum"]["jitter_ms"] == pytest.approx(0.007)
    assert end["sum_sent"]["lost_packets"] == 0
    assert end["sum_received"]["bytes"] == 1_386_000
    assert end["streams"][0]["udp"]["out_of_order"] == 3


def test_who_sent_is_said_as_iperf3_says_it() -> None:
    for made, name in ((forward(), "tcp-P4"), (reverse(), "tcp-reverse-serverout"), (udp(), "udp")):
        wanted = real(name)
        for key in ("sum_sent", "sum_received"):
            assert made["end"][key]["sender"] == wanted["end"][key]["sender"], (name, key)
        ours, theirs = made["intervals"][0]["sum"], wanted["intervals"][0]["sum"]
        assert ours["sender"] == theirs["sender"]
        assert made["start"]["test_start"]["reverse"] == wanted["start"]["test_start"]["reverse"]


def test_both_ways_have_a_second_sum() -> None:
    record = run_record(
        stream(CLIENT, SENDER, 0), stream(SERVER, RECEIVER, 0),
        stream(SERVER, SENDER, 1), stream(CLIENT, RECEIVER, 1, bytes=500),
        spec={"direction": "bidirectional"},
    )  # fmt: skip
    rows = steady_rows([1e9] * 10, end=CLIENT, role=SENDER)
    rows += steady_rows([2e9] * 10, end=CLIENT, role=RECEIVER, stream=1)
    made = iperf3_document(record, columns(rows), 1.0)
    assert made["intervals"][0]["sum"]["sender"] is True
    assert made["intervals"][0]["sum_bidir_reverse"]["bits_per_second"] == pytest.approx(2e9)
    assert made["end"]["sum_received_bidir_reverse"]["bytes"] == 500


def test_a_warm_up_is_marked_as_omitted() -> None:
    assert [entry["sum"]["omitted"] for entry in forward(omit_s=1.0)["intervals"]] == [
        True,
        False,
        False,
    ]


def omitting(**spec: Any) -> tuple[RunRecord, dict[str, Any]]:
    """3 s, of which 1 s is omitted: it ran at 100 Mbit/s, the rest at 800; ends jitter by 4 ms."""
    sent = steady_rows([100e6] + [800e6] * 2, width_us=1_004_000, end=CLIENT, role=SENDER, **TCP)
    received = steady_rows([100e6] + [800e6] * 2, width_us=996_000, end=SERVER, role=RECEIVER)
    ends = [
        stream(end, role, bytes=sum(row["bytes"] for row in rows), elapsed_us=3_000_000, **more)
        for end, role, rows, more in (
            (CLIENT, SENDER, sent, {"retransmits": 3}),
            (SERVER, RECEIVER, received, {}),
        )
    ]
    record = run_record(*ends, spec={"duration_s": 2.0, "omit_s": 1.0, **spec})
    return record, columns(sent + received)


def test_what_is_omitted_is_not_in_the_end() -> None:
    record, samples = omitting()
    made = iperf3_document(record, samples, 1.0)
    assert [entry["sum"]["omitted"] for entry in made["intervals"]] == [True, False, False]
    assert (made["start"]["test_start"]["omit"], made["start"]["test_start"]["duration"]) == (1, 2)
    end = made["end"]
    only = end["streams"][0]
    for entry in (end["sum_sent"], end["sum_received"], only["sender"], only["receiver"]):
        assert (entry["start"], entry["end"], entry["seconds"]) == (0, 2.0, 2.0)
        assert entry["bits_per_second"] == pytest.approx(800e6, rel=0.01)
    assert end["sum_sent"]["retransmits"] == 2
    assert (
        iperf3_document(run_record(*record["streams"]), samples, 1.0)["end"]["sum_sent"]["seconds"]
        == 3.0
    )


def test_without_samples_the_clients_view_of_what_is_omitted_counts_for_both_ends() -> None:
    record, samples = omitting()
    end = end_document(record, intervals_of(samples, 1.0))
    for name in ("sum_sent", "sum_received"):
        assert end[name]["seconds"] == 2.0
        assert end[name]["bits_per_second"] == pytest.approx(800e6, rel=0.02)


def test_an_end_without_samples_keeps_its_whole() -> None:
    record, samples = omitting()
    mine = samples["end"] == CLIENT
    lone = {name: column[mine] for name, column in samples.items()}
    end = iperf3_document(record, lone, 1.0)["end"]
    assert (end["sum_sent"]["seconds"], end["sum_received"]["seconds"]) == (2.0, 3.0)


def test_datagrams_that_were_omitted_are_not_counted() -> None:
    record = run_record(
        stream(CLIENT, SENDER, packets=300),
        stream(SERVER, RECEIVER, packets=270, lost_packets=30),
        spec={"transport": "udp", "omit_s": 1.0},
    )
    rows = steady_rows([1e6] * 3, width_us=1_000_000, end=CLIENT, role=SENDER, packets=100)
    seen = steady_rows([1e6] * 3, width_us=1_000_000, end=SERVER, role=RECEIVER, packets=90)
    for row, lost in zip(seen, (25, 2, 3), strict=True):
        row["lost_packets"] = lost
    total = iperf3_document(record, columns(rows + seen), 1.0)["end"]["sum"]
    assert (total["packets"], total["lost_packets"]) == (200, 5)


def test_a_run_that_ended_while_it_was_omitted_measured_nothing() -> None:
    record, samples = omitting(omit_s=10.0)
    made = iperf3_document(record, samples, 1.0)
    assert all(entry["sum"]["omitted"] for entry in made["intervals"])
    sent = made["end"]["sum_sent"]
    assert (sent["seconds"], sent["bytes"], sent["bits_per_second"]) == (0, 0, 0)


def test_a_failed_run_has_the_shape_of_a_failed_iperf3() -> None:
    record: RunRecord = run_record(
        status="failed",
        client=None,
        server=None,
        error={"kind": "unreachable", "message": "no way"},
    )
    record["streams"] = []
    made = iperf3_document(record, columns([]), 1.0)
    assert keys(real("error-refused")) - keys(made) == set()
    assert (made["error"], made["intervals"], made["end"]) == ("error - no way", [], {})
