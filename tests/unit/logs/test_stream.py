"""The stream that both languages write to."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farline.errors import SystemFailure
from farline.logs import TRACE, Log, stream
from farline.logs.levels import Levels, parse_levels

LOG = Log("farline.store.reader")


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    before = signal.getsignal(stream.REOPEN_SIGNAL)
    yield
    stream.stop()
    signal.signal(stream.REOPEN_SIGNAL, before)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_line_has_time_level_target_message_ids_and_fields(tmp_path: Path) -> None:
    stream.start(Levels("debug"), "json", tmp_path / "log")
    LOG.debug("file read", entry="a/b", bytes=7, reason=None, path=Path("/x"))
    (line,) = lines(tmp_path / "log")
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "debug", "target": "store", "message": "file read", "entry": "a/b",
        "fields": {"bytes": 7, "path": "/x"},
    }  # fmt: skip


def test_text_says_the_same_in_one_line_whatever_a_name_has(tmp_path: Path) -> None:
    stream.start(Levels("debug"), "text", tmp_path / "log")
    LOG.warning("file left out", entry=os.fsdecode(b"a\n\xff"), path=b"b")
    (text,) = (tmp_path / "log").read_text().splitlines()
    assert " WARN store: file left out entry=" in text and text.endswith(" path=b")
    assert "\\n" in text and "udcff" in text


def test_only_what_was_asked_for_is_written(tmp_path: Path) -> None:
    stream.start(parse_levels("store=trace", "x"), "json", tmp_path / "log")
    for log in (LOG, Log("farline.tools.ssh")):
        for say in (log.trace, log.debug, log.info, log.warning, log.error):
            say("x")
    told = [(line["target"], line["level"]) for line in lines(tmp_path / "log")]
    all_levels = ["trace", "debug", "info", "warn", "error"]
    assert told == [
        *(("store", level) for level in all_levels),
        ("tools", "warn"),
        ("tools", "error"),
    ]


def test_records_of_any_logger_below_farline_are_taken_with_their_traceback(tmp_path: Path) -> None:
    stream.start(Levels("debug"), "json", tmp_path / "log")
    logger = logging.getLogger("farline.campaign.shell")
    try:
        raise ValueError("odd")
    except ValueError:
        logger.exception("run %d failed", 3)
    logger.log(TRACE, "not wanted")
    (line,) = lines(tmp_path / "log")
    assert (line["target"], line["message"]) == ("campaign", "run 3 failed")
    assert line["fields"]["traceback"].endswith("ValueError: odd")


def test_a_file_that_was_renamed_is_opened_anew_on_the_signal_and_no_line_is_lost(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    stream.start(Levels("info"), "json", log)
    for number in range(60):
        LOG.info("said", number=number)
        if number % 20 == 10:
            log.rename(tmp_path / f"log.{number}")
            LOG.info("said between", number=number)
            signal.raise_signal(stream.REOPEN_SIGNAL)
    parts = [tmp_path / "log.10", tmp_path / "log.30", tmp_path / "log.50", log]
    assert [len(lines(part)) for part in parts] == [12, 21, 21, 9]
    told = [line for part in parts for line in lines(part) if line["message"] == "said"]
    assert [line["fields"]["number"] for line in told] == list(range(60))


def test_a_file_that_cannot_be_opened_is_refused_or_stays(tmp_path: Path) -> None:
    with pytest.raises(SystemFailure, match=r"log file .*: No such file or directory"):
        stream.start(Levels(), "text", tmp_path / "none" / "log")
    (tmp_path / "in").mkdir()
    stream.start(Levels(), "json", tmp_path / "in" / "log")
    (tmp_path / "in").rename(tmp_path / "aside")
    signal.raise_signal(stream.REOPEN_SIGNAL)
    (line,) = lines(tmp_path / "aside" / "log")
    assert (line["level"], line["message"]) == ("warn", "log file not opened anew")


def test_nothing_is_said_before_the_start_nor_after_the_stop(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    LOG.error("before")
    stream.start(Levels("debug"), "text", tmp_path / "log")
    stream.stop()
    LOG.error("after")
    assert (tmp_path / "log").read_text() == ""
    assert capfd.readouterr() == ("", "")


def test_a_caller_may_take_records_with_a_handler_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "farline.store"):
        LOG.debug("file read", entry="a")
    (record,) = caplog.records
    assert (record.getMessage(), vars(record)["fields"]) == ("file read", {"entry": "a"})
    assert record.filename == "test_stream.py"


def test_a_room_that_says_something_does_not_load_logging() -> None:
    script = (
        "import sys\nfrom farline.logs import Log\nLog('farline.store').error('x')\n"
        "print('logging' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_forked_child_writes_no_line_and_does_not_hang(tmp_path: Path) -> None:
    stream.start(Levels("debug"), "json", tmp_path / "log")
    child = os.fork()
    if child == 0:
        LOG.info("from a child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert lines(tmp_path / "log") == []
