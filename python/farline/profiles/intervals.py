"""Sample rows gathered into the intervals that people look at.

Samples may be finer than what is shown: a run without `-i` is sampled often
enough to find its warm-up, and shown once a second. The client's rows come
while the run goes on, so what is shown live is the client's own view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from farline.profiles.series import CLIENT, SENDER, Columns, plain

SHOWN_S = 1.0
"""Seconds per line when `-i` is not given."""


EARLY = 0.1
"""Share of an interval by which its last sample may come early and the interval still be whole."""


@dataclass(frozen=True)
class StreamInterval:
    """One stream at one end over one interval; −1 is "not known"."""

    stream: int
    sends: bool
    start_us: int
    end_us: int
    bytes: int
    packets: int
    lost_packets: int
    retransmits: int
    rtt_us: int
    rttvar_us: int
    cwnd_bytes: int
    window_bytes: int
    path_mtu_bytes: int
    jitter_ns: int
    flight_packets: int

    @property
    def seconds(self) -> float:
        """Length of the interval."""
        return (self.end_us - self.start_us) / 1e6

    @property
    def bits_per_second(self) -> float:
        """Payload rate."""
        return self.bytes * 8 / self.seconds if self.end_us > self.start_us else 0.0


@dataclass(frozen=True)
class Interval:
    """All streams at one end over one interval."""

    index: int
    streams: tuple[StreamInterval, ...]
    cpu: float | None
    width_s: float

    @property
    def start_s(self) -> float:
        """Start, in seconds since the start of the run: where the interval before it ends."""
        return self.index * self.width_s

    @property
    def end_s(self) -> float:
        """End, in seconds since the start of the run.

        Samples come some milliseconds early or late; intervals follow each other without gaps all
        the same. One that the run's end cut short ends there.
        """
        whole, last = (self.index + 1) * self.width_s, self.last_us / 1e6
        return whole if last > whole - EARLY * self.width_s else last

    @property
    def last_us(self) -> int:
        """When its last sample was taken."""
        return max(stream.end_us for stream in self.streams)

    def side(self, sends: bool) -> list[StreamInterval]:
        """Streams that send, or that receive."""
        return [stream for stream in self.streams if stream.sends == sends]

    def bits_per_second(self, sends: bool) -> float:
        """Payload rate of all streams that send, or that receive."""
        return sum(stream.bits_per_second for stream in self.side(sends))

    def total(self, name: str) -> int | None:
        """Sum of a counter over the streams; None where no stream knows it."""
        return _known_sum(getattr(stream, name) for stream in self.streams)

    def mean(self, name: str) -> float | None:
        """Mean of a gauge over the streams that know it."""
        known = [v for v in (getattr(stream, name) for stream in self.streams) if v >= 0]
        return sum(known) / len(known) if known else None


def _known_sum(values: Iterator[int]) -> int | None:
    known = [value for value in values if value != -1]
    return sum(known) if known else None


def intervals_of(samples: Columns, width_s: float, end: int = CLIENT) -> list[Interval]:
    """The intervals of `width_s` that the rows of `end` fall into."""
    samples = plain(samples)
    by_index: dict[int, list[int]] = {}
    for row, its in enumerate(samples.get("end", ())):
        if its == end:
            middle_us = (samples["start_us"][row] + samples["end_us"][row]) / 2
            by_index.setdefault(int(middle_us / (width_s * 1e6)), []).append(row)
    return [_interval(samples, rows, index, width_s) for index, rows in sorted(by_index.items())]


def _interval(samples: Columns, rows: list[int], index: int, width_s: float) -> Interval:
    by_stream: dict[int, list[int]] = {}
    for row in rows:
        by_stream.setdefault(samples["stream"][row], []).append(row)
    streams = [
        _stream_interval(samples, sorted(mine, key=samples["end_us"].__getitem__))
        for _, mine in sorted(by_stream.items())
    ]
    return Interval(index, tuple(streams), _cpu(samples, by_stream), width_s)


def _stream_interval(samples: Columns, rows: list[int]) -> StreamInterval:
    def counter(name: str) -> int:
        values = [value for row in rows if (value := samples[name][row]) != -1]
        return sum(values) if values else -1

    def gauge(name: str) -> int:
        value: int = samples[name][rows[-1]] if name in samples else -1
        return value

    return StreamInterval(
        stream=gauge("stream"),
        sends=gauge("role") == SENDER,
        start_us=samples["start_us"][rows[0]],
        end_us=gauge("end_us"),
        bytes=counter("bytes"),
        packets=counter("packets"),
        lost_packets=counter("lost_packets"),
        retransmits=counter("retransmits"),
        rtt_us=gauge("rtt_us"),
        rttvar_us=gauge("rttvar_us"),
        cwnd_bytes=gauge("cwnd_bytes"),
        window_bytes=gauge("receive_window_bytes"),
        path_mtu_bytes=gauge("path_mtu_bytes"),
        jitter_ns=gauge("jitter_ns"),
        flight_packets=gauge("flight_packets"),
    )


def _cpu(samples: Columns, by_stream: Mapping[int, list[int]]) -> float | None:
    """CPUs this end's process used; its figure stands in the row of each of its streams."""
    rows = next(iter(by_stream.values()))
    used_us = [samples["process_cpu_us"][row] for row in rows]
    span_us = sum(samples["end_us"][row] - samples["start_us"][row] for row in rows)
    return sum(used_us) / span_us if span_us and min(used_us) >= 0 else None


class IntervalFeed:
    """Takes sample rows as they come and gives each interval once it is whole."""

    def __init__(self, width_s: float) -> None:
        """Gathers into intervals of `width_s`."""
        self.width_s = width_s
        self._rows: dict[str, list[int]] = {}
        self._next = 0

    def add(self, samples: Columns) -> list[Interval]:
        """Adds the client's rows; the intervals before the newest row's are whole."""
        samples = plain(samples)
        mine = [row for row, end in enumerate(samples["end"]) if end == CLIENT]
        for name, column in samples.items():
            self._rows.setdefault(name, []).extend(column[row] for row in mine)
        whole = [one for one in intervals_of(self._rows, self.width_s) if self._is_whole(one)]
        return self._give(whole)

    def rest(self) -> list[Interval]:
        """What is left when the run has ended, but a tail too short to be a rate."""
        left = intervals_of(self._rows, self.width_s) if self._rows else []
        return self._give([one for one in left if one.end_s - one.start_s > self.width_s / 10])

    def _is_whole(self, interval: Interval) -> bool:
        """Whether the middle of a next row, as long as the newest, lies beyond the interval."""
        end_us = max(self._rows["end_us"])
        start_us = self._rows["start_us"][self._rows["end_us"].index(end_us)]
        next_middle_us = end_us + (end_us - start_us) / 2
        return next_middle_us >= (interval.index + 1) * self.width_s * 1e6

    def _give(self, intervals: list[Interval]) -> list[Interval]:
        """Hands over what was not yet given, and lets go of its rows."""
        new = [one for one in intervals if one.index >= self._next]
        if new:
            self._next = new[-1].index + 1
            last_us = new[-1].last_us
            keep = [row for row, end_us in enumerate(self._rows["end_us"]) if end_us > last_us]
            self._rows = {
                name: [column[row] for row in keep] for name, column in self._rows.items()
            }
        return new
