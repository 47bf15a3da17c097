"""Data files of flent (`.flent`, `.flent.gz`), of every version of its format.

A test has series of measurements at equal steps. The series of uploads, and those of downloads,
are one transfer each: the sum of the series' means (the tool's own mean where flent has it), as
many streams as there are series. Sums and averages that flent computed are left out. The
round-trip time is the smallest that a ping of the same test measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from farline.ingest.documents import Document, Found, documents, part
from farline.ingest.format import Format
from farline.ingest.reading import Reading
from farline.ingest.rows import (
    NotATransfer,
    Record,
    Row,
    Unreadable,
    address,
    number,
    tables,
    time_us,
    word,
)
from farline.spec.units import parse_rate

if TYPE_CHECKING:
    import pyarrow as pa

_WAY = re.compile(r"\b(up|down)(?:load)?s?\b", re.IGNORECASE)
_COMPUTED = re.compile(r"\b(?:avg|average|mean|sum|totals?|fairness|min|max)\b", re.IGNORECASE)
_PING = re.compile(r"\bping\b|\bRTT\b", re.IGNORECASE)
_COMPUTED_BY = ("Average", "Sum", "Diff", "Max", "Min", "Fairness", "Null", "Compute")


def rows_of(document: Document) -> list[Row]:
    """A row for each direction of a test and host it went to.

    Raises:
        NotATransfer: when the test measured no throughput.
        Unreadable: when it is no data file of flent.
    """
    metadata, results = part(document, "metadata"), document.get("results")
    if not metadata or not isinstance(results, dict):
        raise Unreadable("no data of flent: metadata or results are missing")
    series = part(metadata, "SERIES_META")
    groups: dict[tuple[str, str | None], list[str]] = {}
    for name in results:
        if way := _way(name, part(series, name)):
            host = word(part(series, name).get("HOST")) or word(metadata.get("HOST"))
            groups.setdefault((way, host), []).append(name)
    if not groups:
        raise NotATransfer("test without throughput")
    return [_row(metadata, results, names, way, host) for (way, host), names in groups.items()]


def _way(name: str, meta: Document) -> str | None:
    """`up` or `down` for a measured series of throughput, None for any other."""
    match = _WAY.search(name)
    computed = (word(meta.get("RUNNER")) or "").startswith(_COMPUTED_BY)
    if match is None or computed or _COMPUTED.search(name) or _PING.search(name):
        return None
    units = word(meta.get("UNITS"))
    return match[1].lower() if units is None or "bit" in units.lower() else None


def _row(
    metadata: Document,
    results: Mapping[str, object],
    names: list[str],
    way: str,
    host: str | None,
) -> Row:
    series = part(metadata, "SERIES_META")
    means = [_mean_bps(results[name], part(series, name)) for name in names]
    measured = [mean for mean in means if mean is not None]
    here, there = address(metadata.get("LOCAL_HOST")), address(host)
    controls = {word(part(series, name).get("CONG_CONTROL")) for name in names}
    # flent's own settings: LENGTH is of the load, TOTAL_LENGTH with what comes before and after.
    length_s = number(metadata.get("LENGTH")) or number(metadata.get("TOTAL_LENGTH"))
    whole = len(measured) == len(names)
    return {
        "modality": "T",
        "started_at": time_us(metadata.get("TIME")),
        "duration_s": length_s,
        "rate_bps": math.fsum(measured) if whole else None,
        "complete": whole,
        "code": None if whole else f"{len(names) - len(measured)} series without values",
        "from_host": here if way == "up" else there,
        "to_host": there if way == "up" else here,
        "rtt_ms": _least_ping_ms(results, series),
        "streams": len(names),
        "congestion_control": controls.pop() if len(controls) == 1 else None,
        "transport": "udp" if all("UDP" in name for name in names) else "tcp",
    }


def _mean_bps(values: object, meta: Document) -> float | None:
    unit = word(meta.get("UNITS")) or "Mbits/s"
    try:
        scale = parse_rate("1" + unit.replace("bits", "bit"))
    except ValueError:
        raise Unreadable(f"rates in {unit[:20]!r}, which is no unit that is known") from None
    mean = number(meta.get("MEAN_VALUE"))
    if mean is None:
        known = _numbers(values)
        if not known:
            return None
        mean = math.fsum(known) / len(known)
    return mean * scale


def _least_ping_ms(results: Mapping[str, object], series: Document) -> float | None:
    least = math.inf
    for name, values in results.items():
        meta = part(series, name)
        computed = (word(meta.get("RUNNER")) or "").startswith(_COMPUTED_BY)
        if _PING.search(name) and not computed and (word(meta.get("UNITS")) or "ms") == "ms":
            least = min([least, *(value for value in _numbers(values) if value > 0)])
    return least if math.isfinite(least) else None


def _numbers(values: object) -> list[float]:
    found = (number(value) for value in values) if isinstance(values, list) else ()
    return [value for value in found if value is not None]


def _records(reading: Reading) -> Iterator[Record]:
    for found in documents(reading):
        yield from _from_document(reading, found)


def _from_document(reading: Reading, found: Found) -> Iterator[Record]:
    try:
        for row in rows_of(found.document):
            yield Record(found.line, found.text, row)
    except NotATransfer as reason:
        reading.skip(str(reason))
    except Unreadable as reason:
        reading.malformed(found.line, found.text, str(reason))


def read(reading: Reading) -> Iterator[pa.Table]:
    """Tables of a data file."""
    return tables(reading, "flent", _records(reading))


_DETECT = re.compile(
    r'"(?:SERIES_META|FLENT_VERSION|NETPERF_WRAPPER_VERSION|BATCH_UUID|DATA_FILENAME)"'
)


def _detect(start: str) -> bool:
    return '"metadata"' in start and bool(_DETECT.search(start))


FORMAT = Format("flent", "data file of flent", _detect, read)
