"""iperf, version 2: TCP from memory to memory.

What refuses a connection leaves exit code 0 and no line of figures. A line is of one stream; its
bytes are those that the client wrote, or read with `-R`: of a sender what its socket still held at
the end counts, too. Of UDP its client knows nothing of what arrived, so that is left out.
"""

from __future__ import annotations

import re

from farline.drivers.driver import Abilities, Driver, Figures, Flow, Task
from farline.drivers.iperf3 import buffer_of_both
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of

_LINE = re.compile(r"\d{14}(?:\.\d+)?,[^,]+,\d+,[^,]+,\d+,(\d+),([\d.]+)-([\d.]+),(\d+),(\d+)")


class Iperf2(Driver):
    """iperf 2.1 or later."""

    name = "iperf2"
    title = "TCP throughput between memories, by iperf 2"
    program = server_program = "iperf"
    package = "the Debian package iperf"
    usual_port = 5001
    version_words = ("-v",)
    version_pattern = r"iperf version (\S+)"
    abilities = Abilities(
        "tester",
        {
            "streams": "-P",
            "duration_s": "-t",
            "total_bytes": "-n",
            "block_bytes": "-l",
            "rate_bps": "-b",
            "tos": "-S",
            "tcp.congestion_control": "-Z",
            "tcp.send_buffer_bytes": "-w",
            "tcp.receive_buffer_bytes": "-w",
            "tcp.mss_bytes": "-M",
            "tcp.no_delay": "-N",
        },
    )

    def check(self, task: Task) -> None:
        """One size for both buffers."""
        buffer_of_both(self.name, task)

    def server_words(self, task: Task, program: str) -> list[str]:
        """A server for this run; `-w` is of each end's own sockets."""
        size_bytes = buffer_of_both(self.name, task)
        window = ["-w", str(size_bytes)] if size_bytes else []
        family = ["-V"] if ":" in task.address else []
        return [program, "-s", "-p", str(task.port), "-B", task.address, *window, *family]

    def client_words(self, task: Task, program: str) -> list[str]:
        """One test, as comma-separated values."""
        words = [program, "-c", task.address, "-p", str(task.port), "-yC"]
        words += task.flag("-P", "streams") + task.flag("-l", "block_bytes")
        if total_bytes := task.get("total_bytes"):
            words += ["-n", str(max(1, total_bytes // task.get("streams", 1)))]
        else:
            words += ["-t", f"{task.get('duration_s', 10):g}"]
        words += [] if task.forward else ["-R"]
        words += task.flag("-b", "rate_bps") + task.flag("-Z", "tcp.congestion_control")
        if size_bytes := buffer_of_both(self.name, task):
            words += ["-w", str(size_bytes)]
        words += task.flag("-M", "tcp.mss_bytes") + task.flag("-S", "tos")
        words += ["-N"] if task.get("tcp.no_delay") else []
        return [*words, *(["-V"] if ":" in task.address else [])]

    def read(self, task: Task, ended: Ended) -> Figures:
        """The streams' lines, added up."""
        found = [match.groups() for match in _LINE.finditer(ended.text)]
        rows = [row for row in found if int(row[3]) > 0]
        if ended.exit_code or len(rows) < task.get("streams", 1):
            raise failure_of(self.name, ended)
        size_bytes = sum(int(row[3]) for row in rows)
        # Times are printed in tenths; bytes over bits per second are finer.
        times = [8 * int(row[3]) / int(row[4]) for row in rows if int(row[4]) > 0]
        elapsed_s = max(times, default=ended.wall_s)
        return Figures(
            {task.way: Flow(size_bytes, elapsed_s, sum(float(row[4]) for row in rows))},
            notes=("iperf counts bytes at its client: a sender's last buffer may not have arrived",)
            if task.forward
            else (),
        )
