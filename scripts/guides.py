"""Types the commands of guides and writes what they print now into the pages.

    .venv/bin/python -m scripts.guides [--root] docs/guide/probe.md ...

For a page whose commands print something else than it shows: the tests that type the guides
(tests/support/guides.py) fail then. Output that matches, `...` included, is left alone; look at the
difference before it is committed. `--root` types what root is to type, on emulated networks.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.support.guides import Reader, blocks


def updated(page: Path, printed: dict[tuple[int, int], str]) -> str:
    """Text of the page with other output for some commands."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for block in reversed(blocks(page)):
        if not any(line == block.line for line, _ in printed):
            continue
        body: list[str] = []
        for number, command in enumerate(block.commands()):
            first, *others = command.text.splitlines()
            output = printed.get((block.line, number))
            shown = command.shown if output is None else output.rstrip().splitlines()
            body += [f"$ {first}", *others, *(line.rstrip() for line in shown)]
        lines[block.line : block.line + len(block.lines)] = body
    return "\n".join(lines) + "\n"


def main() -> None:
    """Goes through the pages that are named."""
    root = "--root" in sys.argv
    for name in sys.argv[1:]:
        if name == "--root":
            continue
        page = Path(name).resolve()
        printed: dict[tuple[int, int], str] = {}
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            Reader(Path(folder), stack, collected=printed).read(page, root=root)
        if printed:
            page.write_text(updated(page, printed), encoding="utf-8")
            print(f"{name}: {len(printed)} outputs written")


if __name__ == "__main__":
    main()
