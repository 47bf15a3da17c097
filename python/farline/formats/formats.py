"""Every format there is, in the order in which a log is compared with them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
    iperf3,
    iperf3_text,
    nuttcp,
    pscheduler,
    rclone,
    rsync,
    table,
    wdt,
    xdd,
)
from farline.formats.format import Format

# FDT logs hold lines like GridFTP's and come first; a table is what looks like nothing else.
_FORMATS = (
    fdt.FORMAT,
    gridftp.FORMAT,
    globus_url_copy.FORMAT,
    flent.FORMAT,
    pscheduler.FORMAT,
    globus_task.FORMAT,
    fio.FORMAT,
    iperf3.FORMAT,
    nuttcp.FORMAT,
    iozone.FORMAT,
    iperf3_text.FORMAT,
    fio_text.FORMAT,
    wdt.FORMAT,
    xdd.FORMAT,
    fast_copies.BBCP,
    fast_copies.ESCP,
    rclone.FORMAT,
    rsync.FORMAT,
    fast_copies.SCP,
    dd.FORMAT,
    table.FORMAT,
)


def formats() -> Mapping[str, Format]:
    """Name to format."""
    return MappingProxyType({one.name: one for one in _FORMATS})
