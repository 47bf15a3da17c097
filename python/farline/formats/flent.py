"""Data files of flent (`.flent`, `.flent.gz`), of every version of its format.

A test has series of measurements at equal steps. The series of uploads, and those of downloads,
are one transfer each for each host: the sum of the series' means (the tool's own mean where flent
has it), as many streams as there are series. Sums and averages that flent computed are left out,
and so are statistics: a series `X::tcp_rtt`, unlike `X::2` and what has a command of its own
(`X::label` of rrul_var), says something of X. Only where no series has a unit (the first version
of the format) is a rate without one in Mbit/s. The round-trip time is the smallest that a ping to
the same host measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.formats.documents import Document, Found, documents, part
from farline.formats.format import Format
from farline.formats.reading import Reading
from farline.formats.rows import (
    NotATransfer,
    Record,
    Row,
    Unreadable,
    address,
    number,
    read_records,
    time_us,
    word,
)
from farline.spec.units import parse_rate

if TYPE_CHECKING:
    pass

_WAY = re.compile(r"\b(up|down)(?:load)?s?\d*\b", re.IGNORECASE)
_TWIN = re.compile(r"//\d+$")
"""What flent puts behind a host that a test was told to go to twice."""
_COMPUTED = re.compile(r"\b(?:avg|average|mean|sum|totals?|fairness|min|max)\b", re.IGNORECASE)
_PING = re.compile(r"\bping\b|\bRTT\b", re.IGNORECASE)
_STATISTICS = ("cpu_stats_", "qdisc_stats_", "wifi_stats_", "netstat_", "sysctl_")
_DATA_HOST = re.compile(r"(?:^|\s)-H (\S+)")
_COMPUTED_BY = ("Average", "Sum", "Diff", "Max", "Min", "Fairness", "Null", "Compute")


def rows_of(document: Document) -> list[Row]:
    """A row for each direction of a test and host it went to.

    Raises:
        NotATransfer: when the test measured no throughput.
        Unreadable: when it is no data file of flent.
    """
    metadata, results = part(document, "metadata"), document.get("results")
    if not metadata or not isinstance(results, dict):
        raise Unreadable("not flent data: metadata or results are missing")
    series = _series(metadata, results)
    groups: dict[tuple[str, str | None, str | None], list[_Series]] = {}
    for one in series:
        if way := one.way:
            groups.setdefault((way, one.remote, one.host), []).append(one)
    if not groups:
        if any(one.measured and one.is_rate for one in series):
            raise NotATransfer("test whose series do not say whether they are uploads")
        raise NotATransfer("test without throughput")
    return [_row(metadata, series, members, way) for (way, _, _), members in groups.items()]


@dataclass(frozen=True, slots=True)
class _Series:
    """One series of measurements: its name, what is said of it, and the host it went to."""

    name: str
    meta: Document
    values: object
    unit: str | None
    host: str | None

    @property
    def remote(self) -> str | None:
        """The host that the tool ran on, where that is not the one flent ran on."""
        return word(self.meta.get("REMOTE_HOST"))

    @property
    def measured(self) -> bool:
        """Whether a tool measured it; flent computes some series from others."""
        runner = word(self.meta.get("RUNNER")) or ""
        return not (runner.startswith(_COMPUTED_BY) or _COMPUTED.search(self.name))

    @property
    def way(self) -> str | None:
        """`up` or `down` for throughput, None for any other series."""
        match = _WAY.search(self.name)
        if match is None or not self.measured or self.is_ping:
            return None
        return match[1].lower() if self.is_rate else None

    @property
    def is_rate(self) -> bool:
        """Whether it is of bits."""
        return self.unit is not None and "bit" in self.unit.lower()

    @property
    def is_ping(self) -> bool:
        """Whether it is of round-trip times."""
        return bool(_PING.search(self.name))


def _series(metadata: Document, results: Mapping[str, object]) -> list[_Series]:
    metas = part(metadata, "SERIES_META")
    units = {name: word(part(metas, name).get("UNITS")) for name in results}
    without = not any(units.values())
    found = []
    for name, values in results.items():
        meta = part(metas, name)
        # `X::2` is another stream of X, and so is `X::label`, which a tool ran for; `X::tcp_rtt`
        # is a statistic of it.
        is_said_of = re.fullmatch(r".*::(?!\d+$).*", name) and not word(meta.get("COMMAND"))
        if is_said_of or name.startswith(_STATISTICS):
            continue
        unit = ("ms" if _PING.search(name) else "Mbits/s") if without else units[name]
        found.append(_Series(name, meta, values, unit, _host(name, meta, metadata)))
    return found


def _host(name: str, meta: Document, metadata: Document) -> str | None:
    """The host that a series went to: its own, or the test's if that has but one."""
    if own := word(meta.get("HOST")):
        return _TWIN.sub("", own)
    listed = metadata.get("HOSTS")
    names = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    hosts = {_TWIN.sub("", one) for one in names}
    if len(hosts) < 2:
        return _TWIN.sub("", word(metadata.get("HOST")) or "") or None
    command = word(meta.get("COMMAND")) or ""
    # netperf names the host of the data last; ping and irtt end with their host.
    said = [*_DATA_HOST.findall(command)[-1:], *command.split()[-1:]]
    said.append(_TWIN.sub("", name.split()[-1]))
    return next((one for one in said if one in hosts), None)


