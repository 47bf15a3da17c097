"""One path, one answer: verdicts, `host` and `explain` name the same buffers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.findings.buffer_rules import receive_buffer, send_buffer
from farline.findings.host_finding import HostView, StatedPath
from farline.findings.verdict import verdict
from farline.models.buffer_need import MAX_BUFFER_BYTES, buffer_bytes, window_bytes
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

RMEM = "4096 131072 6291456"


def third(text: str) -> int:
    found = re.search(r'tcp_[rw]mem="\d+ \d+ (\d+)"', text)
    assert found is not None, text
    return int(found[1])


@pytest.mark.parametrize(("rate_bps", "rtt_ms"), [(10**10, 100), (10**9, 150), (25 * 10**9, 30)])
def test_a_verdict_and_host_name_one_maximum_for_one_path(rate_bps: int, rtt_ms: int) -> None:
    near, far = report("near"), report("far")
    interface = {"name": "eth0", "addresses": ["10.0.0.1/24"], "speed_bps": rate_bps}
    near["host"]["interfaces"] = [{**interface, "mtu_bytes": 9000}]  # type: ignore[typeddict-item]
    far["host"]["sysctls"] = {"net.ipv4.tcp_rmem": RMEM}
    record = run_record(
        stream(CLIENT, SENDER, min_rtt_us=1000 * rtt_ms),
        stream(SERVER, RECEIVER, receive_buffer_bytes=6 << 20),
        client=near,
        server=far,
    )
    rows = steady_rows(
        [8e8] * 100, end=CLIENT, role=SENDER, busy_us=100_000, receive_window_limited_us=80_000,
        send_buffer_limited_us=0, cwnd_limited_us=20_000, rtt_us=1000 * rtt_ms,
        receive_window_bytes=3 << 20,
    )  # fmt: skip
    said = verdict(record, columns(rows))["remedies"][0]
    path = StatedPath(rate_bps, rtt_ms / 1000)
    facts = {**far["host"], "sysctls": {"net.ipv4.tcp_rmem": RMEM}}
    (found,) = receive_buffer(HostView(facts, path, ()))  # type: ignore[arg-type]
    assert third(said) == third(found.command) == buffer_bytes(path.bdp_bytes)


@given(st.integers(10**6, 10**11), st.floats(0.001, 1.0), st.integers(1, 64))
def test_what_is_advised_is_enough_for_host_itself(rate_bps: int, rtt_s: float, n: int) -> None:
    window = window_bytes(rate_bps, rtt_s, n)
    maximum = buffer_bytes(window)
    if maximum == MAX_BUFFER_BYTES:
        return
    path = StatedPath(rate_bps, rtt_s, n)
    sysctls = {name: f"4096 1 {maximum}" for name in ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")}
    view = HostView({"sysctls": sysctls, "kernel": "6.12.1"}, path, ())  # type: ignore[typeddict-item]
    found = [*receive_buffer(view), *send_buffer(view)]
    assert [one.severity for one in found] == ["ok", "ok"]
