"""What limited an RBUDP run: each rule on a record that shows it, and what is said of others."""

from __future__ import annotations

from typing import Any

import pytest

from farline.findings.figures import figures_of
from farline.findings.finding import rate_flag
from farline.findings.rules.blasts import rbudp_of
from farline.findings.verdict import verdict
from farline.profiles.application_bound import Bound
from farline.spec._types import Blast, PathCheck, RunRecord, Verdict
from tests.support.blasts import blast, path_check, rbudp_record
from tests.support.paths import make_path
from tests.support.runs import CLIENT, RECEIVER, SENDER, SERVER, columns, steady_rows

BUSY: dict[str, int] = {"paced_wait_us": 60_000, "rtt_us": 110_000}
BUSY |= {"pacing_rate_bps": 610_000_000}


def judged(
    *blasts: Blast,
    bounds: tuple[Bound, ...] = (),
    gauges: dict[str, int] | None = None,
    **more: Any,
) -> Verdict:
    """The verdict on a run of 610 Mbit/s over 110 ms."""
    return of_record(rbudp_record(*(blasts or (blast(),)), **more), bounds, **(gauges or {}))


def of_record(record: RunRecord, bounds: tuple[Bound, ...] = (), **gauges: int) -> Verdict:
    sent = steady_rows([600e6] * 100, end=CLIENT, role=SENDER, **(BUSY | gauges))
    came = steady_rows([600e6] * 100, end=SERVER, role=RECEIVER)
    return verdict(record, columns(sent + came), bounds)


def bound(bps: float, **more: Any) -> Bound:
    known: dict[str, Any] = {
        "transport": "udp", "direction": "forward", "streams": 1, "asked_bps": 0.0,
        "started_at": "2026-11-21T20:00:00.000000Z", "runs_bps": (bps,),
    }  # fmt: skip
    return Bound(**(known | more))


def test_a_stated_rate_that_arrives_is_the_limit() -> None:
    found = judged()
    assert (found["limit"], found["line"]) == (
        "rate",
        "rate: 98 % of the requested 610 Mbit/s reached",
    )
    assert found["remedies"] == ["a higher rate, if nobody else uses the path and it has room: -b"]


def test_a_busy_receiver_that_loses_packets_is_its_cpu() -> None:
    found = judged(
        blast(lost=15_000), bps=400e6, receiver={"thread_cpu_us": 9_500_000},
        rbudp={"receiver": "naive"},
    )  # fmt: skip
    assert found["limit"] == "receiver-cpu"
    assert (
        "33 % of the packets were missing after the first pass while its thread uses 95 %"
        in (found["line"])
    )
    assert found["remedies"][0] == "a lower rate: -b 380M"
    assert "no second copy of each packet: --receiver gather" in found["remedies"]
    assert "a CPU for each stream: --client-cpus, --server-cpus" in found["remedies"]


def test_what_is_done_already_is_not_proposed() -> None:
    found = judged(
        blast(lost=15_000), bps=400e6,
        receiver={"thread_cpu_us": 9_500_000, "cpu": 1, "receive_buffer_bytes": 128 << 20},
        rbudp={"receiver": "gather", "checksum": False},
    )  # fmt: skip
    assert found["remedies"] == ["a lower rate: -b 380M"]


def test_losses_where_no_path_can_lose_are_the_sockets() -> None:
    here: dict[str, Any] = {"local": "127.0.0.1:1", "remote": "127.0.0.1:2"}
    small = {**here, "receive_buffer_bytes": 425_984}
    record = rbudp_record(blast(lost=460), bps=500e6, sender=here, receiver=small)
    assert record["client"] and record["server"]
    record["server"]["host"]["hostname"] = record["client"]["host"]["hostname"]
    found = of_record(record)
    assert found["limit"] == "receive-buffer"
    assert (
        "the UDP socket's buffer of 416 KiB overflowed before the receiver's thread ran"
        in found["line"]
    )
    assert "net.core.rmem_max at the receiver: 212992" in found["evidence"]
    assert found["remedies"][:2] == [
        "a larger buffer of the socket: --udp-receive-buffer 64MiB",
        "allow it: sysctl -w net.core.rmem_max=67108864",
    ]


