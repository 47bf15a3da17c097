"""A bar over logs that are being read."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farline.analysis.sources import OnProgress


@contextlib.contextmanager
def progress() -> Iterator[OnProgress | None]:
    """A bar over the bytes of all logs on a terminal, once one is read; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", visible=False)

        def show(path: Path, read: int, total: int) -> None:
            name = path.name[-30:]
            bar.update(task, description=name, completed=read, total=total, visible=True)

        yield show
