"""One run over time: interval samples of many streams and two ends on one time axis.

Rates come from the receiver's samples, which is where throughput is measured; where a run broke
off before these arrived, the sender's are shown and said to be the sender's. Streams are sampled
at their own moments, so bytes are spread over a common grid in proportion to time: no byte is lost
or counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from farline.profiles.series import CLIENT, RECEIVER, SENDER, SERVER, progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Columns = Mapping[str, NDArray[np.int64]]

Way = Literal["forward", "reverse"]


@dataclass(frozen=True)
class DirectionSeries:
    """One direction of a run; every array has one value per interval of the grid.

    Rates are payload bits per second, round-trip times and send periods microseconds, windows
    bytes; losses are packets found missing in the interval. NaN is "not known there". Keys of the
    per-stream tables are stream numbers.
    """

    way: Way
    seen_by: Literal["receiver", "sender"]
    total_bps: Numbers
    streams_bps: dict[int, Numbers] = field(default_factory=dict)
    rtt_us: dict[int, Numbers] = field(default_factory=dict)
    cwnd_bytes: dict[int, Numbers] = field(default_factory=dict)
    flight_packets: dict[int, Numbers] = field(default_factory=dict)
    send_period_us: dict[int, Numbers] = field(default_factory=dict)
    lost_packets: dict[int, Numbers] = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """What is drawn of every stream below the throughput, on an axis of its own.

    `name` is a table of `DirectionSeries`, `key` its short name on the page, `unit` that of its
    figures: µs, B, or packets.
    """

    name: str
    key: str
    label: str
    unit: Literal["µs", "B", "packets"]


PANELS = (
    Panel("rtt_us", "rtt", "RTT", "µs"),
    Panel("cwnd_bytes", "cwnd", "Cwnd", "B"),
    Panel("flight_packets", "flight", "In flight", "packets"),
    Panel("send_period_us", "period", "Send period", "µs"),
    Panel("lost_packets", "lost", "Lost", "packets"),
)
"""Every panel, from top to bottom; those without any figure are left out."""


@dataclass(frozen=True)
class RunSeries:
    """A whole run over time: `edges_s` bounds the intervals, so it is one longer than a series."""

    edges_s: Numbers
    directions: tuple[DirectionSeries, ...]

    @property
    def middles_s(self) -> Numbers:
        """Middle of every interval."""
        middles: Numbers = (self.edges_s[:-1] + self.edges_s[1:]) / 2
        return middles


def run_series(samples: Columns, max_points: int = 600) -> RunSeries | None:
    """Series of one run from its sample columns, on at most `max_points` intervals.

    None where there is no sample.
    """
    if len(samples["end"]) == 0:
        return None
    edges_s = _grid(samples, max_points)
    ways: tuple[tuple[Way, int], ...] = (("forward", CLIENT), ("reverse", SERVER))
    found = (_direction(samples, way, sender, edges_s) for way, sender in ways)
    return RunSeries(edges_s, tuple(direction for direction in found if direction is not None))


def _grid(samples: Columns, max_points: int) -> Numbers:
    """Edges at the sampling interval, or a multiple of it; a short rest joins the last interval."""
    import numpy as np

    last_us = float(samples["end_us"].max())
    step_us = float(np.median(samples["end_us"] - samples["start_us"]))
    step_us = max(step_us, 1.0) * max(1, int(np.ceil(last_us / max(step_us, 1.0) / max_points)))
    count = max(1, int(np.floor(last_us / step_us + 0.5)))
    edges = np.arange(count + 1, dtype=np.float64) * step_us
    edges[-1] = last_us
    return np.asarray(edges / 1e6)


def _direction(samples: Columns, way: Way, sender: int, edges_s: Numbers) -> DirectionSeries | None:
    import numpy as np

    sent = (samples["end"] == sender) & (samples["role"] == SENDER)
    received = (samples["end"] == 1 - sender) & (samples["role"] == RECEIVER)
    if not (sent.any() or received.any()):
        return None
    rows = received if received.any() else sent
    streams_bps = {
        int(stream): _rates(samples, rows & (samples["stream"] == stream), edges_s)
        for stream in np.unique(samples["stream"][rows])
    }
    return DirectionSeries(
        way=way,
        seen_by="receiver" if received.any() else "sender",
        total_bps=np.sum(list(streams_bps.values()), axis=0),
        streams_bps=streams_bps,
        rtt_us=_gauges(samples, "rtt_us", sent, edges_s),
        cwnd_bytes=_gauges(samples, "cwnd_bytes", sent, edges_s),
        flight_packets=_gauges(samples, "flight_packets", sent, edges_s),
        send_period_us=_periods(samples, sent, edges_s),
        lost_packets=_losses(samples, received, edges_s),
    )


def _periods(samples: Columns, sent: NDArray[np.bool_], edges_s: Numbers) -> dict[int, Numbers]:
    """Time between packets of every stream that is paced; NaN where it is not."""
    import numpy as np

    known = _gauges(samples, "send_period_ns", sent, edges_s)
    periods = {stream: np.where(values > 0, values, np.nan) for stream, values in known.items()}
    return {
        stream: values / 1000 for stream, values in periods.items() if not np.isnan(values).all()
    }


def _losses(samples: Columns, received: NDArray[np.bool_], edges_s: Numbers) -> dict[int, Numbers]:
    """Packets found missing in every interval, for every receiver that counts packets."""
    import numpy as np

    if "lost_packets" not in samples:
        return {}
    known = received & (samples["packets"] >= 0)
    counts: dict[int, Numbers] = {}
    for stream in np.unique(samples["stream"][known]):
        mine = known & (samples["stream"] == stream)
        values = np.zeros(len(edges_s) - 1)
        np.add.at(values, _places(samples, mine, edges_s), samples["lost_packets"][mine])
        counts[int(stream)] = values
    return counts


def _places(samples: Columns, rows: NDArray[np.bool_], edges_s: Numbers) -> NDArray[np.int64]:
    """The interval of the grid that the middle of each row lies in."""
    import numpy as np

    middles_us = (samples["start_us"][rows] + samples["end_us"][rows]) / 2
    places = np.searchsorted(edges_s, middles_us / 1e6) - 1
    return np.asarray(np.clip(places, 0, len(edges_s) - 2))


def _rates(samples: Columns, rows: NDArray[np.bool_], edges_s: Numbers) -> Numbers:
    """Bits per second in every interval of the grid, from the bytes of one stream's samples."""
    import numpy as np

    first = int(np.flatnonzero(rows)[0])
    role, end = int(samples["role"][first]), int(samples["end"][first])
    moved = progress({name: column[rows] for name, column in samples.items()}, role, end)
    return np.asarray(np.diff(moved.at((edges_s * 1e6).tolist())) * 8 / np.diff(edges_s))


def _gauges(
    samples: Columns, column: str, rows: NDArray[np.bool_], edges_s: Numbers
) -> dict[int, Numbers]:
    """Last known value of a gauge in every interval, for every stream that has any."""
    import numpy as np

    if column not in samples:
        return {}
    known = rows & (samples[column] >= 0)
    gauges: dict[int, Numbers] = {}
    for stream in np.unique(samples["stream"][known]):
        of_stream = known & (samples["stream"] == stream)
        order = np.argsort(samples["end_us"][of_stream], kind="stable")
        values = np.full(len(edges_s) - 1, np.nan)
        places = _places(samples, of_stream, edges_s)[order]
        values[places] = samples[column][of_stream][order]
        gauges[int(stream)] = values
    return gauges
