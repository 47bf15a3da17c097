"""What `farline analyze` prints with: numbers, tables that fit, folded lines, explanations."""

from __future__ import annotations

import math
import sys

import pytest

from farline.cli.analyze.explain_text import print_explanation
from farline.cli.analyze.text import number, rate_unit, say, share, show_table, span
from farline.findings.infrastructure_finding import (
    Cause,
    Explanation,
    NextMeasurement,
    SiteRank,
)
from farline.spec.units import counted

WINDOW = Cause(
    kind="window",
    part="network",
    site=None,
    line="Buffers hold every site back: rates fall as 32 MiB over the round-trip time.",
    gain_bps=2.5e9,
    gain_share=0.62,
    strength=0.93,
    evidence=("15 pairs, 240 transfers: rate times RTT is 268 Mbit within 4 %",),
    remedies=("set net.ipv4.tcp_rmem and tcp_wmem to 125 MB",),
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (9.306, "9.31"), (0.04217, "0.0422"), (0.0003, "0.000300"),
     (12.34, "12.3"), (1234.5, "1,234"), (-0.5, "-0.500"),
     (None, "-"), (math.nan, "-"), (math.inf, "-")],
)  # fmt: skip
def test_numbers_have_three_digits_and_no_exponent(value: float | None, text: str) -> None:
    assert number(value) == text


def test_what_is_unknown_is_a_dash_and_no_zero() -> None:
    assert (share(None), share(math.nan), span(0.1, None)) == ("-", "-", "-")
    assert (share(0.123), span(0.1, 0.25)) == ("12.3 %", "0.100 to 0.250")


def test_rates_of_a_column_share_the_unit_of_the_largest() -> None:
    assert rate_unit([2e6, 9.4e9, math.nan]) == ("Gbit/s", 1e9)
    assert rate_unit([]) == ("bit/s", 1.0)


def test_one_is_singular() -> None:
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(12_345, "entry", "entries") == "12,345 entries"


def test_long_lines_are_folded_under_their_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    say("word " * 40, indent="1. ", hang="   ")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 80
    assert lines[0].startswith("1. word") and lines[1].startswith("   word")


def test_a_table_in_a_pipe_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    wide = "x" * 300
    show_table(["name", "rate"], [[wide, "1.0"]])
    assert wide in capsys.readouterr().out


def test_a_narrow_terminal_folds_words_and_cuts_no_digit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    host = "dtn-long-name-of-a-host.department.laboratory.example"
    numbers = ["123.456", "0.123 to 0.456", "1,234,567", "98.7 %"]
    show_table(["from", "to", "a", "b", "c", "d"], [[host, host, *numbers]], words=2)
    lines = capsys.readouterr().out.splitlines()
    text = "".join(lines)
    assert all(number in text for number in numbers) and "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(map(len, lines)) <= 80
    assert "".join(line.split()[0] for line in lines[2:]) == host


def test_a_wide_terminal_is_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    show_table(["name", "rate"], [["x" * 150, "1.0"]])
    assert "x" * 150 in capsys.readouterr().out


def test_markup_in_names_is_only_text(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["host", "n"], [["[bold]dtn[/bold]", "1"]])
    assert "[bold]dtn[/bold]" in capsys.readouterr().out


def test_an_explanation_says_gain_evidence_remedy_and_the_next_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = "farline probe dtn.cedar.example -P 4 -t 30 --transport tcp --json --title e-or-t"
    found = Explanation(
        lead="Buffers cost most: 62 % more is to be had.",
        causes=(WINDOW,),
        sites=(SiteRank("cedar", 120, 0.412, 0.39, 0.44, 1.1e9),),
        next=(NextMeasurement("memory to memory", ("cedar", "elm"), "it tells E from T", command),),
    )
    print_explanation(found)
    text = capsys.readouterr().out
    assert text.startswith("Buffers cost most")
    assert "1. Buffers hold every site back" in text
    assert "gains 2.50 Gbit/s" in text and "62 %" in text and "0.93" in text
    assert "evidence: 15 pairs" in text and "try: set net.ipv4.tcp_rmem" in text
    assert "cedar" in text and "0.412" in text
    assert f"   {command}\n" in text
    folded = [line for line in text.splitlines() if command not in line]
    assert max(map(len, folded)) <= 80


def test_not_enough_data_is_said_and_no_cause_is_invented(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = Explanation(
        "Too little to say.", (), (), (), "not enough data: two pairs; three are needed"
    )
    print_explanation(found)
    text = capsys.readouterr().out
    assert "Not enough data: two pairs; three are needed." in text and "try:" not in text
    print_explanation(Explanation("One pair only.", (), (), (), "One pair only."))
    assert capsys.readouterr().out.count("One pair only.") == 1


def test_a_cause_with_nothing_to_gain_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    used = Cause("well-used", "whole", None, "The link is full.", 0.0, 0.0, 0.99)
    print_explanation(Explanation("Nothing to fix.", (used,), (), ()))
    text = capsys.readouterr().out
    assert "Nothing to gain" in text and "Fixing it gains" not in text
