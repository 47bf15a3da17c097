"""`farline copy` above the engine: where it goes, what it says, how it ends."""

from __future__ import annotations

import json
import os
import pty
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from farline.cli import group
from farline.cli.copy import command as copy_verb
from farline.copying import session as copy_session
from farline.copying import stream_choice
from farline.copying.connector import LocalConnector
from farline.copying.exit_code import exit_code
from farline.copying.host_names import HostNames
from farline.copying.retry import RepeatedSessions
from farline.spec.units import rate_human
from farline.tools import never_stop
from farline.tools.events import Event, Notice, NoticeKind
from farline.tools.native import Target
from tests.support.copies import (
    PlayedEngine,
    copy_record,
    copy_report,
    failed_lines,
    progress,
    tally,
)
from tests.support.steps import finished

if TYPE_CHECKING:
    from farline.tools.events import Steps

TICKET = f"farline://far.example:5470/v1.YQ.Yg?key=sha256-{'A' * 43}"
CUT = {"kind": "unreachable", "message": "far.example:5470: connection reset"}
LINE = {"path": "d/a", "kind": "file", "status": "copied", "bytes": 3, "blake3": "ab" * 32}
Copy = Callable[..., tuple[int, str, str]]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedEngine]:
    played = PlayedEngine()
    monkeypatch.setattr(copy_session, "RunFollower", played)
    contact = SimpleNamespace(rtt_s=0.1, address="192.0.2.77")
    monkeypatch.setattr(stream_choice, "first_contact", lambda *_: contact)
    monkeypatch.setattr(RepeatedSessions, "_pause", _no_pause)
    yield played
    assert not played.sessions, "a session was never begun"


def _no_pause(_repeated: object, _wait_s: float) -> Steps[bool]:
    yield None
    return True


