"""Adds a run that was just measured: a file in Parquet, and one for each other kind of samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError
from farline.logs import Log
from farline.store.disk import make_folder, publish
from farline.store.entry import RunBundle, checked_run_id, sample_table
from farline.store.layout import LINKS, MOVER, Layout, Side
from farline.store.parquet_files import write_fresh, write_side
from farline.store.spool import SUFFIX

if TYPE_CHECKING:
    import numpy as np

_LOG = Log(__name__)


def append(layout: Layout, run: RunBundle) -> str:
    """Adds one run; when this returns, it is on disk. Returns the run's name.

    Raises:
        SpecError: when the record has no usable `run_id`, or it is already there.
        SystemFailure: when the disk refuses.
    """
    run_id = new_run_id(layout, run.record)
    entry, target = run.entry, layout.fresh / f"{run_id}.parquet"
    table = sample_table(run_id, run.samples)
    for side, columns in ((LINKS, run.links), (MOVER, run.mover)):
        if columns is not None:
            _put_side(layout, side, run_id, columns)
    # The last file to get its name: from then on the run counts, with all that belongs to it.
    publish(layout.temp, target, lambda file: write_fresh(entry, table, file))
    _LOG.debug("run kept", run=run_id, file=target)
    return run_id


def new_run_id(layout: Layout, record: Mapping[str, Any]) -> str:
    """The record's name, if it is one and no single run has it.

    Raises:
        SpecError: when it is none, or already there.
    """
    run_id = checked_run_id(record.get("run_id"))
    places = (layout.fresh / f"{run_id}.parquet", layout.spool / f"{run_id}{SUFFIX}")
    if any(place.exists() for place in places):
        raise SpecError(f"run_id: {run_id} is already in the store {layout.root}")
    return run_id


def _put_side(
    layout: Layout, side: Side, run_id: str, columns: Mapping[str, np.ndarray[Any, Any]]
) -> None:
    table = sample_table(run_id, columns)
    if len(table):
        target = side.fresh_path(layout, run_id)
        make_folder(target.parent)
        publish(layout.temp, target, lambda file: write_side(table, file))
