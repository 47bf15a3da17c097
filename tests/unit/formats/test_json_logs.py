"""JSON of iperf3, pScheduler, Globus, flent and fio: what each document comes to."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.formats.logs import Rows, bag, compact, given, sample, text_of


def only(rows: Rows) -> dict[str, Any]:
    """The one row there is."""
    assert len(rows) == 1
    return rows[0]


def changed(name: str, *path: str, to: object) -> str:
    """A sample with one value replaced."""
    document = json.loads(text_of(name))
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return json.dumps(document) + "\n"


def test_iperf3_gives_what_the_receiver_got_over_its_own_time() -> None:
    row = only(sample("iperf3-tcp.json")[0])
    assert row["started_at"] == datetime(2026, 3, 1, 10)
    assert (row["bytes"], row["duration_s"]) == (1_200_000_000, 10.05)
    assert row["rate_bps"] == pytest.approx(1.2e9 * 8 / 10.05)
    assert (row["from_host"], row["to_host"]) == ("192.0.2.1", "198.51.100.9")
    assert (row["streams"], row["retransmits"], row["rtt_ms"]) == (2, 7, 44.8)
    assert (row["congestion_control"], row["transport"]) == ("cubic", "tcp")
    assert (row["modality"], row["buffer_bytes"], row["block_bytes"]) == ("T", 4194304, 131072)


def test_iperf3_in_reverse_is_sent_by_the_server() -> None:
    row = only(sample("iperf3-reverse.json")[0])
    assert (row["from_host"], row["to_host"]) == ("198.51.100.9", "192.0.2.1")
    assert row["rtt_ms"] is None and row["rate_bps"] == 992e6


def test_iperf3_without_flags_goes_by_who_connected(tmp_path: Path) -> None:
    document = json.loads(text_of("iperf3-reverse.json"))
    document["end"] = {"sum_sent": {"seconds": 2, "bytes": 250000000, "bits_per_second": 1e9}}
    client, _ = given(tmp_path, json.dumps(document), "iperf3")
    del document["start"]["connecting_to"]
    document["start"]["accepted_connection"] = {"host": "198.51.100.9", "port": 1}
    server, _ = given(tmp_path, json.dumps(document), "iperf3")
    assert only(client)["from_host"] == "198.51.100.9"
    assert only(server)["from_host"] == "192.0.2.1"
    assert only(server)["rate_bps"] == 1e9


def test_old_iperf3_udp_counts_what_arrived() -> None:
    row = only(sample("iperf3-udp-old.json")[0])
    assert (row["bytes"], row["transport"]) == (900_000_000, "udp")
    assert row["rate_bps"] == pytest.approx(720e6)


def told(start_s: float, end_s: float, moved: int, lost: int, packets: int, **more: Any) -> Rows:
    """What iperf3 tells of a UDP stream, as a list of one."""
    times = {"start": start_s, "end": end_s, "seconds": end_s - start_s}
    losses = {"lost_packets": lost, "packets": packets}
    return [{"socket": 5, **times, "bytes": moved, "bits_per_second": 0, **losses, **more}]


UDP_SERVER = {
    "start": {
        "connected": [{"socket": 5, "local_host": "127.0.0.1", "remote_host": "127.0.0.2"}],
        "version": "iperf 3.1.3",
        "accepted_connection": {"host": "127.0.0.2", "port": 60786},
        "test_start": {"protocol": "UDP", "num_streams": 1, "blksize": 8192, "reverse": 0},
    },
    "intervals": [
        {"streams": told(0, 1.000749, 1_925_120, 41, 276, omitted=False)},
        {"streams": told(1.000749, 2.000644, 1_884_160, 56, 286, omitted=False)},
        {"streams": told(2.000644, 2.041044, 0, 0, 0, omitted=False)},
    ],
    "end": {
        "streams": [{"udp": told(0, 2.041044, 0, 97, 562)[0]}],
        "sum": told(0, 2.041044, 0, 97, 562)[0],
    },
}  # fmt: skip


def test_udp_of_an_iperf3_server_that_says_0_is_what_its_intervals_say(tmp_path: Path) -> None:
    row = only(given(tmp_path, json.dumps(UDP_SERVER), "iperf3")[0])
    assert (row["bytes"], row["duration_s"]) == (3_809_280, 2.041044)
    assert row["rate_bps"] == pytest.approx(3_809_280 * 8 / 2.041044)
    assert (row["from_host"], row["to_host"]) == ("127.0.0.2", "127.0.0.1")
    # Where intervals are missing, or nothing arrived, there is no figure.
    document = json.loads(json.dumps(UDP_SERVER))
    del document["intervals"][0]
    assert given(tmp_path, json.dumps(document), "iperf3")[1].malformed == 1
    document = json.loads(json.dumps(UDP_SERVER))
    document["end"]["sum"]["lost_packets"] = 562
    assert given(tmp_path, json.dumps(document), "iperf3")[1].malformed == 1


def test_udp_of_an_iperf3_server_in_both_directions_is_what_its_intervals_say(
    tmp_path: Path,
) -> None:
    there, back = {"sender": False}, {"sender": True, "socket": 6}
    document = json.loads(json.dumps(UDP_SERVER))
    document["start"]["test_start"]["bidir"] = 1
    document["intervals"] = [
        {"streams": told(0, 1.003, 5_046_272, 0, 154, **there)
            + told(0, 1.003, 5_046_272, 0, 154, **back)},
        {"streams": told(1.003, 2.00554, 4_980_736, 0, 152, **there)
            + told(1.003, 2.00554, 4_980_736, 0, 152, **back)},
    ]  # fmt: skip
    ends = told(0, 2.00554, 0, 0, 306, **there) + told(0, 2.00554, 10_027_008, 0, 307, **back)
    document["end"] = {"streams": [{"udp": one} for one in ends]}
    rows, tally = given(tmp_path, json.dumps(document), "iperf3")
    assert [(row["from_host"], row["bytes"]) for row in rows] == [
        ("127.0.0.1", 10_027_008),
        ("127.0.0.2", 10_027_008),
    ]
    assert tally.malformed == 0


@pytest.mark.parametrize("shape", ["new", "doubled keys"])
def test_both_directions_of_iperf3_are_a_transfer_each(tmp_path: Path, shape: str) -> None:
    text = text_of("iperf3-bidir.json")
    if shape == "doubled keys":
        text = text.replace("_bidir_reverse", "").replace('"bidir": 1', '"other": 1')
    rows, tally = given(tmp_path, text, "iperf3")
    assert tally.transfers == 2
    there, back = sorted(rows, key=lambda row: row["from_host"])
    assert (there["bytes"], there["to_host"]) == (990_000_000, "198.51.100.9")
    assert (back["bytes"], back["to_host"], back["rtt_ms"]) == (495_000_000, "192.0.2.1", None)


def test_the_rate_of_a_direction_of_iperf3_is_over_its_receivers_seconds(tmp_path: Path) -> None:
    # As 3.12 writes it: "seconds" of a stream's receiver are the sender's.
    document = json.loads(text_of("iperf3-bidir.json"))
    for stream in document["end"]["streams"]:
        stream["receiver"].update(start=0, end=stream["sender"]["seconds"] * 1.25)
    rows, _ = given(tmp_path, json.dumps(document), "iperf3")
    for row, stream in zip(rows, document["end"]["streams"], strict=True):
        assert row["duration_s"] == pytest.approx(stream["receiver"]["end"])
        rate = stream["receiver"]["bytes"] * 8 / stream["receiver"]["end"]
        assert row["rate_bps"] == pytest.approx(rate)


def test_an_iperf3_error_is_a_failed_transfer_and_no_rate() -> None:
    row = only(sample("iperf3-error.json")[0])
    assert (row["complete"], row["rate_bps"]) == (False, None)
    assert row["code"] == "unable to connect to server: Connection refused"


def test_documents_one_behind_another_come_out_each() -> None:
    rows, tally = sample("iperf3-many.json")
    assert (tally.transfers, tally.failed, tally.malformed) == (2, 1, 0)
    assert tally.skipped == {"message": 1}
    single = sample("iperf3-tcp.json")[0] + sample("iperf3-error.json")[0]
    known = {row["rate_bps"] for row in single}
    assert known < {row["rate_bps"] for row in rows}


def test_events_of_iperf3_are_gathered_and_the_whole_after_them_is_no_second_test() -> None:
    rows, tally = sample("iperf3-stream.json")
    assert (tally.transfers, tally.failed, tally.malformed) == (1, 1, 0)
    assert tally.skipped == {"the complete document after its events": 1}
    assert rows[1]["code"] == "control socket has closed unexpectedly"


def test_a_test_that_could_not_start_is_one_failed_transfer(tmp_path: Path) -> None:
    error = '{"event":"error","data":"unable to connect to server"}\n'
    end = '{"event":"end","data":{}}\n'
    for text in (error, error + end):
        rows, tally = given(tmp_path, text, "iperf3")
        assert (len(rows), tally.failed, tally.malformed) == (1, 1, 0)
    rows, _ = given(tmp_path, 2 * (error + end), "iperf3")
    assert [row["code"] for row in rows] == 2 * ["unable to connect to server"]


def test_the_whole_behind_an_error_in_events_is_no_second_failure(tmp_path: Path) -> None:
    error = '{"event":"error","data":"refused"}\n{"event":"end","data":{}}\n'
    whole = '{"start":{"connected":[]},"intervals":[],"end":{},"error":"refused"}\n'
    rows, tally = given(tmp_path, 2 * (error + whole) + error, "iperf3")
    assert [row["code"] for row in rows] == 3 * ["refused"]
    assert tally.skipped["the complete document after its events"] == 2
    assert len(given(tmp_path, error + 2 * whole, "iperf3")[0]) == 2


def test_an_iperf3_server_that_was_interrupted_without_a_test_is_no_transfer(
    tmp_path: Path,
) -> None:
    why = "interrupt - the server has terminated by signal Interrupt(2)"
    whole = json.dumps({"start": {"connected": []}, "intervals": [], "end": {}, "error": why})
    events = f'{{"event":"error","data":"{why}"}}\n{{"event":"end","data":{{}}}}\n'
    for text in (whole, events):
        rows, tally = given(tmp_path, text, "iperf3")
        assert rows == [] and tally.skipped == {"message": 1}
    in_a_test = whole.replace("[]", '[{"socket": 5}]', 1)
    assert len(given(tmp_path, in_a_test, "iperf3")[0]) == 1


def test_events_without_an_end_are_malformed(tmp_path: Path) -> None:
    lines = text_of("iperf3-stream.json").splitlines(keepends=True)
    rows, tally = given(tmp_path, "".join(lines[:2] + lines[:3]), "iperf3")
    assert len(rows) == 1
    assert tally.malformed_reasons == {"the events of this test have no end": 1}
    assert tally.first_malformed[0].line == 1


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("end", "sum_received", "seconds"), -1, "duration_s is -1"),
        (("end", "sum_received", "seconds"), 0, "took no time"),
        (("end", "sum_received", "bytes"), 10**19, "bytes is"),
        (("end", "sum_received", "bits_per_second"), 0, "rate 0"),
        (("start", "timestamp", "timesecs"), 10**12, "between 1970 and 2200"),
        (("start", "test_start", "num_streams"), 2**40, "streams is"),
    ],
)
def test_numbers_that_cannot_be_make_a_document_malformed(
    tmp_path: Path, path: tuple[str, ...], value: object, reason: str
) -> None:
    rows, tally = given(tmp_path, changed("iperf3-tcp.json", *path, to=value), "iperf3")
    assert rows == [] and tally.malformed == 1
    assert reason in tally.first_malformed[0].reason


@pytest.mark.parametrize("value", [None, [], "x", 3, True, {"streams": 5, "sum_received": []}])
@pytest.mark.parametrize("part", ["start", "intervals", "end", "error"])
def test_parts_of_another_type_are_no_crash(tmp_path: Path, part: str, value: object) -> None:
    _, tally = given(tmp_path, changed("iperf3-tcp.json", part, to=value), "iperf3")
    assert tally.records == 1


@pytest.mark.parametrize(
    ("junk", "reason"),
    [
        ("[" * 100_000, "too deep"),
        ('{"a": ' + "9" * 10_000 + "}\n", "too long a number"),
        ('{"a" 1}\n', "not JSON"),
        ('{"a": "\n', "not JSON"),
        ("[1, 2]\n", "element is not a JSON object"),
        ('{"foo": 1}\n', "no start, end or error"),
        ("what is this\n", "no JSON document starts here"),
    ],
)
def test_what_is_no_document_is_told_and_the_next_one_is_read(
    tmp_path: Path, junk: str, reason: str
) -> None:
    rows, tally = given(tmp_path, junk + "\n" + text_of("iperf3-error.json"), "iperf3")
    assert len(rows) == 1
    assert tally.malformed >= 1 and reason in tally.first_malformed[0].reason
    assert tally.first_malformed[0].line == 1


def test_a_document_that_is_cut_is_told_and_the_next_one_is_read(tmp_path: Path) -> None:
    text = text_of("iperf3-tcp.json")
    rows, tally = given(tmp_path, text[: len(text) // 2] + "\n" + text, "iperf3")
    assert len(rows) == 1 and tally.malformed == 1
    rows, tally = given(tmp_path, text + text[: len(text) // 2], "iperf3")
    assert len(rows) == 1
    assert tally.malformed_reasons == {"the document is truncated": 1}
    assert tally.first_malformed[0].line == text.count("\n") + 1


@pytest.mark.parametrize("size", [1, 7, 50])
def test_documents_may_be_read_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    text = compact("iperf3-error.json") * 3 + "iperf3: bye\n"
    whole = given(tmp_path, text, "iperf3")
    monkeypatch.setattr("farline.formats.reading.CHUNK_BYTES", size)
    assert given(tmp_path, text, "iperf3") == whole


def test_halves_of_characters_do_no_harm(tmp_path: Path) -> None:
    rows, _ = given(tmp_path, changed("iperf3-error.json", "error", to="\ud800 x"), "iperf3")
    assert only(rows)["complete"] is False


def test_pscheduler_gives_hosts_from_the_envelope_and_the_receivers_rate() -> None:
    row = only(sample("pscheduler-tcp.json")[0])
    assert (row["from_host"], row["to_host"]) == ("a.example.org", "b.example.org")
    assert (row["rate_bps"], row["bytes"], row["rtt_ms"]) == (999e6, 1_250_000_000, 45.1)
    assert (row["congestion_control"], row["retransmits"], row["streams"]) == ("htcp", 9, 1)
    alone = only(sample("pscheduler-result.json")[0])
    assert alone["from_host"] is None and alone["rate_bps"] == row["rate_bps"]


def test_pscheduler_takes_udp_losses_off_and_keeps_failures_apart() -> None:
    rows, tally = sample("pscheduler-many.json")
    assert (tally.transfers, tally.failed) == (1, 2)
    assert tally.skipped == {"test of type latency": 1, "not finished": 1}
    assert rows[0]["rate_bps"] == pytest.approx(360e6)
    assert [row["code"] for row in rows[1:]] == [
        "iperf3 returned an error: unable to connect",
        "missed",
    ]


def test_globus_tasks_take_from_request_to_completion() -> None:
    rows, tally = sample("globus-tasks.json")
    assert rows[0]["rate_bps"] == pytest.approx(1692625572 * 8 / 312)
    assert (rows[0]["from_host"], rows[0]["files"]) == ("Example DTN A", 990)
    assert rows[0]["to_host"] == "00000000-0000-0000-0000-00000000000c"
    assert (rows[1]["code"], rows[1]["complete"]) == ("FAILED", False)
    assert tally.skipped == {
        "task that has not ended": 1,
        "task of another type": 1,
        "no data to move": 1,
    }
    assert "u_somebody" not in repr(rows) and "my label" not in repr(rows)


def test_globus_tasks_are_the_same_as_json_and_as_a_table() -> None:
    (rows, tally), (again, other) = sample("globus-tasks.json"), sample("globus-tasks.csv")
    assert bag([{**row, "source": ""} for row in rows]) == bag(
        [{**row, "source": ""} for row in again]
    )
    assert tally.skipped == other.skipped
    assert only(sample("globus-task.json")[0])["bytes"] == rows[0]["bytes"]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_table_of_globus_tasks_may_have_other_delimiters(tmp_path: Path, delimiter: str) -> None:
    text = text_of("globus-tasks.csv").replace(",", delimiter)
    rows, _ = given(tmp_path, text, "globus")
    assert bag([{**row, "source": ""} for row in rows]) == bag(
        [{**row, "source": ""} for row in sample("globus-tasks.csv")[0]]
    )


def test_figures_of_globus_tasks_may_have_been_written_by_pandas(tmp_path: Path) -> None:
    text = text_of("globus-tasks.csv").replace(",990,1692625572,", ",990.0,1692625572.0,")
    rows, _ = given(tmp_path, text, "globus")
    assert (rows[0]["files"], rows[0]["bytes"]) == (990, 1692625572)
    rows, tally = given(tmp_path, text.replace("1692625572.0", "many"), "globus")
    assert "bytes_transferred is not a number" in tally.first_malformed[0].reason


def test_what_globus_task_show_prints_is_a_task(tmp_path: Path) -> None:
    rows, tally = sample("globus-task-show.txt")
    row = only(rows)
    assert (row["bytes"], row["duration_s"], row["rate_bps"]) == (10_000_000_000, 10.0, 8e9)
    assert (row["from_host"], row["to_host"], row["files"]) == ("Site A", "Site B", 2)
    assert (tally.malformed, tally.skipped) == (0, {"task that has not ended": 1})
    # Behind a page of a shell, and where the label of a task is empty.
    text = text_of("globus-task-show.txt").replace("Label:                        None", "Label:")
    rows, tally = given(tmp_path, "make: all is done\n" * 200 + text, "globus")
    assert only(rows)["bytes"] == 10_000_000_000
    assert tally.skipped["task that has not ended"] == 1
    # The first versions did not say how much it was.
    lines = text_of("globus-task-show.txt").splitlines(keepends=True)
    old = "".join(line for line in lines[:24] if not line.startswith("Bytes"))
    rows, tally = given(tmp_path, old, "globus")
    assert rows == [] and "bytes_transferred is missing" in tally.first_malformed[0].reason


def test_flent_adds_up_the_streams_of_each_direction() -> None:
    rows, _ = sample("rrul.flent")
    down, up = sorted(rows, key=lambda row: row["streams"])
    assert up["rate_bps"] == pytest.approx((101.5 + 60.0) * 1e6)
    assert down["rate_bps"] == pytest.approx(1e9)
    assert (up["from_host"], up["to_host"]) == ("a.example.org", "b.example.org")
    assert (down["from_host"], down["to_host"]) == ("b.example.org", "a.example.org")
    assert (up["rtt_ms"], up["congestion_control"]) == (45.2, "cubic")


def test_flent_streams_with_labels_are_streams(tmp_path: Path) -> None:
    """Series of rrul_var; without a command of its own such a one is a statistic."""
    text = text_of("rrul.flent")
    for old, new in (("upload::1", "upload::1 (CS0)"), ("Ping (ms) ICMP", "Ping (ms)::ICMP")):
        text = text.replace(f'{old}": {{', f'{new}": {{"COMMAND": "netperf",').replace(
            old + '"', new + '"'
        )
    rows, tally = given(tmp_path, text, "flent")
    assert tally.malformed == 0
    assert bag([{**row, "source": "rrul.flent"} for row in rows]) == bag(sample("rrul.flent")[0])


def test_names_of_flent_streams_may_end_in_a_number(tmp_path: Path) -> None:
    # As in tcp_upload_prio; and in rtt_fair with one host twice, which is one host.
    text = text_of("rrul.flent").replace("TCP upload::2", "TCP upload2")
    rows, _ = given(tmp_path, text, "flent")
    assert bag([{**row, "source": "rrul.flent"} for row in rows]) == bag(sample("rrul.flent")[0])
    twice = text_of("rrul.flent").replace('"b.example.org"', '"b.example.org//1"')
    rows, _ = given(tmp_path, twice, "flent")
    assert bag([{**row, "source": "rrul.flent"} for row in rows]) == bag(sample("rrul.flent")[0])


def test_flent_series_that_are_rates_but_say_no_direction_are_named_so(tmp_path: Path) -> None:
    # tcp_2up_square and others, whose streams did not run together.
    text = text_of("rrul.flent").replace("TCP upload", "TCP cubic").replace("TCP down", "TCP re")
    rows, tally = given(tmp_path, text, "flent")
    assert rows == []
    assert tally.skipped == {"test whose series do not say whether they are uploads": 1}


def test_a_series_without_values_makes_a_flent_test_failed(tmp_path: Path) -> None:
    text = changed("rrul.flent", "results", "TCP upload::2", to=[None, None])
    rows, tally = given(tmp_path, text, "flent")
    assert (tally.transfers, tally.failed) == (1, 1)
    assert [row["code"] for row in rows if not row["complete"]] == ["1 series without values"]


def test_a_flent_rate_in_an_unknown_unit_is_malformed(tmp_path: Path) -> None:
    text = changed("rrul.flent", "metadata", "SERIES_META", "TCP upload::2", to={"UNITS": "xbit"})
    rows, tally = given(tmp_path, text, "flent")
    assert rows == [] and "'xbit'" in tally.first_malformed[0].reason


def test_fio_jobs_of_a_group_ran_together() -> None:
    rows, tally = sample("fio.json")
    write = next(row for row in rows if row["code"] == "write")
    read = next(row for row in rows if row["code"] == "read")
    assert (write["rate_bps"], write["concurrency"], write["bytes"]) == (12e9, 2, 3_000_000_000)
    assert (read["rate_bps"], read["modality"], read["block_bytes"]) == (16e9, "F", 1 << 20)
    assert (tally.failed, tally.skipped) == (1, {"message": 1})


def test_a_group_of_fio_is_as_fast_as_what_all_moved_until_the_last_ended(tmp_path: Path) -> None:
    # Three jobs of fio 3.33, of which it says `READ: bw=322MiB/s (337MB/s), run=13-131msec`.
    took = ((14_749_696, 1_053_549_714, 14), (14_811_136, 1_139_318_153, 13),
            (14_610_432, 111_530_015, 131))  # fmt: skip
    jobs = [
        {"write": {"io_bytes": moved, "bw_bytes": rate, "runtime": ms}} for moved, rate, ms in took
    ]
    row = only(given(tmp_path, fio_document(10_000_000, *jobs), "fio")[0])
    assert (row["bytes"], row["duration_s"], row["concurrency"]) == (44_171_264, 0.131, 3)
    assert row["rate_bps"] == pytest.approx(2.6975e9, rel=1e-4)


def test_fio_2_counted_in_kib(tmp_path: Path) -> None:
    old = {
        "fio version": "fio-2.2.10",
        "jobs": [{"error": 0, "write": {"io_bytes": 65536, "bw": 32768, "runtime": 2000}}],
    }
    row = only(given(tmp_path, json.dumps(old), "fio")[0])
    assert (row["bytes"], row["rate_bps"]) == (65536 * 1024, 32768 * 1024 * 8)
    # From 2.21 on in bytes, and in KiB beside it.
    done = {"io_bytes": 65536 * 1024, "io_kbytes": 65536, "bw": 32768, "runtime": 2000}
    newer = {"fio version": "fio-2.21", "jobs": [{"error": 0, "write": done}]}
    row = only(given(tmp_path, json.dumps(newer), "fio")[0])
    assert (row["bytes"], row["rate_bps"]) == (65536 * 1024, 32768 * 1024 * 8)


@pytest.mark.parametrize("written", ["nan", "-nan", "inf", "-inf", "NaN"])
def test_a_figure_that_is_no_number_is_unknown_and_the_rest_is_taken(
    tmp_path: Path, written: str
) -> None:
    text = text_of("iperf3-tcp.json")
    bad = text.replace('"min_rtt": 44800', f'"min_rtt": {written}', 1)
    assert bad != text
    row = only(given(tmp_path, bad + text, "iperf3")[0][:1])
    whole = only(sample("iperf3-tcp.json")[0])
    assert row["rate_bps"] == whole["rate_bps"]
    assert len(given(tmp_path, bad + text, "iperf3")[0]) == 2


def test_an_exponent_without_its_sign_is_read(tmp_path: Path) -> None:
    streams = [{"receiver": {"bytes": 1, "seconds": 2, "bits_per_second": 0}}]
    end = {"sum_received": {"bytes": 11116296, "seconds": 15.0, "bits_per_second": 5.924e6}}
    text = json.dumps({"start": {}, "end": {**end, "streams": streams}})
    assert "5924000.0" in text
    row = only(given(tmp_path, text.replace("5924000.0", "5.924e 06"), "iperf3")[0])
    assert row["rate_bps"] == 5.924e6


def test_figures_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    text = '{"start": {}, "end": {"sum_received": {"bytes": 1000, "seconds": 2, "a": [nan, -nan]}}}'
    rows, tally = given(tmp_path, text + "\n", "iperf3")
    assert (only(rows)["rate_bps"], tally.malformed) == (4000.0, 0)
    assert tally.skipped == {"value that is not a number": 2}


def test_without_sums_the_streams_are_added_up_and_only_if_all_are_whole(tmp_path: Path) -> None:
    document = json.loads(text_of("iperf3-tcp.json"))
    for name in ("sum_sent", "sum_received", "sum"):
        document["end"].pop(name, None)
    row = only(given(tmp_path, json.dumps(document), "iperf3")[0])
    streams = [one["receiver"] for one in document["end"]["streams"]]
    assert row["bytes"] == sum(one["bytes"] for one in streams)
    document["end"]["streams"][0]["receiver"]["bytes"] = None
    rows, tally = given(tmp_path, json.dumps(document), "iperf3")
    assert rows == [] and tally.malformed == 1


def test_a_server_that_sent_both_ways_knows_what_it_sent(tmp_path: Path) -> None:
    document = json.loads(text_of("iperf3-bidir.json"))
    start = document["start"]
    start["accepted_connection"] = start.pop("connecting_to", {"host": "198.51.100.9", "port": 1})
    for stream in document["end"]["streams"]:
        if stream["sender"].get("sender") is True:
            stream["receiver"]["bytes"] = 0
    rows, tally = given(tmp_path, json.dumps(document), "iperf3")
    assert len(rows) == 2 and tally.malformed == 0


def test_nothing_that_arrived_is_no_rate_of_the_sender(tmp_path: Path) -> None:
    text = changed("iperf3-tcp.json", "end", "sum_received", "bytes", to=0)
    document = json.loads(text)
    document["end"]["sum_received"]["bits_per_second"] = 0
    rows, tally = given(tmp_path, json.dumps(document), "iperf3")
    assert rows == [] and "rate 0" in tally.first_malformed[0].reason


def fio_document(timestamp_ms: int, *jobs: dict[str, Any]) -> str:
    """JSON of fio with these jobs, of 1 MB/s each until then."""
    done = [
        {
            "jobname": f"job {at}",
            "groupid": 0,
            "error": 0,
            "write": {"io_bytes": 2_000_000, "bw_bytes": 1_000_000, "runtime": 2000},
            **job,
        }
        for at, job in enumerate(jobs)
    ]
    head = {"fio version": "fio-3.33", "timestamp_ms": timestamp_ms, "jobs": done}
    return json.dumps(head, indent=2) + "\n"


FIO_SIGNAL = "\nfio: terminating on signal 15\n"


def test_json_of_a_fio_that_was_interrupted_has_failed(tmp_path: Path) -> None:
    one, two = fio_document(10_000_000, {}), fio_document(20_000_000, {})
    rest = {"write": {"io_bytes": 3_000_000, "bw_bytes": 1_000_000, "runtime": 3000}}
    later = fio_document(10_001_000, rest)
    for text, complete in (
        (FIO_SIGNAL + one, [False]),
        (one + FIO_SIGNAL + two + one, [True, False, True]),
        # With `--status-interval`, and with nothing told after the signal.
        (one + FIO_SIGNAL + later, [False]),
        (one + FIO_SIGNAL, [False]),
        (one + FIO_SIGNAL + later[: len(later) // 2], [False]),
        (FIO_SIGNAL + one[: len(one) // 2] + "\n" + two, [True]),
        (one[: len(one) // 2] + "\n" + FIO_SIGNAL + two, [False]),
        (one.replace('"error"', "error") + FIO_SIGNAL + two, [False]),
    ):
        rows, _ = given(tmp_path, text, "fio")
        assert [row["complete"] for row in rows] == complete, text
        assert all(row["code"] == "interrupted" for row in rows if not row["complete"])
    idle = fio_document(10_000_000, {"write": {"io_bytes": 0}})
    assert [row["code"] for row in given(tmp_path, FIO_SIGNAL + idle, "fio")[0]] == ["interrupted"]


def test_a_message_of_fio_may_run_into_its_document(tmp_path: Path) -> None:
    message = "fio: select() call in helper thread failed: Interrupted system call"
    one, two = fio_document(10_000_000, {}), fio_document(20_000_000, {})
    rows, tally = given(tmp_path, FIO_SIGNAL + message + one + two, "fio")
    assert [row["complete"] for row in rows] == [False, True] and tally.malformed == 0
    assert tally.lines == (FIO_SIGNAL + one + two).count("\n")


def test_json_of_a_fio_that_told_no_end_has_failed(tmp_path: Path) -> None:
    for eta, complete in ((0, True), (2**31 - 1, True), (18, False)):
        rows, _ = given(tmp_path, fio_document(10_000_000, {"eta": eta}), "fio")
        assert [row["complete"] for row in rows] == [complete]


def test_a_job_of_fio_that_failed_fails_those_beside_it(tmp_path: Path) -> None:
    full, other = {"error": 28}, {"groupid": 1}
    rows, _ = given(tmp_path, fio_document(10_000_000, {}, full, other), "fio")
    assert [(row["complete"], row["code"], row["bytes"]) for row in rows] == [
        (False, "error 28", 4_000_000),
        (True, "write", 2_000_000),
    ]
    killed = "fio: pid=18151, got signal=9\n"
    rows, _ = given(tmp_path, killed + fio_document(10_000_000, {}, {}), "fio")
    assert [row["code"] for row in rows] == ["a job was killed by signal 9"]
