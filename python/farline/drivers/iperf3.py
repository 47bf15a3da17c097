"""iperf3: TCP and UDP from memory to memory.

Its exit code is 0 with `-J` even where nothing came about (3.12): the document says what it came
to. `-w` sets both buffers of both ends. Times are whole seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from farline.drivers.driver import Abilities, Driver, Figures, Flow, Task, refuse
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of
from farline.errors import ProtocolError
from farline.formats import iperf3 as iperf3_format

UDP_BLOCK_BYTES = 1448
"""Payload of a datagram that fits into an Ethernet frame of 1500 bytes."""

_COLUMNS = (
    "end", "stream", "role", "start_us", "end_us", "bytes", "packets", "lost_packets", "jitter_ns",
    "retransmits", "rtt_us", "rttvar_us", "cwnd_bytes", "path_mtu_bytes",
)  # fmt: skip


class Iperf3(Driver):
    """iperf3, 3.7 or later."""

    name = "iperf3"
    title = "TCP and UDP throughput between memories"
    program = server_program = "iperf3"
    package = "the Debian package iperf3"
    usual_port = 5201
    version_pattern = r"iperf (\S+)"
    abilities = Abilities(
        "tester",
        {
            "streams": "-P",
            "duration_s": "-t",
            "total_bytes": "-n",
            "omit_s": "-O",
            "block_bytes": "-l",
            "rate_bps": "-b",
            "ip_version": "-4, -6",
            "tos": "-S",
            "flow_label": "-L",
            "client_cpus": "-A",
            "tcp.congestion_control": "-C",
            "tcp.send_buffer_bytes": "-w",
            "tcp.receive_buffer_bytes": "-w",
            "tcp.mss_bytes": "-M",
            "tcp.no_delay": "-N",
            "udp.send_buffer_bytes": "-w",
            "udp.receive_buffer_bytes": "-w",
        },
        transports=("tcp", "udp"),
        directions=("forward", "reverse", "bidirectional"),
    )

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Datagrams that need no fragments."""
        return {"block_bytes": UDP_BLOCK_BYTES} if document.get("transport") == "udp" else {}

    def check(self, task: Task) -> None:
        """Whole seconds, one size for both buffers, one CPU."""
        for path in ("duration_s", "omit_s"):
            if task.get(path, 0) != int(task.get(path, 0)):
                raise refuse(self.name, path, f"takes whole seconds, not {task.get(path):g} s")
        buffer_of_both(self.name, task)
        if len(task.get("client_cpus", [])) > 1:
            raise refuse(self.name, "client_cpus", "pins its client to one CPU; name one")

    def server_words(self, task: Task, program: str) -> list[str]:
        """A server for this run."""
        return [program, "-s", "-p", str(task.port), "-B", task.address]

    def client_words(self, task: Task, program: str) -> list[str]:
        """One test, told as JSON with an interval of the spec."""
        words = [program, "-c", task.address, "-p", str(task.port), "-J"]
        words += ["-i", f"{min(60.0, max(0.1, task.get('interval_s', 1.0))):g}"]
        words += ["--connect-timeout", str(task.get("connect_timeout_ms", 10_000))]
        words += [*self._length(task), *self._way(task)]
        words += task.flag("-P", "streams") + task.flag("-l", "block_bytes")
        if (rate_bps := task.get("rate_bps")) is not None:
            words += ["-b", str(rate_bps)]
        if size_bytes := buffer_of_both(self.name, task):
            words += ["-w", str(size_bytes)]
        words += task.flag("-C", "tcp.congestion_control") + task.flag("-M", "tcp.mss_bytes")
        words += ["-N"] if task.get("tcp.no_delay") else []
        words += task.flag("-S", "tos") + task.flag("-L", "flow_label")
        cpus = task.get("client_cpus")
        return [*words, *(["-A", str(cpus[0])] if cpus else []), *ip_version(task)]

    def _length(self, task: Task) -> list[str]:
        length = task.flag("-n", "total_bytes")
        if not length:
            length = ["-t", str(int(task.get("duration_s", 10)))]
        omit_s = int(task.get("omit_s", 0))
        return [*length, *(["-O", str(omit_s)] if omit_s else [])]

    def _way(self, task: Task) -> list[str]:
        ways = {"reverse": ["-R"], "bidirectional": ["--bidir"]}
        udp = ["-u"] if task.get("transport") == "udp" else []
        return [*udp, *ways.get(task.get("direction", "forward"), [])]

    def read(self, task: Task, ended: Ended) -> Figures:
        """What the document says; `error` in it is a failure whatever the exit code."""
        try:
            document: dict[str, Any] = json.loads(ended.output)
        except ValueError:
            raise failure_of(self.name, ended) from None
        if error := document.get("error"):
            raise failure_of(self.name, ended, [str(error)])
        flows = [_flow(row) for row in iperf3_format.rows_of(document)]
        if not flows or any(not flow.bytes for flow in flows):
            raise ProtocolError("iperf3 failed: it reports that nothing arrived")
        ways = {"bidirectional": ("forward", "reverse")}.get(
            task.get("direction", "forward"), (task.get("direction", "forward"),)
        )
        return Figures(dict(zip(ways, flows, strict=False)), **_sums(document, len(ways)))


