"""Logs of other tools, read into rows of transfers.

What it does: recognises a log by its content (`detect`), reads it a piece at a time (`read_log`)
and returns Arrow tables with exactly the columns of `farline.spec.transfers`, with a tally of
everything that was seen: transfers, failed ones, what is known to be no transfer and why, and
what could not be read, with line number and reason. Nothing is dropped silently, and no
content of a log stops the reading of it.

What it must not do: keep anything (the store does), print, guess what a log does not say, keep
names of users or of files.

In: a path; plain or compressed text; for a table the mapping of its columns; values for columns
that the log lacks. Out: a `Log` whose `batches()` are tables and whose `tally` counts.

The formats are a file each, and `formats` lists them in the order in which a log is compared with
them: `gridftp` (its fast half in `gridftp_block`, on `byte_columns`; `gridftp_fields` for both),
`globus_url_copy`, `globus_task`, `fdt`, `iperf3`, `iperf3_text`, `nuttcp`, `pscheduler`,
`pscheduler_text`, `flent`, `fio`, `fio_text`, `iozone`, `dd`, `rsync`, `rsync_log`, `rclone`,
`wdt`, `xdd`, `fast_copies` (bbcp, EScp, scp), and `table` for anything with columns (`mapping` is
how these are named, `mapped` one entry of it).
`fio_stop` is what fio says of a run that was stopped, `gaps` what to use instead of outputs that
say too little. Below them:
`reading` gives lines and blocks of lines, out of what they are packed in (`packing`, `journal`);
`documents` gives JSON documents however they are strung together, `quantity` figures with
prefixes; `rows` checks a row and gathers tables.

Start with `log.read_log`, then `reading.Reading`, then a format.
"""

from __future__ import annotations

from farline.formats.format import Format
from farline.formats.formats import detect, formats
from farline.formats.log import Log, read_log
from farline.formats.rows import arrow_schema
from farline.formats.tally import Malformed, Tally

__all__ = [
    "Format",
    "Log",
    "Malformed",
    "Tally",
    "arrow_schema",
    "detect",
    "formats",
    "read_log",
]
