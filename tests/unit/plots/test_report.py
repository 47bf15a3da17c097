"""Writing the report, and the command that does."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from farline.cli.report import command
from farline.errors import SystemFailure, UsageError
from farline.plots.data import CampaignData
from farline.plots.report import write_campaign, write_report
from tests.support.campaigns import CAMPAIGN, KIB, fill_store, made_campaign


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    fill_store(path, made_campaign((1, 2, 4), (64 * KIB, 256 * KIB), repetitions=8, duration_s=1.0))
    return path


def test_a_report_of_a_hundred_runs_is_written_in_seconds(store: Path, tmp_path: Path) -> None:
    began = time.process_time()
    page = write_report(store, CAMPAIGN, tmp_path / "out")
    spent_s = time.process_time() - began
    assert page == tmp_path / "out" / "report.html" and page.stat().st_size > 100_000
    suffixes = {path.suffix for path in (tmp_path / "out/figures").iterdir()}
    assert suffixes == {".png", ".svg", ".txt"}
    # The aim is 5 s on an idle machine, imports included; CPU time tells less of the neighbours.
    assert spent_s < 15


def test_the_command_prints_the_page_and_keeps_to_the_formats_asked(
    store: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ["last", "-o", str(out), "--svg", "--store", str(store)]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.output.strip() == str(out / "report.html")
    assert {path.suffix for path in (out / "figures").iterdir()} == {".svg", ".txt"}


def test_an_unknown_campaign_is_the_callers_error(store: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no campaign 'nope' in"):
        write_report(store, "nope", tmp_path)


def test_a_report_is_replaced_whole(single: CampaignData, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")
    page = write_campaign(single, tmp_path, ())
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_that_cannot_be_made_is_named(single: CampaignData, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemFailure, match="file/out: cannot write the report: Not a directory"):
        write_campaign(single, tmp_path / "file" / "out", ())
