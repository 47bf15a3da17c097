"""Outputs of tools that are of another version, or of another program under the same name."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.drivers import Here, find_driver
from farline.drivers.driver import Figures, FilePair, Task
from farline.drivers.outputs import figures_of
from farline.drivers.processes import CpuTime, Ended
from farline.errors import FarlineError, ProtocolError, SystemFailure, UnreachableError

INTERVAL = {"socket": 5, "start": 0, "end": 1.0, "bytes": 1000, "sender": True, "rtt": 20}
DOCUMENT: dict[str, Any] = {
    "start": {"test_start": {"protocol": "TCP", "num_streams": 1, "omit": 0}},
    "intervals": [{"streams": [INTERVAL], "sum": {}}],
    "end": {
        "streams": [{"sender": {"mean_rtt": 20, "min_rtt": 10}}],
        "sum_sent": {"bytes": 1000, "seconds": 1.0, "bits_per_second": 8000, "retransmits": 0},
        "sum_received": {"bytes": 1000, "seconds": 1.0, "bits_per_second": 8000},
        "sender_tcp_congestion": "cubic",
    },
}
STRANGE: tuple[object, ...] = (
    None,
    "x",
    -1,
    float("nan"),
    float("inf"),
    [],
    {},
    True,
    1 << 70,
    [None],
    "\ud800",
)


def read(tool: str, output: bytes, errors: bytes = b"", exit_code: int = 0) -> Figures:
    task = Task({"tool": tool}, "127.0.0.1", 5201, Here(), Here(), Path("/nonexistent"))
    ended = Ended(exit_code, 1.0, CpuTime(0.0, 0.0), output, errors)
    return figures_of(find_driver(tool), task, ended)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all that is in a document."""
    if not isinstance(value, dict | list):
        return [path]
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(one for key, below in inside for one in places(below, (*path, key)))]


def changed(path: tuple[Any, ...], value: object) -> Any:
    document = copy.deepcopy(DOCUMENT)
    if not path:
        return value
    at: Any = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return document


def test_the_document_itself_is_read() -> None:
    figures = read("iperf3", json.dumps(DOCUMENT).encode())
    assert figures.flows["forward"].bytes == 1000 and figures.congestion_control == "cubic"


@given(st.sampled_from(places(DOCUMENT)), st.sampled_from(STRANGE))
def test_a_strange_document_is_read_or_a_failure_in_one_line(
    path: tuple[Any, ...], value: object
) -> None:
    try:
        figures = read("iperf3", json.dumps(changed(path, value)).encode())
    except FarlineError as error:
        assert "\n" not in str(error) and str(error).startswith("iperf3 failed: ")
    else:
        assert all(isinstance(flow.bytes, int) for flow in figures.flows.values())


@pytest.mark.parametrize("output", [b"[]", b"5", b'"x"', b"null"])
def test_a_document_that_is_no_object_is_a_failure(output: bytes) -> None:
    with pytest.raises(ProtocolError, match="not as farline knows it"):
        read("iperf3", output)


def test_a_figure_that_cannot_be_is_named() -> None:
    line = json.dumps({"level": "info", "stats": {"bytes": "12", "elapsedTime": 1.0}})
    with pytest.raises(ProtocolError, match="forward bytes is '12'"):
        read("rclone", b"", line.encode())


def test_numbers_longer_than_any_transfer_are_no_figures() -> None:
    line = b"Total transferred file size: " + b"9" * 5000 + b" bytes\n"
    with pytest.raises(ProtocolError):
        read("rsync", line)


RSYNC_FULL = b"""\
rsync: [receiver] write failed on "big" (in farline): No space left on device (28)
rsync error: error in file IO (code 11) at receiver.c(657) [receiver=3.5.0]
rsync error: error in file IO (code 11) at io.c(1892) [generator=3.5.0]
rsync: [sender] read error: Connection reset by peer (104)
"""
RSYNC_SSH = b"""\
ssh: connect to host 127.0.0.1 port 1: Connection refused
rsync: connection unexpectedly closed (0 bytes received so far) [sender]
rsync error: unexplained error (code 255) at io.c(228) [sender=3.2.7]
"""
UFTP_FULL = b"""\
Sending FILEINFO 1.1
Transfer aborted by 127.0.0.1: Not enough disk space
Announce timed out
"""


@pytest.mark.parametrize(
    ("tool", "output", "kind", "line"),
    [
        ("rsync", RSYNC_FULL, SystemFailure, r'write failed on "big".*No space left'),
        ("rsync", RSYNC_SSH, UnreachableError, "port 1: Connection refused"),
        ("uftp", UFTP_FULL, SystemFailure, "Not enough disk space"),
        ("uftp", b"Announce timed out\n", UnreachableError, "no receiver at 127.0.0.1"),
    ],
)
def test_a_failure_is_told_by_its_cause_and_not_by_what_came_of_it(
    tool: str, output: bytes, kind: type[FarlineError], line: str
) -> None:
    with pytest.raises(kind, match=line):
        read(tool, b"", output, exit_code=11)


def test_xrdcp_names_the_users_folder_and_not_the_link_to_it(tmp_path: Path) -> None:
    pair = FilePair("/data/big", "/full disk/big", is_folder=False)
    spec = {"tool": "xrdcp", "direction": "forward"}
    task = Task(spec, "127.0.0.1", 1094, Here(), Here(), tmp_path, (pair,))
    said = (
        "Run: [ERROR] Server responded with an error: [3009] Unable to write "
        f"{tmp_path}/shown/folder/big; no space left on device (destination)\n"
    )
    ended = Ended(54, 1.0, CpuTime(0.0, 0.0), b"", said.encode())
    with pytest.raises(SystemFailure, match="Unable to write /full disk/big; no space left"):
        figures_of(find_driver("xrdcp"), task, ended)


def test_an_rsync_of_another_kind_is_told_to_be_one() -> None:
    """openrsync of macOS 15 rounds: `6 B`."""
    with pytest.raises(ProtocolError, match=r"install rsync 3\.1 or later"):
        read("rsync", b"Total transferred file size: 6 B\n")
