"""Logs of rsync, of clients and of its daemon."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from tests.support.draws import SAME_FOLDER, draws
from tests.unit.formats.logs import facts, given, sample, text_of

BEGINS = "2026/11/28 09:31:57 [17961] building file list\n"
MOVED = "2026/11/28 09:31:57 [17961] >f+++++++++ a\n"
SENT = "2026/11/28 09:32:00 [17961] sent 3125969 bytes  received 89 bytes  total size 3124956\n"
ERROR = "2026/11/28 09:32:00 [17961] rsync error: {0} (code {1}) at main.c(1394) [sender=3.5.0]\n"


def test_runs_in_a_log_of_rsync_are_told_by_their_processes() -> None:
    rows, tally = sample("rsync-log.txt")
    assert [facts(row, "bytes", "duration_s", "files") for row in rows if row["complete"]] == [
        (3_126_058, 1.5, None),
        (3_126_058, 0.5, None),
        (3_126_048, 0.5, 3),
        (3_126_058, 0.5, None),
        (3_126_081, 0.5, None),
    ]
    codes = [row["code"] for row in rows if not row["complete"]]
    assert sorted(codes) == ["code 20", "code 20", "code 23", "no end"]
    assert tally.skipped["no file is listed as moved"] == 2 and tally.skipped["dry run"] == 1
    assert tally.malformed == 0


def test_a_daemon_of_rsync_says_who_asked_and_for_what() -> None:
    rows, tally = sample("rsync-daemon.log")
    assert [facts(row, "from_host", "to_host") for row in rows if row["complete"]] == [
        ("192.0.2.1", None),
        (None, "192.0.2.1"),
    ]
    assert sorted(row["code"] for row in rows if not row["complete"]) == ["code 12", "code 20"]
    # A list of a module, and an update without changes; the daemon's own end.
    assert tally.skipped["no file is listed as moved"] == 2
    assert tally.skipped["no data to move"] == 1 and tally.malformed == 0


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (BEGINS + MOVED + SENT, [None]),
        (BEGINS + MOVED, ["no end"]),
        (BEGINS + MOVED + BEGINS + MOVED + SENT, ["no end", None]),
        (BEGINS + MOVED + SENT + ERROR.format("some files", 23), ["code 23"]),
        (BEGINS + MOVED + SENT + ERROR.format("signal", 20), ["code 20"]),
        (BEGINS + MOVED + 2 * ERROR.format("in socket IO", 10), ["code 10"]),
        (BEGINS + MOVED + SENT + BEGINS + MOVED + SENT, [None, None]),
        (BEGINS + MOVED + SENT + ERROR.format("signal", 20)[:45], ["no end"]),
        (BEGINS + MOVED + SENT + ERROR.format("signal", 20)[:32], ["no end"]),
        (SENT + ERROR.format("unexplained error", 255), ["code 255"]),
        (BEGINS + SENT, []),
        (BEGINS + MOVED.replace(">f", ".f") + SENT, []),
        (BEGINS + MOVED.replace(">f+++++++++ a", "data/run 7/ 4096") + SENT, []),
        (BEGINS + MOVED.replace(">f+++++++++ a", "data/run 7/a 4096") + SENT, [None]),
        (BEGINS + MOVED.replace(">f+++++++++ a", "send h [192.0.2.1] m () a 4096") + SENT, [None]),
    ],
)
def test_how_a_run_in_a_log_of_rsync_ended(
    tmp_path: Path, text: str, codes: list[str | None]
) -> None:
    rows, _ = given(tmp_path, text, "rsync-log")
    assert [row["code"] for row in rows] == codes
    assert [row["complete"] for row in rows] == [code is None for code in codes]
    # As Windows ends lines, and behind another time.
    again, _ = given(tmp_path, text.replace("\n", "\r\n"), "rsync-log")
    assert again == rows
    stamped = "".join("Nov 28 09:32:01 " + line for line in text.splitlines(keepends=True))
    if stamped.count("\n") > 1:
        assert given(tmp_path, stamped, "rsync-log")[0] == rows


def test_a_run_whose_start_is_not_in_the_log_is_malformed(tmp_path: Path) -> None:
    rows, tally = given(tmp_path, MOVED + SENT, "rsync-log")
    assert rows == []
    assert tally.malformed_reasons == {"the start of this run is missing": 1}
    went_back = BEGINS.replace("09:31", "10:31") + MOVED + SENT
    rows, tally = given(tmp_path, went_back, "rsync-log")
    assert rows == [] and tally.malformed == 1


@draws(40, SAME_FOLDER)
@examples(data=st.data())
def test_lines_of_runs_at_the_same_time_are_kept_apart(tmp_path: Path, data: st.DataObject) -> None:
    whole = [BEGINS, MOVED, SENT]
    runs = [[line.replace("17961", str(100 * at)) for line in whole] for at in (1, 2, 3)]
    runs[1][2] = runs[1][2].replace("09:32:00", "09:32:07")
    order = data.draw(st.permutations([at for at in range(3) for _ in whole]))
    places = [iter(run) for run in runs]
    text = "".join(next(places[at]) for at in order)
    rows, _ = given(tmp_path, text, "rsync-log")
    assert sorted(row["duration_s"] for row in rows) == [3.5, 3.5, 10.5]


@draws(40, SAME_FOLDER)
@examples(data=st.data())
def test_a_part_of_a_log_of_rsync_measured_nothing_else(
    tmp_path: Path, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(["rsync-log.txt", "rsync-daemon.log"]))
    text = text_of(name)
    start = data.draw(st.integers(0, len(text)))
    part = text[start : data.draw(st.integers(start, len(text)))]
    rows, _ = given(tmp_path, part, "rsync-log")
    figures = {facts(row, "bytes", "duration_s") for row in sample(name)[0] if row["complete"]}
    assert {facts(row, "bytes", "duration_s") for row in rows if row["complete"]} <= figures
