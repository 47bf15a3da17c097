"""Lines of nuttcp, FDT, globus-url-copy and IOzone, and tables with a mapping."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from farline.errors import SpecError
from farline.formats import Malformed, Tally, detect, read_log
from tests.unit.formats.logs import MAPPING, SAMPLES, drained, given, sample, text_of


def test_nuttcp_results_are_transfers_and_intervals_are_none() -> None:
    rows, tally = sample("nuttcp.txt")
    assert tally.skipped == {"comment": 1, "interval": 2} and tally.malformed == 0
    tcp, udp, failed = rows
    assert (tcp["rate_bps"], tcp["retransmits"], tcp["rtt_ms"]) == (501473200.0, 4, 45.1)
    assert tcp["bytes"] == round(119.5625 * 2**20)
    assert (udp["transport"], udp["retransmits"]) == ("udp", None)
    assert (failed["complete"], failed["code"]) == (False, "connect: Connection refused")


def test_a_test_of_nuttcp_that_was_interrupted_has_failed(tmp_path: Path) -> None:
    cut = "\n*** transfer interrupted ***\n"
    plain = "    4.6250 MB /   1.96 sec =   19.8312 Mbps 48 %TX 0 %RX 0 retrans 0.07 msRTT\n"
    parse = "megabytes=4.6250 real_seconds=1.94 rate_Mbps=20.0222 tx_cpu=58 rx_cpu=0 retrans=0\n"
    interval = "    2.3750 MB /   1.00 sec =   19.8989 Mbps     0 retrans\n"
    for line in (plain, parse):
        rows, tally = given(tmp_path, line + interval + cut + interval + line + line, "nuttcp")
        assert [row["complete"] for row in rows] == [True, False, True]
        assert rows[1]["code"] == "interrupted" and tally.malformed == 0
    verbose = text_of("nuttcp-verbose.txt")
    lines = verbose.splitlines(keepends=True)
    result = next(at for at, line in enumerate(lines) if "real seconds" in line)
    before = sample("nuttcp-verbose.txt")[0]
    rows, _ = given(tmp_path, "".join(lines[:result]) + cut + "".join(lines[result:]), "nuttcp")
    assert [row["complete"] for row in rows] == [False, *(row["complete"] for row in before[1:])]


def test_a_test_of_nuttcp_shorter_than_its_digits_has_a_rate(tmp_path: Path) -> None:
    # nuttcp 7.3.3 with `-n100`.
    line = "6.2500 MB /   0.00 sec = 16256.9922 Mbps 0 %TX 0 %RX 0 retrans 0.18 msRTT\n"
    fields = "megabytes=6.25 real_seconds=0.00 rate_Mbps=16256.9922 tx_cpu=0 rx_cpu=0 retrans=0\n"
    for text in (line, fields):
        [row] = given(tmp_path, text, "nuttcp")[0]
        assert (row["rate_bps"], row["duration_s"]) == (16_256_992_200.0, None)


def test_udp_of_nuttcp_is_told_by_its_losses(tmp_path: Path) -> None:
    line = "    2.3828 MB /   1.00 sec =   19.9869 Mbps 45 %TX 0 %RX 0.00 %loss\n"
    rows, _ = given(tmp_path, line, "nuttcp")
    assert [row["transport"] for row in rows] == ["udp"]


def test_lines_of_nuttcp_may_begin_with_an_identifier(tmp_path: Path) -> None:
    for name, prefix in (("nuttcp.txt", "a run: "), ("nuttcp-parse.txt", "run: ")):
        text = re.sub(r"^(?= *[\d.]+ MB|megabytes)", prefix, text_of(name), flags=re.MULTILINE)
        given(tmp_path, text, "nuttcp")
        assert detect(tmp_path / "given.log") == "nuttcp"
        assert given(tmp_path, text, "nuttcp")[0] == [
            {**row, "source": "given.log"} for row in sample(name)[0]
        ]
    text = text_of("nuttcp-verbose.txt").replace("nuttcp-t:", "nuttcp-t-run:")
    text = text.replace("nuttcp-r:", "nuttcp-r-run:")
    rows, tally = given(tmp_path, text, "nuttcp")
    assert detect(tmp_path / "given.log") == "nuttcp" and tally.malformed == 0
    assert rows == [{**row, "source": "given.log"} for row in sample("nuttcp-verbose.txt")[0]]


def test_nuttcp_verbose_tells_once_and_with_what_was_said_before() -> None:
    rows, tally = sample("nuttcp-parse.txt")
    assert tally.transfers == 3 and tally.malformed == 0
    assert rows[0]["streams"] is None
    assert (rows[2]["rate_bps"], rows[2]["streams"], rows[2]["rtt_ms"]) == (499.1e6, 4, 45.2)
    assert (rows[2]["to_host"], rows[2]["retransmits"]) == ("198.51.100.9", 6)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("megabytes=1.0 real_seconds=2.00", "rate_Mbps is missing"),
        ("megabytes=4.8125 real_seconds=2.02 rate_Mbps=2", "tx_cpu is missing"),
        ("megabytes=x real_seconds=2.00 rate_Mbps=4", "megabytes is 'x'"),
        (" 0.0000 MB /  10.00 sec =    0.0000 Mbps 1 %TX 2 %RX", "rate 0"),
        (" 1.0000 MB /   0.00 sec =  100.0000 Mbps 1 %TX 2 %RX", "took no time"),
        ("something else", "not an nuttcp result line"),
    ],
)
def test_a_nuttcp_line_that_cannot_be_is_malformed(tmp_path: Path, line: str, reason: str) -> None:
    rows, tally = given(tmp_path, line + "\n", "nuttcp")
    assert rows == [] and reason in tally.first_malformed[0].reason


def test_fdt_sessions_are_transfers_and_their_control_connections_are_none() -> None:
    rows, tally = sample("fdt-server.log")
    assert (tally.transfers, tally.failed, tally.malformed) == (2, 2, 0)
    assert tally.skipped["control session"] == 1
    stored, sent, refused, dead = rows
    assert (stored["from_host"], stored["to_host"]) == ("192.0.2.7", "dtn1")
    assert (sent["from_host"], sent["streams"]) == ("dtn1", 4)
    assert stored["rate_bps"] == pytest.approx(50_000_000 * 8 / 7.14)
    assert (refused["code"], dead["code"]) == ("426", "failed to start")


def test_a_cut_result_of_fdt_is_malformed_and_a_message_is_not(tmp_path: Path) -> None:
    text = text_of("fdt-server.log")
    cut = text[: text.index("STREAMS=2") + 4]
    _, tally = given(tmp_path, cut + "\n", "fdt")
    assert tally.malformed == 1 and tally.transfers == 0
    assert "somebody" not in repr(tally)


def test_globus_url_copy_keeps_the_last_average_and_no_guess() -> None:
    rows, tally = sample("globus-url-copy.txt")
    assert len(rows) == 1 and tally.skipped == {"copy without a rate": 1}
    assert rows[0]["rate_bps"] == pytest.approx(95.37 * 2**20 * 8)
    assert (rows[0]["modality"], rows[0]["from_host"]) == ("E", "a.example.org")
    assert "big.dat" not in repr(rows)


def test_globus_url_copy_with_markers_is_timed_by_the_server() -> None:
    rows, tally = sample("globus-url-copy-dbg.txt")
    copied, failed = rows
    assert (copied["rate_bps"], copied["duration_s"]) == (8e9, 10.0)
    assert (copied["modality"], copied["streams"]) == ("T", 2)
    assert copied["started_at"] == datetime(2026, 3, 1, 10)
    assert (failed["complete"], failed["rate_bps"]) == (False, None)
    assert tally.malformed == 0


def test_a_copy_that_is_cut_after_a_marker_is_a_failed_one(tmp_path: Path) -> None:
    text = text_of("globus-url-copy-dbg.txt")
    cut = text[: text.index("1772359210")]
    rows, _ = given(tmp_path, cut, "globus-url-copy")
    assert [(row["complete"], row["code"]) for row in rows] == [(False, "no end")]


def test_iozone_columns_are_found_by_where_they_end() -> None:
    rows, tally = sample("iozone.txt")
    assert [row["code"] for row in rows] == [
        "write",
        "rewrite",
        "random read",
        "random write",
        "initial writers",
    ]
    assert rows[0]["rate_bps"] == 100000 * 1024 * 8 and rows[0]["modality"] == "F"
    assert (rows[4]["concurrency"], tally.malformed) == (4, 0)


def test_what_iozone_could_not_write_is_a_failed_transfer(tmp_path: Path) -> None:
    rows, tally = sample("iozone-3.508-no-space.txt")
    assert [row["complete"] for row in rows] == [True] * 4 + [False] * 3
    assert [(row["code"], row["block_bytes"], row["concurrency"]) for row in rows[4:]] == [
        ("Error writing block", 1 << 20, None),
        ("Error writing block", None, 2),
        ("interrupted", None, None),
    ]
    assert tally.malformed == 0
    # An output that was cut behind the sizes of a test.
    text = text_of("iozone-3.508-no-space.txt")
    rows, _ = given(tmp_path, text[: text.index("1024\nError") + 4], "iozone")
    assert (rows[-1]["complete"], rows[-1]["code"]) == (False, "no result")


def test_a_line_of_iozone_whose_numbers_ran_together_is_malformed(tmp_path: Path) -> None:
    text = text_of("iozone-3.508-no-space.txt")
    joined = " 1234567890123456"
    _, tally = given(tmp_path, text.replace("            4096    1024", joined, 1), "iozone")
    assert (tally.malformed, tally.first_malformed[0].text) == (1, joined.strip())


def test_iozone_in_another_unit_is_no_rate(tmp_path: Path) -> None:
    text = text_of("iozone.txt").replace("kBytes/sec", "ops/sec")
    rows, tally = given(tmp_path, text, "iozone")
    assert len(rows) == 1
    assert "rates are not in kBytes/sec" in tally.first_malformed[0].reason


def test_a_table_is_read_as_its_mapping_says() -> None:
    log = read_log(SAMPLES / "table.csv", mapping=MAPPING, defaults={"streams": "4"})
    rows = drained(log)
    first, second, failed = rows
    assert (first["rate_bps"], first["rtt_ms"], first["from_host"]) == (9000.5e6, 22.6, "anl")
    assert (first["tool"], first["modality"], first["streams"]) == ("made up", "T", 4)
    assert second["started_at"] == datetime(2026, 3, 1, 10)
    assert (failed["complete"], failed["rate_bps"]) == (False, None)
    assert log.tally.skipped == {"comment": 1}
    assert [(one.line, one.reason) for one in log.tally.first_malformed] == [
        (
            6,
            "rate_bps: 'oops' is not a rate: write it with its unit, such as 10G, 1.5Gbit/s,"
            " 1GiB/s",
        ),
        (7, "3 fields, but the header has 6"),
    ]


def test_columns_with_our_names_need_no_mapping(tmp_path: Path) -> None:
    path = tmp_path / "ours.txt"
    path.write_text("bytes\tduration_s\trtt_ms\tmodality\n1000\t2\t45\tE\n")
    rows = drained(read_log(path))
    assert (rows[0]["rate_bps"], rows[0]["rtt_ms"], rows[0]["tool"]) == (4000.0, 45.0, "csv")


@pytest.mark.parametrize(
    ("unit", "value", "rate_bps"),
    [
        ("", "5e6", 5e6),
        (":kbit/s", "1.5", 1500.0),
        (":Gbit/s", "9.41", 9.41e9),
        (":MB/s", "100", 800e6),
        (":MiB/s", "1", 8388608.0),
        ("", "10G", 1e10),
    ],
)
def test_rates_are_read_in_their_unit(
    tmp_path: Path, unit: str, value: str, rate_bps: float
) -> None:
    rows, _ = given(tmp_path, f"r,x\n{value},1\n", "csv", mapping=f"rate_bps=r{unit},modality=T")
    assert rows[0]["rate_bps"] == pytest.approx(rate_bps)


def test_sizes_times_and_quoted_names_are_read_too(tmp_path: Path) -> None:
    text = '"took, s",MB,rtt us,when\n"2.5",10,45000,1772359200.25\n'
    mapping = 'duration_s="took, s", bytes=MB:MB, rtt_ms=rtt us:us, started_at=when:s, modality=T'
    rows, _ = given(tmp_path, text, "csv", mapping=mapping)
    assert (rows[0]["bytes"], rows[0]["duration_s"]) == (10_000_000, 2.5)
    assert rows[0]["rtt_ms"] == pytest.approx(45.0)
    assert rows[0]["started_at"] == datetime(2026, 3, 1, 10, 0, 0, 250_000)


@pytest.mark.parametrize(
    ("mapping", "complaint"),
    [
        ("", "mapping: empty"),
        ("rate_bps", "'rate_bps' is not an entry"),
        ("speed=r", "'speed' is not a column; use tool"),
        ("rate_bps=r,rate_bps=x", "column rate_bps is given twice"),
        ("rate_bps=r:apples", "rate_bps: '1000000apples' is not a rate"),
        ("rate_bps=r,streams=x:MB", "streams: it has no unit"),
        ("rate_bps=r,streams='5000000000'", "streams is 5000000000: it must be between 1"),
        ("rate_bps=r,rtt_ms='1e400'", "rtt_ms is inf: it must be"),
        ("rate_bps=r", "the modality is unknown: map it, or use --set modality=E (T, E, H, F)"),
        ("rate_bps=r,modality='Q'", "modality: 'Q' is not a modality: use T, E, H, F"),
        ("rate_bps=r,started_at=x:weeks", "started_at: 'weeks' is not s, ms or us"),
        ("rate_bps=speed", "rate_bps: column 'speed' is not in the header; available: r, x"),
        ("rtt_ms=x", "the rate is missing: map rate_bps"),
        ("source=x", "'source' is not a column"),
    ],
)
def test_a_mapping_that_cannot_be_names_the_column(
    tmp_path: Path, mapping: str, complaint: str
) -> None:
    with pytest.raises(SpecError) as refused:
        given(tmp_path, "r,x\n1,2\n", "csv", mapping=mapping)
    assert complaint in refused.value.message


@pytest.mark.parametrize(
    ("defaults", "complaint"),
    [
        ({"rate_bps": "1G"}, "'rate_bps' cannot be set; these can: modality, from_host"),
        ({"tool": "fast"}, "'tool' cannot be set"),
        ({"speed": "1"}, "'speed' cannot be set"),
        ({"rtt_ms": "soon"}, "rtt_ms: 'soon' is not a time: write a number of ms, or"),
        ({"rtt_ms": "-5"}, "rtt_ms: rtt_ms is -5: it must be a number from 0"),
        ({"rtt_ms": "1e400"}, "rtt_ms: rtt_ms is inf: it must be"),
        ({"streams": "0"}, "must be between 1 and 2147483647"),
        ({"streams": "5000000000"}, "must be between 1 and 2147483647"),
        ({"streams": "1e400"}, "streams: "),
        ({"buffer_bytes": "1e400"}, "buffer_bytes: "),
        ({"streams": "1.5"}, "streams: '1.5' is not a whole number"),
        ({"modality": "Q"}, "modality: 'Q' is not a modality"),
        ({"file_system": " "}, "file_system: the value is empty"),
    ],
)
def test_a_default_that_cannot_be_is_refused(defaults: dict[str, str], complaint: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_log(SAMPLES / "nuttcp.txt", defaults=defaults)
    assert complaint in refused.value.message


def test_defaults_fill_what_is_empty_and_nothing_else() -> None:
    rows, _ = sample("nuttcp.txt", defaults={"rtt_ms": "9ms", "buffer_bytes": "4M", "streams": 2})
    assert [row["rtt_ms"] for row in rows] == [45.1, 9.0, 9.0]
    assert {row["buffer_bytes"] for row in rows} == {4 << 20}
    assert {row["streams"] for row in rows} == {2}


def test_a_default_says_how_many_cells_it_filled() -> None:
    defaults = {"rtt_ms": "9ms", "streams": "2", "modality": "E"}
    _, tally = sample("nuttcp.txt", defaults=defaults)
    assert (tally.filled["rtt_ms"], tally.filled["modality"]) == (2, 0)


def test_reasons_are_counted_by_kind_without_what_a_record_holds(tmp_path: Path) -> None:
    lines = [f"user{number}@host,{number}\n" for number in range(300)]
    text = "rate_bps,rtt_ms\n" + "".join(lines) + "x" * 5000 + ",1\n" + "5,6,7\n7,8,9,10\n"
    _, tally = given(tmp_path, text, "csv", defaults={"modality": "E"})
    assert tally.malformed == 303
    assert len(tally.malformed_reasons) == 2
    assert tally.malformed_reasons["… fields, but the header has …"] == 2
    assert "user" not in "".join(tally.malformed_reasons)


def test_a_reason_is_an_excerpt_like_the_record(tmp_path: Path) -> None:
    text = "rate_bps,modality\n/home/someone/secret,E\n" + "x" * 5000 + ",E\n"
    _, tally = given(tmp_path, text, "csv")
    first, second = tally.first_malformed
    assert "someone" not in first.reason and "/*" in first.reason
    assert len(second.reason) < 200


def test_kinds_of_reasons_are_bounded() -> None:
    tally = Tally()
    for number in range(200):
        tally.add_malformed(Malformed(number, "", ""), "x" * number)
    assert len(tally.malformed_reasons) == 51
    assert tally.malformed_reasons["other reasons"] == 150


@pytest.mark.parametrize(
    ("unit", "value", "rate_bps"),
    [
        (":Mbits/sec", "9,41", 9.41e6),
        (":Mbps", "1.234,5", 1234.5e6),
        (":MBps", "100", 800e6),
        (":MiB/s", "0,125", 1048576.0),
        ("", "941 Mbits/sec", 941e6),
        ("", "9,41 Gbit/s", 9.41e9),
        ("", "1,5e3Mbit/s", 1.5e9),
    ],
)
def test_rates_are_read_with_decimal_commas_and_in_other_spellings(
    tmp_path: Path, unit: str, value: str, rate_bps: float
) -> None:
    text = f"r;x\n{value};1\n"
    rows, tally = given(tmp_path, text, "csv", mapping=f"rate_bps=r{unit},modality=T")
    assert tally.malformed == 0 and rows[0]["rate_bps"] == pytest.approx(rate_bps)


def test_a_comma_before_three_digits_is_what_the_other_figures_have(tmp_path: Path) -> None:
    mapping = "rate_bps=r:Gbit/s,modality=T"
    rows, tally = given(tmp_path, "r;x\n9,412;1\n9,41;1\n", "csv", mapping=mapping)
    assert [row["rate_bps"] for row in rows] == pytest.approx([9.412e9, 9.41e9])
    rows, tally = given(tmp_path, "r;x\n9,412;1\n", "csv", mapping=mapping)
    assert rows == [] and "comma that may be decimal or" in tally.first_malformed[0].reason


@pytest.mark.parametrize(
    ("figures", "rates"),
    [
        # Points stand between thousands where another figure has a decimal comma.
        (("1.234", "12.345,6", "1.234.567"), (1234, 12345.6, 1234567)),
        (("1.234", "9,5"), (1234, 9.5)),
        # Commas stand there where another one has a decimal point, or more than one comma.
        (("9,412", "1,234.5"), (9412, 1234.5)),
        (("9,412", "12,345,678", "0.5"), (9412, 12345678, 0.5)),
        (("1.234", "2.5"), (1.234, 2.5)),
        # Nobody writes an exponent and marks between thousands.
        (("1.234e3", "9,5"), (1234, 9.5)),
        (("6 000,5", "6\u202f000", "6'000"), (6000.5, 6000, 6000)),
    ],
)
def test_marks_between_thousands_are_told_by_the_other_figures(
    tmp_path: Path, figures: tuple[str, ...], rates: tuple[float, ...]
) -> None:
    text = "r;x\n" + "".join(f"{figure};1\n" for figure in figures)
    rows, tally = given(tmp_path, text, "csv", mapping="rate_bps=r:kbit/s,modality=T")
    assert tally.malformed == 0
    assert [row["rate_bps"] / 1000 for row in rows] == pytest.approx(rates)


@pytest.mark.parametrize("last", ["Total;14", "Grand total:;14", ";;", "AVERAGE;7"])
def test_what_spreadsheets_write_around_a_table_is_no_transfer(tmp_path: Path, last: str) -> None:
    text = f"sep=;\nhost;Mbit/s\na;5\ntotal.example;9\n{last}\n"
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(SpecError) as refused:
        read_log(path)
    assert "it looks like a table" in refused.value.message
    rows, tally = given(tmp_path, text, "csv", mapping='rate_bps="Mbit/s":Mbit/s,modality=T')
    assert [row["rate_bps"] for row in rows] == [5e6, 9e6]
    assert tally.malformed == (last == ";;")


def test_bytes_with_a_prefix_are_refused_with_both_readings(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        given(tmp_path, "b\td\n1\t2\n", "csv", mapping="bytes=b:GBytes,duration_s=d,modality=T")
    assert "bytes: 'GBytes' could be GB (1000) or GiB (1024)" in refused.value.message


@pytest.mark.parametrize(
    ("header", "mapping"),
    [
        ("when,Throughput (Mbits/sec)", 'rate_bps="Throughput (Mbits/sec)":Mbit/s'),
        ("when,speed GBps", 'rate_bps="speed GBps":GB/s'),
        ("when,speed", 'rate_bps="speed":Mbit/s'),
    ],
)
def test_a_table_that_is_not_mapped_says_how_to_map_it(
    tmp_path: Path, header: str, mapping: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n2026-03-01,5\n")
    with pytest.raises(SpecError) as refused:
        read_log(path)
    assert mapping in refused.value.message
