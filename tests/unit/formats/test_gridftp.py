"""GridFTP logs: what a line means, and that reading many at once changes nothing."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from farline.formats import Malformed, gridftp, read_log
from farline.formats.gridftp_block import parse_block
from farline.formats.rows import NotATransfer, Unreadable, check
from tests.support.draws import draws
from tests.unit.formats.logs import SAMPLES, bag, given, sample, text_of


def line(**fields: object) -> str:
    """A line of the log; fields replace the usual ones."""
    usual: dict[str, object] = {
        "DATE": "20260301100002.500000",
        "HOST": "dtn1.example.org",
        "PROG": "globus-gridftp-server",
        "NL.EVNT": "FTP_INFO",
        "START": "20260301100000.500000",
        "USER": "somebody",
        "FILE": "/data/f",
        "BUFFER": 131072,
        "BLOCK": 262144,
        "NBYTES": 250000000,
        "VOLUME": "/",
        "STREAMS": 4,
        "STRIPES": 1,
        "DEST": "[192.0.2.7]",
        "TYPE": "RETR",
        "CODE": 226,
    }
    return " ".join(f"{key}={value}" for key, value in {**usual, **fields}.items())


def test_a_line_becomes_a_row_with_what_it_says() -> None:
    rows, tally = sample("gridftp.log")
    memory = min(rows, key=lambda row: row["started_at"])
    assert memory["started_at"] == datetime(2026, 3, 1, 10, 0, 0, 500_000)
    assert (memory["tool"], memory["modality"], memory["source"]) == ("gridftp", "T", "gridftp.log")
    assert (memory["duration_s"], memory["bytes"], memory["rate_bps"]) == (2.0, 2_500_000_000, 1e10)
    assert (memory["from_host"], memory["to_host"]) == ("dtn1.example.org", "192.0.2.7")
    assert (memory["streams"], memory["retransmits"], memory["buffer_bytes"]) == (4, 23, 131072)
    assert (tally.lines, tally.transfers, tally.failed, tally.malformed) == (8, 4, 1, 1)
    assert tally.skipped == {"directory listing": 1, "empty file": 1}
    assert tally.first_malformed[0].line == 7
    assert tally.first_malformed[0].reason == "DATE (the end) is before START"


def test_a_store_goes_the_other_way_and_a_failed_transfer_has_no_rate() -> None:
    rows, _ = sample("gridftp.log")
    stored = next(row for row in rows if row["buffer_bytes"] is None)
    assert (stored["from_host"], stored["to_host"]) == ("192.0.2.7", "dtn1.example.org")
    failed = next(row for row in rows if not row["complete"])
    assert (failed["code"], failed["rate_bps"], failed["bytes"]) == ("426", None, 5_000_000)


def test_names_of_files_and_users_are_nowhere(tmp_path: Path) -> None:
    text = line(USER="jane doe", FILE="/home/jane/secret plan.dat") + "\n"
    cut = text[: text.index("BUFFER") + 3]
    rows, tally = given(tmp_path, text + cut, "gridftp")
    assert tally.malformed == 1
    shown = repr(rows) + repr(tally)
    assert "jane" not in shown and "secret" not in shown and "USER=* FILE=*" in shown


def test_stripes_multiply_streams_and_old_microseconds_have_no_leading_zeros() -> None:
    rows, _ = sample("gridftp-striped.log")
    striped = next(row for row in rows if row["stripes"] == 2)
    assert (striped["streams"], striped["parallelism"], striped["to_host"]) == (4, 2, "192.0.2.8")
    old = next(row for row in rows if row["stripes"] == 1)
    assert old["duration_s"] == pytest.approx(1 - 0.763298 + 0.002102, abs=1e-9)
    assert old["to_host"] == "2001:db8::4"


def test_a_servers_own_log_has_transfers_among_its_messages() -> None:
    rows, tally = sample("gridftp-server.log")
    assert len(rows) == 2 and tally.malformed == 0
    assert tally.skipped == {"message of the server": 9}


def test_what_looks_like_fields_in_a_file_name_is_the_file_name() -> None:
    row = gridftp.parse_line(line(FILE="/x BUFFER=1 NBYTES=5 CODE=500 y"))
    assert (row["bytes"], row["buffer_bytes"], row["code"]) == (250000000, 131072, "226")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"NBYTES": -5}, "NBYTES is '-5'"),
        ({"NBYTES": "9" * 19}, "NBYTES is"),
        ({"START": "20261301100000.5"}, "START is '20261301100000.5'"),
        ({"START": "20260301100000"}, "START is"),
        ({"START": "20260301100003.0"}, "before START"),
        ({"START": "20260301100002.500000"}, "took no time"),
        ({"CODE": 22}, "CODE is '22', not three digits"),
        ({"TYPE": "SEND"}, "TYPE is 'SEND'"),
        ({"DEST": "192.0.2.7"}, "DEST is '192.0.2.7'"),
        ({"HOST": "two words"}, "HOST is 'two words'"),
        ({"STREAMS": "3000000000"}, "streams is 3000000000"),
        ({"DATE": "20990229000000.0"}, "DATE is"),
        ({"DATE": "22010101000000.0", "START": "22010101000000.0"}, "between 1970 and 2200"),
    ],
)
def test_what_cannot_be_is_malformed_with_its_reason(
    tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    rows, tally = given(tmp_path, line() + "\n" + line(**fields) + "\n", "gridftp")
    assert len(rows) == 1
    assert [(one.line, reason in one.reason) for one in tally.first_malformed] == [(2, True)]


def plain(text: str) -> str:
    """What the definition makes of a line, in words."""
    try:
        row = {"tool": "gridftp", "source": "x", **gridftp.parse_line(text)}
        check(row)
    except NotATransfer as reason:
        return f"skip {reason}"
    except Unreadable:
        return "malformed"
    return repr(sorted((name, value) for name, value in row.items() if value is not None))


def at_once(text: str) -> str | None:
    """What reading blocks makes of a line; None if it leaves the line to the definition."""
    parsed = parse_block(text.encode() + b"\n", "x")
    if parsed.others:
        assert parsed.others == [(0, 0, len(text.encode()))]
        assert parsed.table.num_rows == 0 and not any(parsed.skipped.values())
        return None
    for reason, count in parsed.skipped.items():
        if count:
            return f"skip {reason}"
    (row,) = parsed.table.to_pylist()
    epoch_us = (row["started_at"] - datetime(1970, 1, 1)) // (datetime.resolution)
    row["started_at"] = epoch_us
    return repr(sorted((name, value) for name, value in row.items() if value is not None))


FIELD_TEXTS: dict[str, st.SearchStrategy[str]] = {
    "DATE": st.sampled_from(
        ["20260301100002.500000", "20260301100002.5", "20240229000000.000001", "2026", "x" * 21]
    )
    | st.from_regex(r"\d{14}\.\d{1,7}", fullmatch=True),
    "HOST": st.sampled_from(
        ["a", "", "a b", "::ffff:1.2.3.4", "0.0.0.0", "h\u00e9", "a[1]", "a,b"]
    ),
    "USER": st.sampled_from(["", "CN=x", "a b", "x FILE=y"]),
    "FILE": st.sampled_from(
        [
            "/dev/zero",
            "//dev/null",
            "/x/dev/null",
            "dev/zero",
            "",
            "/a b",
            "/y=1/m=2",
            "/a BUFFER=3",
            "/a TYPE=STOR CODE=500",
            "/\u20ac",
        ]
    ),
    "BUFFER": st.sampled_from(["0", "", "00000000000000000012", "1 2", "12345678", "-1"]),
    "NBYTES": st.integers(0, 10**19).map(str),
    "STREAMS": st.sampled_from(["0", "16", "2147483647", "2147483648", "1e3"]),
    "STRIPES": st.sampled_from(["0", "2", "2147483647"]),
    "DEST": st.sampled_from(
        [
            "[]",
            "[a,b]",
            "1[192.0.2.1]",
            "192.0.2.1",
            "[2001:db8::1]",
            "[::ffff:1.2.3.4]",
            "[",
            "[a]]",
        ]
    ),
    "TYPE": st.sampled_from(["STOR", "ERET", "ESTO", "MLSD", "NLST", "SEND", "RET", "RETRX"]),
    "CODE": st.sampled_from(
        [
            "226",
            "22",
            "2261",
            "426 TASKID=none retrans=1,2",
            "226 TASKID=none",
            "226 retrans=7",
            "226 TASKID=none retrans=",
            "226 TASKID=none retrans=1,,2",
            "226 TASKID=none retrans=12345678901234567,1 x",
            "226 retrans=1 TASKID=a",
            "226 x=1 y=2 retrans=3",
            "226 ",
        ]
    ),
}


@draws(400)
@examples(st.fixed_dictionaries({}, optional=FIELD_TEXTS), st.data())
def test_reading_many_lines_at_once_agrees_with_the_definition(
    fields: dict[str, str], data: Any
) -> None:
    text = data.draw(st.sampled_from(["", "[7] now :: Transfer stats: "])) + line(**fields)
    if data.draw(st.booleans()):
        cut = data.draw(st.integers(0, len(text)))
        text = data.draw(
            st.sampled_from([text[:cut], text[cut:], text[:cut] + "=" + text[cut:], text])
        )
    found = at_once(text)
    assert found is None or found == plain(text)


def test_usual_lines_are_read_at_once() -> None:
    parsed = parse_block(text_of("gridftp.log").encode(), "x")
    # The one whose end is before its start, and the one whose name looks like a field or two.
    assert len(parsed.others) <= 2 and parsed.table.num_rows >= 4


def test_a_log_in_any_order_and_in_any_pieces_gives_the_same(tmp_path: Path) -> None:
    lines = (text_of("gridftp.log") + text_of("gridftp-striped.log")).splitlines(keepends=True)
    whole, tally = given(tmp_path, "".join(lines), "gridftp")
    shuffled = list(lines)
    random.Random(4).shuffle(shuffled)
    again, other = given(tmp_path, "".join(shuffled), "gridftp")
    assert bag(again) == bag(whole)
    assert (other.skipped, other.malformed_reasons) == (tally.skipped, tally.malformed_reasons)
    halves = [given(tmp_path, "".join(part), "gridftp") for part in (lines[:3], lines[3:])]
    assert bag(halves[0][0]) + bag(halves[1][0]) == bag(whole)
    assert sum(part.records for _, part in halves) == tally.records == len(lines)


def test_lines_over_many_blocks_keep_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farline.formats.reading.CHUNK_BYTES", 1000)
    good, bad = line() + "\r\n", line(CODE="oops") + "\r\n"
    rows, tally = given(tmp_path, good * 40 + bad + good * 40 + "\r\n" + bad, "gridftp")
    assert len(rows) == 80 and tally.lines == 83
    assert [one.line for one in tally.first_malformed] == [41, 83]


@pytest.mark.parametrize("kept", [20, 1])
def test_each_malformed_line_is_told_and_the_first_are_kept(tmp_path: Path, kept: int) -> None:
    told: list[Malformed] = []
    count = kept + 5
    _, tally = given(tmp_path, "junk\n" * count, "gridftp", on_malformed=told.append)
    assert [one.line for one in told] == list(range(1, count + 1))
    assert len(tally.first_malformed) == min(count, 20) and tally.malformed == count


def test_a_log_can_be_read_twice() -> None:
    log = read_log(SAMPLES / "gridftp.log")
    first = [table.num_rows for table in log.batches()]
    assert [table.num_rows for table in log.batches()] == first
    assert log.tally.records == 8
