"""Every format there is, in the order in which a log is compared with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from farline.errors import SpecError
from farline.formats import (
    dd,
    fast_copies,
    fdt,
    fio,
    fio_text,
    flent,
    globus_task,
    globus_url_copy,
    gridftp,
    iozone,
    iperf2,
    iperf3,
    iperf3_text,
    nuttcp,
    pscheduler,
    pscheduler_text,
    rclone,
    rsync,
    rsync_log,
    table,
    wdt,
    xdd,
)
from farline.formats.format import Format
from farline.formats.gaps import gap
from farline.formats.reading import SAMPLE_CHARACTERS, Reading
from farline.formats.tally import Tally

# FDT logs hold lines like GridFTP's and come first; a table is what looks like nothing else.
_FORMATS = (
    fdt.FORMAT,
    gridftp.FORMAT,
    globus_url_copy.FORMAT,
    flent.FORMAT,
    pscheduler.FORMAT,
    pscheduler_text.FORMAT,
    globus_task.FORMAT,
    fio.FORMAT,
    iperf3.FORMAT,
    nuttcp.FORMAT,
    iozone.FORMAT,
    iperf2.FORMAT,
    iperf3_text.FORMAT,
    fio_text.FORMAT,
    wdt.FORMAT,
    xdd.FORMAT,
    fast_copies.BBCP,
    fast_copies.ESCP,
    rclone.FORMAT,
    rsync.FORMAT,
    rsync_log.FORMAT,
    fast_copies.SCP,
    dd.FORMAT,
    table.FORMAT,
)


def formats() -> Mapping[str, Format]:
    """Name to format."""
    return MappingProxyType({one.name: one for one in _FORMATS})


def detect(path: str | Path) -> str:
    """Name of the format of the log at `path`.

    Raises:
        SpecError: when no format is recognised; it names them all. Or what to ask the tool for,
            where its output says too little.
        SystemFailure: when the file cannot be read.
    """
    reading = Reading(Path(path), Tally())
    start = reading.start(SAMPLE_CHARACTERS)
    if not start.strip():
        if reading.damage is not None:
            raise SpecError(f"{path}: {reading.damage}")
        raise SpecError(f"{path}: the file is empty, so its format is unknown; {_choice()}")
    for one in formats().values():
        if one.detect(start):
            return one.name
    if why := gap(start):
        raise SpecError(f"{path}: {why}")
    if mapped := table.hint(start):
        raise SpecError(f"{path}: unknown log format; {mapped}; or {_choice()}")
    raise SpecError(f"{path}: unknown log format; {_choice()}, or map the columns of a table")


def _choice() -> str:
    return f"choose one with --format: {', '.join(sorted(formats()))}"
