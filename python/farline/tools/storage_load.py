"""The engine that reads and writes for a measurement of storage, and the process it runs in.

`python -m farline.tools.storage_load` takes lines of JSON, a storage load each, and answers each
with a line: `{"report": …, "cpu_s": …, "device_bytes": …}` or `{"failed": …}`. It ends with its
input, so with whoever started it.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline import _native
from farline.errors import FarlineError
from farline.tools.native import checked

if TYPE_CHECKING:
    from farline.spec._types import StorageLoad, StorageLoadReport


def run_storage_load(load: StorageLoad) -> StorageLoadReport:
    """Reads or writes in this process until the load is over.

    Raises:
        SpecError: for numbers that do not fit together.
        SystemFailure: for what the kernel refuses.
    """
    report: StorageLoadReport = json.loads(checked(_native.run_storage_load, json.dumps(load)))
    return report


def answer(load: StorageLoad) -> dict[str, Any]:
    """What one load came to, with what it cost this process."""
    try:
        device, cpu_s = _device_bytes(load["action"]), _cpu_s()
        report = run_storage_load(load)
    except FarlineError as error:
        return {"failed": error.failure()}
    after = _device_bytes(load["action"])
    fetched = None if device is None or after is None else after - device
    return {"report": report, "cpu_s": _cpu_s() - cpu_s, "device_bytes": fetched}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _device_bytes(action: str) -> int | None:
    """Bytes that block devices have given to this process or taken from it (proc_pid_io(5))."""
    try:
        text = Path("/proc/self/io").read_text(encoding="ascii")
        lines = dict(line.split(": ") for line in text.splitlines())
        return int(lines[f"{action}_bytes"])
    except (OSError, ValueError, KeyError):
        return None


def main() -> None:
    """Answers until the input ends."""
    # A Ctrl-C is for whoever measures: it ends this process in its own time.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
