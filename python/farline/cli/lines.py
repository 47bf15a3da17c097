"""Text of a run: interval lines, the summary, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from farline.cli.blast_text import blast_lines
from farline.cli.driven_text import driven_lines
from farline.cli.files_text import copy_lines, copy_words
from farline.cli.option_words import spoken
from farline.cli.path_text import path_lines
from farline.profiles.copy_streams import data_streams, is_copy
from farline.profiles.driven import is_driven
from farline.profiles.intervals import Interval
from farline.spec._types import Granted, RunRecord, RunSpec, Summary, Throughput
from farline.spec.units import (
    duration_text,
    rate_human,
    rate_text,
    size_human,
    size_text,
    time_human,
)

SHORT_S = 0.05
"""Seconds of a run below which use of CPUs cannot be told: set-up and end are most of it."""

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(rates: Sequence[float], width: int = 30) -> str:
    """The last `width` rates as bars, from nothing to the largest."""
    shown = list(rates)[-width:]
    top = max(shown, default=0.0)
    if top <= 0:
        return _BLOCKS[0] * len(shown)
    return "".join(_BLOCKS[min(7, int(rate / top * 7.999))] for rate in shown)


def spec_line(spec: RunSpec, address: str) -> str:
    """What is about to run, in one line."""
    transport = spec.get("transport", "tcp")
    streams = spec.get("streams", 1)
    tool = spec.get("tool", "native")
    by, where = "", address
    if tool != "native":
        # farline's own port says nothing of another tool's server.
        by, where = f"{tool}, ", address.removesuffix(":5470")
    words = [f"{by}{transport} to {where}", spec.get("direction", "forward")]
    words.append(f"{streams} stream{'s' if streams != 1 else ''}")
    files = bool(spec.get("copy"))
    if not files and transport not in ("udp", "rbudp") and (block := spec.get("block_bytes")):
        words.append(f"block {size_text(block)}")
    if transport in ("udp", "udt", "rbudp", "quic"):
        words.append(_packet_text(spec, transport))
    if transport == "udt":
        words.append((spec.get("udt") or {}).get("congestion_control", "bbr"))
    if transport == "quic":
        words.append((spec.get("quic") or {}).get("congestion_control", "cubic"))
    if transport == "rbudp":
        words += _blast_words(spec)
    if rate := spec.get("rate_bps"):
        words.append(f"rate {rate_text(rate)} per stream")
    return ", ".join([*words, copy_words(spec) if files else _length_text(spec)])


def _length_text(spec: RunSpec) -> str:
    if total := spec.get("total_bytes"):
        return f"{size_text(total)} in total"
    return duration_text(spec.get("duration_s") or 10.0)


def _packet_text(spec: RunSpec, transport: Literal["udp", "udt", "rbudp", "quic"]) -> str:
    packet = (spec.get(transport) or {}).get("packet_bytes")
    return f"packet {size_text(packet)}" if packet else "packet size from the MTU"


def _blast_words(spec: RunSpec) -> list[str]:
    """Payload of a blast, how many go at once, the receiver, the file."""
    options = spec.get("rbudp") or {}
    payload, at_once = options.get("payload_bytes"), options.get("in_flight")
    words = [f"blasts of {size_text(payload)}"] if payload else []
    words += [f"{at_once} at once"] if at_once else []
    words += [f"receiver {options['receiver']}"] if "receiver" in options else []
    name = options.get("file")
    return [*words, f"file {name}"] if name else words


def interval_cells(interval: Interval, transport: str, both_ways: bool) -> list[str]:
    """Cells of one line: time, rate (sent and received), and what the transport knows."""
    cells = [f"{interval.start_s:.2f}-{interval.end_s:.2f} s"]
    sides = (True, False) if both_ways else (bool(interval.side(sends=True)),)
    cells += [rate_human(interval.bits_per_second(side)) for side in sides]
    own_cells = {"udp": _udp_cells, "rbudp": _rbudp_cells}.get(transport, _tcp_cells)
    cells += own_cells(interval)
    if transport == "udt":
        cells += _udt_cells(interval)
    return [*cells, cpu_cell(interval.cpu)]


def cpu_cell(cpu: float | None) -> str:
    """CPU use of one end, in percent of one CPU."""
    return "-" if cpu is None else f"{100 * cpu:.0f} %"


def interval_heads(transport: str, both_ways: bool, receives: bool = False) -> list[str]:
    """Heads of the columns of `interval_cells`: rates are what this end sends or receives."""
    rates = ["sent", "received"] if both_ways else ["received" if receives else "sent"]
    facts = {
        "udp": ["lost", "jitter"],
        "udt": ["resent", "RTT", "cwnd", "flight", "lost"],
        "rbudp": ["missing", "repeated", "RTT"],
    }
    return ["interval", *rates, *facts.get(transport, ["retransmits", "RTT", "cwnd"]), "CPU local"]


def _tcp_cells(interval: Interval) -> list[str]:
    retransmits, rtt_us = interval.total("retransmits"), interval.mean("rtt_us")
    cwnd_bytes = interval.mean("cwnd_bytes")
    return [
        "-" if retransmits is None else str(retransmits),
        "-" if rtt_us is None else time_human(rtt_us),
        "-" if cwnd_bytes is None else size_human(cwnd_bytes),
    ]


def _udt_cells(interval: Interval) -> list[str]:
    """Packets under way; packets found missing, by the receiver here or as it told the sender."""
    flight, lost = interval.mean("flight_packets"), interval.total("lost_packets")
    return ["-" if flight is None else f"{flight:.0f}", "-" if lost is None else str(lost)]


def _rbudp_cells(interval: Interval) -> list[str]:
    """Packets found missing, by the receiver here or as it told the sender; packets sent again."""
    missing, repeated = interval.total("lost_packets"), interval.total("retransmits")
    rtt_us = interval.mean("rtt_us")
    return [
        "-" if missing is None else str(missing),
        "-" if repeated is None else str(repeated),
        "-" if rtt_us is None else time_human(rtt_us),
    ]


def _udp_cells(interval: Interval) -> list[str]:
    receivers = interval.side(sends=False)
    if not receivers:
        return ["-", "-"]
    lost = sum(stream.lost_packets for stream in receivers if stream.lost_packets != -1)
    jitters = [stream.jitter_ns for stream in receivers if stream.jitter_ns >= 0]
    jitter = time_human(sum(jitters) / len(jitters) / 1000) if jitters else "-"
    return [str(lost), jitter]


def summary_lines(record: RunRecord) -> list[str]:
    """What the run came to: throughput both ways, losses, round-trip time, CPU."""
    summary = record.get("summary")
    if summary is None:
        return []
    dry = " (dry run)" if (record["spec"].get("copy") or {}).get("dry_run") else ""
    lines = [f"run {record['run_id']}: {record['status']}{dry}"]
    for way, throughput in (("forward", summary["forward"]), ("reverse", summary["reverse"])):
        if throughput is not None:
            text = _throughput_text(throughput, is_copy(record), is_driven(record))
            lines.append(f"{way:<9}{text}")
    lines += [
        line
        for line in (_loss_line(summary), _rtt_line(summary), _cpu_line(summary, record["run_s"]))
        if line
    ]
    lines += blast_lines(record)
    lines += driven_lines(record)
    lines += copy_lines(record)
    lines += path_lines(record)
    return lines + [f"{'granted':<9}{line}" for line in granted_lines(record)]


def _throughput_text(throughput: Throughput, of_copy: bool, is_tool: bool) -> str:
    moved = f"{size_human(throughput['bytes'])} in {throughput['elapsed_s']:.2f} s"
    if not throughput["bytes"]:
        return f"no data arrived, so there is no rate; {moved}"
    if is_tool:
        return f"{rate_human(throughput['total_bps'])} total; {moved}"
    steady = _steady_text(throughput, of_copy)
    return f"{rate_human(throughput['total_bps'])} total, {steady}; {moved}"


def _steady_text(throughput: Throughput, of_copy: bool) -> str:
    rule, steady_bps = throughput["warmup_rule"], throughput["steady_bps"]
    if rule == "none":
        if of_copy:
            return "no steady state found (MSER-5)"
        return "no steady state found (MSER-5; try a longer run or -O SECONDS)"
    if steady_bps is None:
        return f"nothing left after the warm-up of {throughput['omitted_s']:g} s ({rule})"
    return f"{rate_human(steady_bps)} steady after {throughput['omitted_s']:g} s ({rule})"


def _loss_line(summary: Summary) -> str:
    sent, lost, resent = summary["sent_packets"], summary["lost_packets"], summary["retransmits"]
    if sent is not None and resent is not None:
        missing = "" if lost is None else f"; {lost} reported missing ({_share_text(lost, sent)})"
        again = f"{resent} of them retransmissions ({_share_text(resent, sent)})"
        return f"{'packets':<9}{sent} sent, {again}{missing}"
    if sent is not None:
        share = f" ({100 * lost / sent:.3g} %)" if lost is not None and sent else ""
        jitter_ns = summary["jitter_ns"]
        jitter = f", jitter {time_human(jitter_ns / 1000)}" if jitter_ns is not None else ""
        known = "loss not known" if lost is None else f"{lost} lost{share}"
        return f"{'packets':<9}{sent} sent, {known}{jitter}"
    if resent is None:
        return ""
    return f"{'loss':<9}{resent} segment{'' if resent == 1 else 's'} retransmitted"


def _share_text(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %" if whole else "0 %"


def _rtt_line(summary: Summary) -> str:
    if summary["mean_rtt_us"] is None:
        return ""
    smallest = summary["min_rtt_us"]
    rest = f", smallest {time_human(smallest)}" if smallest is not None else ""
    return f"{'RTT':<9}{time_human(summary['mean_rtt_us'])} on average{rest}"


def _cpu_line(summary: Summary, run_s: float) -> str:
    if run_s < SHORT_S:
        return f"{'CPU':<9}the run was too short to measure it ({time_human(run_s * 1e6)})"
    per_gb = summary["cpu_s_per_gb"]
    cost = f"; {per_gb:.3g} CPU s per GB, both ends" if per_gb is not None else ""
    known = {"client": summary["client_cpu"], "server": summary["server_cpu"]}
    shares = [f"{end} {100 * share:.0f} %" for end, share in known.items() if share is not None]
    return f"{'CPU':<9}{', '.join(shares)} of one CPU{cost}" if shares else ""


def granted_lines(record: RunRecord) -> list[str]:
    """What the kernel granted and the server changed, each thing said once for all streams."""
    # UDT's own buffers are as asked for; the kernel grants those of UDP sockets.
    socket = "UDP " if record["spec"].get("transport") in ("udt", "rbudp", "quic") else ""
    alike: dict[tuple[str, tuple[str, ...]], list[Granted]] = {}
    for stream in data_streams(record):
        granted, end = stream["granted"], ("client", "server")[stream["end"]]
        texts = (
            granted["congestion_control"],
            f"MSS {granted['mss_bytes']}" if granted["mss_bytes"] else None,
            f"packets of {granted['packet_bytes']} B" if granted["packet_bytes"] else None,
        )
        alike.setdefault((end, tuple(text for text in texts if text)), []).append(granted)
    lines = []
    for (end, facts), streams in alike.items():
        known = [*facts, *_buffer_texts(streams, socket)]
        lines += [f"{end}: {', '.join(known)}"] if known else []
        lines += [f"{end}: {note}" for granted in streams for note in granted["notes"]]
    return list(dict.fromkeys([*lines, *(f"server: {note}" for note in record["server_notes"])]))


def _buffer_texts(streams: Sequence[Granted], socket: str) -> Iterator[str]:
    """The buffers of streams that are alike in all else: `send buffer 2.5 MiB to 4 MiB`."""
    sizes = {
        "send": [granted["send_buffer_bytes"] or 0 for granted in streams],
        "receive": [granted["receive_buffer_bytes"] or 0 for granted in streams],
    }
    for name, found in sizes.items():
        if known := sorted(size for size in found if size):
            least, most = size_human(known[0]), size_human(known[-1])
            yield f"{socket}{name} buffer {least if least == most else f'{least} to {most}'}"


def brief_lines(record: RunRecord) -> list[str]:
    """Of a run that is one of several: its throughput and what limited it, in a line."""
    summary, verdict = record.get("summary"), record.get("verdict")
    if summary is None or verdict is None:
        return []
    ways = [way for way in (summary["forward"], summary["reverse"]) if way is not None]
    rates = [rate_human(way["total_bps"]) if way["bytes"] else "nothing" for way in ways]
    moved = " and ".join(rates) or "nothing"
    return [f"run {record['run_id']}: {moved}; {verdict_lines(record)[0]}"]


def verdict_lines(record: RunRecord) -> list[str]:
    """The verdict, what it rests on, and what would lift the limit."""
    verdict = record.get("verdict")
    if verdict is None:
        return []
    lines = [f"limited by {verdict['line']}" if verdict["limit"] != "unknown" else verdict["line"]]
    lines += [f"  {spoken(line)}" for line in verdict["evidence"]]
    return lines + [f"  try: {remedy}" for remedy in verdict["remedies"]]
