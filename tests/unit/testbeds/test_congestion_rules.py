"""The congestion controls' own rules: the BPF sources as plain C against the published formulas.

No network and no kernel: every packet comes back after one round-trip time.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.support.congestion import reference
from tests.support.congestion.native import NO_THRESHOLD, Sender, build

RFC_3649_ROWS = {118: 2, 221: 3, 347: 4, 495: 5, 663: 6, 851: 7, 1058: 8, 2076: 12, 84035: 71}
"""Window from which a(w) is so many packets: from the RFC's appendix B."""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("congestion")
    names = ("htcp", "htcp_no_scale", "scalable", "highspeed")
    return {name: build(name, folder) for name in names}


def run(sender: Sender, seconds: float, rtt_s: float, packets_per_ack: int = 1) -> float:
    """Packets by which the window grows in so many seconds."""
    before = sender.exact_window
    for _ in range(round(seconds / rtt_s)):
        sender.round_trip(rtt_s, packets_per_ack)
    return sender.exact_window - before


@pytest.mark.parametrize("name", ["htcp", "htcp_no_scale"])
@pytest.mark.parametrize("rtt_s", [0.005, 0.05, 0.1, 0.366])
def test_htcp_grows_as_alpha_integrated(
    libraries: dict[str, Path], name: str, rtt_s: float
) -> None:
    sender = Sender.start(libraries[name], 2000)
    sender.ack(1, rtt_s)
    sender.congestion()
    seconds = 20 * rtt_s if rtt_s > 0.3 else 4.0
    expected = reference.htcp_growth(0, seconds, 0.5, rtt_s, scaled=name == "htcp")
    assert run(sender, seconds, rtt_s, 20) == pytest.approx(expected, rel=0.05, abs=3)


def test_htcp_is_standard_tcp_for_its_first_second(libraries: dict[str, Path]) -> None:
    sender = Sender.start(libraries["htcp_no_scale"], 200)
    sender.congestion()
    assert run(sender, 1.0, 0.02) == pytest.approx(50, abs=1)


def test_htcp_long_after_an_event_is_no_faster_than_slow_start(libraries: dict[str, Path]) -> None:
    sender = Sender.start(libraries["htcp"], 10)
    sender.socket.tcp_mstamp += 7200 * 10**6
    before = sender.window
    sender.round_trip(0.1)
    assert before < sender.window <= 2 * before


def steady(sender: Sender, rtt_s: float, queueing_s: float, rounds: int = 40) -> None:
    """An epoch at an even throughput whose round-trip time grows by `queueing_s`."""
    for at in range(rounds):
        window = sender.window
        sender.round_trip(rtt_s + queueing_s * at / (rounds - 1), 10)
        sender.socket.snd_cwnd = window


@pytest.mark.parametrize(
    ("queueing_s", "expected"), [(0.0, 0.8), (0.02, 0.8), (0.06, 0.625), (0.3, 0.5)]
)
def test_htcp_backs_off_to_what_empties_the_queue(
    libraries: dict[str, Path], queueing_s: float, expected: float
) -> None:
    """beta = RTT_min / RTT_max within 0.5 and 0.8, once a second epoch was as the first."""
    sender = Sender.start(libraries["htcp"], 1000)
    for _ in range(2):
        steady(sender, 0.1, queueing_s)
        sender.socket.snd_cwnd = 1000
        window = sender.congestion()
        sender.socket.snd_cwnd = 1000
    assert window / 1000 == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("factor", [0.6, 1.6])
def test_htcp_halves_when_the_throughput_changed(libraries: dict[str, Path], factor: float) -> None:
    sender = Sender.start(libraries["htcp"], 1000)
    for window in (1000, 1000, round(1000 * factor)):
        sender.socket.snd_cwnd = window
        steady(sender, 0.1, 0.0)
        kept = sender.congestion()
    assert kept == pytest.approx(1000 * factor / 2, abs=2)


def test_htcp_undoes_a_mistaken_backoff(libraries: dict[str, Path]) -> None:
    """Time since the event before it counts again: growth goes on where it was."""
    sender = Sender.start(libraries["htcp_no_scale"], 1000)
    sender.congestion()
    run(sender, 3.0, 0.1)
    sender.congestion()
    sender.undo()
    before = sender.window
    sender.round_trip(0.1)
    assert sender.window - before == pytest.approx(reference.htcp_alpha(3.05), abs=1.5)


def test_scalable_recovers_in_the_same_number_of_round_trips_at_any_size(
    libraries: dict[str, Path],
) -> None:
    for window in (400, 4000, 40_000):
        sender = Sender.start(libraries["scalable"], window)
        assert sender.congestion() == window - window // 8
        rounds = 0.0
        while sender.window < window:
            sender.round_trip(0.05, 45)
            rounds += 1
        assert rounds == pytest.approx(reference.scalable_epoch_round_trips(), abs=1)


def test_scalable_is_standard_tcp_up_to_its_legacy_window(libraries: dict[str, Path]) -> None:
    sender = Sender.start(libraries["scalable"], 10)
    assert run(sender, 0.05, 0.05) == pytest.approx(1, abs=1e-6)
    assert Sender.start(libraries["scalable"], 16).congestion() == 8
    assert Sender.start(libraries["scalable"], 17).congestion() == 15