def test_drops_of_an_emulated_host_are_the_sockets_and_ordered_losses_are_not() -> None:
    path = make_path()
    path["stamp"]["receive_buffer_drops"] = 400
    found = judged(blast(lost=460), bps=500e6, path=path)
    assert found["limit"] == "receive-buffer" and "400 dropped by the hosts" in found["line"]
    path = make_path(loss=0.01)
    path["stamp"]["receive_buffer_drops"] = 1
    assert judged(blast(lost=460), bps=500e6, path=path)["limit"] == "path"


def test_a_rate_beyond_an_emulated_link_is_lost_there() -> None:
    found = judged(blast(lost=9_000), bps=930e6, rate_bps=1_200_000_000, path=make_path())
    assert found["limit"] == "path"
    assert "it carries 947 Mbit/s of the stated 1.20 Gbit/s, and the rest is lost" in found["line"]
    found = judged(bps=930e6, rate_bps=1_200_000_000, path=make_path())
    assert found["line"] == "path: the run used 98 % of the emulated link's payload rate"


def test_a_path_that_carried_less_is_named_with_what_it_does_to_others_first() -> None:
    found = judged(blast(lost=20_000), bps=280e6, check=path_check(300e6))
    assert found["limit"] == "path"
    assert found["line"].startswith(
        "shared path: it carried 300 Mbit/s of the stated 610 Mbit/s before the blast, "
        "so none is left for others; path: it carries 300 Mbit/s of the stated"
    )
    assert found["remedies"][0] == "what the path carries: -b 285M"
    assert "a transport that shares the path with others: --transport udt" in found["remedies"]
    assert len(set(found["remedies"])) == len(found["remedies"])


def test_others_queues_are_told_though_the_rate_arrives() -> None:
    check = path_check(610e6, idle_rtt_us=122_000, shared=True)
    found = judged(check=check)
    assert found["limit"] == "rate"
    assert found["line"].startswith(
        "shared path: packets waited 12.0 ms in queues before the blast"
    )
    assert found["line"].endswith("; rate: 98 % of the requested 610 Mbit/s reached")
    assert not any("higher rate" in remedy for remedy in found["remedies"])


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (path_check(0, shared=True, lost_share=0.97), "97 % of a short train at the stated rate"),
        (path_check(0, 0, shared=True, idle_rtt_us=150_000), "packets waited 40.0 ms in queues"),
    ],
)
def test_where_no_train_was_measured_no_carried_rate_is_told(check: PathCheck, line: str) -> None:
    found = judged(check=check)
    assert found["line"].startswith(f"shared path: {line}")
    assert "carried 0" not in str(found)
    assert any("no train at the stated rate was measured" in text for text in found["evidence"])
    assert found["remedies"] == ["a transport that shares the path with others: --transport udt"]


def test_a_path_that_is_not_shared_is_evidence_only() -> None:
    found = judged(check=path_check(609e6))
    assert found["line"].startswith("rate:")
    assert any(
        "before the blast the path carried 609 Mbit/s of the stated 610 Mbit/s" in line
        for line in found["evidence"]
    )


@pytest.mark.parametrize(
    ("carried_bps", "reason"),
    [
        (610e6, "the path carried the stated rate before the blast, so the losses are random"),
        (None, "the losses are random, or the rate is more than the path carries"),
    ],
)
def test_losses_with_an_idle_receiver_are_the_paths(carried_bps: float | None, reason: str) -> None:
    check = path_check(carried_bps) if carried_bps else None
    found = judged(blast(lost=3_226), bps=560e6, check=check)
    assert found["limit"] == "path"
    assert "7 % of the packets were missing" in found["line"] and reason in found["line"]


def test_a_link_that_loses_by_order_is_said_to() -> None:
    path = make_path(loss=0.07)
    assert (
        "a link drops packets on purpose" in judged(blast(lost=3_226), bps=560e6, path=path)["line"]
    )


def test_a_payload_that_is_small_for_the_path_names_what_would_do() -> None:
    """Papers/4, section 4: 74.25 MB give 90 % at 600 Mbit/s over 110 ms."""
    moved = {"bytes": 8_250_000, "elapsed_us": 220_000, "thread_cpu_us": 20_000}
    found = judged(blast(8_250_000), rate_bps=600_000_000, sender=moved, receiver=moved)
    assert found["limit"] == "application"
    assert "7.87 MiB per stream at 600 Mbit/s over 110 ms allow 50 % of the rate" in found["line"]
    assert found["remedies"] == ["for 90 % of the rate: 70.8 MiB per stream, -n 71MiB"]


