"""The live view: what it leaves on the screen."""

from __future__ import annotations

import pytest

from farline.campaign.measure import Measured
from farline.cli.live import LiveView
from farline.profiles.summary import summarise
from farline.spec._types import RunRecord
from farline.tools import events
from tests.support.runs import (
    CLIENT,
    RECEIVER,
    SENDER,
    SERVER,
    columns,
    int_columns,
    run_record,
    steady_rows,
)


def finished() -> Measured:
    rows = steady_rows([1e9] * 30, end=CLIENT, role=SENDER, process_cpu_us=30_000)
    rows += steady_rows([1e9] * 30, end=SERVER, role=RECEIVER, process_cpu_us=70_000)
    record: RunRecord = run_record()
    samples = columns(rows)
    return Measured({**record, "summary": summarise(record, samples)}, samples)


def test_the_whole_table_stays_with_the_servers_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    view, measured = LiveView(1.0, verbose=False), finished()
    view.start({"duration_s": 3.0}, "far.example:5470")
    view.event(events.Stage("PROFILING_START"))
    view.event(events.ServerKey("sha256-hidden"))
    view.event(events.Notice(events.NoticeKind.GRANTED, "rate lowered to 1 Gbit/s"))
    view.event(events.StreamSamples(int_columns(measured.samples)))
    view.finish(measured)
    view.close()
    shown = capsys.readouterr().out
    assert shown.startswith("tcp to far.example:5470")
    lines = [line for line in shown.splitlines() if "1.00 Gbit/s" in line and "70 %" in line]
    assert [line.split()[0] for line in lines] == ["0.00-1.00", "1.00-2.00", "2.00-3.00"]
    assert all("30 %" in line for line in lines)
    assert "rate lowered to 1 Gbit/s" in shown and "hidden" not in shown
    assert "run 01JD0000000000000000000000: complete" in shown


def test_a_run_of_a_number_of_bytes_counts_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    view, measured = LiveView(1.0, verbose=True), finished()
    view.start({"total_bytes": 375_000_000}, "far.example:5470")
    view.event(events.StreamSamples(int_columns(measured.samples)))
    assert view._progress.tasks[0].completed == 375_000_000
    view.event(events.ServerKey("sha256-shown"))
    view.close()
    assert "sha256-shown" in capsys.readouterr().out


def test_the_table_of_udt_fits_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    gauges = {"process_cpu_us": 30_000, "retransmits": 1_234, "rtt_us": 126_000,
              "cwnd_bytes": 123 << 20, "flight_packets": 86_000, "lost_packets": 1_234}  # fmt: skip
    rows = steady_rows([29.7e9] * 30, end=CLIENT, role=SENDER, **gauges)
    measured = Measured({**run_record(), "spec": {"transport": "udt"}}, columns(rows))
    view = LiveView(1.0, verbose=False)
    view.start({"transport": "udt", "duration_s": 3.0}, "far.example:5470")
    view.event(events.StreamSamples(int_columns(measured.samples)))
    view.finish(measured)
    shown = capsys.readouterr().out.splitlines()
    heads = next(line for line in shown if "interval" in line)
    assert len(heads) <= 80
    (line,) = [line for line in shown if line.lstrip().startswith("2.00-3.00 s")]
    for cell in ("29.7 Gbit/s", "12340", "126 ms", "123 MiB", "86000", "30 %"):
        assert cell in line


def test_closing_twice_is_harmless() -> None:
    view = LiveView(1.0, verbose=False)
    view.close()
    view.close()


def test_where_nothing_ran_nothing_stays_on_the_screen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view, record = LiveView(1.0, verbose=False), run_record(status="failed")
    view.start({"duration_s": 3.0}, "far.example:5470")
    view.event(events.Stage("HANDSHAKE"))
    view.finish(Measured({**record, "streams": []}, columns([])))
    view.close()
    assert capsys.readouterr().out.strip() == ""


def test_the_bar_says_running_and_long_lines_wrap_at_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view, measured = LiveView(1.0, verbose=False), finished()
    view.start({"duration_s": 3.0}, "far.example:5470")
    view.event(events.Stage("PROFILING_START"))
    assert view._progress.tasks[0].description == "running"
    evidence = "word " * 40
    verdict = {"limit": "path", "line": "the path", "evidence": [evidence], "remedies": []}
    view.finish(Measured({**measured.record, "verdict": verdict}, measured.samples))  # type: ignore[typeddict-item]
    shown = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in shown)
    assert " ".join(shown).split().count("word") == 40
