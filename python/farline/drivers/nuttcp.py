"""nuttcp: TCP and UDP from memory to memory, one line of figures.

A rate is one for all its streams. Its server listens on every address of its host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farline.drivers.driver import Abilities, Driver, Figures, Flow, Task, refuse
from farline.drivers.iperf3 import UDP_BLOCK_BYTES, buffer_of_both, ip_version
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of, rows_of
from farline.errors import ProtocolError

MOST_STREAMS = 128


class Nuttcp(Driver):
    """nuttcp, 6.1 or later."""

    name = "nuttcp"
    title = "TCP and UDP throughput between memories"
    program = server_program = "nuttcp"
    package = "the Debian package nuttcp"
    usual_port = 5000
    version_words = ("-V",)
    version_pattern = r"nuttcp-(\S+)"
    abilities = Abilities(
        "tester",
        {
            "streams": "-N",
            "duration_s": "-T",
            "total_bytes": "-n",
            "block_bytes": "-l",
            "rate_bps": "-R",
            "ip_version": "-4, -6",
            "tos": "-c",
            "tcp.send_buffer_bytes": "-w",
            "tcp.receive_buffer_bytes": "-w",
            "tcp.mss_bytes": "-M",
            "tcp.no_delay": "-D",
        },
        transports=("tcp", "udp"),
    )

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Datagrams that need no fragments."""
        return {"block_bytes": UDP_BLOCK_BYTES} if document.get("transport") == "udp" else {}

    def check(self, task: Task) -> None:
        """What it has room for, and whole blocks."""
        if task.get("streams", 1) > MOST_STREAMS:
            raise refuse(self.name, "streams", f"has {MOST_STREAMS} at most")
        if task.get("streams", 1) > 1 and task.get("transport") == "udp":
            raise refuse(self.name, "streams", "has one stream of UDP only")
        for path in ("total_bytes", "tcp.send_buffer_bytes"):
            unit = task.get("block_bytes", 1) if path == "total_bytes" else 1024
            if task.get(path, 0) % unit:
                raise refuse(self.name, path, f"takes multiples of {unit} bytes")
        buffer_of_both(self.name, task)

    def server_words(self, task: Task, program: str) -> list[str]:
        """A server for this run, which sends to no third host."""
        return [program, "-S", "--nofork", "--no3rdparty", *ip_version(task), "-P", str(task.port)]

    def client_words(self, task: Task, program: str) -> list[str]:
        """One test; data ports follow the control port."""
        streams, rate_bps = task.get("streams", 1), task.get("rate_bps", 0)
        words = [program, "-t" if task.forward else "-r", "-fparse"]
        words += ["-P", str(task.port), "-p", str(task.port + 1)]
        words += ["-u"] if task.get("transport") == "udp" else []
        words += [f"-N{streams}"] if streams > 1 else []
        words += [f"-l{task.get('block_bytes')}"]
        if total_bytes := task.get("total_bytes"):
            words += [f"-n{total_bytes // task.get('block_bytes')}"]
        else:
            words += [f"-T{task.get('duration_s', 10):g}"]
        # In kilobits, and for all streams; without any UDP would be unlimited, which is 0 as well.
        words += [f"-R{max(1, rate_bps * streams // 1000)}"] if rate_bps else []
        if size_bytes := buffer_of_both(self.name, task):
            words += [f"-w{size_bytes // 1024}"]
        words += [f"-M{task.get('tcp.mss_bytes')}"] if task.get("tcp.mss_bytes") else []
        words += ["-D"] if task.get("tcp.no_delay") else []
        words += [f"-c{task.get('tos')}T"] if task.get("tos") else []
        return [*words, *ip_version(task), task.address]

    def read(self, task: Task, ended: Ended) -> Figures:
        """The line of the result."""
        rows = [row for row in rows_of(ended.output, "nuttcp") if row["complete"]]
        if ended.exit_code or not rows:
            raise failure_of(self.name, ended)
        row = rows[-1]
        if not row["bytes"]:
            raise ProtocolError("nuttcp failed: it reports that nothing arrived")
        flow = Flow(row["bytes"], row["duration_s"], row["rate_bps"])
        words = dict(word.split("=", 1) for word in ended.text.split() if "=" in word)
        rtt_ms = row["rtt_ms"]
        return Figures(
            {task.way: flow},
            retransmits=row["retransmits"],
            sent_packets=_whole(words.get("pkt")),
            lost_packets=_whole(words.get("drop")),
            min_rtt_us=None if rtt_ms is None else round(1000 * rtt_ms),
        )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
