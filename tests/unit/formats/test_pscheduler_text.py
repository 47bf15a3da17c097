"""What pscheduler prints for people."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from farline.formats import detect
from tests.support.draws import SAME_FOLDER, draws
from tests.unit.formats.logs import facts, given, sample, text_of

RUNS = "Submitting task...\nRunning with tool '{0}'\nNext scheduled run:\nWaiting for result...\n"
TCP = "Summary\nInterval       Throughput     Retransmits    {0}\n0.0 - 10.0     {1}\n"
UDP = "Summary\nInterval       Throughput     Lost / Sent    \n0.0 - 10.0     {0}\n"
END = "\nNo further runs scheduled.\n"


def test_summaries_of_pscheduler_are_transfers() -> None:
    rows, tally = sample("pscheduler-text.txt")
    reverse, udp, missed, several = rows
    assert facts(reverse, "rate_bps", "duration_s", "retransmits", "streams") == (
        365.2e6,
        2.0,
        3,
        1,
    )
    assert facts(reverse, "from_host", "to_host") == ("b.example.org", "a.example.org")
    assert reverse["started_at"] == datetime(2026, 3, 1, 16, 5, 49)
    assert udp["rate_bps"] == pytest.approx(500e6 * (1 - 4178 / 417823))
    assert facts(udp, "transport", "retransmits") == ("udp", None)
    assert facts(missed, "complete", "code") == (False, "Run did not complete: Missed")
    assert facts(several, "rate_bps", "streams", "to_host") == (10.3e9, 2, "b.example.org")
    assert tally.skipped["test of another type"] == 1 and tally.malformed == 0


@pytest.mark.parametrize(
    ("text", "rate_bps"),
    [
        (TCP.format("", "186.49 Mbps    0"), 186.49e6),
        (TCP.format("", "999.00bps      0"), 999.0),
        (TCP.format("Receiver Throughput", "1.00 Gbps      0              990.00 Mbps"), 990e6),
        (TCP.format("Receiver Throughput", "1.00 Gbps      0              Not Reported"), 1e9),
        (UDP.format("500.00 Mbps    10 / 100       Jitter: 0.02 ms"), 450e6),
    ],
)
def test_the_rate_of_pscheduler_is_what_arrived(tmp_path: Path, text: str, rate_bps: float) -> None:
    text = RUNS.format("iperf3") + text + END
    for one in (
        text,
        text.replace("\n", "\r\n"),
        "".join(f"> {line}\n" for line in text.split("\n")),
    ):
        rows, _ = given(tmp_path, one, "pscheduler-text")
        assert [row["rate_bps"] for row in rows] == [pytest.approx(rate_bps)]
        assert detect(tmp_path / "given.log") == "pscheduler-text"


def test_a_udp_result_of_pscheduler_must_say_what_arrived(tmp_path: Path) -> None:
    figures = "500.00 Mbps    10 / 100       Jitter: 0.02 ms"
    rows, _ = given(tmp_path, RUNS.format("nuttcp") + UDP.format(figures) + END, "pscheduler-text")
    assert [row["rate_bps"] for row in rows] == [500e6]
    for text in (
        UDP.format(figures),
        RUNS.format("iperf3") + UDP.format("500.00 Mbps    100 sent"),
        RUNS.format("iperf3") + UDP.format("500.00 Mbps    Not Reported"),
    ):
        rows, tally = given(tmp_path, text + END, "pscheduler-text")
        assert rows == [] and tally.malformed_reasons == {
            "the output does not say how much arrived": 1
        }


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (RUNS.format("iperf3"), "no end"),
        (RUNS.format("iperf3") + "* Stream ID 5\n", "no end"),
        (RUNS.format("nuttcp") + "Run did not complete: Failed\n", "Run did not complete: Failed"),
        (RUNS.format("iperf2") + "Problem fetching results: x\n", "Problem fetching results: x"),
    ],
)
def test_a_test_of_pscheduler_without_a_summary_has_failed(
    tmp_path: Path, text: str, code: str
) -> None:
    good = RUNS.format("iperf3") + TCP.format("", "186.49 Mbps    0") + END
    rows, _ = given(tmp_path, text + good + text, "pscheduler-text")
    assert [row["code"] for row in rows] == [code, None, code]


def test_runs_of_a_task_that_is_repeated_are_a_transfer_each(tmp_path: Path) -> None:
    next_run = "Next scheduled run:\nStarts 2026-03-01T09:1{0}:00Z (~1 seconds)\n"
    told = "* Stream ID 5\n" + TCP.format("", "{0}.00 Gbps      0") + "\n"
    text = "$ pscheduler task --repeat PT1M throughput --source a.example --dest b.example\n"
    text += "Submitting task...\nRunning with tool 'iperf3'\n"
    text += "".join(next_run.format(at) + told.format(at) for at in (1, 2, 3))
    rows, _ = given(tmp_path, text + next_run.format(4), "pscheduler-text")
    assert [facts(row, "rate_bps", "to_host", "code") for row in rows] == [
        (1e9, "b.example", None),
        (2e9, "b.example", None),
        (3e9, "b.example", None),
        (None, "b.example", "no end"),
    ]
    assert [row["started_at"].minute for row in rows] == [11, 12, 13, 14]


@draws(60, SAME_FOLDER)
@examples(data=st.data())
def test_a_part_of_what_pscheduler_printed_measured_nothing_else(
    tmp_path: Path, data: st.DataObject
) -> None:
    text = text_of("pscheduler-text.txt")
    names = ("rate_bps", "retransmits", "transport")
    figures = {facts(row, *names) for row in sample("pscheduler-text.txt")[0] if row["complete"]}
    # Where the last line is cut, what may not be whole is left out.
    figures |= {(rate, None, kind) for rate, _, kind in figures}
    start = data.draw(st.integers(0, len(text)))
    part = text[start : data.draw(st.integers(start, len(text)))]
    rows, _ = given(tmp_path, part, "pscheduler-text")
    assert {facts(row, *names) for row in rows if row["complete"]} <= figures
