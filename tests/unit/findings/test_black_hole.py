"""A path that swallows large packets is named, with the size that passes where it is known."""

from __future__ import annotations

from typing import Any

import pytest

from farline.findings.black_hole import Suspicion, suspicion
from farline.findings.verdict import verdict
from farline.spec._types import RunRecord, Verdict
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

TIMED_OUT = {"kind": "timeout", "message": "streams [0] had not ended 32 s after the start"}
STALLED = columns(
    steady_rows([4e5] + [0.0] * 30, end=CLIENT, role=SENDER, width_us=1_000_000, retransmits=1)
)


def stalled_tcp() -> RunRecord:
    """What the client knows of a run whose large segments vanish: the server was not heard."""
    sender = stream(CLIENT, SENDER, retransmits=7)
    return run_record(sender, status="failed", error=TIMED_OUT, server=None)


def udp(*streams: Any, **more: Any) -> RunRecord:
    return run_record(*streams, spec={"transport": "udp"}, **more)


def datagrams(end: int, role: int, **more: Any) -> Any:
    found = stream(end, role, packets=8494, **more)
    found["granted"] = {**found["granted"], "packet_bytes": 1472, "mss_bytes": None}
    return found


def judged(record: RunRecord, passing: int | None) -> Verdict:
    asked: list[Suspicion] = []

    def ask(found: Suspicion) -> int | None:
        asked.append(found)
        return passing

    found = verdict(record, STALLED, passing=ask)
    assert [one.packet_bytes for one in asked] == [1500]
    return found


def test_tcp_into_a_black_hole_is_told_the_segment_that_passes() -> None:
    found = judged(stalled_tcp(), 1400)
    assert found["limit"] == "path"
    assert "MTU black hole" in found["line"] and "up to 1400 bytes get through" in found["line"]
    assert found["remedies"][0] == "smaller segments: -M 1360"
    assert any("tcp_mtu_probing" in remedy for remedy in found["remedies"])
    assert any("ping -M do -s 1472" in remedy for remedy in found["remedies"])


@pytest.mark.parametrize("passing", [1280, 1400])
def test_datagrams_of_which_none_arrived(passing: int) -> None:
    record = udp(datagrams(CLIENT, SENDER), datagrams(SERVER, RECEIVER, bytes=0))
    found = judged(record, passing)
    assert f"packets of up to {passing} bytes get through" in found["line"]
    assert found["remedies"][0] == f"smaller packets: --packet {passing - 28}"
    assert not any("throughput" in line for line in found["evidence"])


def test_where_full_packets_pass_a_firewall_is_named_and_no_size() -> None:
    record = udp(datagrams(CLIENT, SENDER), datagrams(SERVER, RECEIVER, bytes=0))
    found = judged(record, 1500)
    assert "firewall" in found["line"] and "black hole" not in found["line"]


def test_without_an_answer_both_causes_are_named_and_how_to_check() -> None:
    found = verdict(stalled_tcp(), STALLED)
    assert "black hole" in found["line"] and "firewall" in found["line"]
    assert any("tracepath" in remedy for remedy in found["remedies"])


def test_a_server_that_fell_silent_is_no_black_hole_where_full_packets_pass() -> None:
    record = udp(datagrams(CLIENT, SENDER), status="failed", error=TIMED_OUT, server=None)
    assert "the run failed" in judged(record, 1500)["line"]
    assert "black hole" in judged(record, 1400)["line"]


def test_a_run_that_arrived_is_not_suspected() -> None:
    record = run_record(stream(CLIENT, SENDER), stream(SERVER, RECEIVER))
    assert suspicion(record, STALLED) is None
