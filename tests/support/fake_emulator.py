"""An emulator that emulates nothing: what a keeper needs of one, answered from memory."""

from __future__ import annotations

import json
import os
import struct
from typing import Any


class FakeColumns:
    """Columns of whole numbers, as the extension gives them."""

    def __init__(self, columns: dict[str, list[int]]) -> None:
        self._columns = columns

    def names(self) -> list[str]:
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def column(self, name: str) -> bytes:
        values = self._columns[name]
        return struct.pack(f"<{len(values)}q", *values)


class FakeEmulator:
    """Two hosts on one link, whose namespaces are this process's own."""

    def __init__(self, topology: Any) -> None:
        self._topology = topology
        self.now = topology
        self.changes: list[Any] = []
        self.asked_paths: list[tuple[str, str]] = []
        self.stopped_captures: list[str] = []
        self.rows = 0
        self.broken: str | None = None
        self.stopped = False

    def layout(self) -> str:
        ports = [
            {
                "host": host,
                "link": 0,
                "device": "eth0",
                "address": f"10.77.0.{host + 1}",
                "address6": f"fd77::{host + 1}",
                "mtu_bytes": 1500,
            }
            for host in range(2)
        ]
        names = [host["name"] for host in self._topology["hosts"]]
        nearest = {name: number for number, name in enumerate(names)}
        hosts = [
            {"name": name, "ports": [number], "nearest": nearest}
            for number, name in enumerate(names)
        ]
        return json.dumps({"hosts": hosts, "ports": ports, "pipes": []})

    def namespaces(self, host: str) -> str:
        kinds = {"net": "net", "mount": "mnt", "uts": "uts"}
        own = os.getpid()
        return json.dumps({kind: f"/proc/{own}/ns/{name}" for kind, name in kinds.items()})

    def change(self, change_json: str) -> None:
        self.changes.append(json.loads(change_json))

    def topology(self) -> str:
        return json.dumps(self.now)

    def path(self, client: str, server: str) -> str:
        self.asked_paths.append((client, server))
        return json.dumps({"rtt_s": 0.05, "rate_bps": None})

    def mark(self) -> int:
        return 7

    def stamp(self, mark: int) -> str:
        return json.dumps({"valid": mark == 7, "reasons": []})

    def poll_samples(self) -> FakeColumns:
        """Two rows a call, numbered on."""
        first = self.rows
        self.rows += 2
        return FakeColumns({"link": [0, 0], "start_us": [first, first + 1]})

    def counters(self) -> str:
        return json.dumps({"links": []})

    def capture(self, link: str, direction: str, path: str, snap_bytes: int) -> None:
        self.changes.append((link, direction, path, snap_bytes))

    def stop_capture(self, link: str) -> str:
        self.stopped_captures.append(link)
        return json.dumps({"written_packets": 1, "missed_packets": 0, "error": None})

    def failure(self) -> str | None:
        return self.broken

    def stop(self) -> None:
        self.stopped = True
