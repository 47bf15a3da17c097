"""A figure belongs to the record that says it: never by its place, never from the record before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from farline.formats import detect
from tests.support.draws import SAME_FOLDER, draws
from tests.unit.formats.logs import Rows, bag, given, sample, text_of


def only(rows: Rows) -> dict[str, Any]:
    """The one row there is."""
    assert len(rows) == 1
    return rows[0]


def flent(series: dict[str, list[float]], metas: dict[str, Any], **metadata: Any) -> str:
    """A data file of flent."""
    metadata = {"HOST": "srv", "LOCAL_HOST": "cli", "LENGTH": 10, **metadata}
    whole = {"metadata": {**metadata, "SERIES_META": metas}, "results": series, "version": 4}
    return json.dumps(whole) + "\n"


def test_flent_statistics_of_sockets_are_no_streams() -> None:
    row = only(sample("flent-socket-stats.flent")[0])
    assert (row["rate_bps"], row["streams"]) == (10e6, 1)


@pytest.mark.parametrize(
    "name",
    [
        "TCP upload::1::tcp_pacing_rate",
        "TCP upload::tcp_delivery_rate",
        "qdisc_stats_up.example::sent_bytes",
        "cpu_stats_down::load",
        "upload mood",
    ],
)
def test_a_flent_series_without_a_unit_is_no_rate_beside_series_with_one(
    tmp_path: Path, name: str
) -> None:
    metas: dict[str, Any] = {"TCP upload::1": {"UNITS": "Mbits/s"}, name: {}}
    text = flent({"TCP upload::1": [5.0], name: [900.0]}, metas)
    row = only(given(tmp_path, text, "flent")[0])
    assert (row["rate_bps"], row["streams"]) == (5e6, 1)


def test_flent_of_the_first_version_has_no_units_at_all(tmp_path: Path) -> None:
    text = flent({"TCP upload": [5.0, 7.0], "Ping (ms) ICMP": [20.0]}, {})
    row = only(given(tmp_path, text, "flent")[0])
    assert (row["rate_bps"], row["rtt_ms"]) == (6e6, 20.0)


def test_flent_to_several_hosts_is_a_transfer_for_each_with_its_own_ping(tmp_path: Path) -> None:
    series = {
        "TCP upload BE1 far": [5.0],
        "TCP upload BE2 near": [50.0],
        "Ping (ms) ICMP1 far": [90.0],
        "Ping (ms) ICMP2 near": [2.0],
        "TCP upload BE3": [1.0],
    }
    metas = {name: {"UNITS": "ms" if "Ping" in name else "Mbits/s"} for name in series}
    rows, _ = given(tmp_path, flent(series, metas, HOST="far", HOSTS=["far", "near"]), "flent")
    assert {(row["to_host"], row["rate_bps"], row["rtt_ms"]) for row in rows} == {
        ("far", 5e6, 90.0),
        ("near", 50e6, 2.0),
        (None, 1e6, None),
    }


def test_globus_url_copy_tells_copies_apart_that_keep_their_names() -> None:
    first, second = sample("globus-url-copy-two.txt")[0]
    assert (first["modality"], first["to_host"]) == ("T", "dtn9.site-z.example")
    assert first["rate_bps"] == pytest.approx(6.645e9, rel=1e-3)
    assert (second["modality"], second["bytes"]) == ("E", 1_000_000_000)
    assert (second["from_host"], second["to_host"]) == (
        "dtn1.site-a.example",
        "dtn2.site-b.example",
    )
    assert second["rate_bps"] == pytest.approx(94.4e6, rel=1e-3)


GUC = (
    "Source: ftp://{0}/d/\nDest:   ftp://b/d/\n  f{0}\n\n"
    "   {1} bytes  {2:.2f} MB/sec avg  {2:.2f} MB/sec inst\r\n"
)


def test_a_rate_goes_to_the_copy_named_last_and_a_short_copy_has_none(tmp_path: Path) -> None:
    short = "Source: ftp://c/d/\nDest:   ftp://b/d/\n  tiny\n\n"
    text = GUC.format("a", 5 << 20, 1.0) + short + GUC.format("e", 50 << 20, 10.0)
    rows, tally = given(tmp_path, text, "globus-url-copy")
    assert [(row["from_host"], row["bytes"]) for row in rows] == [("a", 5 << 20), ("e", 50 << 20)]
    assert tally.skipped == {"copy without a rate": 1}


def test_averages_that_go_back_are_of_several_copies_and_of_none(tmp_path: Path) -> None:
    line = "   1000 bytes  1.00 MB/sec avg  1.00 MB/sec inst\r\n"
    rows, tally = given(tmp_path, GUC.format("a", 5 << 20, 1.0) + line, "globus-url-copy")
    assert rows == [] and tally.skipped == {"copy among others at the same time": 1}


@pytest.mark.parametrize("late", [False, True])
def test_a_copy_that_both_outputs_tell_of_is_one(tmp_path: Path, late: bool) -> None:
    lines = text_of("globus-url-copy-dbg.txt").splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(("Source", "Dest", "  ")))
    start = text.index("debug: starting to transfer ")
    end = text.index("debug: operation complete") + len("debug: operation complete\n")
    _, _, _, _, source, _, dest = text[start:].split("\n")[0].split(" ")
    (here, name), (there, other) = source.rsplit("/", 1), dest.rsplit("/", 1)
    names = name if name == other else f"{name}  ->  {other}"
    printed = (
        f"Source: {here}/\nDest:   {there}/\n  {names}\n\n"
        "   5000000000 bytes  1.00 MB/sec avg  1.00 MB/sec inst\r\n"
    )
    alone, _ = given(tmp_path, text[start:end], "globus-url-copy")
    both = text[start:end] + printed if late else printed + text[start:end]
    rows, tally = given(tmp_path, both, "globus-url-copy")
    assert bag(rows) == bag(alone) and tally.malformed == 0


def test_debug_copies_at_the_same_time_are_counted_and_none_is_a_transfer(tmp_path: Path) -> None:
    start = "debug: starting to transfer ftp://a/{0} to ftp://b/{0}\n"
    text = start.format("x") + start.format("y") + "226 ok\n" + 2 * "debug: operation complete\n"
    rows, tally = given(tmp_path, text, "globus-url-copy")
    assert rows == [] and tally.malformed == 0
    assert tally.skipped["copy among others at the same time"] == 2


def test_other_operations_of_globus_url_copy_end_without_a_copy(tmp_path: Path) -> None:
    text = "debug: starting to size ftp://a/x\ndebug: operation complete\n"
    _, tally = given(tmp_path, text + text_of("globus-url-copy-dbg.txt"), "globus-url-copy")
    assert (tally.malformed, tally.transfers, tally.failed) == (0, 1, 1)


GLOBUS = (
    "Source: ftp://{0}.example/\nDest:   file:///data/\n  f{0}  ->  g\n\n"
    "   3758358528 bytes      1791.67 MB/sec avg      1791.67 MB/sec inst\n\n"
)
GLOBUS_ERROR = (
    "\n{0}error: globus_ftp_client: the server responded with an error\n"
    "500 500-Command failed. : globus_l_gfs_file_open failed.\n\n500 End.\n\n"
)


def test_an_error_of_globus_url_copy_is_of_the_copy_that_failed(tmp_path: Path) -> None:
    one, two, three = (GLOBUS.format(name) for name in "abc")
    short = "\n".join(GLOBUS.format("s").splitlines()[:3]) + "\n\n"
    error, goes_on = GLOBUS_ERROR.format(""), GLOBUS_ERROR.format("continuing on ")
    summary = "error: There was an error with 1 transfer.\n"
    for text, failed in (
        # In a file the error comes before what it is of.
        (error + short, "s"),
        (one + error + short + three, "s"),
        (one + error + two + three, "b"),
        (goes_on + summary + short + two, "s"),
        # On a terminal it comes behind it.
        (one + error, "a"),
        (one + two + error + "$ globus-url-copy -vb x y\n" + three, "b"),
        (one + goes_on + two + summary, "a"),
        (one + two + "Cancelling copy...\n", "b"),
    ):
        rows, _ = given(tmp_path, text, "globus-url-copy")
        assert [row["from_host"] for row in rows if not row["complete"]] == [f"{failed}.example"], (
            text
        )
        assert len(rows) == sum(name in text for name in ("  fa", "  fb", "  fc")) + (failed == "s")
    rows, _ = given(tmp_path, error, "globus-url-copy")
    assert [row["complete"] for row in rows] == [False]


def test_the_other_end_of_a_put_is_said_where_its_name_is(tmp_path: Path) -> None:
    mark = "112-Perf Marker\n Timestamp:  {0}.0\n Stripe Index: 0\n"
    mark += " Stripe Bytes Transferred: {1}\n Total Stripe Count: 1\n112 End.\n"
    text = (
        "debug: starting to put ftp://a.example/dev/null\n"
        + mark.format(1795845697, 1000)
        + "Source: file:///dev/\nDest:   ftp://a.example/dev/\n  zero  ->  null\n"
        + mark.format(1795845698, 9000)
        + "226 Transfer Complete.\ndebug: operation complete\n"
    )
    row = only(given(tmp_path, text, "globus-url-copy")[0])
    assert (row["modality"], row["bytes"], row["to_host"]) == ("T", 8000, "a.example")


def test_nuttcp_in_reverse_has_the_facts_of_its_own_test() -> None:
    rows, _ = sample("nuttcp-reverse.txt")
    assert [(row["rtt_ms"], row["to_host"], row["streams"]) for row in rows] == [
        (150.0, "192.0.2.7", 1),
        (10.0, "198.51.100.9", 4),
        (1.0, "203.0.113.3", 1),
    ]
    assert {row["retransmits"] for row in rows} == {0}


def test_nuttcp_verbose_in_words_is_read_like_its_fields() -> None:
    rows, tally = sample("nuttcp-verbose.txt")
    reverse, forward, intervals = rows
    assert (reverse["from_host"], reverse["to_host"]) == ("10.9.1.2", "10.9.1.1")
    assert (forward["from_host"], forward["to_host"]) == ("10.9.1.1", "10.9.1.2")
    assert (reverse["rate_bps"], reverse["rtt_ms"]) == (12549434600.0, 0.17)
    assert (intervals["rate_bps"], intervals["retransmits"]) == (17405339300.0, 0)
    assert (tally.malformed, tally.skipped["interval"]) == (0, 1)


def test_udp_of_nuttcp_8_2_in_words_is_udp(tmp_path: Path) -> None:
    rows, tally = sample("nuttcp-8.2-udp-verbose.txt")
    assert [(row["transport"], row["to_host"], row["rate_bps"]) for row in rows] == [
        ("udp", "b.example", 50_082_100.0),
        ("udp", "b.example", 19_998_200.0),
    ]
    assert tally.malformed == 0
    text = text_of("nuttcp-8.2-udp-verbose.txt").replace(" af=inet ip", " ttl=2 af=inet6 ip")
    assert given(tmp_path, text, "nuttcp")[0][0]["to_host"] == "b.example"


BLOCK = (
    "nuttcp-{0}: v6.1.2: socket\n"
    "nuttcp-{0}: buflen=65536 nstream={1} port=5001 mode=tcp\n"
    "nuttcp-{0}: {2}\n"
    "nuttcp-{0}: megabytes={1}00.0 real_seconds=1.00 rate_KBps=102400.00 rate_Mbps=838.8608\n"
)


def nuttcp_test(number: int, reverse: bool, cut: bool) -> str:
    """One verbose test, whose host, streams and round-trip time are all its number."""
    sends = BLOCK.format("t", number, f"connect=10.0.0.{number} mss=1448 rtt_ms={number}")
    sends += f"nuttcp-t: retrans={number}\n"
    receives = BLOCK.format("r", number, f"accept=10.0.0.{number}")
    blocks = [receives, sends] if reverse else [sends, receives]
    return blocks[0] if cut else "\n".join(blocks) + "\n"


@draws(40, SAME_FOLDER)
@examples(
    tests=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6),
    drop=st.integers(0, 60),
)
def test_no_nuttcp_test_has_a_fact_of_another(
    tmp_path: Path, tests: list[tuple[bool, bool]], drop: int
) -> None:
    parts = [nuttcp_test(number, *one) for number, one in enumerate(tests, 1)]
    lines = "".join(parts).splitlines(keepends=True)
    rows, _ = given(tmp_path, "".join(lines[:drop] + lines[drop + 1 :]), "nuttcp")
    for row in rows:
        said = {row["rtt_ms"], row["retransmits"], row["streams"]} - {None}
        hosts = {int(row[end].rpartition(".")[2]) for end in ("from_host", "to_host") if row[end]}
        assert len(said | hosts) <= 1


def test_an_error_of_nuttcp_is_of_the_test_that_had_no_result_yet(tmp_path: Path) -> None:
    error = "nuttcp-t: v6.1.2: Error: connect: Connection refused\n"
    rows, _ = given(tmp_path, nuttcp_test(1, False, False) + error, "nuttcp")
    assert [row["complete"] for row in rows] == [True, False]
    rows, _ = given(tmp_path, nuttcp_test(2, False, True) + error, "nuttcp")
    assert [(row["complete"], row["to_host"]) for row in rows] == [(False, "10.0.0.2")]


IOZONE = (
    "write", "rewrite", "read", "reread", "random read", "random write", "backward read",
    "record rewrite", "stride read", "fwrite", "frewrite", "fread", "freread",
)  # fmt: skip


@pytest.mark.parametrize("version", ["3.327", "3.492"])
def test_iozone_reads_every_column_of_old_and_new_versions(version: str) -> None:
    rows, tally = sample(f"iozone-{version}-auto.txt")
    assert [row["code"] for row in rows[:13]] == list(IOZONE)
    expected = [(101_000 + 1000 * place) * 8192 for place in range(13)]
    assert [row["rate_bps"] for row in rows[:13]] == pytest.approx(expected)
    assert tally.malformed == 0


@pytest.mark.parametrize("version", ["3.327", "3.492"])
@draws(40, SAME_FOLDER)
@examples(run=st.sets(st.integers(0, 12), min_size=1), wide=st.booleans())
def test_iozone_tests_that_were_not_run_leave_the_others_in_place(
    tmp_path: Path, version: str, run: set[int], wide: bool
) -> None:
    text = text_of(f"iozone-{version}-auto.txt")
    lines = text.splitlines(keepends=True)
    at = next(place for place, line in enumerate(lines) if " 101000 " in line)
    line = lines[at]
    for place in range(13):
        figure = f"{101_000 + 1000 * place}"
        line = line if place in run else line.replace(figure, " " * len(figure))
    # A size that is wider than its column moves the rest of the line.
    line = line.replace(" 65536    1024 ", " 165536000    1024 ") if wide else line
    rows, tally = given(tmp_path, "".join([*lines[:at], line]), "iozone")
    assert {(row["code"], row["rate_bps"] / 8192) for row in rows} == {
        (IOZONE[place], 101_000 + 1000 * place) for place in run
    }
    assert tally.malformed == 0


IOZONE_3_508 = (
    "\tOutput is in kBytes/sec\n"
    "              kB  reclen    write    rewrite      read    reread      read     write      read"
    "    rewrite       read    fwrite  frewrite     fread   freread\n"
)
BLANKS = ((2, 18), (2, 18), (2, 18), (1, 9), (1, 10), (1, 10), (2, 18), (2, 17))
"""How many tests stand together, and how wide the blanks are that stand for them."""


@draws(60, SAME_FOLDER)
@examples(run=st.sets(st.integers(0, 7), min_size=1), kilobytes=st.sampled_from([64, 165536000000]))
def test_blanks_of_iozone_3_508_are_narrower_than_its_columns(
    tmp_path: Path, run: set[int], kilobytes: int
) -> None:
    line, place = f"{kilobytes:16d}{64:8d}", 0
    expected: list[tuple[str, int]] = []
    for group, (count, blanks) in enumerate(BLANKS):
        for test in IOZONE[place : place + count] if group in run else ():
            line += f"{1000 + len(expected):{11 if group in (4, 5) else 10}d}"
            expected.append((test, 1000 + len(expected)))
        line += "" if group in run else " " * blanks
        place += count
    rows, tally = given(tmp_path, IOZONE_3_508 + line + "\n", "iozone")
    assert tally.malformed == 0
    assert [(row["code"], row["rate_bps"] / 8192) for row in rows] == expected


@pytest.mark.parametrize(
    "said",
    [
        "OPS Mode. Output is in operations per second.",
        "Microseconds/op Mode. Output is in microseconds per operation.",
        "",
    ],
)
def test_an_iozone_table_that_is_not_said_to_be_in_kbytes_is_no_rate(
    tmp_path: Path, said: str
) -> None:
    text = text_of("iozone-3.492-auto.txt").replace("Output is in kBytes/sec", said)
    rows, tally = given(tmp_path, text, "iozone")
    assert rows == [] and tally.malformed == 1


def test_an_iozone_test_that_was_left_out_has_rate_0_and_is_none(tmp_path: Path) -> None:
    text = text_of("iozone-3.492-auto.txt").replace("102000", "     0")
    rows, tally = given(tmp_path, text, "iozone")
    assert len(rows) == 12 and tally.skipped["test that was not run"] == 1


def test_fio_tells_of_a_run_again_and_again_and_the_last_counts() -> None:
    rows, tally = sample("fio-status-interval.json")
    row = only(rows)
    assert (row["bytes"], row["duration_s"], row["rate_bps"]) == (1_800_000_000, 15.0, 960e6)
    assert tally.skipped == {"interim status, not a final result": 2}


def fio_run(end_ms: int, runtime_ms: int, moved: int, **job: Any) -> str:
    """A document of fio with one job that wrote."""
    done = {"io_bytes": moved, "bw_bytes": moved * 1000 // runtime_ms, "runtime": runtime_ms}
    jobs = [{"jobname": "a", "groupid": 0, "error": 0, "write": done, **job}]
    return json.dumps({"fio version": "fio-3.33", "timestamp_ms": end_ms, "jobs": jobs}) + "\n"


@pytest.mark.parametrize(
    ("second", "runs"),
    [
        (fio_run(1_772_359_215_000, 10_000, 2000), 2),
        (fio_run(1_772_359_210_000, 10_000, 2000), 1),
        (fio_run(1_772_359_205_010, 5000, 1000), 1),
        (fio_run(1_772_359_211_000, 5000, 1000), 2),
        (fio_run(1_772_359_210_000, 10_000, 500), 2),
        (fio_run(1_772_359_210_000, 10_000, 2000, jobname="b"), 2),
        (fio_run(1_772_359_210_000, 10_000, 2000, job_start=7), 2),
    ],
)
def test_only_what_went_on_in_between_is_one_run_of_fio(
    tmp_path: Path, second: str, runs: int
) -> None:
    rows, _ = given(tmp_path, fio_run(1_772_359_205_000, 5000, 1000) + second, "fio")
    assert len(rows) == runs


def test_a_job_of_fio_that_starts_later_is_of_the_same_run(tmp_path: Path) -> None:
    first, second = (
        json.loads(fio_run(1_772_359_200_000 + end_ms, end_ms, moved, job_start=1_772_359_200_000))
        for end_ms, moved in ((5000, 1000), (10_000, 2000))
    )
    first["jobs"] += [{"jobname": "b", "groupid": 1, "error": 0, "job_start": 0}]
    second["jobs"] += [{"jobname": "b", "groupid": 1, "error": 0, "job_start": 1_772_359_205_001}]
    rows, tally = given(tmp_path, f"{json.dumps(first)}\n{json.dumps(second)}\n", "fio")
    assert only(rows)["bytes"] == 2000
    assert tally.skipped == {"interim status, not a final result": 1}


def test_fio_says_how_many_jobs_one_entry_stands_for_and_which_block_was_written(
    tmp_path: Path,
) -> None:
    options = {"numjobs": "3", "bs": "4k,1m"}
    text = fio_run(1_772_359_205_000, 5000, 1000, **{"job options": options})
    row = only(given(tmp_path, text, "fio")[0])
    assert (row["concurrency"], row["block_bytes"]) == (3, 1 << 20)
    grouped = {"job options": {"group_reporting": ""}}
    text = fio_run(1_772_359_205_000, 5000, 1000, **grouped)
    assert only(given(tmp_path, text, "fio")[0])["concurrency"] is None


def test_fio_that_added_reading_and_writing_up_is_one_mixed_row(tmp_path: Path) -> None:
    text = fio_run(1_772_359_205_000, 5000, 1000).replace('"write"', '"mixed"')
    assert only(given(tmp_path, text, "fio")[0])["code"] == "mixed"


def test_a_pscheduler_figure_that_is_null_says_nothing_of_udp(tmp_path: Path) -> None:
    assert only(sample("pscheduler-iperf2.json")[0])["transport"] == "tcp"
    result = json.loads(text_of("pscheduler-iperf2.json"))["run"]["result-merged"]
    assert only(given(tmp_path, json.dumps(result), "pscheduler")[0])["transport"] is None
    result["summary"]["summary"] |= {"sent": 100, "lost": 0}
    assert only(given(tmp_path, json.dumps(result), "pscheduler")[0])["transport"] == "udp"


def test_pscheduler_in_reverse_is_sent_by_the_destination(tmp_path: Path) -> None:
    document = json.loads(text_of("pscheduler-iperf2.json"))
    document["task"]["test"]["spec"]["reverse"] = True
    row = only(given(tmp_path, json.dumps(document), "pscheduler")[0])
    assert (row["from_host"], row["to_host"]) == ("ps2.site-b.example", "ps1.site-a.example")


def test_what_pscheduler_says_before_its_result_is_no_result(tmp_path: Path) -> None:
    said = (
        "Submitting task...\nTask URL:\nhttps://a.example/pscheduler/tasks/7\n"
        "Running with tool 'iperf3'\nFetching first run...\n\nNext scheduled run:\n"
        "Starts 2024-03-07T10:05:49-06:00 (~27 seconds)\nWaiting for result...\n\n"
    )
    text = said + text_of("pscheduler-result.json") + "\nNo further runs scheduled.\n"
    rows, tally = given(tmp_path, text, "pscheduler")
    assert detect(tmp_path / "given.log") == "pscheduler" and tally.malformed == 0
    assert rows == [{**row, "source": "given.log"} for row in sample("pscheduler-result.json")[0]]


def test_the_rate_of_nuttcp_in_pscheduler_has_its_losses_off_already(tmp_path: Path) -> None:
    document = json.loads(text_of("pscheduler-iperf2.json"))
    document["task"]["test"]["spec"]["udp"] = True
    total = document["run"]["result-merged"]["summary"]["summary"]
    total |= {"sent": 100, "lost": 50, "throughput-bits": 8e6}
    for tool, rate_bps in (("nuttcp", 8e6), ("iperf3", 4e6)):
        document["task"]["tool"] = tool
        row = only(given(tmp_path, json.dumps(document), "pscheduler")[0])
        assert row["rate_bps"] == rate_bps


def test_bytes_a_second_of_pscheduler_are_not_the_bytes_of_the_test(tmp_path: Path) -> None:
    document = json.loads(text_of("pscheduler-iperf2.json"))
    total = document["run"]["result-merged"]["summary"]["summary"]
    total["throughput-bytes"] = total["throughput-bits"] // 8
    row = only(given(tmp_path, json.dumps(document), "pscheduler")[0])
    assert (row["rate_bps"], row["bytes"], row["duration_s"]) == (1.98e9, None, 10)


def test_udp_of_a_pscheduler_tool_that_does_not_say_what_was_lost_is_unreadable(
    tmp_path: Path,
) -> None:
    document = json.loads(text_of("pscheduler-iperf2.json"))
    document["task"]["test"]["spec"]["udp"] = True
    document["run"]["result-merged"]["summary"]["summary"]["sent"] = 100
    rows, tally = given(tmp_path, json.dumps(document), "pscheduler")
    assert (rows, tally.malformed) == ([], 1)
    assert "how much arrived" in tally.first_malformed[0].reason


def test_a_pscheduler_run_that_failed_is_not_what_one_participant_has(tmp_path: Path) -> None:
    document = json.loads(text_of("pscheduler-iperf2.json"))
    run = document["run"]
    run |= {"state": "failed", "result": run["result-merged"], "result-merged": None}
    row = only(given(tmp_path, json.dumps(document), "pscheduler")[0])
    assert (row["complete"], row["code"]) == (False, "failed")
    run["result-merged"] = run["result"]
    row = only(given(tmp_path, json.dumps(document), "pscheduler")[0])
    assert (row["complete"], row["code"]) == (False, "failed")


def test_what_archivers_of_pscheduler_wrote_until_4_1_is_read(tmp_path: Path) -> None:
    document = json.loads(text_of("pscheduler-iperf2.json"))
    task, run = document["task"], document["run"]
    old = {
        "test": task["test"],
        "tool": {"name": "iperf2", "version": "4.1"},
        "schedule": {"start": run["start-time"], "duration": "PT20S"},
        "result": run["result-merged"],
    }
    rows = sample("pscheduler-iperf2.json")[0]
    for given_one in (old, {"data": {}, "result": old}):
        again, _ = given(tmp_path, json.dumps(given_one), "pscheduler")
        assert [{**row, "source": "pscheduler-iperf2.json"} for row in again] == rows
