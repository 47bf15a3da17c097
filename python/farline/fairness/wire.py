"""What the wire counters of a router say of each side: rates, losses, delay.

The columns are those of link samples (docs/reference/samples.md), of one trial. Bytes are bytes on
the wire. What a side sends is counted where it enters the network, what arrives where it leaves it;
the queue is the shared link's. That no tool is asked makes all tools comparable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farline.fairness.dynamics import Moment

Columns = Mapping[str, Sequence[Any]]
"""One sequence per column of link samples, all of one length."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One direction of one link, by its number in the topology."""

    link: int
    direction: int


@dataclass(frozen=True, slots=True)
class Wires:
    """Where a side's packets enter the network, where they leave it, and the link that is shared.

    `rtt_s` is the round-trip time of the empty path.
    """

    entry: Wire
    exit: Wire
    shared: Wire
    rtt_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What a side had in a trial.

    `rate_bps` arrived within the window. `rtt_s` is the mean round-trip time, queue included.
    `loss` is the part of its packets that never arrived, over the whole trial: packets that are in
    flight at a window's end would count as lost.
    """

    rate_bps: float
    rtt_s: float | None = None
    loss: float | None = None


def seen_by(columns: Columns, wires: Wires, window_us: tuple[int, int]) -> Seen | None:
    """What a side had, by the counters; None where no sample lies in the window."""
    arrived = _rows(columns, wires.exit, window_us)
    if not arrived:
        return None
    span_us = sum(_span(columns, row) for row in arrived)
    rate = 8e6 * _sum(columns, "out_bytes", arrived) / span_us
    sent = _sum(columns, "in_packets", _rows(columns, wires.entry))
    came = _sum(columns, "out_packets", _rows(columns, wires.exit))
    loss = max(0.0, sent - came) / sent if sent else None
    return Seen(rate, wires.rtt_s + _queue_s(columns, wires.shared, window_us), loss)


def capacity_of(columns: Columns, shared: Wire) -> float | None:
    """Rate of the shared link at the end of the samples; None where it has no limit."""
    rows = _rows(columns, shared)
    rate = int(columns["rate_bps"][rows[-1]]) if rows else 0
    return float(rate) if rate else None


def moments_of(
    columns: Columns, newcomer: Wires, other: Wires, since_us: int, until_us: int
) -> tuple[Moment, ...]:
    """Rates of both sides sample by sample, from when the newcomer comes."""
    theirs = {
        int(columns["end_us"][row]): row for row in _rows(columns, other.exit, (since_us, until_us))
    }
    found = []
    for row in _rows(columns, newcomer.exit, (since_us, until_us)):
        end_us = int(columns["end_us"][row])
        if end_us in theirs:
            start_us = int(columns["start_us"][row])
            found.append(
                Moment(
                    (start_us - since_us) / 1e6,
                    (end_us - since_us) / 1e6,
                    _rate(columns, row),
                    _rate(columns, theirs[end_us]),
                )
            )
    return tuple(found)


def wires_between(
    topology: Mapping[str, Any], client: str, server: str, shared: str, rtt_s: float
) -> Wires:
    """The wires from one host of a topology to another by way of its link `shared`.

    Raises:
        ValueError: when a host has several links (which one carries what is not known), both sides
            of a link are hosts, or there is no such link.
    """
    links = topology["links"]
    entry, exit_ = _only_link(links, client), _only_link(links, server)
    names = [link["name"] for link in links]
    if shared not in names:
        raise ValueError(f"no link {shared!r}; links: {', '.join(names)}")
    towards = _side_of(topology, client, server, shared)
    return Wires(
        Wire(entry, 0 if links[entry]["a"] == client else 1),
        Wire(exit_, 0 if links[exit_]["b"] == server else 1),
        Wire(names.index(shared), towards),
        rtt_s,
    )


def _only_link(links: Sequence[Mapping[str, Any]], host: str) -> int:
    mine = [number for number, link in enumerate(links) if host in (link["a"], link["b"])]
    if len(mine) != 1:
        raise ValueError(f"host {host!r} has {len(mine)} links; each end needs exactly one")
    return mine[0]


def _side_of(topology: Mapping[str, Any], host: str, server: str, shared: str) -> int:
    """Direction of the shared link away from `host`: 0 if its end `a` is the nearer one."""
    links = topology["links"]
    middle = next(link for link in links if link["name"] == shared)
    reached, edge = {host}, [host]
    while edge:
        node = edge.pop(0)
        for link in links:
            if link["name"] == shared or node not in (link["a"], link["b"]):
                continue
            far = link["b"] if link["a"] == node else link["a"]
            if far not in reached:
                reached.add(far)
                edge.append(far)
    if (middle["a"] in reached) == (middle["b"] in reached) or server in reached:
        raise ValueError(f"link {shared!r} does not lie between {host!r} and {server!r}")
    return 0 if middle["a"] in reached else 1


def _rows(columns: Columns, wire: Wire, window_us: tuple[int, int] | None = None) -> list[int]:
    """Numbers of the rows of a wire, those wholly inside the window where one is given."""
    return list(_found(columns, wire, window_us))


def _found(columns: Columns, wire: Wire, window_us: tuple[int, int] | None) -> Iterator[int]:
    links, directions = columns["link"], columns["direction"]
    for row in range(len(links)):
        if links[row] != wire.link or directions[row] != wire.direction:
            continue
        if window_us is None or (
            columns["start_us"][row] >= window_us[0] and columns["end_us"][row] <= window_us[1]
        ):
            yield row


def _sum(columns: Columns, name: str, rows: Sequence[int]) -> int:
    return sum(int(columns[name][row]) for row in rows)


def _span(columns: Columns, row: int) -> int:
    return int(columns["end_us"][row]) - int(columns["start_us"][row])


def _rate(columns: Columns, row: int) -> float:
    span_us = _span(columns, row)
    return 8e6 * int(columns["out_bytes"][row]) / span_us if span_us else 0.0


def _queue_s(columns: Columns, shared: Wire, window_us: tuple[int, int]) -> float:
    """Mean time in the queue of the shared link: what waits at the samples, over its rate."""
    waits = [
        8 * int(columns["backlog_bytes"][row]) / int(columns["rate_bps"][row])
        for row in _rows(columns, shared, window_us)
        if int(columns["rate_bps"][row])
    ]
    return sum(waits) / len(waits) if waits else 0.0
