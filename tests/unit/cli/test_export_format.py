"""`farline export` writes what the ending of the file name says."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from farline.cli.export import format_of


@pytest.mark.parametrize(
    ("name", "kind"), [("a.csv", "csv"), ("b/a.parquet", "parquet"), ("a.b.JSON", "json")]
)
def test_the_ending_says_the_format(name: str, kind: str) -> None:
    assert format_of(Path(name)) == kind


@pytest.mark.parametrize("name", ["a", "a.txt", "csv", ".csv"])
def test_another_ending_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(click.UsageError, match=r"\.csv, \.parquet or \.json"):
        format_of(Path(name))


def test_standard_output_needs_a_format() -> None:
    with pytest.raises(click.UsageError, match=r"--format csv\|parquet\|json"):
        format_of(Path("-"))
