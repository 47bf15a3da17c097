"""Outputs that are known and say too little: refused in one line that says what to use."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.errors import SpecError
from farline.formats import read_log

ZEROS = "0;0;0;0;0;0;0.000000;0.000000;0;0;0.000000;0.000000"
TERSE = "5818;1;0.0%;3;0.000000;4096;1.000000%=0;0;0;0.00%;vda;0;0;0;0;0;0;0;0.00%"
FIO = (
    f"2;w;0;0;{ZEROS};1.000000%=0;{TERSE}\n2;my test\n",
    f"3;fio-3.33;r;1;0;{ZEROS};1.000000%=0;{TERSE};my test\n" * 2,
    f"\nfio: terminating on signal 2\n3;fio-3.33;a;b;0;28;{ZEROS};90.000000%=7;{TERSE}\n",
    f"4;fio-3.33;w;0;0;{ZEROS};1.000000%=0;{TERSE}\n",
    f"5;fio-3.36-12-gabc;w;0;0;{ZEROS};0%=0;{TERSE}\n",
)
IPERF2 = (
    "19700101000000,127.0.0.1,47764,127.0.0.1,6003,1,0.0-1.0,2752572,21830541\n",
    "20261128092118.285,10.0.0.1,42796,10.0.0.2,6003,1,0.0-1.0,2621500,20972000\n",
    "19700101000000,10.0.0.1,6003,::,0,1,0.0-1.0,2752512,20996876\n",
    "read failed: Connection refused\n"
    "19700101000000,10.0.0.1,55189,10.0.0.2,6004,1,0.0-1.0,2626890,20990267,0.0,0,-1,-0.0,0\n",
    "20110426160228,192.168.0.1,5001,192.168.0.2,44931,-1,0.0-10.0,1171652608,936000000\n",
    "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed\n"
    "+0000:20240101000000.1,10.0.0.1,1,10.0.0.2,5001,1,0.0,1.0,100,800\n",
)


@pytest.mark.parametrize("before", ["", "Nov 28 05:59:09 ", "2026-11-28T05:59:09.123456789Z "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("text", "instead"),
    [(one, "use fio's --output-format=json") for one in FIO]
    + [(one, "run iperf without -y") for one in IPERF2],
)
def test_outputs_that_say_too_little_are_refused_with_what_to_use(
    tmp_path: Path, text: str, instead: str, before: str, end: str
) -> None:
    path = tmp_path / "given.log"
    # A time is left out where two lines and more begin with one.
    lines = (before + line for line in (text + text * bool(before)).splitlines())
    path.write_bytes("".join(line + end for line in lines).encode())
    with pytest.raises(SpecError) as refused:
        read_log(path)
    assert instead in refused.value.message and "\n" not in refused.value.message


@pytest.mark.parametrize(
    "text",
    ["3;4;5;6;7\n1;2;3;4;5\n", "20261128092118,a\n20261128092119,1\n", "2;w;0;0;1\n2;r;0;1;3\n"],
)
def test_other_tables_are_not_taken_for_them(tmp_path: Path, text: str) -> None:
    path = tmp_path / "given.log"
    path.write_text(text)
    with pytest.raises(SpecError, match="unknown log format"):
        read_log(path)
