"""Facts that stand on the page of an item: the host, and how accurate the emulated path was."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import FarlineError

if TYPE_CHECKING:
    from farline.reproduce.measured import Measured


def facts_of(measured: Measured, sources: Sequence[str]) -> list[tuple[str, str]]:
    """Name and text of each fact."""
    facts = list(_host())
    for name in sources:
        facts += _emulator(name, _rows(measured, name))
    return facts


def _host() -> Iterator[tuple[str, str]]:
    yield "Host", f"{os.cpu_count()} CPUs, {_cpu_model()}"
    yield "Kernel", platform.release()
    yield "Load when it was judged", " ".join(f"{load:.2f}" for load in os.getloadavg())


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _rows(measured: Measured, name: str) -> Sequence[Mapping[str, Any]]:
    try:
        return measured.campaign(name).rows
    except FarlineError:
        return ()


def _emulator(name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    records = [json.loads(row["record"]) for row in rows if row.get("record")]
    paths = [record["path"] for record in records if record.get("path")]
    stamps = [path["stamp"] for path in paths]
    if not stamps:
        return
    valid = [stamp for stamp in stamps if stamp["valid"]]
    yield f"Runs of {name}", f"{len(stamps)} on the emulated path, {len(valid)} valid"
    if valid:
        late = max(stamp["lateness_p99_us"] for stamp in valid)
        stolen = max(stamp["steal_s"] / stamp["wall_s"] for stamp in valid if stamp["wall_s"])
        yield (
            f"Emulator in {name}",
            f"99 % of the packets at most {late:.0f} µs late in the worst valid run; hypervisor"
            f" took up to {100 * stolen:.1f} % of a CPU",
        )
