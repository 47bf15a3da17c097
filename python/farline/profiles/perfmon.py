"""The statistics of a UDT run by the names of libudt's `perfmon` (CPerfMon, version 4.11).

Who knows `UDT::perfmon` finds its 31 fields here, one row per stream, end and interval, computed
from the sample columns. Counters are of the interval, those whose names end in `Total` are sums
since the start of the run. docs/guide/udt-statistics.md says what each field is made from, and
where the reference library's own figure is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from farline.profiles.packet_headers import UDT_HEADER_BYTES
from farline.profiles.series import RECEIVER, SENDER, Columns
from farline.spec._types import RunRecord

Floats = npt.NDArray[np.float64]

PLACE = ("end", "stream", "role")
"""Columns in front of the fields: which row is about what, as in the samples."""

Kind = Literal["total", "interval", "gauge"]


@dataclass(frozen=True)
class Field:
    """One field of CPerfMon.

    `source` is the sample column it is made from, `sides` whose rows have it, `scale` turns the
    column's unit into the field's.
    """

    name: str
    kind: Kind
    source: str
    sides: tuple[int, ...] = (SENDER, RECEIVER)
    scale: float = 1.0
    whole: bool = True


_SENDS, _RECEIVES = (SENDER,), (RECEIVER,)

_COUNTERS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("pktSent", "packets", _SENDS),
    ("pktRecv", "packets", _RECEIVES),
    ("pktSndLoss", "lost_packets", _SENDS),
    ("pktRcvLoss", "lost_packets", _RECEIVES),
    ("pktRetrans", "retransmits", _SENDS),
    ("pktSentACK", "sent_acks", (SENDER, RECEIVER)),
    ("pktRecvACK", "received_acks", (SENDER, RECEIVER)),
    ("pktSentNAK", "sent_naks", (SENDER, RECEIVER)),
    ("pktRecvNAK", "received_naks", (SENDER, RECEIVER)),
)

FIELDS: tuple[Field, ...] = (
    Field("msTimeStamp", "gauge", "end_us", scale=1e-3),
    *(Field(f"{name}Total", "total", source, sides) for name, source, sides in _COUNTERS),
    Field("usSndDurationTotal", "total", "busy_us", _SENDS),
    *(Field(name, "interval", source, sides) for name, source, sides in _COUNTERS),
    Field("mbpsSendRate", "interval", "packets", _SENDS, whole=False),
    Field("mbpsRecvRate", "interval", "packets", _RECEIVES, whole=False),
    Field("usSndDuration", "interval", "busy_us", _SENDS),
    Field("usPktSndPeriod", "gauge", "send_period_ns", scale=1e-3, whole=False),
    Field("pktFlowWindow", "gauge", "flow_window_packets"),
    Field("pktCongestionWindow", "gauge", "cwnd_bytes"),
    Field("pktFlightSize", "gauge", "flight_packets"),
    Field("msRTT", "gauge", "rtt_us", scale=1e-3, whole=False),
    Field("mbpsBandwidth", "gauge", "link_capacity_bps", scale=1e-6, whole=False),
    Field("byteAvailSndBuf", "gauge", "send_buffer_free_bytes"),
    Field("byteAvailRcvBuf", "gauge", "receive_buffer_free_bytes"),
)
"""Every field, in the order in which CPerfMon declares them."""


def perfmon(record: RunRecord | Mapping[str, Any], samples: Columns) -> dict[str, Floats]:
    """The table of a run: `PLACE` and then every field, as floats; NaN is "not known here".

    Rows are in the order of end, stream and time. A run over another transport gives the fields
    that its samples have figures for.
    """
    order = np.lexsort([samples[name] for name in ("start_us", "role", "stream", "end")])
    rows = {name: column[order] for name, column in samples.items()}
    payload = _payload_bytes(record, rows)
    table = {name: rows[name].astype(np.float64) for name in PLACE}
    return table | {field.name: _column(field, rows, payload) for field in FIELDS}


def _column(field: Field, rows: Columns, payload: Floats) -> Floats:
    values = _known(field, rows)
    if field.kind == "total":
        values = _running(values, rows)
    if field.name.startswith("mbps") and field.name.endswith("Rate"):
        return values * payload * 8 / _lengths_us(rows)
    if field.name == "pktCongestionWindow":
        return np.round(values / payload)
    values = values * field.scale
    return np.floor(values) if field.whole else values


def _known(field: Field, rows: Columns) -> Floats:
    """The column as floats: NaN where the end does not know it, or the field is not its side's."""
    column = rows.get(field.source)
    if column is None:
        return np.full(len(rows["end"]), np.nan)
    known = np.isin(rows["role"], field.sides)
    unknown = column == -1
    if field.source == "lost_packets":
        # A figure at a receiver: a packet that was missing came late after all.
        unknown &= (rows["role"] == SENDER) | (rows["packets"] == -1)
    return np.where(known & ~unknown, column, np.nan).astype(np.float64)


def _running(values: Floats, rows: Columns) -> Floats:
    """Sums since the start of the run, along each stream of each end."""
    sums = np.empty_like(values)
    for mine in _streams(rows):
        added = np.cumsum(np.nan_to_num(values[mine]))
        sums[mine] = np.where(np.isnan(values[mine]).all(), np.nan, added)
    return sums


def _streams(rows: Columns) -> list[npt.NDArray[np.bool_]]:
    keys = np.stack([rows[name] for name in PLACE])
    return [(keys == key[:, None]).all(axis=0) for key in np.unique(keys, axis=1).T]


def _lengths_us(rows: Columns) -> Floats:
    lengths = (rows["end_us"] - rows["start_us"]).astype(np.float64)
    return np.where(lengths > 0, lengths, np.nan)


def _payload_bytes(record: RunRecord | Mapping[str, Any], rows: Columns) -> Floats:
    """Payload of a whole packet of each row's stream; NaN where the record does not know."""
    payload = np.full(len(rows["end"]), np.nan)
    for stream in record["streams"]:
        packet = stream["granted"]["packet_bytes"]
        if packet:
            mine = (rows["end"] == stream["end"]) & (rows["stream"] == stream["stream"])
            payload[mine] = packet - UDT_HEADER_BYTES
    return payload


def json_columns(table: Mapping[str, Floats]) -> dict[str, list[int | float | None]]:
    """The table as JSON has it: whole numbers as integers, what is not known as null."""
    whole = {*PLACE, *(field.name for field in FIELDS if field.whole)}
    return {
        name: [
            None if value != value else int(value) if name in whole else value
            for value in column.tolist()
        ]
        for name, column in table.items()
    }
