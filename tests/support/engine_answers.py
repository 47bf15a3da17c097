"""Every question about transfers, asked of one engine; as a program it keeps the answers as files,
so that an engine with a process of its own can be compared with one that has none.

    python -m tests.support.engine_answers ENGINE PATTERN FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from farline.store.transfers import Selection, open_transfers
from tests.support.transfers import START, random_transfers, three_sites


def answers(engine: str, pattern: str) -> dict[str, pa.Table]:
    """Answers by question, of the rows in files and some in memory."""
    infrastructure = three_sites(ANL_BNL=1e11)
    table = random_transfers(300, seed=9)
    with open_transfers(
        files=[pattern], tables=[table], infrastructure=infrastructure, engine=engine
    ) as opened:
        return {
            "cells": opened.cells(by=["from_site", "to_site", "streams"]),
            "periods": opened.cells(
                Selection(until=START.replace(month=4), min_rate_bps=1e7),
                ["period"],
                period_s=86_400 * 5,
            ),
            "chosen": opened.cells(
                Selection(modality="T", at_site="ANL", where={"tool": ("iperf3", None)}),
                ["site_pair", "from_host"],
                rtt_decimals=0,
            ),
            "rows": opened.rows(Selection(sites=("ANL", "BNL")), limit=50),
            "counts": pa.table({"line": [repr(opened.counts())]}),
            "values": pa.table({"line": [repr(opened.distinct("from_host"))]}),
        }


if __name__ == "__main__":
    for name, answer in answers(sys.argv[1], sys.argv[2]).items():
        pq.write_table(answer, Path(sys.argv[3]) / f"{name}.parquet")
