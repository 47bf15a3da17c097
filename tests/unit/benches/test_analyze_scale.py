"""The rows of analyze-scale belong to its infrastructure, and all contenders come to the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from _analytics import data
from _analytics.contender import CONTENDERS
from farline.store.transfers import open_transfers


def test_every_contender_comes_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    folder = data.made(20_000)
    assert data.made(20_000) == folder
    with open_transfers(
        files=[str(folder / "*.parquet")], infrastructure=data.infrastructure()
    ) as transfers:
        counts = transfers.counts()
        assert (counts.rows, counts.of_unknown_hosts, counts.without_rtt) == (20_000, 0, 0)
        assert 0.01 < counts.failed / counts.rows < 0.03
        pairs = transfers.cells(by=["site_pair"])["site_pair"].unique()
        assert (len(pairs), pairs.null_count) == (28, 0)
    ours, bare = CONTENDERS["ours"](folder), CONTENDERS["duckdb"](folder)
    assert ours["n"] == bare["n"] == counts.rows - counts.failed
    assert ours["mean_bps"] == pytest.approx(bare["mean_bps"], rel=1e-9)
    assert CONTENDERS["by-connection"](folder)["n"] == ours["n"]
    assert 0 < ours["c_uc"][0] < 1
