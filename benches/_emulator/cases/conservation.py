"""Nothing is lost, doubled or reordered that was not ordered: 5 Gb/s for a minute, then TCP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from _emulator.beds import RECEIVER, SENDER, pair, pipe
from _emulator.chance import late_packets, losses_of_runs
from _emulator.figures import Figure, Label, Seen, none_of, within
from _emulator.ledger import DROPS, Columns, worst_imbalance
from _emulator.results import Effort
from _emulator.runs import Run, forget_samples, overrun, seen, up, valid_run
from _emulator.traffic import (
    Caught,
    at_wire_rate,
    blast,
    catcher,
    increase,
    iperf3,
    iperf3_server,
    tcp_counters,
)
from farline.testbeds import Testbed

GROUP = "conservation"
RATE_BPS, RATE_SLACK_BPS = 5e9, 0.25e9
LINK_BPS = 10e9
RTT_S = 0.02
# So deep that no sender here, at half of the rate, fills it with a burst.
QUEUE_BYTES = 250_000_000
# What a stamp counts that must be zero.
STAMPED = ("ring_drops", "emulator_drops", "memory_prunes", "unexplained_packets")
# What Linux counts when segments came out of order, or were given up after they had come.
REORDERED = ("TCPSACKReorder", "TCPTSReorder", "TCPRenoReorder", "TCPSACKReneging")


@dataclass(frozen=True)
class Account:
    """What became of numbered datagrams, as host and links tell it."""

    missing: int
    late: int
    dropped_by_host: int
    explained: int
    imbalance: int
    wire_bps: float


def rows(effort: Effort) -> Iterator[Figure]:
    """Numbered datagrams for a minute; then TCP below the link's rate, which nothing disturbs."""
    with up(pair(pipe(LINK_BPS, RTT_S, queue={"capacity_bytes": QUEUE_BYTES}))) as bed:
        seconds = effort.seconds(60.0, 6.0)
        done = valid_run(bed, lambda: _numbered(bed, seconds), _obstacle)
        yield from _datagram_rows(done)
        yield from _tcp_rows(bed, effort)


def _datagram_rows(done: Run[Account]) -> Iterator[Figure]:
    account = done.value
    rate = seen([done], lambda run: run.wire_bps / 1e9)
    yield within(
        Label(GROUP, "UDP, offered", "Gb/s", "on the wire"),
        rate,
        RATE_BPS / 1e9,
        RATE_SLACK_BPS / 1e9,
    )
    unexplained = abs(account.missing - account.explained)
    for name, value in (
        ("in − out − drops − in flight", account.imbalance),
        ("drops that nobody explains", unexplained),
        ("receiver's overruns", account.dropped_by_host),
        ("datagrams out of order or twice", account.late),
    ):
        yield none_of(Label(GROUP, f"UDP, {name}", "pkt"), Seen([value], [done.stamp]))
    yield from _stamp_rows("UDP", done.stamp)


def _stamp_rows(name: str, stamp: Any) -> Iterator[Figure]:
    for field in STAMPED:
        label = Label(GROUP, f"{name}, {field.replace('_', ' ')}", "", "in the run's stamp")
        yield none_of(label, Seen([abs(stamp[field])], [stamp]))


def _obstacle(account: Account) -> str:
    if account.wire_bps < RATE_BPS - RATE_SLACK_BPS:
        return f"the sender offered {account.wire_bps / 1e9:.2f} Gb/s"
    return overrun(account.dropped_by_host)


def _numbered(bed: Testbed, seconds: float) -> Account:
    sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
    load = at_wire_rate(RATE_BPS, seconds, numbered=True)
    forget_samples(bed)
    with catcher(receiver, "numbers") as caught:
        said = blast(sender, receiver.address, load)
    time.sleep(0.3)  # two of the link's intervals
    return _account(bed, caught, said, load.count)


def _account(bed: Testbed, caught: Caught, said: dict[str, Any], count: int) -> Account:
    samples = bed.link_samples()
    first, length = caught.arrays["first"], caught.arrays["length"]
    forward = (samples["link"] == 0) & (samples["direction"] == 0)
    return Account(
        missing=losses_of_runs(first, length, count).lost,
        late=late_packets(first, length),
        dropped_by_host=caught.dropped,
        explained=_dropped(samples) + count - said["sent"],
        imbalance=worst_imbalance(samples),
        wire_bps=8 * float(samples["in_bytes"][forward].sum()) / said["seconds"],
    )


def _dropped(samples: Columns) -> int:
    """Packets that any link dropped, both ways."""
    return sum(int(samples[name].sum()) for name in DROPS)


def _tcp_rows(bed: Testbed, effort: Effort) -> Iterator[Figure]:
    seconds = effort.seconds(20.0, 5.0)
    done = valid_run(bed, lambda: _paced_tcp(bed, seconds))
    for name, value in done.value.items():
        yield none_of(Label(GROUP, f"TCP, {name}", ""), Seen([value], [done.stamp]))
    yield from _stamp_rows("TCP", done.stamp)


def _paced_tcp(bed: Testbed, seconds: float) -> dict[str, int]:
    """What four paced streams at half of the link's rate met: nothing, if all is well."""
    sender, receiver = bed.hosts[SENDER], bed.hosts[RECEIVER]
    before = tcp_counters(sender), tcp_counters(receiver)
    forget_samples(bed)
    with iperf3_server(receiver):
        iperf3(sender, receiver.address, seconds, "-C", "reno", "-P", "4", "-b", "1200M")
    after = tcp_counters(sender), tcp_counters(receiver)
    time.sleep(0.3)
    samples = bed.link_samples()
    # A segment is sent again for one that was dropped, or to probe for a loss at the end.
    again = increase(before[0], after[0], "RetransSegs")
    explained = increase(before[0], after[0], "TCPLossProbes") + _dropped(samples)
    return {
        "sent again for no loss": max(0, again - explained),
        "time-outs": increase(before[0], after[0], "TCPTimeouts"),
        "signs of reordering": sum(
            increase(*sides, *REORDERED) for sides in zip(before, after, strict=True)
        ),
        "in − out − drops − in flight": worst_imbalance(samples),
    }