def buffer_of_both(tool: str, task: Task) -> int | None:
    """The one size that a tool gives to both buffers.

    Raises:
        SpecError: when two sizes are asked for, or one of one buffer alone.
    """
    section = task.get("transport", "tcp")
    paths = [f"{section}.{end}_buffer_bytes" for end in ("send", "receive")]
    sizes = {task.get(path) for path in paths}
    if len(sizes) > 1:
        raise refuse(tool, paths[0], f"has one size for both buffers: give {paths[1]} the same")
    size: int | None = sizes.pop()
    return size


def ip_version(task: Task) -> list[str]:
    """`-4` or `-6` where it is stated."""
    return {"v4": ["-4"], "v6": ["-6"]}.get(task.get("ip_version", "any"), [])


def _flow(row: Mapping[str, Any]) -> Flow:
    return Flow(row.get("bytes"), row.get("duration_s"), row.get("rate_bps"))


def _sums(document: Mapping[str, Any], ways: int) -> dict[str, Any]:
    """Counts over all streams; of two directions one figure would say nothing of either."""
    end = document.get("end") or {}
    sent, udp = end.get("sum_sent") or {}, end.get("sum") or {}
    streams = [one.get("sender") or {} for one in end.get("streams") or []]
    means = [one["mean_rtt"] for one in streams if one.get("mean_rtt")]
    least = [one["min_rtt"] for one in streams if one.get("min_rtt")]
    found: dict[str, Any] = {
        "congestion_control": end.get("sender_tcp_congestion"),
        "mean_rtt_us": sum(means) / len(means) if means else None,
        "min_rtt_us": min(least) if least else None,
        "samples": _samples(document),
    }
    if ways > 1:
        return found
    found["retransmits"] = sent.get("retransmits")
    if "lost_packets" in udp:
        found.update(sent_packets=udp.get("packets"), lost_packets=udp.get("lost_packets"))
        found["jitter_ns"] = round(1e6 * udp.get("jitter_ms", 0.0))
    return found


def _samples(document: Mapping[str, Any]) -> dict[str, list[int]]:
    """The client's intervals as rows of samples, those that `-O` left out included."""
    rows = list(_rows(document))
    return {name: [row[at] for row in rows] for at, name in enumerate(_COLUMNS)} if rows else {}


def _rows(document: Mapping[str, Any]) -> Iterator[tuple[int, ...]]:
    numbers: dict[Any, int] = {}
    shift_s = float(_omitted_s(document))
    for interval in document.get("intervals") or []:
        for one in interval.get("streams") or []:
            number = numbers.setdefault(one.get("socket"), len(numbers))
            start_s = 0.0 if one.get("omitted") else shift_s
            jitter_ms = one.get("jitter_ms")
            yield (
                0, number, 0 if one.get("sender", True) else 1,
                round(1e6 * (start_s + one["start"])), round(1e6 * (start_s + one["end"])),
                int(one["bytes"]), one.get("packets", -1), one.get("lost_packets", -1),
                -1 if jitter_ms is None else round(1e6 * jitter_ms), one.get("retransmits", -1),
                one.get("rtt", -1), one.get("rttvar", -1), one.get("snd_cwnd", -1),
                one.get("pmtu", -1),
            )  # fmt: skip


def _omitted_s(document: Mapping[str, Any]) -> float:
    start = (document.get("start") or {}).get("test_start") or {}
    return float(start.get("omit") or 0)
