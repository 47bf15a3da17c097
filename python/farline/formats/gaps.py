"""Outputs that say too little to be read, and what to use instead.

fio's terse lines (versions 2 to 5) have no process, time or count of jobs: jobs that ran together,
runs one after another and snapshots of one run look alike. Lines of `iperf -y C` do not tell which
streams were of one test, which end wrote them, nor, at a UDP client, what arrived; a test that was
cut looks whole.
"""

from __future__ import annotations

import re

_TERSE = re.compile(
    r"^(?:[3-9];fio-[^;\n]{1,60};[^\n]{1,200}?|2;[^\n]{1,200}?);\d{1,9};\d{1,9}(?:;\d{1,19}){6}"
    r"(?:;\d+\.\d+){2};\d+;\d+(?:;\d+\.\d+){2};\d+(?:\.\d+)?%=",
    re.MULTILINE,
)
_IPERF2_CSV = re.compile(
    r"^\d{14}(?:\.\d{1,9})?,[^,\n]{1,80},\d{1,5},[^,\n]{0,80},\d{1,5},-?\d{1,9},"
    r"\d+\.\d+- ?\d+\.\d+,\d+,-?\d+(?:,|$)|^time,srcaddress,srcport,dstaddr,dstport,transferid,",
    re.MULTILINE,
)
_GAPS = (
    (
        _TERSE,
        "terse output of fio does not say which jobs ran together: use fio's --output-format=json",
    ),
    (
        _IPERF2_CSV,
        "CSV of iperf 2 does not say which streams are one test, nor whether it ended: "
        "run iperf without -y",
    ),
)


def gap(start: str) -> str | None:
    """What an output lacks to be read, and what to use instead; None for another text."""
    return next((why for pattern, why in _GAPS if pattern.search(start)), None)