@pytest.mark.parametrize("window", [5, 38, 50, 117, 170, 500, 2076, 20_000, 83_000, 94_717])
def test_highspeed_grows_and_backs_off_as_the_rfc_says(
    libraries: dict[str, Path], window: int
) -> None:
    sender = Sender.start(libraries["highspeed"], window)
    sender.ack(window, 0.05)
    grown = sender.exact_window - window
    assert grown == pytest.approx(reference.hstcp_increase(window), rel=0.01)
    sender.socket.snd_cwnd = window
    kept = sender.congestion()
    assert kept == pytest.approx(window * (1 - reference.hstcp_decrease(window)), rel=0.003, abs=1)


def test_highspeed_passes_whole_packets_where_the_rfc_table_does(
    libraries: dict[str, Path],
) -> None:
    for window, increase in RFC_3649_ROWS.items():
        grown = []
        for at in (window - 1, window):
            sender = Sender.start(libraries["highspeed"], at)
            sender.ack(at, 0.05)
            grown.append(sender.exact_window - at)
        assert grown[0] <= grown[1]
        assert increase <= grown[1] < increase + 0.2


def test_highspeed_stays_as_it_is_beyond_the_end_of_the_table(libraries: dict[str, Path]) -> None:
    grown = []
    for window in (94_717, 200_000, 1_000_000):
        sender = Sender.start(libraries["highspeed"], window)
        sender.ack(window, 0.05)
        grown.append(sender.exact_window - window)
        sender.socket.snd_cwnd = window
        assert sender.congestion() / window == pytest.approx(0.907, abs=0.001)
    assert grown == pytest.approx([grown[0]] * 3, abs=0.01)


@pytest.mark.parametrize("name", ["htcp", "scalable", "highspeed"])
def test_slow_start_ends_at_its_threshold_and_the_rest_of_the_ack_counts(
    libraries: dict[str, Path], name: str
) -> None:
    sender = Sender.start(libraries[name], 10, threshold=NO_THRESHOLD)
    sender.round_trip(0.05)
    assert sender.window == 20
    sender.socket.snd_ssthresh = 24
    sender.ack(20, 0.05)
    assert 24 <= sender.window <= 25


@pytest.mark.parametrize("name", ["htcp", "scalable", "highspeed"])
@pytest.mark.parametrize("per_ack", [1, 2, 45])
def test_an_ack_for_many_packets_counts_for_all_of_them(
    libraries: dict[str, Path], name: str, per_ack: int
) -> None:
    one, many = (Sender.start(libraries[name], 1000) for _ in range(2))
    grown = run(one, 2.0, 0.1, 1), run(many, 2.0, 0.1, per_ack)
    assert grown[1] == pytest.approx(grown[0], rel=0.02)


@pytest.mark.parametrize("name", ["htcp", "scalable", "highspeed"])
def test_a_window_that_is_not_used_does_not_grow(libraries: dict[str, Path], name: str) -> None:
    sender = Sender.start(libraries[name], 100)
    sender.socket.is_cwnd_limited = 0
    assert run(sender, 5.0, 0.1) == 0
    sender.socket.snd_ssthresh = NO_THRESHOLD
    sender.socket.max_packets_out = 50
    sender.ack(10, 0.1)
    assert sender.window == 100, "slow start, but half the window was never sent"
    sender.socket.max_packets_out = 51
    sender.ack(10, 0.1)
    assert sender.window == 110


@pytest.mark.parametrize("name", ["htcp", "scalable", "highspeed"])
def test_windows_stay_within_two_packets_and_the_clamp(
    libraries: dict[str, Path], name: str
) -> None:
    sender = Sender.start(libraries[name], 3)
    for _ in range(5):
        assert sender.congestion() >= 2
    sender.socket.snd_cwnd = sender.socket.snd_cwnd_clamp = 50
    run(sender, 5.0, 0.1)
    assert sender.window == 50


def test_the_smallest_growth_is_not_rounded_away(libraries: dict[str, Path]) -> None:
    """One packet per round trip, from a window of 300 000: each ACK gives 1/300 000."""
    sender = Sender.start(libraries["htcp_no_scale"], 300_000)
    sender.congestion()
    sender.socket.snd_cwnd = 300_000
    assert run(sender, 0.9, 0.3, 45) == pytest.approx(3, rel=0.001)


def test_published_response_functions_follow_from_the_rules() -> None:
    """The reference itself: cycles of its rules against the published closed forms."""
    for loss in (1e-4, 1e-5, 1e-6):
        cycle = reference.steady_cycle(
            loss, 0.05, lambda w, _: reference.hstcp_increase(w),
            lambda w: w * (1 - reference.hstcp_decrease(w)),
        )  # fmt: skip
        assert cycle.mean_window == pytest.approx(reference.hstcp_response(loss), rel=0.02)
        cycle = reference.steady_cycle(loss, 0.05, lambda w, _: 0.01 * w, lambda w: 0.875 * w)
        assert cycle.mean_window == pytest.approx(reference.scalable_response(loss), rel=0.02)
        assert cycle.round_trips == pytest.approx(math.log(1 / 0.875) / 0.01, rel=0.02)