def test_a_payload_does_not_explain_what_is_far_below_what_it_allows() -> None:
    found = judged(bps=100e6, spec={"total_bytes": 125_000_000})
    assert (found["limit"], found["remedies"]) == ("unknown", [])


def test_one_blast_at_a_time_waits_for_each_report() -> None:
    options = {"payload_bytes": 8_250_000, "in_flight": 1}
    found = judged(*[blast(8_250_000)] * 40, rate_bps=600_000_000, bps=300e6, rbudp=options)
    assert found["limit"] == "receive-window"
    assert "a blast of 7.87 MiB in flight" in found["line"] and "50 % of the rate" in found["line"]
    assert found["remedies"] == [
        "for 90 % of the rate: --payload 71MiB",
        "for all of it, more blasts at once: --in-flight 2",
    ]


def test_passes_that_are_waited_for_cost_round_trips() -> None:
    options = {"payload_bytes": 8_250_000, "in_flight": 1, "early": False}
    found = judged(
        *[blast(8_250_000, lost=57, passes=3)] * 40, rate_bps=600_000_000, bps=150e6, rbudp=options
    )
    assert "and 3 passes each allows 25 % of the rate" in found["line"]
    assert "send missing packets again while a blast goes on: --early" in found["remedies"]


def test_blasts_that_stay_under_way_hold_new_data_up() -> None:
    slow = [blast(elapsed_us=9_600_000)] * 8
    found = judged(*slow, bps=300e6, gauges={"paced_wait_us": 20_000})
    assert found["limit"] == "receive-window"
    assert "7.7 of 8 blasts were in flight on average" in found["line"]
    assert found["remedies"] == ["more blasts at once: --in-flight 16"]
    assert judged(*slow, bps=300e6)["limit"] != "receive-window"


@pytest.mark.parametrize(("at_once", "remedies"), [(1, 1), (8, 0)])
def test_a_sender_that_often_has_no_blast_under_way_is_told(at_once: int, remedies: int) -> None:
    few = [blast()] * 4
    found = judged(*few, bps=300e6, rbudp={"in_flight": at_once}, gauges={"paced_wait_us": 20_000})
    assert found["limit"] == "application"
    assert "no blast was in flight 65 % of the time" in found["line"]
    assert len(found["remedies"]) == remedies


def test_a_slow_train_on_a_path_that_is_not_shared_says_nothing_of_the_path() -> None:
    found = judged(blast(lost=460), bps=560e6, check=path_check(300e6, shared=False))
    assert "the path carried the stated rate before the blast" in found["line"]
    assert "it carries" not in found["line"]


def test_the_worst_of_several_pairs_is_told() -> None:
    record = rbudp_record(blast(), check=path_check(610e6))
    again = rbudp_record(blast(), check=path_check(300e6))["streams"]
    for stream in again:
        stream["stream"] = 1
    record["streams"] += again
    assert of_record(record)["line"].startswith("shared path: it carried 300 Mbit/s of the stated")


def test_a_full_socket_of_the_sender_is_a_send_buffer() -> None:
    found = judged(blast(elapsed_us=9_500_000), bps=300e6, gauges={"paced_wait_us": 0})
    assert found["limit"] == "send-buffer"
    assert found["remedies"] == [
        "a larger buffer: --udp-send-buffer 64MiB", "the rate that arrived: -b 300M",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("gauges", "cpu_us"), [({"paced_wait_us": 0}, 6_500_000), ({"paced_wait_us": -1}, 8_500_000)]
)
def test_a_sender_behind_its_pacing_is_its_cpu(gauges: dict[str, int], cpu_us: int) -> None:
    found = judged(bps=300e6, gauges=gauges, sender={"thread_cpu_us": cpu_us})
    assert found["limit"] == "sender-cpu"
    assert "300 Mbit/s of 610 Mbit/s" in found["line"]


def test_a_sender_that_waits_for_its_pacing_is_not_behind_it() -> None:
    spins = judged(bps=500e6, sender={"thread_cpu_us": 8_500_000})
    assert "behind its own pacing" not in spins["line"]


