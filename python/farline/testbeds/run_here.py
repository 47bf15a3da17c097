"""Runs one run on the host that this process is on: `python -m farline.testbeds.run_here FOLDER`.

`FOLDER/ask.json` has the target and the spec; `record.json` and `samples.npz` are written there.
SIGTERM ends the run in good order, a second one at once. A failure is a failure document in
`error.json`. The other end of this is `host_tool.HostTool`.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from farline.errors import FarlineError
from farline.tools import Stop, ignore_event
from farline.tools.native import NativeTool

ASK, RECORD, SAMPLES, ERROR = "ask.json", "record.json", "samples.npz", "error.json"


class _Asked:
    """Counts signals."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Stop:
        return Stop(min(self.count, Stop.NOW))

    def ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.count += 1


def main(folder: Path) -> int:
    """Does what `folder` asks for; 0 if there is a record."""
    import numpy as np

    asked = _Asked()
    signal.signal(signal.SIGTERM, asked.ask)
    wanted = json.loads((folder / ASK).read_text(encoding="utf-8"))
    try:
        result = NativeTool().run(wanted["target"], wanted["spec"], ignore_event, asked)
    except FarlineError as error:
        (folder / ERROR).write_text(json.dumps(error.failure()), encoding="utf-8")
        return error.exit_code
    columns: dict[str, Any] = dict(result.samples)
    np.savez(folder / SAMPLES, **columns)
    (folder / RECORD).write_text(json.dumps(result.record), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
