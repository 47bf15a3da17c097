"""The fields of libudt's CPerfMon from the samples of a UDT run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from farline.profiles.perfmon import FIELDS, PLACE, json_columns, perfmon
from farline.spec._types import SAMPLE_COLUMNS
from tests.support.runs import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    columns,
    run_record,
    stream,
)

CPERFMON = (
    "msTimeStamp", "pktSentTotal", "pktRecvTotal", "pktSndLossTotal", "pktRcvLossTotal",
    "pktRetransTotal", "pktSentACKTotal", "pktRecvACKTotal", "pktSentNAKTotal", "pktRecvNAKTotal",
    "usSndDurationTotal", "pktSent", "pktRecv", "pktSndLoss", "pktRcvLoss", "pktRetrans",
    "pktSentACK", "pktRecvACK", "pktSentNAK", "pktRecvNAK", "mbpsSendRate", "mbpsRecvRate",
    "usSndDuration", "usPktSndPeriod", "pktFlowWindow", "pktCongestionWindow", "pktFlightSize",
    "msRTT", "mbpsBandwidth", "byteAvailSndBuf", "byteAvailRcvBuf",
)  # fmt: skip
"""As `struct CPerfMon` of libudt 4.11 declares them."""

SENT = {
    "packets": 1000, "lost_packets": 8, "retransmits": 9, "received_acks": 11, "received_naks": 2,
    "sent_acks": 0, "sent_naks": 0, "busy_us": 99_000, "send_period_ns": 1_170,
    "flow_window_packets": 8192, "cwnd_bytes": 1456 * 16, "flight_packets": 15, "rtt_us": 1_250,
    "link_capacity_bps": 20_000_000_000, "send_buffer_free_bytes": 5_000,
    "receive_buffer_free_bytes": 7_000,
}  # fmt: skip
CAME = {"packets": 992, "lost_packets": 8, "sent_acks": 11, "received_acks": 0, "sent_naks": 2,
        "received_naks": 0, "receive_buffer_free_bytes": 6_000}  # fmt: skip


def interval(end: int, role: int, index: int, **more: int) -> dict[str, int]:
    times = {"start_us": index * 100_000, "end_us": (index + 1) * 100_000}
    return {"end": end, "role": role, **times, **more}


def table(*rows: dict[str, int]) -> dict[str, list[float]]:
    packet = {"packet_bytes": 1472}
    record = run_record(
        stream(CLIENT, SENDER, **packet), stream(SERVER, RECEIVER, **packet),
        spec={"transport": "udt"},
    )  # fmt: skip
    made = perfmon(record, columns(rows))
    return {name: column.tolist() for name, column in made.items()}


def test_the_names_are_the_reference_librarys_in_its_order() -> None:
    assert tuple(field.name for field in FIELDS) == CPERFMON
    assert {field.source for field in FIELDS} <= set(SAMPLE_COLUMNS)
    header = Path("/usr/include/udt/udt.h")
    if header.exists():
        body = re.search(r"struct CPerfMon\s*{(.*?)}", header.read_text(), re.DOTALL)
        assert body
        assert tuple(re.findall(r"^\s*\w+ (\w+);", body[1], re.MULTILINE)) == CPERFMON


def test_counters_are_of_the_interval_and_totals_since_the_start() -> None:
    made = table(*(interval(CLIENT, SENDER, n, **SENT) for n in range(3)))
    assert made["pktSent"] == [1000, 1000, 1000]
    assert made["pktSentTotal"] == [1000, 2000, 3000]
    assert made["pktRetransTotal"][-1] == 27
    assert made["pktSndLossTotal"][-1] == 24
    assert made["usSndDurationTotal"][-1] == 297_000
    assert made["msTimeStamp"] == [100, 200, 300]


def test_gauges_have_the_reference_librarys_units() -> None:
    made = table(interval(CLIENT, SENDER, 0, **SENT))
    assert made["usPktSndPeriod"] == [1.17]
    assert made["msRTT"] == [1.25]
    assert made["pktCongestionWindow"] == [16]
    assert made["mbpsBandwidth"] == [20_000.0]
    assert (made["byteAvailSndBuf"], made["byteAvailRcvBuf"]) == ([5_000], [7_000])
    assert made["mbpsSendRate"] == [pytest.approx(1000 * 1456 * 8 / 100_000)]


def test_each_side_has_what_it_counts_and_not_what_the_other_does() -> None:
    made = table(interval(CLIENT, SENDER, 0, **SENT), interval(SERVER, RECEIVER, 0, **CAME))
    nan = pytest.approx(np.nan, nan_ok=True)
    assert made["pktSent"] == [1000, nan] and made["pktRecv"] == [nan, 992]
    assert made["pktSndLoss"] == [8, nan] and made["pktRcvLoss"] == [nan, 8]
    assert made["pktRecvACK"] == [11, 0] and made["pktSentACK"] == [0, 11]
    assert made["mbpsRecvRate"][1] == pytest.approx(992 * 1456 * 8 / 100_000)
    assert made["byteAvailRcvBuf"] == [7_000, 6_000]


def test_streams_are_counted_apart_whatever_the_order_of_their_rows() -> None:
    rows = [interval(CLIENT, SENDER, n, stream=s, **SENT) for n in (1, 0) for s in (1, 0)]
    made = table(*rows)
    assert made["stream"] == [0, 0, 1, 1]
    assert made["pktSentTotal"] == [1000, 2000, 1000, 2000]


def test_samples_of_an_older_farline_have_nothing_of_udt() -> None:
    record = run_record(spec={"transport": "udt"})
    known = {name: value for name, value in columns([interval(CLIENT, SENDER, 0)]).items()
             if name not in ("sent_acks", "flight_packets")}  # fmt: skip
    made = json_columns(perfmon(record, known))
    assert list(made) == [*PLACE, *CPERFMON]
    assert made["pktSentACKTotal"] == [None] and made["pktFlightSize"] == [None]
    assert made["msTimeStamp"] == [100]


def test_json_has_whole_numbers_and_null() -> None:
    record = run_record(spec={"transport": "udt"})
    made = json_columns(perfmon(record, columns([interval(CLIENT, SENDER, 0, packets=3)])))
    assert (made["pktSent"], made["pktSentTotal"], made["mbpsSendRate"]) == ([3], [3], [None])
    assert isinstance((made["pktSent"] or [0])[0], int)


def test_no_samples_give_empty_columns() -> None:
    record = run_record(spec={"transport": "udt"})
    assert set(map(tuple, json_columns(perfmon(record, columns([]))).values())) == {()}
