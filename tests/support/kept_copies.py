"""Records of copies made by hand as a store keeps them, with their samples and receipts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from farline.spec._types import MOVER_SAMPLE_COLUMNS
from tests.support.records import make_record, make_spec

CHUNK_BYTES = 1 << 20


def make_tally(files: int = 0, size_bytes: int = 0) -> dict[str, int]:
    """Names and bytes that ended alike."""
    return {"files": files, "bytes": size_bytes}


def make_copy_end(**more: Any) -> dict[str, Any]:
    """One end of a copy that did nothing worth a word."""
    times = ("file", "name", "hash", "cipher", "stream", "sync", "starved")
    end: dict[str, Any] = {"engine": "buffered", "file_system": "ext4", "threads": 0}
    end.update({f"{name}_us": 0 for name in times})
    return {**end, "peak_memory_bytes": 50 << 20, **more}


def make_report(**more: Any) -> dict[str, Any]:
    """A copy of ten files of 1 GB in all, nothing failed."""
    report: dict[str, Any] = {
        "found": make_tally(10, 10**9),
        "copied": make_tally(10, 10**9),
        **{name: make_tally() for name in ("present", "failed", "skipped", "deleted")},
        "made": 2, "resumed_bytes": 0, "hole_bytes": 0, "repeated_chunks": 0,
        "cipher": "aes128-gcm", "chunk_bytes": CHUNK_BYTES, "failures": [],
        "sender": make_copy_end(), "receiver": make_copy_end(),
    }  # fmt: skip
    return {**report, **more}


def make_copy_spec(**more: Any) -> dict[str, Any]:
    """The spec of a push of one folder."""
    copy = {"sources": ["/data/"], "destination": "/archive", **more.pop("copy", {})}
    spec = make_spec(copy=copy, **more)
    del spec["duration_s"]
    return spec


def make_copy_record(number: int = 1, **report: Any) -> dict[str, Any]:
    """The record of copy `number`."""
    return {**make_record(number, make_copy_spec()), "copy": make_report(**report)}


def make_mover_samples(rows: int = 3) -> dict[str, np.ndarray[Any, Any]]:
    """Samples of the files of a copy at both ends; no rate is held."""
    columns = {name: np.zeros(2 * rows, dtype=np.int64) for name in MOVER_SAMPLE_COLUMNS}
    steps = np.tile(np.arange(rows, dtype=np.int64), 2)
    ends = np.repeat(np.array([0, 1], dtype=np.int64), rows)
    columns.update(
        end=ends, role=ends.copy(), start_us=steps * 100_000, end_us=(steps + 1) * 100_000,
        file_bytes=np.full(2 * rows, 12_500_000, dtype=np.int64),
        held_rate_bps=np.full(2 * rows, -1, dtype=np.int64),
    )  # fmt: skip
    return columns


def receipt_line(number: int, **more: Any) -> dict[str, Any]:
    """A name that was copied."""
    return {
        "path": f"folder/file-{number:07d}", "kind": "file", "status": "copied", "bytes": number,
        "blake3": f"{number:064x}", **more,
    }  # fmt: skip


def write_receipt(path: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """A receipt as the receiving end writes it."""
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    return path
