"""What dd prints, of GNU, BSD and macOS, in every language."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.formats import detect
from tests.unit.formats.logs import facts, given


@pytest.mark.parametrize("moved", [0, 1 << 20])
def test_a_dd_that_met_a_full_disk_has_failed(tmp_path: Path, moved: int) -> None:
    text = (
        "dd: error writing '/mnt/a': No space left on device\n2+0 records in\n1+0 records out\n"
        f"{moved} bytes (1.0 MB, 1.0 MiB) copied, 0.5 s, 2.1 MB/s\n"
    )
    [row] = given(tmp_path, text, "dd")[0]
    assert facts(row, "bytes", "complete") == (moved, False)


@pytest.mark.parametrize(
    "line",
    [
        "50000000 bytes (50 MB, 48 MiB) copied, 0.5 s, 100 MB/s",
        "50000000 bytes (50 MB) copied, 0.5 s, 100 MB/s",
        "50000000 bytes (50 MB, 48 MiB) copied, 5e-01 s, 100 MB/s",
        "50000000 Bytes (50 MB, 48 MiB) kopiert, 0,5 s, 100 MB/s",
        "50000000 octets (50 MB, 48 MiB) copiés, 0,5 s, 100 MB/s",
        "50000000 bytes (47.7MB) copied, 0.500000 seconds, 95.4MB/s",
        "50000000 bytes transferred in 0.500000 secs (100000000 bytes/sec)",
        "50000000 bytes transferred in 0.500000 seconds (100000000 bytes/sec)",
    ],
)
def test_dd_says_bytes_and_seconds_in_every_language(tmp_path: Path, line: str) -> None:
    progress = "1000 bytes (1.0 kB) copied, 1 s, 1.0 kB/s\r"
    text = f"{progress}48+0 records in\n48+0 records out\n{line}\n"
    rows, tally = given(tmp_path, text, "dd")
    assert facts(rows[0], "bytes", "duration_s", "rate_bps") == (50_000_000, 0.5, 800e6)
    assert len(rows) == 1 and tally.skipped["progress"] == 1


@pytest.mark.parametrize(
    "text",
    [
        # Of coreutils 9.1, byte for byte.
        "30+0\u00a0enregistrements lus\n30+0\u00a0enregistrements écrits\n"
        "31457280\u00a0octets (31 MB, 30 MiB) copiés, 0,00407611 s, 7,7 GB/s\n",
        "30+0 записів прочитано\n30+0 записів записано\n"
        "скопійовано 31457280 байтів (31 MB, 30 MiB), 0,00407611 s, 7,7 GB/s\n",
        "输入了 30+0 块记录\n输出了 30+0 块记录\n"
        "31457280 字节 (31 MB, 30 MiB) 已复制\uff0c0.00407611 s\uff0c7.7 GB/s\n",
        "30+0 레코드 입력함\n30+0 레코드 출력함\n"
        "31457280 바이트 (31 MB, 30 MiB) 복사함, 0,00407611 s, 7,7 GB/s\n",
    ],
)
def test_dd_is_known_by_its_figures_whatever_stands_around_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(text)
    assert detect(tmp_path / "log") == "dd"
    [row] = given(tmp_path, text, "dd")[0]
    assert facts(row, "bytes", "duration_s") == (31_457_280, 0.00407611)


def dd(blocks: str, moved: int, seconds: str) -> str:
    """What dd prints of one copy."""
    return (
        f"{blocks} records in\n{blocks} records out\n"
        f"{moved} bytes (19 GB, 18 GiB) copied, {seconds} s, 27.3 GB/s\n"
    )


def test_what_dd_tells_on_the_way_is_no_copy(tmp_path: Path) -> None:
    signals = dd("292026+0", 19_138_215_936, "0.70") + dd("396111+0", 25_959_530_496, "1.01")
    end = dd("496247+1", 32_522_047_488, "1.20")
    rows, tally = given(tmp_path, signals + end, "dd")
    assert [row["duration_s"] for row in rows] == [1.2] and tally.skipped["progress"] == 2
    # The first signal came within a read.
    short = "dd: warning: partial read (413696 bytes); suggest iflag=fullblock\n"
    rows, _ = given(tmp_path, signals + short + end, "dd")
    assert [row["duration_s"] for row in rows] == [1.2]
    for text in (
        # Copies of their own: with a line between, of sizes that were asked for, of files.
        dd("292026+0", 19_138_215_936, "0.70") + "$ dd if=a of=b\n" + end,
        dd("1000+0", 1000, "0.70") + end,
        dd("1024+0", 1000, "0.70") + end,
        dd("292026+1", 19_138_215_937, "0.70") + end,
        dd("292026+0", 19_138_215_936, "1.70") + end,
    ):
        assert len(given(tmp_path, text, "dd")[0]) == 2


@pytest.mark.parametrize(
    "said",
    [
        "dd: /dev/rdisk2: short write on character device\ndd: /dev/rdisk2: Input/output error\n",
        "1937768448 bytes (1,9 GB, 1,8 GiB) copied, 278 s, 7,0 MB/s\r"
        "dd: Fehler beim Schreiben von '/dev/sdb1': Kein Speicherplatz mehr verfügbar\n",
        "dd: reading `/dev/sda3': Input/output error\n",
        "/usr/bin/dd: error writing '/mnt/open/a': Invalid argument\n",
    ],
)
def test_an_error_of_dd_in_any_language_fails_the_copy(tmp_path: Path, said: str) -> None:
    one = dd("463+0", 1_940_422_656, "346.925")
    rows, _ = given(tmp_path, one + said + one, "dd")
    assert [row["complete"] for row in rows] == [True, False]


@pytest.mark.parametrize(
    "said",
    [
        "dd: warning: partial read (8192 bytes); suggest iflag=fullblock\n",
        "dd: Warnung: Unvollständiger Lesevorgang (8192 Bytes)\n",
        "dd: 'standard input': cannot skip to specified offset\n",
        "dd: /dev/rdisk2: short write on character device\n",
        "dd: failed to open '/mnt/a': No such file or directory\n",
        "dd: invalid number: 'x'\n",
        "dd: Fehler beim Lesen von '/dev/sda'\n$ dd if=/dev/sdb of=/dev/null\n",
    ],
)
def test_what_dd_says_of_no_copy_or_warns_of_fails_none(tmp_path: Path, said: str) -> None:
    rows, _ = given(tmp_path, said + dd("463+0", 1_940_422_656, "346.925"), "dd")
    assert [row["complete"] for row in rows] == [True]


DD_NOERROR_FR = (
    "root@CZ-LIVE:~# dd if=/dev/sda of=/dev/null bs=64k conv=noerror status=progress\n"
    "dd: erreur de lecture dans '/dev/sda': Erreur d'entrée/sortie\n"
    "169782+1 enregistrements lus\n169782+1 enregistrements écrits\n"
    "11126841344 octets (11 GB, 10 GiB) copiés, 164,843 s, 67,5 MB/s\n"
    "500092444672 octets (500 GB, 466 GiB) copiés, 9216 s, 54,3 MB/s\r"
    "{0}7631039+2 enregistrements lus\n7631039+2 enregistrements écrits\n"
    "500107804672 octets (500 GB, 466 GiB) copiés, 9216,99 s, 54,3 MB/s\n"
)
DD_NOERROR_EN = (
    "    # dd if=/dev/mapper/DeviceWithBadSectors conv=noerror,sync bs=512 > /dev/null\n"
    "    dd: error reading '/dev/mapper/DeviceWithBadSectors': Input/output error\n"
    "    2000+95 records in\n    2095+0 records out\n"
    "    1072640 bytes (1.1 MB, 1.0 MiB) copied, 0.00982337 s, 109 MB/s\n"
    "    {0}4000+96 records in\n    4096+0 records out\n"
    "    2097152 bytes (2.1 MB, 2.0 MiB) copied, 0.024313 s, 86.3 MB/s\n"
)


@pytest.mark.parametrize(
    ("text", "moved"), [(DD_NOERROR_FR, 500_107_804_672), (DD_NOERROR_EN, 2_097_152)]
)
def test_a_dd_that_went_on_after_errors_is_one_that_failed(
    tmp_path: Path, text: str, moved: int
) -> None:
    for between in ("", "dd: error reading '/dev/sda': Input/output error\n"):
        rows, _ = given(tmp_path, text.format(between), "dd")
        assert [facts(row, "bytes", "complete") for row in rows] == [(moved, False)]
    assert detect(tmp_path / "given.log") == "dd"
    rows, _ = given(tmp_path, text.format("$ dd if=/dev/sdb of=/dev/null\n"), "dd")
    assert [row["complete"] for row in rows] == [False, True]
