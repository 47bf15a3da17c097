"""A bar over logs that are being read."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farline.cli.analyze.logs import OnProgress


@contextlib.contextmanager
def progress(paths: Sequence[Path]) -> Iterator[Callable[[Path], OnProgress | None]]:
    """A bar over the bytes of all logs on a terminal; nothing elsewhere, or without logs."""
    if not paths or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=sum(path.stat().st_size for path in paths))
        before = 0

        def advance(path: Path) -> OnProgress:
            nonlocal before
            start, before = before, before + path.stat().st_size
            bar.update(task, description=path.name[-30:], completed=start)
            return lambda read, _: bar.update(task, completed=start + read)

        yield advance
