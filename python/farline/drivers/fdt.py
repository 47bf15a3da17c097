"""FDT, Fast Data Transfer: files over parallel streams, by its own server.

It is a Java archive that no package brings: `FDT_JAR` names it. A second session on a server often
finds its port taken and its client then waits for ever, so each run has a server of its own, and a
client that moves nothing is ended. A file keeps its name.
"""

from __future__ import annotations

import os
from pathlib import Path

from farline.drivers.destination import files_below, refuse_names
from farline.drivers.driver import Abilities, Driver, Figures, Flow, Task, refuse, version_of
from farline.drivers.iperf3 import buffer_of_both
from farline.drivers.places import Here, InHost, Place, Standing
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of, rows_of
from farline.spec.path_text import to_path_text

JAR_VARIABLE = "FDT_JAR"


class Fdt(Driver):
    """FDT 0.26.2 or later, on Java 8 or later."""

    name = "fdt"
    title = "Files by FDT (Fast Data Transfer)"
    program = server_program = "java"
    package = (
        "the Debian package default-jre-headless, get fdt.jar from "
        f"github.com/fast-data-transfer/fdt and name it in {JAR_VARIABLE}"
    )
    usual_port = 54321
    ready_s = 60.0
    abilities = Abilities(
        "mover",
        {
            "streams": "-P",
            "block_bytes": "-bs",
            "tcp.send_buffer_bytes": "-ss",
            "tcp.receive_buffer_bytes": "-ss",
            "copy.total_rate_bps": "-limit",
            "copy.overwrite": "",
        },
        several_sources=False,
        places=(Here, InHost, Standing),
    )

    def find(self, place: Place) -> str | None:
        """Java, where there is a jar to run."""
        jar = os.environ.get(JAR_VARIABLE)
        return place.find(self.program) if jar and Path(jar).is_file() else None

    def find_server(self, place: Place, task: Task | None = None) -> str | None:
        """The same."""
        return self.find(place)

    def version(self, place: Place) -> str | None:
        """As the archive says it: its manifest may have none."""
        java = self.find(place)
        if java is None:
            raise self.missing(place, JAR_VARIABLE)
        return version_of(place, [java, "-jar", os.environ[JAR_VARIABLE], "-V"], r"FDT (\d\S*)")

    def defaults(self, document: object) -> dict[str, object]:
        """Its own numbers."""
        return {"streams": 4, "block_bytes": 1 << 20}

    def check(self, task: Task) -> None:
        """Names that it would not give."""
        for pair in task.files:
            if not pair.is_folder and Path(pair.source).name != Path(pair.destination).name:
                raise refuse(self.name, "copy.destination", "keeps a file's name; name a folder/")
        # Java's names are text.
        refuse_names(self.name, task, "names that are not UTF-8", _is_text)
        for folder, names in files_below(task).items():
            # It leaves folders out of names (since 2019), and one file would replace another.
            for name in (name for name in names if "/" in name):
                shown = to_path_text(os.fsencode(f"{folder}/{name}"))
                raise refuse(
                    self.name, "copy.sources",
                    f"puts the files of subfolders beside each other, here {shown}; copy each "
                    "folder by itself, or use another mover",
                )  # fmt: skip
        buffer_of_both(self.name, task)

    def _java(self, program: str, task: Task) -> list[str]:
        return [program, "-jar", os.environ[JAR_VARIABLE], "-p", str(task.port), "-noupdates"]

    def server_words(self, task: Task, program: str) -> list[str]:
        """A server for this run, which takes one address' clients."""
        size_bytes = buffer_of_both(self.name, task)
        window = ["-ss", str(size_bytes)] if size_bytes else []
        return [*self._java(program, task), "-bs", str(task.get("block_bytes")), *window]

    def server_environment(self, task: Task) -> dict[str, str]:
        """Names outside ASCII are written as they are only so."""
        return {"LC_ALL": "C.UTF-8"}

    client_environment = server_environment

    def client_words(self, task: Task, program: str) -> list[str]:
        """One file or the names in one folder, pushed or pulled."""
        words = [*self._java(program, task), "-c", task.address]
        words += task.flag("-P", "streams") + task.flag("-bs", "block_bytes")
        if size_bytes := buffer_of_both(self.name, task):
            words += ["-ss", str(size_bytes)]
        rate_bps = task.get("copy.total_rate_bps")
        words += ["-limit", str(max(1, rate_bps // 8))] if rate_bps else []
        words += [] if task.forward else ["-pull"]
        (pair,) = task.files
        if not pair.is_folder:
            return [*words, "-d", str(Path(pair.destination).parent), pair.source]
        return [*words, "-r", "-d", pair.destination, pair.source]

    def read(self, task: Task, ended: Ended) -> Figures:
        """Its closing line, which is one of GridFTP's kind."""
        if ended.exit_code:
            raise failure_of(self.name, ended)
        rows = [row for row in rows_of(ended.output + ended.errors, "fdt") if row["complete"]]
        flows = {}
        if rows:
            row = rows[-1]
            flows[task.way] = Flow(row["bytes"], row["duration_s"], row["rate_bps"])
        return Figures(flows)


def _is_text(name: str) -> bool:
    return not any("\udc80" <= letter <= "\udcff" for letter in name)
