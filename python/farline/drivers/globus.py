"""Globus transfers, by the user's own globus command: a request, and a wait for its task.

Both ends are collections, written `COLLECTION:path`; nothing is started. The service compares
checksums of both ends itself (`copy.verify` tree); farline sees neither end, and says so. The login
is the command's own: no token passes through farline.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from farline.drivers.driver import Abilities, Driver, Figures, Flow, Task, refuse
from farline.drivers.places import Standing
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of, rows_of
from farline.errors import ProtocolError

_LEVELS = {"exists": "exists", "size": "size", "time": "mtime", "checksum": "checksum"}


class Globus(Driver):
    """globus-cli 3."""

    name = "globus"
    title = "Transfers between Globus collections"
    program = "globus"
    package = "globus-cli from PyPI (pipx install globus-cli), then globus login"
    version_words = ("version",)
    watches_stalls = False
    verifies_itself = both_ends_far = True
    abilities = Abilities(
        "mover",
        {
            "copy.cipher": "--encrypt-data",
            "copy.sync_level": "--sync-level",
            "copy.overwrite": "",
        },
        directions=("forward",),
        several_sources=False,
        places=(Standing,),
    )

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """In clear text unless asked; every file again."""
        return {"copy.cipher": "none"}

    def check(self, task: Task) -> None:
        """Collections at both ends, and a service that must not be asked to prove nothing."""
        for pair in task.files:
            for path in (pair.source, pair.destination):
                if ":" not in path:
                    raise refuse(self.name, "copy", f"needs COLLECTION:path, not {path}")

    def client_words(self, task: Task, program: str) -> list[str]:
        """One request; the shell waits for its task and prints it."""
        (pair,) = task.files
        words = [pair.source, pair.destination, "--label", "farline"]
        words += ["--recursive"] if pair.is_folder else []
        verify = task.get("copy.verify", "tree")
        words += ["--no-verify-checksum"] if verify == "none" else ["--verify-checksum"]
        words += ["--encrypt-data"] if task.get("copy.cipher", "none") != "none" else []
        level = task.get("copy.sync_level") if "copy.sync_level" in _stated(task) else None
        words += ["--sync-level", _LEVELS[level]] if level else []
        script = (
            'g=$1; shift; t=$("$g" transfer "$@" --format unix --jmespath task_id) || exit $?; '
            '"$g" task wait "$t" --polling-interval 1 >&2; r=$?; '
            '"$g" task show "$t" --format json; exit $r'
        )
        return ["sh", "-c", script, "globus", program, *words]

    def read(self, task: Task, ended: Ended) -> Figures:
        """The task, as the service has it."""
        try:
            document: dict[str, Any] = json.loads(ended.output)
        except ValueError:
            raise failure_of(self.name, ended) from None
        status = document.get("status")
        if status != "SUCCEEDED":
            why = document.get("nice_status_short_description") or document.get("nice_status")
            raise ProtocolError(f"globus failed: its task is {status}: {why or 'no reason given'}")
        rows = rows_of(ended.output, "globus")
        row = rows[0] if rows else {}
        flow = Flow(document.get("bytes_transferred"), row.get("duration_s"), row.get("rate_bps"))
        notes = ["the time includes the service's queue and its own checksums"]
        if task.get("copy.verify", "tree") != "none":
            notes.append("Globus compared checksums of both ends itself")
        return Figures({task.way: flow}, notes=tuple(notes))


def _stated(task: Task) -> set[str]:
    return set() if task.get("copy.sync_level", "time") == "time" else {"copy.sync_level"}
