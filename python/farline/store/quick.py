"""A store for who has no time: keeps one run, and imports next to nothing for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from farline.logs import Log
from farline.spec.extras import has_analysis
from farline.store.appending import append, new_run_id
from farline.store.disk import publish
from farline.store.entry import RunBundle
from farline.store.layout import LINKS, MOVER, Layout, default_path
from farline.store.spool import SAMPLES, SUFFIX, is_small, write_spooled

_LOG = Log(__name__)


def spool(path: Path | None, run: RunBundle) -> str:
    """Adds one run to the store at `path` (the usual one if None); gives the run's name.

    As `Store.append`, and as durable. Many samples are appended the usual way, with its imports,
    where the extra `analysis` is installed; else they are spooled too, which takes longer to read.

    Raises:
        SpecError: when the record has no usable `run_id`, or it is already there.
        SystemFailure: when the disk refuses.
    """
    layout = Layout(path or default_path())
    if not layout.spool.exists():
        layout.create()
    parts = {SAMPLES: run.samples, LINKS.name: run.links or {}, MOVER.name: run.mover or {}}
    if not is_small(parts.values()) and has_analysis():
        return _append(layout, run)
    run_id = new_run_id(layout, run.record)
    target = layout.spool / f"{run_id}{SUFFIX}"
    publish(layout.temp, target, lambda file: write_spooled(run.entry, parts, file))
    _LOG.debug("run kept", run=run_id, file=target)
    return run_id


class Spool:
    """A store as a host has it that cannot read one: runs are spooled, and found later."""

    def __init__(self, path: Path | None) -> None:
        """The store at `path`, or the usual one."""
        self._path = path

    def append(self, run: RunBundle) -> str:
        """Keeps one run, as `spool`."""
        return spool(self._path, run)


def _append(layout: Layout, run: RunBundle) -> str:
    import numpy as np

    def arrays(columns: Mapping[str, Any] | None) -> dict[str, Any]:
        return {name: np.asarray(values, np.int64) for name, values in (columns or {}).items()}

    layout.create()
    samples, links, mover = map(arrays, (run.samples, run.links, run.mover))
    return append(layout, replace(run, samples=samples, links=links, mover=mover))