def test_a_bound_on_losses_that_lowered_the_rate_is_named() -> None:
    found = judged(
        blast(lost=9_000), bps=280e6, rbudp={"loss_bound": 0.05},
        gauges={"pacing_rate_bps": 305_000_000},
    )  # fmt: skip
    assert found["limit"] == "cwnd"
    assert "so it sent 305 Mbit/s on average" in found["line"]
    assert found["remedies"] == ["the rate that it settled at: -b 305M"]


@pytest.mark.parametrize(("bps", "where"), [(490e6, "line"), (700e6, "evidence")])
def test_the_application_bound_is_quoted(bps: float, where: str) -> None:
    found = judged(bounds=(bound(bps * 2, started_at="2026-11-20T00:00:00Z"), bound(bps)))
    quoted = f"the application bound measured here on 2026-11-21 was {bps / 1e6:.0f} Mbit/s"
    if where == "line":
        assert found["line"].endswith(f"; {quoted}, and the stated rate is above it")
    else:
        assert quoted in found["evidence"] and "bound" not in found["line"]


def test_a_bound_of_the_other_direction_or_only_as_asked_says_nothing_against_the_rate() -> None:
    assert "bound" not in str(judged(bounds=(bound(1e6, direction="reverse"),)))
    found = judged(bounds=(bound(490e6, asked_bps=490e6, streams=2),))
    assert "bound" not in found["line"]
    assert any("with 2 streams was at least 490 Mbit/s" in line for line in found["evidence"])


def test_other_transports_hear_nothing_of_bounds_and_blasts() -> None:
    from tests.support.runs import run_record

    found = of_record(run_record(), (bound(1e6),))
    assert "blast" not in str(found) and "application bound" not in str(found)


def test_evidence_counts_blasts_and_passes() -> None:
    evidence = judged(blast(lost=460, passes=2), blast(passes=1), check=path_check(600e6))[
        "evidence"
    ]
    assert "2 blasts of up to 64.0 MiB, 1.5 passes on average, at most 2" in evidence
    assert "1 blast of 64.0 MiB, 1 pass each" in judged(blast())["evidence"]
    assert any("0.5 % missing after the first pass" in line for line in evidence)
    assert any(
        "senders waited for their pacing 60 % of the time; 0.18 of 8 blasts" in line
        for line in evidence
    )


def test_a_run_without_samples_or_blasts_is_judged_too() -> None:
    found = verdict(rbudp_record(bps=100e6), columns([]))
    assert (found["limit"], found["remedies"]) == ("unknown", [])
    assert "no single limit stands out at 100 Mbit/s" in found["line"]


def test_every_remedy_names_an_option_that_there_is() -> None:
    from farline.spec.table import OPTIONS

    flags = {flag for option in OPTIONS for flag in option.flags} | {"-n"}
    flags |= {"--no-checksum", "--link-rate", "--rate"}
    cases = [
        judged(blast(lost=15_000), bps=4e8, receiver={"thread_cpu_us": 9_500_000},
               rbudp={"receiver": "naive"}),
        judged(blast(lost=20_000), bps=280e6, check=path_check(290e6)),
        judged(blast(lost=460), bps=5e8, rbudp={"shared_path": "allow", "early": False}),
        judged(*[blast(1 << 20)] * 4, bps=1e8, rbudp={"in_flight": 1, "payload_bytes": 1 << 20}),
    ]  # fmt: skip
    words = [word for found in cases for text in found["remedies"] for word in text.split()]
    named = [word.rstrip(",") for word in words if word.startswith("-")]
    assert named and set(named) <= flags


@pytest.mark.parametrize(
    ("rate_bps", "flag"),
    [(465.5e6, "-b 465M"), (1e9, "-b 1G"), (9.999e9, "-b 9.99G"), (55.55e6, "-b 55.5M"),
     (7.219e9, "-b 7.21G"), (123.4e9, "-b 123G")],
)  # fmt: skip
def test_a_rate_that_is_advised_does_not_grow_by_being_written(rate_bps: float, flag: str) -> None:
    assert rate_flag(rate_bps) == flag


def test_the_rules_need_an_rbudp_run() -> None:
    from tests.support.runs import run_record

    figures = figures_of(run_record(), columns([]), 0)
    with pytest.raises(AssertionError):
        rbudp_of(figures)
