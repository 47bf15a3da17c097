"""What a run comes to: throughput by the receivers, warm-up, CPU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.profiles.series import progress, rates_bps
from farline.profiles.summary import SAMPLES_MIN, mser5, summarise
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

RAMP = [100e6] * 20 + [800e6] * 80


def received(rates: list[float], **more: int) -> list[dict[str, int]]:
    return steady_rows(rates, end=SERVER, role=RECEIVER, **more)


def test_total_is_what_the_receiver_got_over_its_time() -> None:
    record = run_record(
        stream(CLIENT, SENDER, bytes=2_000), stream(SERVER, RECEIVER, bytes=1_000, elapsed_us=8_000)
    )
    summary = summarise(record, columns([]))
    assert summary["forward"] is not None
    assert summary["forward"]["total_bps"] == 1e6
    assert (summary["forward"]["bytes"], summary["forward"]["elapsed_s"]) == (1_000, 0.008)
    assert summary["reverse"] is None


def test_streams_of_a_direction_add_up_over_the_longest() -> None:
    record = run_record(
        stream(SERVER, RECEIVER, 0, bytes=1_000, elapsed_us=4_000),
        stream(SERVER, RECEIVER, 1, bytes=1_000, elapsed_us=8_000),
        stream(CLIENT, RECEIVER, 2, bytes=500, elapsed_us=4_000),
    )
    summary = summarise(record, columns([]))
    assert summary["forward"] is not None and summary["reverse"] is not None
    assert summary["forward"]["total_bps"] == 2e6
    assert summary["reverse"]["total_bps"] == 1e6


def test_the_ramp_is_found_and_left_out() -> None:
    summary = summarise(run_record(), columns(received(RAMP)))
    forward = summary["forward"]
    assert forward is not None
    assert (forward["warmup_rule"], forward["omitted_s"]) == ("mser-5", 2.0)
    assert forward["steady_bps"] == pytest.approx(800e6, rel=1e-6)


def test_a_stated_warm_up_is_taken_as_stated() -> None:
    summary = summarise(run_record(spec={"omit_s": 4.0}), columns(received(RAMP)))
    forward = summary["forward"]
    assert forward is not None
    assert (forward["warmup_rule"], forward["omitted_s"]) == ("stated", 4.0)
    assert forward["steady_bps"] == pytest.approx(800e6, rel=1e-6)


def test_a_warm_up_longer_than_the_run_leaves_nothing() -> None:
    forward = summarise(run_record(spec={"omit_s": 20.0}), columns(received(RAMP)))["forward"]
    assert forward is not None
    assert (forward["warmup_rule"], forward["steady_bps"]) == ("stated", None)


@pytest.mark.parametrize(("omit_s", "rule"), [(None, "mser-5"), (4.0, "stated")])
def test_without_samples_of_the_receiver_tcps_sender_stands_for_it(
    omit_s: float | None, rule: str
) -> None:
    """So it is towards a server of iperf3's; a datagram that was sent is not one that arrived."""
    rows = [row | {"role": SENDER, "end": CLIENT} for row in received(RAMP)]
    spec = {} if omit_s is None else {"omit_s": omit_s}
    forward = summarise(run_record(spec=spec), columns(rows))["forward"]
    assert forward is not None and forward["warmup_rule"] == f"{rule}, by the sender"
    assert forward["steady_bps"] == pytest.approx(800e6, rel=1e-6)
    forward = summarise(run_record(spec={**spec, "transport": "udp"}), columns(rows))["forward"]
    assert forward is not None and forward["steady_bps"] is None


@pytest.mark.parametrize("rates", [RAMP[:49], [1e6 * n * n for n in range(100)]])
def test_too_few_samples_or_none_settled_give_no_steady_figure(rates: list[float]) -> None:
    forward = summarise(run_record(), columns(received(rates)))["forward"]
    assert forward is not None
    assert (forward["warmup_rule"], forward["steady_bps"], forward["omitted_s"]) == (
        "none",
        None,
        0,
    )


def test_streams_sampled_at_different_moments_lose_no_byte() -> None:
    rows = received([400e6] * 100)
    late = [
        row | {"stream": 1, "start_us": row["start_us"] + 37_000, "end_us": row["end_us"] + 37_000}
        for row in received([400e6] * 100)
    ]
    moved = progress(columns(rows + late), RECEIVER, SERVER)
    rates = rates_bps(moved, 100_000, 10_000_000)
    assert len(rates) == 100
    assert rates[10:-10] == pytest.approx([800e6] * 80)
    assert moved.at([moved.end_us])[0] == sum(row["bytes"] for row in rows + late)


def test_figures_of_the_senders_and_both_cpus() -> None:
    sent = stream(CLIENT, SENDER, retransmits=7, min_rtt_us=900)
    rows = steady_rows([1e9] * 3, end=CLIENT, role=SENDER, rtt_us=1000)
    rows[0]["rtt_us"] = -1
    record = run_record(
        sent, stream(SERVER, RECEIVER), client=report(user_s=4.0), server=report(user_s=2.0)
    )
    summary = summarise(record, columns(rows))
    assert (summary["retransmits"], summary["min_rtt_us"], summary["mean_rtt_us"]) == (7, 900, 1000)
    assert (summary["client_cpu"], summary["server_cpu"]) == (0.5, 0.3)
    assert summary["cpu_s_per_gb"] == pytest.approx(8.0)
    assert (summary["sent_packets"], summary["jitter_ns"]) == (None, None)


def test_datagrams_are_counted_at_both_ends() -> None:
    record = run_record(
        stream(CLIENT, SENDER, packets=1000),
        stream(SERVER, RECEIVER, packets=990, lost_packets=10, jitter_ns=2_000),
        spec={"transport": "udp"},
    )
    summary = summarise(record, columns([]))
    assert (summary["sent_packets"], summary["lost_packets"], summary["jitter_ns"]) == (
        1000,
        10,
        2000,
    )
    assert summary["retransmits"] is None


def test_udt_repeats_as_tcp_does_and_counts_packets_as_udp_does() -> None:
    record = run_record(
        stream(CLIENT, SENDER, packets=1010, retransmits=10, lost_packets=11, min_rtt_us=900),
        stream(SERVER, RECEIVER, packets=1000, lost_packets=9),
        spec={"transport": "udt"},
    )
    summary = summarise(record, columns([]))
    assert (summary["retransmits"], summary["sent_packets"], summary["lost_packets"]) == (
        10,
        1010,
        9,
    )
    assert (summary["jitter_ns"], summary["min_rtt_us"]) == (None, 900)


def test_a_run_that_never_came_about_has_no_throughput() -> None:
    record = run_record(status="failed", client=None, server=None)
    record["streams"] = []
    summary = summarise(record, columns([]))
    assert (summary["forward"], summary["reverse"], summary["cpu_s_per_gb"]) == (None, None, None)


def test_mser_keeps_all_of_a_steady_series_and_cuts_a_step() -> None:
    noise = np.random.default_rng(7).normal(100, 1, 100)
    assert mser5(noise.tolist()) in range(0, 51, 5)
    assert mser5([0.0] * 15 + noise.tolist()) in range(15, 60, 5)
    assert mser5(noise[: SAMPLES_MIN - 1].tolist()) is None


@given(st.lists(st.floats(0, 1e12), min_size=50, max_size=200))
def test_mser_never_cuts_more_than_half(samples: list[float]) -> None:
    cut = mser5(samples)
    assert cut is None or (cut % 5 == 0 and cut <= len(samples) / 2)