def _row(
    metadata: Document, series: Sequence[_Series], members: Sequence[_Series], way: str
) -> Row:
    means = [_mean_bps(one) for one in members]
    measured = [mean for mean in means if mean is not None]
    first = members[0]
    here, there = address(first.remote or metadata.get("LOCAL_HOST")), address(first.host)
    controls = {word(one.meta.get("CONG_CONTROL")) for one in members}
    retransmits = [_count(one.meta.get("TCP_RETRANSMIT")) for one in members]
    # flent's own settings: LENGTH is of the load, TOTAL_LENGTH with what comes before and after.
    length_s = number(metadata.get("LENGTH")) or number(metadata.get("TOTAL_LENGTH"))
    complete = len(measured) == len(members)
    return {
        "modality": "T",
        "started_at": time_us(metadata.get("TIME")),
        "duration_s": length_s,
        "rate_bps": math.fsum(measured) if complete else None,
        "complete": complete,
        "code": None if complete else f"{len(members) - len(measured)} series without values",
        "from_host": here if way == "up" else there,
        "to_host": there if way == "up" else here,
        "rtt_ms": _least_ping_ms(one for one in series if one.host == first.host),
        "streams": len(members),
        "congestion_control": controls.pop() if len(controls) == 1 else None,
        "transport": _transport(members),
        "retransmits": None if None in retransmits else sum(filter(None, retransmits)),
    }


def _transport(members: Sequence[_Series]) -> str | None:
    """`tcp` or `udp` where the names of all series say so."""
    said = {kind for kind in ("tcp", "udp") for one in members if kind.upper() in one.name}
    return said.pop() if len(said) == 1 else None


def _count(value: object) -> int | None:
    """A count, which netperf may have given as text; it writes -1 for one it does not know."""
    text = str(value) if isinstance(value, int) else word(value)
    return int(text) if text and re.fullmatch(r"\d{1,15}", text, re.ASCII) else None


def _mean_bps(one: _Series) -> float | None:
    unit = one.unit or ""
    try:
        scale = parse_rate("1" + unit.replace("bits", "bit"))
    except ValueError:
        raise Unreadable(f"rates in {unit[:20]!r}, which is an unknown unit") from None
    mean = number(one.meta.get("MEAN_VALUE"))
    if mean is None:
        known = _numbers(one.values)
        if not known:
            return None
        mean = math.fsum(known) / len(known)
    return mean * scale


def _least_ping_ms(series: Iterable[_Series]) -> float | None:
    least = math.inf
    for one in series:
        if one.is_ping and one.measured and one.unit == "ms":
            least = min([least, *(value for value in _numbers(one.values) if value > 0)])
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


_DETECT = re.compile(
    r'"(?:SERIES_META|FLENT_VERSION|NETPERF_WRAPPER_VERSION|BATCH_UUID|DATA_FILENAME)"'
)


def _detect(start: str) -> bool:
    return '"metadata"' in start and bool(_DETECT.search(start))


FORMAT = Format("flent", "data file of flent", _detect, read_records("flent", _records), version=4)
