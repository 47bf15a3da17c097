"""Measures a path, then copies over it: `python examples/measure_and_copy.py [TICKET]`.

Without a ticket a server on this host stands for the far one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import farline
from farline.tools.events import Stage


def main() -> None:
    """Runs once, copies twenty files, and prints what came of both."""
    with tempfile.TemporaryDirectory() as name, farline.serve() as server:
        folder = Path(name)
        ticket = sys.argv[1] if len(sys.argv) > 1 else server.ticket()
        run = farline.probe(ticket, duration_s="1s", streams=2, keep=False)
        for event in run:
            if isinstance(event, Stage):
                print(f"stage {event.name}", file=sys.stderr)
        run.wait()
        print(f"limited by: {run.verdict['limit']}")

        (folder / "data").mkdir()
        (folder / "vault").mkdir()
        for number in range(20):
            (folder / "data" / f"part-{number:02}").write_bytes(bytes(100_000))
        target = f"{server.ticket(write=folder / 'vault')}#data"
        copied = farline.copy(f"{folder}/data/", target, keep=False).wait()
        print(f"copied: {copied.report['copied']['files']} files")


if __name__ == "__main__":
    main()
