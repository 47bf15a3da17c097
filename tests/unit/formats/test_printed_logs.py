"""What tools print for people: fio, rsync, rclone, dd, WDT, XDD, bbcp, EScp and scp."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from farline.formats import read_log
from farline.formats.quantity import scaled, ungrouped
from tests.support.draws import SAME_FOLDER, draws
from tests.unit.formats.logs import Rows, drained, facts, given, sample, text_of


def test_fio_in_text_is_its_groups_and_the_last_snapshot() -> None:
    rows, tally = sample("fio-text.txt")
    assert [facts(row, "code", "concurrency", "duration_s") for row in rows] == [
        ("read", 2, 2.007),
        ("write", 2, 2.007),
    ]
    assert tally.skipped["interim status, not a final result"] == 8


FIO_JOB = "a: (groupid=0, jobs=1): err={0}: pid=7: Sat Nov 28 05:55:58 2026\n"
FIO_GROUP = "\nRun status group 0 (all jobs):\n"
FIO_LINE = (
    "   {0}: bw=2000KiB/s (2048kB/s), 1MiB/s-1MiB/s (1MB/s-1MB/s), io=2000KiB (2048kB), "
    "run=1000-1000msec\n"
)


def test_fio_that_failed_before_it_moved_anything_is_a_failed_transfer(tmp_path: Path) -> None:
    full = FIO_JOB.format("28 (file:io_u.c:1876, func=io_u error, error=No space left on device)")
    rows, _ = given(tmp_path, full + FIO_GROUP + "\nDisk stats (read/write):\n", "fio-text")
    assert [facts(row, "complete", "code") for row in rows] == [(False, "error 28")]
    rows, _ = given(tmp_path, full + FIO_GROUP + FIO_LINE.format("WRITE"), "fio-text")
    assert [facts(row, "complete", "code") for row in rows] == [(False, "error 28")]


def test_jobs_of_fio_that_begin_later_are_of_the_same_run(tmp_path: Path) -> None:
    first, other = FIO_JOB.format(" 0"), FIO_JOB.format(" 0").replace("=0,", "=1,")
    one = first + FIO_GROUP + FIO_LINE.format("WRITE") + FIO_GROUP.replace("0", "1")
    later = FIO_GROUP.replace("0", "1") + FIO_LINE.format(" READ")
    both = first + other.replace("pid=7", "pid=8") + FIO_GROUP + FIO_LINE.format("WRITE") + later
    rows, tally = given(tmp_path, one + both, "fio-text")
    assert [row["code"] for row in rows] == ["write", "read"]
    assert tally.skipped["interim status, not a final result"] == 1


def test_fio_counts_nothing_again_that_it_adds_up(tmp_path: Path) -> None:
    read, write, mixed = (FIO_LINE.format(name) for name in (" READ", "WRITE", "MIXED"))
    rows, _ = given(tmp_path, FIO_JOB.format(" 0") + FIO_GROUP + read + write + mixed, "fio-text")
    assert [row["code"] for row in rows] == ["read", "write"]
    rows, _ = given(tmp_path, FIO_JOB.format(" 0") + FIO_GROUP + mixed, "fio-text")
    assert [row["code"] for row in rows] == ["mixed"]


@pytest.mark.parametrize(
    ("line", "rate_bps", "moved"),
    [
        ("bw=2000MiB/s (2097MB/s), 1-1, io=8192KiB (8389kB), run=4-4msec", 2000 << 23, 8 << 20),
        ("bw=16.0Gibit/s (17.2Gbit/s), 1, io=1GiB (1GB), run=4-500msec", 16 << 30, 1 << 30),
        ("io=8192KB, aggrb=1024KB/s, minb=1KB/s, mint=4msec, maxt=8000msec", 1 << 23, 8 << 20),
    ],
)  # fmt: skip
def test_fio_says_its_units(tmp_path: Path, line: str, rate_bps: float, moved: int) -> None:
    rows, _ = given(tmp_path, f"Run status group 0 (all jobs):\n  WRITE: {line}\n", "fio-text")
    assert facts(rows[0], "rate_bps", "bytes", "code") == (rate_bps, moved, "write")


def test_a_job_of_fio_that_failed_makes_its_group_a_failed_one(tmp_path: Path) -> None:
    text = text_of("fio-text.txt").replace("err= 0", "err= 5")
    rows, tally = given(tmp_path, text, "fio-text")
    assert {row["code"] for row in rows} == {"error 5"} and tally.transfers == 0


FIO_SIGNAL = "fio: terminating on signal 2\n"


def test_a_fio_that_was_interrupted_has_failed(tmp_path: Path) -> None:
    begun = "a: (g=0): rw=write, bs=(R) 64.0KiB-64.0KiB, ioengine=psync, iodepth=1\nfio-3.33\n"
    told = FIO_JOB.format(" 0") + FIO_GROUP + FIO_LINE.format("WRITE")
    other = told.replace("pid=7", "pid=8")
    for text, complete in (
        (begun + "\n" + FIO_SIGNAL + "\n" + told, [False]),
        (begun + told + begun + FIO_SIGNAL + other + begun + told, [True, False, True]),
        # With `--status-interval`, and with nothing told after the signal.
        (begun + told + FIO_SIGNAL + told, [False]),
        (begun + told + FIO_SIGNAL, [False]),
        (begun + told + FIO_SIGNAL + begun + other, [False, True]),
        (begun + told + begun + FIO_SIGNAL, [True]),
        (begun + FIO_SIGNAL + FIO_JOB.format(" 0") + FIO_GROUP, [False]),
    ):
        rows, _ = given(tmp_path, text, "fio-text")
        assert [row["complete"] for row in rows] == complete, text
        assert all(row["code"] == "interrupted" for row in rows if not row["complete"])


def test_a_job_of_fio_that_was_killed_makes_its_run_a_failed_one(tmp_path: Path) -> None:
    killed = "fio: pid=8, got signal=9\n"
    jobs = FIO_JOB.format(" 0") + FIO_JOB.format(" 0").replace("pid=7", "pid=8")
    told = jobs + FIO_GROUP + FIO_LINE.format("WRITE")
    for text in (killed + "fio-3.33\n" + told, "fio-3.33\n" + killed + told):
        rows, _ = given(tmp_path, text, "fio-text")
        code = "a job was killed by signal 9"
        assert [facts(row, "complete", "code") for row in rows] == [(False, code)]
    rows, _ = given(tmp_path, killed.replace("8", "88") + told, "fio-text")
    assert [row["complete"] for row in rows] == [True]


def test_rsync_runs_are_told_by_their_summaries() -> None:
    rows, tally = sample("rsync.txt")
    assert [row["rate_bps"] for row in rows[:3]] == [20_006_364 * 8, 60_019_140 * 8, 20.01e6 * 8]
    assert facts(rows[0], "bytes", "files", "modality") == (30_009_546, 2, "E")
    assert [facts(row, "complete", "code") for row in rows[5:]] == [
        (False, "code 255"),
        (False, "code 23"),
    ]
    assert tally.skipped["dry run"] == 1


@pytest.mark.parametrize(
    ("line", "moved", "rate"),
    [
        ("sent 21,391 bytes  received 133 bytes  6,149.71 bytes/sec", 21_524, 6149.71),
        ("sent 21.391 bytes  received 133 bytes  6.149,71 bytes/sec", 21_524, 6149.71),
        ("sent 21391 bytes  received 133 bytes  6149.71 bytes/sec", 21_524, 6149.71),
        ("sent 21.39K bytes  received 133 bytes  6.15K bytes/sec", 21_523, 6150.0),
        ("sent 1.02G bytes  received 12.34M bytes  95.10M bytes/sec", 1_032_340_000, 95.1e6),
    ],
)
def test_rsync_writes_digits_as_its_locale_and_options_want(
    tmp_path: Path, line: str, moved: int, rate: float
) -> None:
    text = f"{line}\ntotal size is 1  speedup is 1.00\n"
    rows, _ = given(tmp_path, text, "rsync")
    assert rows[0]["bytes"] == moved and rows[0]["rate_bps"] == pytest.approx(rate * 8)


@draws(200, SAME_FOLDER)
@examples(
    moved=st.integers(2_000, 10**13),
    seconds=st.integers(0, 60),
    base=st.sampled_from([1000, 1024]),
)
def test_prefixes_of_rsync_are_taken_for_1024_only_where_they_must_be(
    tmp_path: Path, moved: int, seconds: int, base: int
) -> None:
    def people(value: float) -> str:
        for prefix in ("", *"KMGT"):
            if value < base:
                return f"{value:.2f}{prefix}"
            value /= base
        return f"{value:.2f}P"

    rate = moved / (seconds + 0.5)
    line = f"sent {people(moved)} bytes  received 0 bytes  {people(rate)} bytes/sec"
    rows, _ = given(tmp_path, f"{line}\ntotal size is 9  speedup is 1.00\n", "rsync")
    if base == 1000:
        assert rows[0]["bytes"] == pytest.approx(moved, rel=0.01)
    elif people(moved)[-1] == people(rate)[-1]:
        # The letters say nothing where they are the same, but for what 1000 cannot be.
        assert rows[0]["duration_s"] == pytest.approx(seconds + 0.5, rel=0.02)


@pytest.mark.parametrize(
    ("line", "moved", "rate"),
    [
        ("sent 2.98M bytes  received 111 bytes  678.41K bytes/sec", 3_124_851, 694_692),
        ("sent 1,010.20K bytes  received 84 bytes  2.21M bytes/sec", 1_034_529, 2_317_353),
        ("sent 1.40T bytes  received 2.95M bytes  95.10M bytes/sec", 1_400_002_950_000, 95.1e6),
    ],
)
def test_prefixes_of_rsync_must_make_whole_seconds_and_a_half(
    tmp_path: Path, line: str, moved: int, rate: float
) -> None:
    text = f"{line}\ntotal size is 1  speedup is 1.00\n"
    rows, _ = given(tmp_path, text, "rsync")
    assert rows[0]["bytes"] == pytest.approx(moved, rel=1e-4)
    assert rows[0]["rate_bps"] == pytest.approx(rate * 8, rel=1e-4)


def test_an_rsync_that_moved_no_file_is_no_transfer(tmp_path: Path) -> None:
    text = text_of("rsync-stats.txt").replace("files transferred: 6", "files transferred: 0")
    rows, tally = given(tmp_path, text, "rsync")
    assert rows == [] and tally.skipped["no data to move"] == 1


@pytest.mark.parametrize(
    ("listed", "total", "counts"),
    [
        ("", "6,900,002  speedup is 34,328.37", False),
        ("./\nd/\n", "6,900,002  speedup is 34,328.37", False),
        ("created directory dst\n./\n", "0  speedup is 0.00", False),
        (
            ".d..t...... ./\n.f...p..... f1\ncL+++++++++ ln -> f1\n",
            "6,900  speedup is 34.37",
            False,
        ),
        ("deleting f2\n", "6.900.002  speedup is 34.328,37", False),
        ("", "6,900,002  speedup is 0.99", True),
        ("f1\n", "6,900,002  speedup is 34,328.37", True),
        (">f+++++++++ f1\n", "6,900,002  speedup is 34,328.37", True),
    ],
)
def test_an_rsync_that_listed_nothing_to_move_is_no_transfer(
    tmp_path: Path, listed: str, total: str, counts: bool
) -> None:
    text = (
        f"sending incremental file list\n{listed}\n"
        f"sent 188 bytes  received 13 bytes  402.00 bytes/sec\ntotal size is {total}\n"
    )
    rows, tally = given(tmp_path, text + text, "rsync")
    assert len(rows) == 2 * counts and tally.skipped.get("no data to move", 0) == 2 * (not counts)


SAME = "sent 145 bytes  received 88 bytes  466.00 bytes/sec\n"
SAME += "total size is 9,000,100  speedup is 38,627.04\n"
MOVED = "sent 9,002,553 bytes  received 199 bytes  3,601,100.80 bytes/sec\n"
MOVED += "total size is 9,000,100  speedup is 1.00\n"
LIST = "sending incremental file list\n"
COUNTED = "total: matches={0}  hash_hits=0  false_alarms=0 data={1}\n\n"


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("a is uptodate\nb is uptodate\nd/c is uptodate\n\n" + SAME, []),
        (2 * ("a is uptodate\n\n" + SAME), []),
        ("a is uptodate\n\n" + SAME + "a\nb is uptodate\n\n" + SAME, [233]),
        ("a\nb is uptodate\n\n" + SAME, [233]),
        (SAME, [233]),
        (LIST + ".d          ./\n.f          a\n.d          d/\n.f          d/c\n\n" + SAME, []),
        (LIST + ".f          a\n>f..t...... b\n\n" + SAME, [233]),
        (
            LIST + "delta-transmission disabled for local transfer or --whole-file\n"
            "a is uptodate\n./\nd/c is uptodate\nd/\n" + COUNTED.format(0, 0) + SAME,
            [],
        ),
        (
            LIST + "[sender] make_file(.,*,0)\nrecv_generator(a,2)\na is uptodate\n"
            "send_files(2, work/src/a)\n" + COUNTED.format(0, 0) + SAME,
            [],
        ),
        (LIST + "a is uptodate\nb\n" + COUNTED.format(12, 0) + SAME, [233]),
        (
            LIST + "delta-transmission enabled\na\n" + COUNTED.format(0, 9_000_100) + MOVED,
            [9_002_752],
        ),
    ],
)
def test_an_rsync_that_says_much_of_nothing_is_no_transfer(
    tmp_path: Path, text: str, moved: list[int]
) -> None:
    rows, tally = given(tmp_path, text, "rsync")
    assert [row["bytes"] for row in rows] == moved
    assert tally.skipped.get("no data to move", 0) == text.count("speedup") - len(moved)


def test_an_rsync_that_only_listed_is_no_transfer(tmp_path: Path) -> None:
    listing = (
        "receiving incremental file list\n"
        "drwxr-xr-x          4,096 2026/11/29 08:23:35 .\n"
        "-rw-r--r--     31,457,280 2026/11/29 08:23:35 a\n"
        "\nsent 124 bytes  received 277 bytes  802.00 bytes/sec\n"
        "total size is {}  speedup is {}\n"
    )
    for total in (("31,457,280", "78,447.08"), ("3", "0.01")):
        rows, tally = given(tmp_path, listing.format(*total), "rsync")
        assert rows == [] and tally.skipped["no data to move"] == 1


def test_an_rsync_that_failed_is_one_run_though_all_its_processes_say_so(tmp_path: Path) -> None:
    full = (
        "sending incremental file list\nf1\n"
        "rsync error: error in file IO (code 11) at receiver.c(374) [receiver=3.1.2]\n"
        "rsync: [sender] write error: Broken pipe (32)\n"
        "rsync error: error in rsync protocol data stream (code 12) at io.c(820) [sender=3.1.2]\n"
    )
    lost = "rsync error: unexplained error (code 255) at io.c(226) [Receiver=3.1.1]\n"
    rows, _ = given(tmp_path, full + full + lost + lost, "rsync")
    assert [row["code"] for row in rows] == ["code 11", "code 11", "code 255", "code 255"]
    good = "sent 9 bytes  received 9 bytes  9.00 bytes/sec\ntotal size is 9  speedup is 1.00\n"
    rows, _ = given(tmp_path, lost + good + lost.replace("Receiver", "sender"), "rsync")
    assert [row["complete"] for row in rows] == [False, True, False]
    rows, _ = given(tmp_path, good + "rsync error: some files/attrs were not", "rsync")
    assert [facts(row, "complete", "code") for row in rows] == [(False, "code unknown")]


def test_rclone_is_what_it_told_last() -> None:
    rows, tally = sample("rclone-json.txt")
    assert facts(rows[0], "bytes", "files", "complete") == (21_000, 6, True)
    assert rows[0]["rate_bps"] == pytest.approx(21_000 * 8 / 2.539929776)
    assert rows[0]["started_at"] == datetime(2026, 11, 21, 20, 7, 0, 883_576)
    assert tally.skipped["interim status, not a final result"] == 3
    rows, _ = sample("rclone.txt")
    assert facts(rows[0], "files", "duration_s") == (2, 0.8)
    assert rows[0]["bytes"] == pytest.approx(28.612 * 2**20, rel=1e-6)


def rclone(moved: str, elapsed: str, more: str = "") -> str:
    """What rclone tells at one moment."""
    return (
        f"Transferred:   \t   {moved} / {moved}, 100%, 0 B/s, ETA -\n{more}"
        f"Transferred:            2 / 2, 100%\nElapsed time:         {elapsed}\n"
    )


def test_rclone_runs_end_where_less_is_told_and_errors_fail_them(tmp_path: Path) -> None:
    text = rclone("1 MiB", "1m1.5s") + rclone("2 GiB", "1h0m2s") + rclone("1 KiB", "500ms")
    text += rclone("1 KiB", "1s", "Errors:                 3 (retrying may help)\n")
    rows, _ = given(tmp_path, text, "rclone")
    assert [facts(row, "bytes", "duration_s", "complete") for row in rows] == [
        (2 << 30, 3602.0, True),
        (1 << 10, None, False),
    ]


def test_rclone_before_1_57_wrote_k_for_kib(tmp_path: Path) -> None:
    text = "Transferred:   \t   20.500k / 20.508 kBytes, 99%, 8.2 kBytes/s, ETA 0s\n"
    rows, _ = given(tmp_path, text + "Elapsed time:  2s\n", "rclone")
    assert rows[0]["bytes"] == 20992


def test_a_dry_run_of_rclone_moved_nothing(tmp_path: Path) -> None:
    left_out = "2026/11/28 02:00:01 NOTICE: a: Skipped copy as --dry-run is set (size 1Mi)\n"
    text = rclone("1 MiB", "1m1.5s") + left_out + rclone("1 KiB", "0.5s") + rclone("2 KiB", "1s")
    rows, tally = given(tmp_path, text + rclone("3 B", "0.1s"), "rclone")
    assert [row["bytes"] for row in rows] == [1 << 20, 3]
    assert tally.skipped["dry run, nothing was moved"] == 1
    said = {"level": "notice", "msg": "Skipped copy as --dry-run is set", "skipped": "copy"}
    told = {"level": "notice", "msg": "", "source": "s", "stats": {"bytes": 9, "elapsedTime": 1.0}}
    text = json.dumps(said) + "\n" + json.dumps(told) + "\n"
    assert given(tmp_path, text, "rclone")[0] == []


def test_a_file_that_rclone_failed_to_copy_does_not_end_its_run(tmp_path: Path) -> None:
    one = "2026/11/28 02:00:01 ERROR : a: Failed to copy: permission denied\n"
    last = "2026/11/28 02:00:09 Failed to copy with 2 errors: last error was: permission denied\n"
    more = "Errors:                 1 (retrying may help)\n"
    text = one + rclone("1 KiB", "1s", more) + one + rclone("2 KiB", "2s", more) + last
    [row] = given(tmp_path, text, "rclone")[0]
    assert facts(row, "bytes", "complete") == (2048, False)


def test_rclone_counts_weeks_and_years(tmp_path: Path) -> None:
    [row] = given(tmp_path, rclone("9 TiB", "1y1w2d3h4m5.0s"), "rclone")[0]
    assert row["duration_s"] == (365 + 7 + 2) * 86_400 + 3 * 3600 + 4 * 60 + 5


def test_wdt_is_what_its_sender_says_and_mbytes_are_of_1024() -> None:
    row = sample("wdt-sender.log")[0][0]
    assert facts(row, "bytes", "files", "streams", "to_host") == (21_624, 6, 2, "127.0.0.1")
    assert row["rate_bps"] == 9.14 * 2**20 * 8


def test_a_wdt_that_found_no_receiver_failed(tmp_path: Path) -> None:
    text = text_of("wdt-sender.log").replace("Transfer status = OK", "Transfer status = CONN_ERROR")
    rows, _ = given(tmp_path, text, "wdt")
    assert [facts(row, "complete", "code") for row in rows] == [(False, "CONN_ERROR")]


WDT_OLD = (
    "I0301 08:39:02.576848  2152 Sender.cpp:29] Last thread finished 0.021332\n"
    "I0301 08:39:02.577584  2152 Sender.cpp:323] Total sender time = 0.021332 seconds"
    " (0.000917 dirTime). Transfer summary : Transfer status = OK. Number of files transferred = 1."
    " Data Mbytes = 1.23978e-05. Header Kbytes = 2.19531 (17292.3% overhead). Total bytes = 2261."
    " Wasted bytes due to failure = 0 (0% overhead). Encryption type = aes128gcm.\n"
    "Total sender throughput = 0.00236943 Mbytes/sec (0.00247586 Mbytes/sec pure transfer rate)\n"
)
WDT_OLDER = (
    "[=================================================] 100% 588.8 Mbytes/s\n"
    "I0720 21:48:08.446014 3245296 Sender.cpp:314] Total sender time = 2.68699 seconds"
    " (0.00640992 dirTime). Transfer summary : Transfer status = OK. Number of files transferred ="
    " 1887. Data Mbytes = 1582.08. Header Kbytes = 62.083 (0.00383215% overhead). Total bytes ="
    " 1658999858. Wasted bytes due to failure = 0 (0% overhead). Total sender throughput = 588.816"
    " Mbytes/sec (590.224 Mbytes/sec pure transf rate)"
)
WDT_NO_YEAR = "I0726 11:09:40.133309 18856 EncryptionUtils.cpp:82] wdt>\tOpenssl initialized\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WDT_OLD, [(2261, 0.021332, 1, 0.00236943)]),
        (WDT_OLDER, [(1_658_999_858, 2.68699, 1887, 588.816)]),
        (WDT_NO_YEAR, []),
        (text_of("wdt-sender.log").replace("I2026", "I"), [(21_624, None, 6, 9.14)]),
    ],
)
def test_a_wdt_without_its_prefix_or_the_year_is_known(
    tmp_path: Path, text: str, expected: list[tuple[int, float | None, int, float]]
) -> None:
    (tmp_path / "a.log").write_text(text)
    log = read_log(tmp_path / "a.log")
    rows = drained(log)
    assert log.format.name == "wdt" and len(rows) == len(expected)
    for row, (moved, seconds, files, mbytes) in zip(rows, expected, strict=True):
        assert facts(row, "bytes", "files") == (moved, files)
        assert seconds is None or row["duration_s"] == seconds
        assert row["rate_bps"] == pytest.approx(mbytes * 2**20 * 8, rel=1e-5)


def test_xdd_finds_its_columns_by_name_and_a_run_with_errors_failed() -> None:
    row = sample("xdd-e2e-destination.txt")[0][0]
    assert facts(row, "bytes", "duration_s", "streams") == (49_283_072, 0.253, 2)
    assert facts(row, "modality", "code", "block_bytes") == ("E", "write", 1 << 20)
    assert sample("xdd-e2e.txt")[0][0]["complete"] is False


def test_bbcp_and_escp_count_in_steps_of_1024() -> None:
    first, _, failed = sample("bbcp.txt")[0]
    assert facts(first, "bytes", "rate_bps", "files") == (50_000_000, 12.2 * 2**23, 1)
    assert failed["code"] == "No such file or directory processing nofile"
    bits, in_bytes, missing = sample("escp.txt")[0]
    assert facts(bits, "rate_bps", "files") == (3.3e9, 1)
    assert in_bytes["rate_bps"] == pytest.approx(608.4 * 1024 * 8)
    assert missing["complete"] is False


def test_bbcp_tells_what_it_does_and_what_it_could_not_do_alike(tmp_path: Path) -> None:
    text = (
        "bbcp: Indexing files to be copied...\nbbcp: Copying 2 files in 1 directory.\n"
        "bbcp: 210127 13:42:10  23% done; 1.0 GB/s, avg 1018.1 MB/s\n"
        "File /x/a created; 100000000000 bytes at 1.0 GB/s\n"
        "2 files copied at effectively 978.0 MB/s\n"
        "bbcp: Unable to connect to x; Connection refused\n"
    )
    rows, _ = given(tmp_path, text, "bbcp")
    # Of two files one said its bytes, so those of the run are not known.
    assert [facts(row, "complete", "bytes", "files") for row in rows] == [
        (True, None, 2),
        (False, None, None),
    ]
    assert rows[0]["rate_bps"] == 978.0 * 2**23


def test_scp_is_a_file_for_each_line_of_100_percent() -> None:
    rows, tally = sample("scp.txt")
    assert [facts(row, "bytes", "rate_bps") for row in rows] == [
        (48 << 20, 40.5 * 2**23),
        (2000, 1.9 * 2**23),
    ]
    assert tally.skipped["progress"] == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0), ("1,234", 1234.0), ("1.234", 1234.0), ("1,234,567", 1234567.0),
        ("1,234.56", 1234.56), ("1.234,56", 1234.56), ("12,5", 12.5), ("0.28", 0.28),
        ("30 009 489", 30009489.0), ("1'234.5", 1234.5),
    ],
)  # fmt: skip
def test_grouped_digits_are_one_number(text: str, value: float) -> None:
    assert ungrouped(text) == value


def test_prefixes_are_what_the_tool_means() -> None:
    assert (scaled("1,5", "k", 1000), scaled("1", "Mi", 1024)) == (1500.0, 2.0**20)
    assert scaled("7", None, 1024) == 7.0


KINDS = {
    "iperf3-text.txt": "iperf3-text", "fio-text.txt": "fio-text", "rsync.txt": "rsync",
    "rclone.txt": "rclone", "rclone-json.txt": "rclone", "dd.txt": "dd", "xdd-e2e.txt": "xdd",
    "wdt-sender.log": "wdt", "bbcp.txt": "bbcp", "escp.txt": "escp", "scp.txt": "scp",
    "nuttcp-verbose.txt": "nuttcp", "globus-url-copy-two.txt": "globus-url-copy",
    "iozone-3.327-auto.txt": "iozone", "iperf3-server.txt": "iperf3-text",
    "iperf2.txt": "iperf2",
}  # fmt: skip


def measured(rows: Rows) -> set[tuple[object, ...]]:
    """What was measured in complete rows."""
    return {facts(row, "bytes", "duration_s", "rate_bps") for row in rows if row["complete"]}


@pytest.mark.parametrize("name", sorted(KINDS))
@draws(25, SAME_FOLDER)
@examples(data=st.data())
def test_garbage_between_lines_changes_no_figure(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    text = text_of(name)
    lines = text.splitlines(keepends=True)
    whole = measured(given(tmp_path, text, KINDS[name])[0])
    garbage = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=40)
    for _ in range(data.draw(st.integers(1, 4))):
        lines.insert(data.draw(st.integers(0, len(lines))), data.draw(garbage) + "\n")
    assert measured(given(tmp_path, "".join(lines), KINDS[name])[0]) <= whole


@pytest.mark.parametrize("name", sorted(KINDS))
@draws(25, SAME_FOLDER)
@examples(data=st.data())
def test_a_log_that_begins_late_or_ends_early_measured_nothing_else(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    lines = text_of(name).splitlines(keepends=True)
    whole = {one[2] for one in measured(given(tmp_path, "".join(lines), KINDS[name])[0])}
    start = data.draw(st.integers(0, len(lines)))
    part = "".join(lines[start : data.draw(st.integers(start, len(lines)))])
    if name in SNAPSHOTS:
        given(tmp_path, part, KINDS[name])
        return
    assert {one[2] for one in measured(given(tmp_path, part, KINDS[name])[0])} <= whole


SNAPSHOTS = ("fio-text.txt", "rclone-json.txt", "globus-url-copy-two.txt")
"""What was told last is another thing in a part of these."""


def test_an_rclone_that_ended_before_all_was_moved_has_failed(tmp_path: Path) -> None:
    text = (
        "Transferred:   \t    2.082 MiB / 8.583 MiB, {0}, 0 B/s, ETA -\n"
        "Transferred:            0 / 3, 0%\nElapsed time:         1.0s\n"
    )
    for percent, complete in (("24%", False), ("100%", True), ("-", True)):
        rows, _ = given(tmp_path, text.format(percent), "rclone")
        assert [row["complete"] for row in rows] == [complete]
    line = '{{"level":"info","stats":{{"bytes":10,"totalBytes":{0},"elapsedTime":1.0}}}}\n'
    for total, complete in ((20, False), (10, True)):
        rows, _ = given(tmp_path, line.format(total), "rclone")
        assert [row["complete"] for row in rows] == [complete]