@pytest.fixture
def copy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Copy:
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.delenv("FARLINE_STORE", raising=False)
    monkeypatch.chdir(tmp_path)

    def play(*arguments: str) -> tuple[int, str, str]:
        code = group.run(["copy", *arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return play


def test_a_push_goes_forward_with_streams_for_the_path(copy: Copy, engine: PlayedEngine) -> None:
    engine.play(copy_record())
    code, out, _ = copy("a", "b/", f"{TICKET}#data/", "--no-store")
    assert code == 0
    target, spec = engine.asked[0]
    assert (target.host, target.ticket) == ("far.example", "v1.YQ.Yg")
    assert spec["direction"] == "forward"
    assert (spec["copy"]["sources"], spec["copy"]["destination"]) == (["a", "b/"], "data/")
    assert spec["streams"] > 8
    assert out.startswith("files     2 copied")


def test_rbudp_without_a_rate_aims_high_and_gives_way_to_loss(
    copy: Copy, engine: PlayedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_choice, "interface_bps", lambda _address: 25_000_000_000)
    for _ in range(3):
        engine.play(copy_record())
    words = ("a", f"{TICKET}#x", "--no-store", "--transport", "rbudp")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: range(2))
    said = copy(*words, "-v")[2]
    assert "2 streams: a single stream would keep one core busy" in said
    assert "rbudp at 12.5 Gbit/s per stream" in said
    copy(*words, "--streams", "4", "--bwlimit", "8Gbit/s", "-q")
    copy(*words, "--rate", "3G", "-q")
    first, second, third = (spec for _, spec in engine.asked)
    assert (first["streams"], first["rate_bps"]) == (2, 12_500_000_000)
    assert first["rbudp"] == {"loss_bound": 0.01}
    assert (second["streams"], second["rate_bps"]) == (4, 2_000_000_000)
    assert third["rate_bps"] == 3_000_000_000 and "rbudp" not in third


def test_a_slow_interface_needs_fewer_streams(
    copy: Copy, engine: PlayedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for speed in (10**9, None):
        monkeypatch.setattr(stream_choice, "interface_bps", lambda _address, bps=speed: bps)
        engine.play(copy_record())
        copy("a", f"{TICKET}#x", "--no-store", "-q")
        counts.append(engine.asked[-1][1]["streams"])
    assert 0 < counts[0] < counts[1] / 2


@pytest.mark.parametrize(
    ("speed", "cores", "words", "streams"),
    [
        (None, 4, [], 2),
        (None, 1, [], 1),
        (100_000_000_000, 4, [], 4),
        (10**9, 4, [], 1),
        (None, 4, ["--bwlimit", "2Gbit/s"], 1),
        (None, 4, ["--streams", "3"], 3),
    ],
)
def test_udt_has_as_many_streams_as_the_rate_takes_cores(
    speed: int | None,
    cores: int,
    words: list[str],
    streams: int,
    copy: Copy,
    engine: PlayedEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_choice, "interface_bps", lambda _address: speed)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    engine.play(copy_record())
    copy("a", f"{TICKET}#x", "--no-store", "--transport", "udt", "-q", *words)
    assert engine.asked[-1][1]["streams"] == streams


@pytest.mark.parametrize(
    ("transport", "most", "streams", "end"),
    [
        ("tcp", 3, 3, "; 3, limited by the number of ports"),
        ("udt", 1, 1, "; 1, limited by the number of ports"),
        ("udt", 9, 2, "leave the others idle"),
    ],
)
def test_streams_are_no_more_than_there_are_ports(
    transport: str,
    most: int,
    streams: int,
    end: str,
    engine: PlayedEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    engine.play(copy_record())
    told: list[Event] = []
    target = Target("far.example", 1, "v1.YQ.Yg", None)

    def opened(_should_stop: object) -> Steps[Target]:
        yield None
        return target

    connector: Any = SimpleNamespace(
        open=opened, buffers=lambda: None, path=lambda path: path, names=HostNames
    )
    session = copy_session.DirectSessions(connector, ("a",), "b", pushes=True, most_streams=most)
    finished(session.attempt({"transport": transport}, None, never_stop), told)
    assert engine.asked[0][1]["streams"] == streams
    assert isinstance(told[0], Notice) and told[0].kind is NoticeKind.CHOICE
    assert told[0].text.endswith(end)


def test_a_pull_goes_backward_and_stated_streams_stand(copy: Copy, engine: PlayedEngine) -> None:
    engine.play(copy_record())
    assert copy(f"{TICKET}#x", ".", "--no-store", "--streams", "3", "-q") == (0, "", "")
    spec = engine.asked[0][1]
    assert (spec["direction"], spec["streams"]) == ("reverse", 3)
    assert (spec["copy"]["sources"], spec["copy"]["destination"]) == (["x"], ".")


def test_between_two_folders_of_this_host_nothing_is_sealed(
    copy: Copy, engine: PlayedEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = Target("127.0.0.1", 1, "v1.YQ.Yg", None)

    def opened(*_: object) -> Steps[Target]:
        yield None
        return there

    monkeypatch.setattr(LocalConnector, "open", opened)
    engine.play(copy_record())
    engine.play(copy_record())
    for cores, words in (({0}, ["b"]), ({0, 1, 2, 3}, ["/b", "--cipher", "aes256-gcm"])):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores)
        assert copy("a", *words, "--no-store", "-q")[0] == 0
    (_, first), (_, second) = engine.asked
    assert (first["copy"]["cipher"], first["copy"]["destination"]) == ("none", f"{tmp_path}/b")
    assert (second["copy"]["cipher"], second["copy"]["destination"]) == ("aes256-gcm", "/b")
    assert (first["streams"], second["streams"]) == (1, 2)


def test_there_is_one_rate_in_the_table_and_the_record(copy: Copy, engine: PlayedEngine) -> None:
    streams = [{**copy_record()["streams"][0], "role": 1, "end": 1, "bytes": 10**9}]
    for _ in range(2):
        engine.play(copy_record(streams=streams, run_s=11.0))
    out = copy("a", f"{TICKET}#x", "--no-store")[1]
    summary = json.loads(copy("a", f"{TICKET}#x", "--no-store", "--json")[1])["summary"]
    assert f"({rate_human(summary['forward']['total_bps'])})" in out.splitlines()[1]


def test_names_in_any_bytes_reach_the_engine(copy: Copy, engine: PlayedEngine) -> None:
    engine.play(copy_record())
    assert copy(os.fsdecode(b"\xff\n"), f"{TICKET}#x", "--no-store", "-q")[0] == 0
    assert engine.asked[0][1]["copy"]["sources"] == ["\\xff\\x0a"]


def test_a_cut_is_begun_again_and_said(copy: Copy, engine: PlayedEngine) -> None:
    cut = copy_record(status="failed", error=CUT)
    engine.play(cut, progress(moved_bytes=5))
    engine.play(CUT)
    engine.play(copy_record())
    code, out, err = copy("a", f"{TICKET}#x", "--no-store")
    assert code == 0 and "2 copied" in out
    assert "connection reset; trying again in 1 s" in err and "again in 2 s" in err
    assert len(engine.asked) == 3


def test_a_server_that_was_never_there_is_one_line_at_once(
    copy: Copy, engine: PlayedEngine
) -> None:
    engine.play(CUT)
    assert copy("a", f"{TICKET}#x") == (5, "", f"farline: {CUT['message']}\n")


@pytest.mark.parametrize("flag", ["--json", "--json-stream"])
def test_a_failure_is_a_document_too_where_json_was_asked_for(
    copy: Copy, engine: PlayedEngine, flag: str
) -> None:
    engine.play(CUT)
    code, out, err = copy("a", f"{TICKET}#x", "--no-store", flag)
    document = json.loads(out.splitlines()[-1])
    assert (code, err) == (5, f"farline: {CUT['message']}\n")
    assert (document["error"] if flag == "--json" else document["data"]) == CUT


def test_what_failed_is_listed_and_has_its_exit_code(copy: Copy, engine: PlayedEngine) -> None:
    engine.play(copy_record(copy_report(**failed_lines(25))))
    code, out, err = copy("a", f"{TICKET}#x", "--no-store")
    assert code == 23 and "25 failed" in out
    told = err.splitlines()
    assert told[0] == "farline: failed d/0: permission denied"
    assert len(told) == 21 and told[-1].endswith("5 more; the receipt lists them")


def test_what_only_vanished_has_another(copy: Copy, engine: PlayedEngine) -> None:
    gone = failed_lines(3, "disappeared while it was copied")
    assert exit_code(copy_record(copy_report(**gone))) == 24
    gone["failures"][1]["reason"] = "permission denied"
    assert exit_code(copy_record(copy_report(**gone))) == 23
    many = failed_lines(101, "disappeared while it was copied")
    # An older version names a hundred, and does not say what the others are.
    assert exit_code(copy_record(copy_report(**many))) == 23
    assert exit_code(copy_record(copy_report(**many, vanished=101))) == 24
    # What went wrong besides names counts among what failed.
    many["problems"] = ["nothing was deleted"]
    assert exit_code(copy_record(copy_report(**many, vanished=100))) == 23


def test_the_event_stream_is_one_object_a_line(copy: Copy, engine: PlayedEngine) -> None:
    steps = (progress(0.1), LINE, progress(1.2, moved_bytes=1 << 20), {**LINE, "path": "d/b"})
    engine.play(copy_record(), *steps)
    code, out, _ = copy("a", f"{TICKET}#x", "--json-stream", "-v")
    events = [json.loads(line) for line in out.splitlines()]
    names = [event["event"] for event in events]
    assert code == 0
    assert names[0] == "start" and names[-1] == "end"
    assert [name for name in names if name in ("progress", "file", "interval")] == [
        "progress", "file", "progress", "interval", "file",
    ]  # fmt: skip
    assert events[-1]["data"]["farline"]["status"] == "complete"


def test_json_is_the_record_with_summary_and_the_run_is_kept_with_its_receipt(
    copy: Copy, engine: PlayedEngine, tmp_path: Path
) -> None:
    from farline.store import Store
    from farline.store.receipts import receipt

    engine.play(copy_record(), LINE)
    code, out, _ = copy("a", f"{TICKET}#x", "--json", "--receipt", "r.jsonl")
    record = json.loads(out)
    assert code == 0 and record["summary"] is not None
    assert [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()] == [LINE]
    store = Store(tmp_path / "DATA" / "farline" / "store", create=False)
    rows = store.find(None)
    assert [row["run_id"] for row in rows] == [record["run_id"]]
    batches = receipt(store.layout, record["run_id"])
    assert batches is not None
    assert [row["path"] for batch in batches for row in batch.to_pylist()] == ["d/a"]
    assert not list((tmp_path / "tmp").iterdir())


def test_each_name_is_told_with_v(copy: Copy, engine: PlayedEngine) -> None:
    failed = {**LINE, "path": "d/b", "status": "failed", "reason": "no"}
    engine.play(copy_record(), LINE, progress(), failed)
    _, out, _ = copy("a", f"{TICKET}#x", "-v", "--no-store")
    assert out.splitlines()[:2] == ["d/a", "d/b (failed)"]


def test_progress_is_a_line_a_second_elsewhere_than_on_a_terminal(
    copy: Copy, engine: PlayedEngine
) -> None:
    steps = [progress(n / 10, found_bytes=100, settled_bytes=n) for n in range(1, 32)]
    for _ in range(2):
        engine.play(copy_record(), *steps)
    assert copy("a", f"{TICKET}#x", "--no-store")[2].count("of 100 B") == 3
    assert copy("a", f"{TICKET}#x", "--no-store", "--no-progress")[2] == ""


def test_names_from_standard_input_outlast_a_session(
    copy: Copy, engine: PlayedEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "names").write_bytes(b"x\ny\n")
    seen: list[bytes] = []
    engine.before = lambda: seen.append(
        Path(engine.asked[-1][1]["copy"]["source_list"]).read_bytes()
    )
    engine.play(copy_record(status="failed", error=CUT), progress(moved_bytes=5))
    engine.play(copy_record())
    with (tmp_path / "names").open() as names:
        monkeypatch.setattr("sys.stdin", names)
        assert copy("a", f"{TICKET}#x", "--files-from", "-", "--no-store", "-q")[0] == 0
    assert seen == [b"x\ny\n"] * 2
    assert not Path(engine.asked[0][1]["copy"]["source_list"]).exists()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """What a person types into, as standard input."""
    typist, keyboard = pty.openpty()
    with os.fdopen(keyboard, "r") as opened:
        monkeypatch.setattr("sys.stdin", opened)
        yield typist
    os.close(typist)


@pytest.mark.parametrize(("typed", "code"), [(b"17\n", 0), (b"16\n", 1), (b"\n", 1)])
def test_delete_asks_with_the_count_of_a_dry_run(
    copy: Copy, engine: PlayedEngine, terminal: int, typed: bytes, code: int
) -> None:
    engine.play(copy_record(copy_report(deleted=tally(17, 0))))
    if code == 0:
        engine.play(copy_record())
    os.write(terminal, typed)
    found, _, err = copy("a", f"{TICKET}#x", "--delete", "--no-store")
    assert found == code
    assert "delete 17 names at x? type 17: " in err
    copies = [spec["copy"] for _, spec in engine.asked]
    assert (copies[0]["dry_run"], copies[0]["delete"]) == (True, 0)
    if code == 0:
        assert (copies[1].get("dry_run"), copies[1]["delete"]) == (None, 17)
    else:
        assert "nothing was changed" in err


def test_delete_in_a_script_needs_its_count(copy: Copy, engine: PlayedEngine) -> None:
    code, _, err = copy("a", f"{TICKET}#x", "--delete", "--no-store")
    assert code == 1 and "--delete=COUNT" in err
    engine.play(copy_record())
    engine.play(copy_record())
    assert copy("a", f"{TICKET}#x", "--delete=3", "--no-store", "-q")[0] == 0
    assert copy("a", f"{TICKET}#x", "-n", "--delete", "--no-store", "-q")[0] == 0
    assert [spec["copy"]["delete"] for _, spec in engine.asked] == [3, 0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a"], "at least one source"),
        (["a", "h:b", "c"], "sources on this host and on h"),
        (["farline://a#x", "farline://b#y"], "so neither can start the copy"),
        (["a", "farline://b#y", "-P", "22"], "-P: neither end is reached over ssh"),
        (["a", "b", "--remote-farline", "f"], "--remote-farline: neither end is reached over ssh"),
        (["a", "b", "--tunnel"], "--tunnel"),
        (["a", "b", "--connect-back", "0"], "--connect-back: neither end"),
        (["a", "h:b", "--connect-back", "0", "--tunnel"], "so --tunnel has no effect"),
        (["a", "h:b", "--connect-back", "0", "--transport", "udt"], "works only with TCP"),
        (["g:a", "h:b", "--connect-back", "0"], "works only with TCP, between this host"),
        (["farline://a#x", "b", "--files-from", "f"], "source on this host"),
        (["a", "farline://b#y", "--json", "-q"], "use only one of"),
        (["a", "farline://b#y", "-q", "-v"], "-q prints nothing"),
        (["a", "farline://b#y", "--receipt", "/no/such/r"], "no such folder"),
        (["a", "farline://b#y", "--store", "s", "--no-store"], "cannot be combined"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_begun(
    copy: Copy, engine: PlayedEngine, arguments: list[str], said: str
) -> None:
    code, out, err = copy(*arguments)
    assert code == 1 and (out == "" or "--json" in arguments)
    assert said in err and err.count("\n") == 1


def test_a_stopped_copy_says_what_it_did(copy: Copy, engine: PlayedEngine) -> None:
    engine.play(copy_record(status="partial"))
    code, out, err = copy("a", f"{TICKET}#x", "--no-store")
    assert code == 130 and out.startswith("files     2 copied") and "stopped" in err
    assert "missing   0 of 3 names found so far, 0 B" in out


def test_the_verb_does_not_import_what_it_does_not_need() -> None:
    import subprocess
    import sys

    heavy = ("numpy", "pyarrow", "duckdb", "rich", "farline.spec._types", "farline.store")
    code = f"import sys, {copy_verb.__name__}; print([n for n in {heavy!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_that_were_written_nowhere_say_so(copy: Copy, engine: PlayedEngine) -> None:
    engine.play(copy_record(), LINE, progress())
    words = ("-v", "--write-engine", "null", "--no-store")
    out = copy("a", f"{TICKET}#x", *words)[1]
    assert out.splitlines()[0] == "d/a (received, not written)"


def test_names_cannot_play_tricks_on_a_terminal(copy: Copy, engine: PlayedEngine) -> None:
    trick = "d/\u202egpj.exe"
    engine.play(copy_record(), {**LINE, "path": trick}, progress())
    out = copy("a", f"{TICKET}#x", "-v", "--no-store")[1]
    assert out.splitlines()[0] == r"d/\xe2\x80\xaegpj.exe"
    failed = {**LINE, "path": trick, "status": "failed", "reason": "no"}
    engine.play(copy_record(copy_report(failed=tally(1), failures=[failed])))
    assert trick not in copy("a", f"{TICKET}#x", "--no-store")[2]


def test_a_receipt_goes_through_links_and_into_pipes(
    copy: Copy, engine: PlayedEngine, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("real")
    engine.play(copy_record(), LINE)
    assert copy("a", f"{TICKET}#x", "-q", "--receipt", "link", "--no-store")[0] == 0
    assert (tmp_path / "link").is_symlink() and json.loads((tmp_path / "real").read_text()) == LINE
    reader, writer = os.pipe()
    with os.fdopen(reader) as told, os.fdopen(writer):
        engine.play(copy_record(), LINE)
        words = ("-q", "--receipt", f"/dev/fd/{writer}", "--no-store")
        assert copy("a", f"{TICKET}#x", *words)[0] == 0
        assert json.loads(told.readline()) == LINE


def test_a_receipt_replaces_nothing_but_receipts(
    copy: Copy, engine: PlayedEngine, tmp_path: Path
) -> None:
    """As when FILE is forgotten: `--receipt data other host:`."""
    (tmp_path / "data").write_text("precious")
    code, _, err = copy("a", f"{TICKET}#x", "--receipt", "data", "--no-store")
    assert (code, (tmp_path / "data").read_text()) == (1, "precious")
    assert err.startswith("farline: --receipt data: exists and is not a receipt; name another file")
    for before in ("", '{"path":"b","kind":"file"}\n'):
        (tmp_path / "data").write_text(before)
        engine.play(copy_record(), LINE)
        assert copy("a", f"{TICKET}#x", "--receipt", "data", "--no-store")[0] == 0
        assert json.loads((tmp_path / "data").read_text()) == LINE


def test_a_receipt_that_cannot_be_written_takes_nothing_else_along(
    copy: Copy, engine: PlayedEngine
) -> None:
    engine.play(copy_record(), LINE)
    code, out, err = copy("a", f"{TICKET}#x", "--receipt", "/dev/full", "--no-store")
    assert (code, err) == (2, "farline: --receipt /dev/full: No space left on device\n")
    assert out.startswith("files     2 copied") and Path("/dev/full").is_char_device()


def test_ctrl_c_at_the_question_is_an_answer(
    copy: Copy, engine: PlayedEngine, terminal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import select
    import signal

    def press(*_: object) -> tuple[list[object], list[object], list[object]]:
        os.kill(os.getpid(), signal.SIGINT)
        return [], [], []

    engine.play(copy_record(copy_report(deleted=tally(17, 0))))
    monkeypatch.setattr(select, "select", press)
    code, _, err = copy("a", f"{TICKET}#x", "--delete", "--no-store")
    assert code == 130 and "nothing was changed" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--data-ports", "5000-5002", "--streams", "2"), "3 ports, but 2 streams need 4"),
        (("--data-ports", "5000-5001"), "2 ports, but 1 stream needs 3"),
        (("--data-ports", "5000"), "not FIRST-LAST"),
    ],
)
def test_too_few_ports_are_refused_here(
    copy: Copy, engine: PlayedEngine, words: tuple[str, ...], said: str
) -> None:
    code, _, err = copy("a", "host:b", "--no-store", *words)
    assert code == 1 and said in err


def test_a_terminal_that_is_full_is_one_line() -> None:
    import subprocess
    import sys

    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "farline", "copy", "--help"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "farline: standard output: No space left on device\n"


def test_a_reader_who_leaves_does_not_end_the_copy(tmp_path: Path) -> None:
    """`farline copy -v ... | head`, or a terminal that is gone: the files come all the same."""
    import subprocess
    import sys

    (tmp_path / "a").mkdir()
    for number in range(5):
        (tmp_path / "a" / str(number)).write_text("x")
    words = [sys.executable, "-m", "farline", "copy", "-v", "--no-store", "a/", "b"]
    for stream in ("stdout", "stderr"):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(words, cwd=tmp_path, **{stream: writer})  # type: ignore[call-overload]
        os.close(writer)
        assert done.returncode == 0
    with Path("/dev/full").open("w") as full:
        words += ["--overwrite", "always"]
        run = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 2 and run.stderr.endswith("output: No space left on device\n")
    assert len(list((tmp_path / "b").iterdir())) == 5


def test_the_cipher_stands_in_the_table_and_no_line_tells_of_it_before(
    copy: Copy, engine: PlayedEngine
) -> None:
    for _ in range(2):
        told = Notice(NoticeKind.CIPHER, "files are encrypted with aes128-gcm")
        engine.play(copy_record(), told, Notice(NoticeKind.GRANTED, "rate: held to 1 Gbit/s"))
    _, out, err = copy("a", f"{TICKET}#x", "--no-store", "--no-progress")
    assert "aes128-gcm" in out and err == "farline: rate: held to 1 Gbit/s\n"
    assert "encrypted with aes128-gcm" in copy("a", f"{TICKET}#x", "--no-store", "-v")[2]
