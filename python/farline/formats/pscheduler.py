"""Results of perfSONAR's pScheduler: throughput tests, in their envelope or the result alone.

The envelope (what archivers get) says hosts, time and what was asked; the result alone does not.
Archivers write it with `run` and `task` since 4.2, before without. `throughput-bytes` holds bytes
from iperf3, whatever its description says, and bytes a second from ethr and, since 5.1, iperf2.
The rate is the receiver's where the result has it; of UDP else what was sent less what was lost
(nuttcp's own rate is what arrived), which must be said. Round-trip times are iperf3's, in
microseconds. Whether it was UDP says the task; of a result alone its figures do, where they are
numbers: some tools write `"sent": null` for TCP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from farline.formats.documents import Document, Found, documents, items, part
from farline.formats.format import Format
from farline.formats.reading import Reading
from farline.formats.rows import (
    NotATransfer,
    Record,
    Row,
    Unreadable,
    above_zero,
    address,
    number,
    tables,
    time_us,
    whole,
    word,
)
from farline.formats.tally import excerpt

if TYPE_CHECKING:
    import pyarrow as pa


def parse_document(document: Document) -> Row:
    """The row of one result.

    Raises:
        NotATransfer: for tests that are no throughput tests, and runs that did not take place yet.
        Unreadable: for what is no result.
    """
    inner = part(document, "result")
    # What archivers are given has what they write inside.
    outer = inner if part(inner, "test") else document
    if part(outer, "test") or "run" in outer or "task" in outer:
        return _enveloped(outer)
    if "succeeded" not in document:
        raise Unreadable("not a pScheduler result")
    return _result_row(document, {}, None)


def _enveloped(outer: Document) -> Row:
    task = outer if part(outer, "test") else part(outer, "task")
    run = part(outer, "run")
    test = part(task, "test")
    kind = word(test.get("type"))
    if kind != "throughput":
        raise NotATransfer(f"test of type {excerpt(kind or 'unknown')}")
    spec, state = part(test, "spec"), word(run.get("state")) or "finished"
    if state in ("scheduling", "pending", "on-deck", "running", "cleanup"):
        raise NotATransfer("not finished")
    found = _result(outer, run)
    ends = address(spec.get("source")), address(spec.get("dest") or spec.get("destination"))
    row: Row = {
        "started_at": time_us(run.get("start-time") or part(outer, "schedule").get("start")),
        "from_host": ends[1] if spec.get("reverse") is True else ends[0],
        "to_host": ends[0] if spec.get("reverse") is True else ends[1],
        "buffer_bytes": above_zero(spec.get("window-size")),
        "block_bytes": above_zero(spec.get("buffer-length")),
        "congestion_control": word(spec.get("congestion")),
    }
    if not found or (state != "finished" and found.get("succeeded") is True):
        return {**row, "modality": "T", "complete": False, "code": excerpt(state)}
    tool = word(task.get("tool")) or word(part(task, "tool").get("name"))
    return {**row, **_result_row(found, spec, tool)}


def _result(outer: Document, run: Document) -> Document:
    """What all participants came to; `result` of a run is that of one of them."""
    if "result-merged" in run:
        return part(run, "result-merged")
    return part(run, "result") or part(outer, "result")


def _result_row(result: Document, spec: Document, tool: str | None) -> Row:
    summary = part(result, "summary")
    streams = items(summary, "streams")
    total = part(summary, "summary")
    udp = _is_udp(spec, total, streams)
    row: Row = {
        "modality": "T",
        "streams": above_zero(spec.get("parallel")) or len(streams) or None,
        "transport": None if udp is None else "udp" if udp else "tcp",
    }
    if result.get("succeeded") is not True:
        reason = word(result.get("error")) or word(result.get("diags")) or "not succeeded"
        return {**row, "complete": False, "code": excerpt(reason.splitlines()[0])}
    if not total and not spec:
        raise NotATransfer("result of another test")
    first, last = number(total.get("start")), number(total.get("end"))
    return {
        **row,
        "duration_s": None if first is None or last is None else last - first,
        **_figures(total, streams, bool(udp), tool),
        "rtt_ms": _rtt_ms(result, streams) if tool in (None, "iperf3") else None,
        "retransmits": None if udp else whole(total.get("retransmits")),
    }


def _is_udp(spec: Document, total: Document, streams: list[Document]) -> bool | None:
    """Whether the test was UDP, by the task, or by figures that only one of them has."""
    if spec:
        # The task leaves out what is false.
        return spec.get("udp") is True
    figures = [total, *streams]
    if any(number(one.get(name)) is not None for one in figures for name in ("sent", "lost")):
        return True
    tcp = any(number(one.get("retransmits")) is not None for one in figures)
    return False if tcp else None


def _figures(total: Document, streams: list[Document], udp: bool, tool: str | None) -> Row:
    moved, sent_bps = number(total.get("throughput-bytes")), number(total.get("throughput-bits"))
    received_bps = number(total.get("receiver-throughput-bits"))
    arrived = 1.0
    sender = moved is not None if tool is None else tool != "nuttcp"
    if udp and sender:
        # The sum may leave losses out that its streams have.
        said = any(number(one.get("lost")) is not None for one in (total, *streams))
        if not said and received_bps is None:
            raise Unreadable("the result does not say how much arrived")
        lost = max(number(total.get("lost")) or 0.0, _sum(streams, "lost"))
        sent = number(total.get("sent")) or _sum(streams, "sent")
        arrived = max(0.0, 1.0 - lost / sent) if sent else 1.0
    if moved is not None and sent_bps is not None and abs(moved - sent_bps / 8) <= 1:
        # Bytes a second. Of a test of one second they are the bytes, which the rate says too.
        moved = None
    return {
        "bytes": None if moved is None else round(moved * arrived),
        "rate_bps": received_bps or (None if sent_bps is None else sent_bps * arrived),
    }


def _rtt_ms(result: Document, streams: list[Document]) -> float | None:
    """The smallest round-trip time of any interval."""
    intervals = items(result, "intervals")
    everywhere = [*streams, *(one for interval in intervals for one in items(interval, "streams"))]
    rtts_us = (number(one.get("rtt")) for one in everywhere)
    least_us = min((rtt for rtt in rtts_us if rtt is not None and rtt > 0), default=None)
    return None if least_us is None else least_us / 1000


def _sum(streams: list[Document], name: str) -> float:
    return sum(number(one.get(name)) or 0.0 for one in streams)


def from_documents(reading: Reading, found: Found) -> Iterator[Record]:
    """The record of one document, if it is one."""
    try:
        yield Record(found.line, found.text, parse_document(found.document))
    except NotATransfer as reason:
        reading.skip(str(reason))
    except Unreadable as reason:
        reading.malformed(found.line, found.text, str(reason))


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a file with one or many results."""
    # `pscheduler task --format json` says first where and when the test runs.
    found = documents(reading, lambda line: None if "\ufffd" in line else "message")
    records = (one for document in found for one in from_documents(reading, document))
    return tables(reading, "pscheduler", records)


_DETECT = re.compile(r'"(?:receiver-)?throughput-bits"|"result-merged"|pscheduler|"succeeded"\s*:')

_BEGINS = re.compile(r"\A\s*[{\[]|\A\s*Submitting task\.\.\.$(?:.*\n)*?[{\[]", re.MULTILINE)

# The tables that pscheduler prints for people; what follows them may begin with a bracket.
_PRINTED = re.compile(r"^Interval {5,}Throughput {3,}", re.MULTILINE)


def is_json(start: str) -> bool:
    """Whether a text begins as results in JSON do, with or without what pscheduler says before."""
    return bool(_BEGINS.search(start) and _DETECT.search(start) and not _PRINTED.search(start))


FORMAT = Format(
    "pscheduler",
    "results of perfSONAR pScheduler throughput tests",
    is_json,
    read,
    version=4,
)
