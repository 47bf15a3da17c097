"""`farline estimate` as people and scripts see it."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from farline.cli.group import cli, run
from farline.store import RunBundle, Store
from tests.support.kept_copies import make_copy_record, make_tally
from tests.support.records import make_samples, make_summary

OTHER = "far.example.org"
SIZE = 10**9


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("TZ", "Europe/Zurich")
    return tmp_path / "store"


def keep_copies(count: int) -> None:
    """Copies of 1 GB in 10 files from this host to another, 10 s each."""
    store = Store()
    for number in range(1, count + 1):
        record = make_copy_record(number, copied=make_tally(10, SIZE))
        record["summary"] = {**make_summary(8e8, 10.0), "min_rtt_us": 20_000}
        record["client"]["host"]["hostname"] = platform.node()
        record["server_address"] = f"{OTHER}:5470"
        store.append(RunBundle(record, make_samples(2)))


def told(*words: str) -> Result:
    return CliRunner().invoke(cli, ["estimate", *words])


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run(["estimate", *words])
    return code, capsys.readouterr().err


def test_a_folder_here_is_counted(store: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    (data / "one").write_bytes(bytes(3000))
    (data / "sub" / "two").write_bytes(bytes(2000))
    (data / "loop").symlink_to("/")
    (tmp_path / "alone").write_bytes(bytes(1000))
    said = told(str(data), str(tmp_path / "alone"), f"{OTHER}:x", "--json")
    document = json.loads(said.stdout)
    assert (document["bytes"], document["files"]) == (6000, 3)


def test_without_a_store_a_model_answers_and_says_so(store: Path) -> None:
    said = told("data", f"{OTHER}:x", "--size", "12TiB", "--files", "40,000")
    assert said.exit_code == 0
    assert said.stdout.startswith(f"12.0 TiB in 40,000 files, data -> {OTHER}:x, 4 streams\n")
    assert "8 in 10 such transfers take between" in said.stdout
    assert "a model of published transfers" in said.stdout
    assert not store.exists()


def test_copies_over_the_path_are_learnt_from(store: Path) -> None:
    keep_copies(12)
    document = json.loads(
        told("d", f"{OTHER}:x", "--size", "1GB", "--files", "10", "--json").stdout
    )
    assert (document["basis"], document["transfers"]) == ("own-path", 12)
    assert document["duration_s"] == pytest.approx(10, rel=0.2)
    other = json.loads(told("d", "third:x", "--size", "1GB", "--files", "10", "--json").stdout)
    assert other["basis"] == "like-paths"
    back = json.loads(told(f"{OTHER}:x", "d", "--size", "1GB", "--json").stdout)
    assert back["basis"] == "like-paths"


def test_a_deadline_says_when_to_start_and_what_to_reserve(store: Path) -> None:
    words = ("data", f"{OTHER}:x", "--size", "100GB", "--deadline")
    said = told(*words, "48h", "--confidence", "95%").stdout
    assert "% sure to be met if started now" in said
    assert "is past" not in said
    assert "to be 95 % sure" in said
    assert "for 95 % confidence" in said
    too_near = told(*words, "2s").stdout
    assert "; the latest start, " in too_near and ", is past\n" in too_near
    assert "start by" not in too_near
    assert "reserve   none: for 90 % confidence the copy needs more time than is left" in too_near


def test_times_are_printed_in_the_zone_in_which_they_are_asked(store: Path) -> None:
    words = ("data", f"{OTHER}:x", "--size", "1GB", "--json", "--deadline")
    soon = datetime.now(UTC) + timedelta(days=2)
    day = soon.date().isoformat()
    abroad = json.loads(told(*words, f"{day} 18:00 Asia/Tokyo").stdout)
    assert abroad["deadline"] == f"{day}T18:00:00+09:00"
    assert abroad["latest_start"].endswith("+09:00")
    assert abroad["reservation"]["start"].endswith("+09:00")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("d", "h:x", "--size", "1G", "--deadline", "2020-01-01 10:00"), "is in the past: it is"),
        (("d", "h:x", "--size", "1G", "--deadline", "2020-01-01"), "has no time of day"),
        (("d", "h:x", "--size", "1G", "--deadline", "soon"), "--deadline: 'soon' is not a time"),
        (("d", "h:x", "--size", "1G", "--deadline", "400d"), "is more than a year away"),
        (
            ("d", "h:x", "--size", "1G", "--deadline", "1h", "--start", "2h"),
            "--deadline: it is before --start",
        ),
        (("h:x", "d"), "--size is missing: only sources on this host can be counted"),
        (("no-such-folder", "h:x"), "; for files that do not exist yet, give --size and --files"),
        (("d", "h:x", "--size", "1G", "--confidence", "30%"), "out of range; allowed: 50% to 99%"),
        (("d", "h:x", "--size", "1G", "--files", "2.5"), "is not a number of files"),
        (("d", "h:x", "--size", "1G", "--files", "0"), "is not a number of files"),
        (("d", "h:x", "--size", "1G", "--deadline", "99999999h"), "is more than a year away"),
        (("d", "h:x", "--size", "1e30TB"), "more than any copy has: at most 8 EiB"),
        (("d", "h:x", "--size", "1G", "--link", "0"), "--link: 0 bit/s is out of range"),
        (
            ("d", "d2", "--size", "1G", "--sample", "1s", "--deadline", "soon"),
            "--deadline: 'soon' is not a time",
        ),
        (("d",), "name at least one source and a destination"),
        (("d", "h:x", "--size", "many"), "'many' is not a size"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_1(
    store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str
) -> None:
    code, said = refused(capsys, *words)
    assert code == 1
    assert line in said
    assert said.count("\n") == 1


def test_what_takes_longer_than_the_calendar_has_no_date(store: Path) -> None:
    """Ages of the world are told as such; there is no date to start by and nothing to reserve."""
    words = ("d", "h:x", "--size", "7EiB", "--files", "1e12", "--streams", "1", "--link", "1k")
    lines = told(*words, "--deadline", "36h").stdout
    assert " years" in lines
    assert "the latest start is past" in lines
    assert "cannot be reserved" in told(*words).stdout
    document = json.loads(told(*words, "--deadline", "36h", "--json").stdout)
    assert document["latest_start"] is None
    assert (document["meets_deadline"], document["reservation"]) == (False, None)


def test_a_refusal_is_a_document_too(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", "d", "h:x", "--size", "1G", "--deadline", "soon", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "usage"
