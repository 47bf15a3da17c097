"""Whatever a file holds: it is recognised or refused in one line, and read to its end."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import os
from pathlib import Path

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from farline.errors import FarlineError, SpecError, SystemFailure, UsageError
from farline.formats import arrow_schema, detect, formats, read_log
from farline.formats.reading import Reading
from farline.formats.tally import Tally
from farline.spec.transfers import TRANSFER_COLUMNS
from tests.support.draws import SAME_FOLDER, draws
from tests.unit.formats.logs import SAMPLES, bag, compact, drained, given, sample, text_of


def zstd(data: bytes) -> bytes:
    """Zstandard."""
    import pyarrow as pa

    return bytes(pa.compress(data, "zstd", asbytes=True))


KINDS = {
    "bbcp.txt": "bbcp",
    "dd.txt": "dd",
    "escp.txt": "escp",
    "fio-text.txt": "fio-text",
    "iperf2-server.txt": "iperf2",
    "iperf2.txt": "iperf2",
    "iperf3-server.txt": "iperf3-text",
    "iperf3-text.txt": "iperf3-text",
    "rclone-json.txt": "rclone",
    "rclone.txt": "rclone",
    "rsync-daemon.log": "rsync-log",
    "rsync-log.txt": "rsync-log",
    "rsync-stats.txt": "rsync",
    "rsync.txt": "rsync",
    "scp.txt": "scp",
    "wdt-sender.log": "wdt",
    "xdd-e2e-destination.txt": "xdd",
    "xdd-e2e.txt": "xdd",
    "fdt-server.log": "fdt",
    "fio-status-interval.json": "fio",
    "fio.json": "fio",
    "flent-socket-stats.flent": "flent",
    "globus-task-show.txt": "globus",
    "globus-task.json": "globus",
    "globus-tasks.csv": "globus",
    "globus-tasks.json": "globus",
    "globus-url-copy-dbg.txt": "globus-url-copy",
    "globus-url-copy-two.txt": "globus-url-copy",
    "globus-url-copy.txt": "globus-url-copy",
    "gridftp-server.log": "gridftp",
    "gridftp-striped.log": "gridftp",
    "gridftp.log": "gridftp",
    "iozone-3.327-auto.txt": "iozone",
    "iozone-3.492-auto.txt": "iozone",
    "iozone-3.508-no-space.txt": "iozone",
    "iozone.txt": "iozone",
    "iperf3-bidir.json": "iperf3",
    "iperf3-error.json": "iperf3",
    "iperf3-many.json": "iperf3",
    "iperf3-reverse.json": "iperf3",
    "iperf3-stream.json": "iperf3",
    "iperf3-tcp.json": "iperf3",
    "iperf3-udp-old.json": "iperf3",
    "nuttcp-8.2-udp-verbose.txt": "nuttcp",
    "nuttcp-parse.txt": "nuttcp",
    "nuttcp-reverse.txt": "nuttcp",
    "nuttcp-verbose.txt": "nuttcp",
    "nuttcp.txt": "nuttcp",
    "pscheduler-iperf2.json": "pscheduler",
    "pscheduler-many.json": "pscheduler",
    "pscheduler-result.json": "pscheduler",
    "pscheduler-tcp.json": "pscheduler",
    "pscheduler-text.txt": "pscheduler-text",
    "rrul.flent": "flent",
}


def test_every_sample_is_here_and_every_format_has_one() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == {*KINDS, "table.csv"}, "add it to KINDS"
    assert {*KINDS.values(), "csv"} == set(formats()), "add a sample to tests/data/logs"
    assert set(SMALL) == set(formats()), "add some lines of it to SMALL"
    assert all(one.name == name and one.title for name, one in formats().items())


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_log_is_recognised_by_its_content(tmp_path: Path, name: str) -> None:
    assert detect(SAMPLES / name) == KINDS[name]
    packed = tmp_path / "anything"
    packed.write_bytes(gzip.compress((SAMPLES / name).read_bytes()))
    assert detect(packed) == KINDS[name]


def test_tables_have_the_columns_of_a_transfer_in_their_order() -> None:
    assert arrow_schema().names == list(TRANSFER_COLUMNS)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"hello\nworld\n", b"\x00\xff\x1f\x8b", b"{}"])
def test_what_is_no_log_is_refused_with_the_formats_there_are(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(SpecError) as refused:
        read_log(path)
    assert "gridftp" in refused.value.message and "iperf3" in refused.value.message


@pytest.mark.parametrize("kind", [None, "gridftp", "iperf3"])
def test_a_file_that_is_not_there_is_a_fault_of_the_system(
    tmp_path: Path, kind: str | None
) -> None:
    with pytest.raises(SystemFailure, match="cannot read"):
        list(read_log(tmp_path / "none", kind).batches())
    with pytest.raises(SystemFailure, match="cannot read"):
        list(read_log(tmp_path, kind).batches())


def test_an_unknown_format_and_a_mapping_for_another_are_refused() -> None:
    with pytest.raises(SpecError, match="not a log format: use one of bbcp, csv, dd"):
        read_log(SAMPLES / "nuttcp.txt", "perf")
    with pytest.raises(SpecError, match="works with format csv"):
        read_log(SAMPLES / "nuttcp.txt", "nuttcp", mapping="rate_bps=x")


@pytest.mark.parametrize("kind", sorted(set(formats()) - {"csv"}))
def test_an_empty_log_of_a_named_format_has_no_rows(tmp_path: Path, kind: str) -> None:
    rows, tally = given(tmp_path, b"", kind)
    assert rows == [] and tally.records == 0 and tally.lines == 0


@pytest.mark.parametrize(
    "name", ["gridftp.log", "nuttcp.txt", "iperf3-many.json", "fdt-server.log"]
)
@pytest.mark.parametrize(
    "form",
    [
        "crlf",
        "cr",
        "utf-16",
        "utf-16-be",
        "bom",
        "gz",
        "gz gz",
        "bz2",
        "xz",
        "xz xz",
        "zst",
        "zst zst",
    ],
)
def test_line_ends_encodings_and_compression_do_not_matter(
    tmp_path: Path, name: str, form: str
) -> None:
    text = text_of(name)
    forms = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "cr": text.replace("\n", "\r").encode(),
        "utf-16": text.encode("utf-16"),
        "utf-16-be": codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        "bom": codecs.BOM_UTF8 + text.encode(),
        "gz": gzip.compress(text.encode()),
        "gz gz": gzip.compress(text[:100].encode()) + gzip.compress(text[100:].encode()),
        "bz2": bz2.compress(text.encode()),
        "xz": lzma.compress(text.encode()),
        "xz xz": lzma.compress(text[:100].encode()) + lzma.compress(text[100:].encode()),
        "zst": zstd(text.encode()),
        "zst zst": zstd(text[:100].encode()) + zstd(text[100:].encode()),
    }
    whole, tally = given(tmp_path, text, KINDS[name])
    assert given(tmp_path, forms[form], KINDS[name]) == (whole, tally)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
@pytest.mark.parametrize("kind", ["gridftp", "iperf3"])
def test_a_compressed_log_that_ends_early_says_so(
    tmp_path: Path, kind: str, pack: type[bytes]
) -> None:
    name = {"gridftp": "gridftp.log", "iperf3": "iperf3-many.json"}[kind]
    data = pack((SAMPLES / name).read_bytes() * 3)
    _, tally = given(tmp_path, data[: len(data) - 6], kind)
    assert any("compressed data end early" in reason for reason in tally.malformed_reasons)
    _, tally = given(tmp_path, data[:2] + b"\x08junk" + data[20:], kind)
    assert tally.malformed >= 1


@pytest.mark.parametrize("kind", ["gridftp", "nuttcp", "iperf3"])
def test_a_line_without_end_is_bounded_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("farline.formats.reading.CHUNK_BYTES", 1 << 16)
    _, tally = given(tmp_path, b"x" * (3 << 20) + b"\n" + b"y\n", kind)
    assert tally.malformed == 2 and tally.lines == 2
    assert len(tally.first_malformed[0].text) < 300


def test_progress_goes_up_to_the_whole_file() -> None:
    seen: list[tuple[int, int]] = []
    path = SAMPLES / "gridftp.log"
    drained(read_log(path, on_progress=lambda done, total: seen.append((done, total))))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_names_in_what_is_shown_of_a_json_document_are_hidden(tmp_path: Path) -> None:
    text = compact("globus-task.json").replace("2026-03-01T10:00:00", "never")
    _, tally = given(tmp_path, text, "globus")
    (shown,) = tally.first_malformed
    assert "u_somebody" not in shown.text and "my label" not in shown.text


def test_what_came_out_of_a_compressed_log_that_ends_early_is_kept(tmp_path: Path) -> None:
    data = text_of("gridftp.log").encode() * 4000
    for pack in (gzip.compress, bz2.compress, lzma.compress, zstd):
        rows, tally = given(tmp_path, pack(data)[:-30], "gridftp")
        assert rows, pack
        assert any("compressed data end early" in reason for reason in tally.malformed_reasons)


def test_a_compressed_log_of_which_nothing_comes_out_is_not_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(text_of("gridftp.log").encode())[:-30])
    with pytest.raises(SpecError, match="compressed data end early"):
        detect(path)


def test_of_a_pipe_it_is_said_why_it_cannot_be_read() -> None:
    read_end, write_end = os.pipe()
    try:
        with pytest.raises(UsageError, match="read more than once"):
            detect(f"/dev/fd/{read_end}")
    finally:
        os.close(read_end)
        os.close(write_end)


def test_what_unpacks_to_more_than_any_log_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farline.formats.packing.MOST_GROWN_BYTES", 1 << 20)
    monkeypatch.setattr("farline.formats.packing.MOST_GROWTH", 100)
    bomb = gzip.compress(text_of("nuttcp.txt").encode() + b"\n" * (40 << 20))
    rows, tally = given(tmp_path, bomb, "nuttcp")
    assert len(rows) == 3
    assert [one.reason for one in tally.first_malformed] == [
        "the data expand to more than 100 times the file size, which no log does: the rest is "
        "left out"
    ]


JOURNALS = {
    "short": "Nov 21 20:07:35 dtn1 {who}: {text}",
    "rsyslog": "2026-11-21T20:07:35.123456+00:00 dtn1 {who}: {text}",
    "short-precise": "Nov  1 20:07:35.123456 dtn1 {who}: {text}",
    "short-iso": "2026-11-21T20:07:35+0000 dtn1 {who}: {text}",
    "short-full": "Sat 2026-11-21 20:07:35 UTC dtn1 {who}: {text}",
    "short-unix": "1795615794.864000 dtn1 {who}: {text}",
    "short-monotonic": "[  123.456789] dtn1 {who}: {text}",
}


def journal(form: str, who: str, text: str) -> str:
    """One line of a journal."""
    if form == "json":
        entry = {"__REALTIME_TIMESTAMP": "1", "_PID": who, "MESSAGE": text}
        return json.dumps(entry) + "\n"
    return JOURNALS[form].format(who=who, text=text) + "\n"


@pytest.mark.parametrize("form", [*JOURNALS, "json"])
@pytest.mark.parametrize("name", ["gridftp.log", "nuttcp-reverse.txt", "iperf3-text.txt"])
def test_a_journal_is_read_as_what_it_holds(tmp_path: Path, form: str, name: str) -> None:
    lines = [line for line in text_of(name).splitlines() if line.strip()]
    plain, counts = given(tmp_path, "\n".join(lines) + "\n", KINDS[name])
    text = "-- Boot 0123456789abcdef --\n" if form != "json" else ""
    text += "".join(journal(form, "tool[12]", line) for line in lines)
    rows, tally = given(tmp_path, text, detect_text(tmp_path, text))
    assert rows == plain and tally.malformed == counts.malformed


BEFORE_LINES = {
    "ts": "Nov 28 05:59:09 ",
    "docker": "2026-11-28T05:59:09.123456789Z ",
    "kubernetes": "2026-11-28T05:59:09.123456789Z stdout F ",
    "quoted": "> ",
    "set in": "    ",
}


@pytest.mark.parametrize("before", BEFORE_LINES.values(), ids=BEFORE_LINES)
@pytest.mark.parametrize(
    "name", ["nuttcp-reverse.txt", "fio-text.txt", "rsync.txt", "rsync-log.txt", "dd.txt"]
)
def test_what_all_lines_begin_with_is_left_out(tmp_path: Path, before: str, name: str) -> None:
    plain, counts = given(tmp_path, text_of(name), KINDS[name])
    lines = text_of(name).splitlines(keepends=True)
    text = "".join((before if line.strip() else before.rstrip()) + line for line in lines)
    rows, tally = given(tmp_path, text, detect_text(tmp_path, text))
    assert rows == plain and tally.malformed == counts.malformed


def test_a_time_before_lines_that_begin_with_one_is_no_journal(tmp_path: Path) -> None:
    lines = [f"2026/11/28 09:31:{at:02} INFO  : {at}: Copied (new)\n" for at in range(30)]
    text = "".join(lines) + text_of("rclone.txt")
    plain, _ = given(tmp_path, text, "rclone")
    stamped = "".join("Nov 28 09:32:01 " + line for line in text.splitlines(keepends=True))
    assert given(tmp_path, stamped, "rclone")[0] == plain != []


def test_spaces_that_keep_columns_together_stay(tmp_path: Path) -> None:
    lines = text_of("iozone-3.492-auto.txt").splitlines(keepends=True)
    plain, _ = given(tmp_path, "".join(lines), "iozone")
    rows, tally = given(tmp_path, "".join("      " + line for line in lines), "iozone")
    assert rows == plain and tally.malformed == 0


@pytest.mark.parametrize("form", ["short", "json"])
@draws(20, SAME_FOLDER)
@examples(data=st.data())
def test_lines_of_several_processes_in_a_journal_are_told_apart(
    tmp_path: Path, form: str, data: st.DataObject
) -> None:
    lines = [line for line in text_of("nuttcp-reverse.txt").splitlines() if line.strip()]
    parts = [lines[:10], lines[10:20], lines[20:30]]
    plain = bag([row for part in parts for row in given(tmp_path, "\n".join(part), "nuttcp")[0]])
    order = data.draw(st.permutations([who for who in range(3) for _ in range(10)]))
    places = [iter(part) for part in parts]
    text = "".join(journal(form, f"nuttcp[{who}]", next(places[who])) for who in order)
    assert bag(given(tmp_path, text, "nuttcp")[0]) == plain


@pytest.mark.parametrize("message", ["10000000000000", "[999]", "null", "{}", '["a"]', "true"])
def test_a_message_of_a_journal_that_is_no_text_is_no_crash(tmp_path: Path, message: str) -> None:
    text = journal("json", "1", "# nuttcp")
    odd = f'{{"__REALTIME_TIMESTAMP": "1", "MESSAGE": {message}}}\n'
    _, tally = given(tmp_path, text + odd + text, "nuttcp")
    assert tally.skipped == {"comment": 2}


def test_a_line_without_end_in_a_journal_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farline.formats.reading.CHUNK_BYTES", 1 << 20)
    text = journal("short", "nuttcp[1]", "# nuttcp") + journal(
        "short", "nuttcp[1]", "x" * (9 << 20)
    )
    _, tally = given(tmp_path, text + journal("short", "nuttcp[1]", "# nuttcp"), "nuttcp")
    assert tally.skipped["comment"] == 2 and tally.malformed == 1


def detect_text(folder: Path, text: str) -> str:
    """The format that a text is found to have."""
    path = folder / "detected"
    path.write_text(text)
    return detect(path)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_exactly_one_format_claims_a_log(name: str) -> None:
    start = Reading(SAMPLES / name, Tally()).start(65536)
    assert [one.name for one in formats().values() if one.detect(start)] == [KINDS[name]]


SMALL = {
    "gridftp": text_of("gridftp-striped.log").splitlines(keepends=True)[1],
    "fdt": "READY\n" + "".join(text_of("fdt-server.log").splitlines(keepends=True)[6:8]),
    "globus-url-copy": text_of("globus-url-copy.txt")[:240],
    "flent": '{"metadata": {"HOST": "b"}, "results": {"TCP upload": [1.5]}, "x_values": [0]}\n',
    "pscheduler": '{"succeeded": true, "summary": {"summary": {"throughput-bits": 8e6}}}\n',
    "pscheduler-text": "".join(text_of("pscheduler-text.txt").splitlines(keepends=True)[1:22]),
    "globus": '{"request_time": "2026-03-01", "bytes_transferred": 5, "status": "FAILED"}\n',
    "fio": '{"fio version": "fio-3", "jobs": [{"read": {"io_bytes": 9, "bw": 1, "runtime": 5}}]}\n',
    "iperf3": compact("iperf3-error.json"),
    "nuttcp": text_of("nuttcp.txt"),
    "iozone": "".join(text_of("iozone.txt").splitlines(keepends=True)[5:11]).rstrip(" ") + "\n",
    "bbcp": "".join(text_of("bbcp.txt").splitlines(keepends=True)[1:3]),
    "dd": text_of("dd.txt"),
    "escp": "Sent    :  47.7 MB in 1 files at   3.3 Gbits/s in 0.20s   \nComplete\n",
    "fio-text": "a: (groupid=0, jobs=1): err= 0: pid=9: x\nRun status group 0 (all jobs):\n"
    "  WRITE: bw=2000MiB/s (2097MB/s), 1-1, io=8192KiB (8389kB), run=4-4msec\n",
    "iperf2": "".join(text_of("iperf2.txt").splitlines(keepends=True)[:12]),
    "iperf3-text": "".join(text_of("iperf3-text.txt").splitlines(keepends=True)[:10]),
    "rclone": "".join(text_of("rclone.txt").splitlines(keepends=True)[3:7]),
    "rsync": "".join(text_of("rsync-stats.txt").splitlines(keepends=True)[-4:]),
    "rsync-log": "".join(text_of("rsync-log.txt").splitlines(keepends=True)[:7]),
    "scp": text_of("scp.txt"),
    "wdt": "I wdt> Client (sending) to b, Using ports [ 1 2 ]\n"
    "wdt> Total sender time = 1.00 seconds x. Transfer status = OK. x Total bytes = 216.\n"
    "wdt> Total sender throughput = 9.1 Mbytes/sec\n",
    "xdd": "".join(text_of("xdd-e2e.txt").splitlines(keepends=True)[-6:]),
    "csv": "modality,rate_bps,rtt_ms\nT,1000,5\nT,2000,6\n",
}
JSON_KINDS = ("flent", "pscheduler", "globus", "fio", "iperf3")


@pytest.mark.parametrize("kind", sorted(SMALL))
def test_a_log_cut_at_any_byte_gives_a_part_of_the_whole_and_no_crash(
    tmp_path: Path, kind: str
) -> None:
    data = SMALL[kind].encode()
    whole, _ = given(tmp_path, data, kind)
    assert whole
    for cut in range(1, len(data)):
        part = data[:cut]
        if kind == "csv" and b"\n" not in part and b"rate_bps" not in part:
            with pytest.raises(SpecError):
                given(tmp_path, part, kind)
            continue
        rows, tally = given(tmp_path, part, kind)
        assert len(rows) <= len(whole)
        if kind in JSON_KINDS and cut < len(data) - 1:
            assert (len(rows), tally.malformed) == (0, 1)
        if kind in ("gridftp", "nuttcp"):
            assert tally.records == len([line for line in part.splitlines() if line.strip()])


@pytest.mark.parametrize("kind", sorted(formats()))
@draws(40, SAME_FOLDER)
@examples(data=st.data())
def test_any_bytes_at_all_are_no_crash(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    sample_text = SMALL[kind].encode()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(sample_text))] * 2)))
    junk = data.draw(st.binary(max_size=60))
    content = data.draw(
        st.sampled_from([junk, sample_text[:start] + junk + sample_text[end:], junk + sample_text])
    )
    path = tmp_path / "junk"
    path.write_bytes(content)
    try:
        drained(read_log(path, kind))
        drained(read_log(path))
    except FarlineError as refused:
        assert "\n" not in refused.message


@pytest.mark.parametrize("kind", ["gridftp", "nuttcp", "fdt", "csv"])
@draws(25, SAME_FOLDER)
@examples(data=st.data())
def test_lines_in_any_order_and_any_pieces_give_the_same_rows_and_tally(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    head, lines = "", SMALL[kind].splitlines(keepends=True)
    if kind == "gridftp":
        lines = text_of("gridftp.log").splitlines(keepends=True)
    if kind == "csv":
        head, lines = lines[0], [*lines[1:], "T,oops,1\n", "T,3000,7\n"]
    whole, tally = given(tmp_path, head + "".join(lines), kind)
    shuffled = data.draw(st.permutations(lines))
    at = data.draw(st.integers(0, len(lines)))
    rows, records, bad = [], 0, 0
    for part in (shuffled[:at], shuffled[at:]):
        found, counted = given(tmp_path, head + "".join(part), kind)
        rows += found
        records, bad = records + counted.records, bad + counted.malformed
    assert bag(rows) == bag(whole)
    assert (records, bad) == (tally.records, tally.malformed)


def test_formats_that_are_named_read_what_detection_would() -> None:
    for name, kind in KINDS.items():
        assert sample(name) == sample(name, kind=kind)
