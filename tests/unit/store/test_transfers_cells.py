"""What can be asked of transfers, against the same worked out row by row in Python."""

from __future__ import annotations

import collections
import datetime
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from farline.errors import LimitError, SpecError
from farline.spec.infrastructure import Infrastructure
from farline.store.transfers import CELL_COLUMNS, Selection, Transfers, open_transfers
from tests.support.draws import draws
from tests.support.transfers import START, random_transfers, three_sites, transfers_table

ROWS = 3000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return random_transfers(ROWS)


@pytest.fixture(scope="module")
def transfers(table: pa.Table) -> Iterator[Transfers]:
    with open_transfers(tables=[table], infrastructure=three_sites(ANL_BNL=1e11)) as opened:
        yield opened


def is_rate(row: dict[str, Any]) -> bool:
    rate = row["rate_bps"]
    return bool(row["complete"] and rate is not None and 1 <= rate < 1e18)


def by_hand(
    rows: list[dict[str, Any]], by: Sequence[str], known: Infrastructure | None
) -> dict[tuple[object, ...], list[Any]]:
    """Count, sum, smallest, largest, bytes and capacity of every cell and bucket."""
    found: dict[tuple[object, ...], list[Any]] = {}
    for row in rows:
        ends = (known.site_of(row["from_host"]), known.site_of(row["to_host"])) if known else ()
        rtt = (
            row["rtt_ms"] if row["rtt_ms"] is None else math.floor(row["rtt_ms"] * 100 + 0.5) / 100
        )
        capacity = known.capacity_bps if known else None
        if known and None not in ends:
            capacity = known.capacity(*ends)
            connection = known.connection(*ends)
            rtt = connection.rtt_ms if rtt is None and connection else rtt
        more = dict(zip(("from_site", "to_site"), ends, strict=False))
        named = sorted(end for end in ends if end is not None)
        more["site_pair"] = " - ".join(named) if len(named) == 2 else None
        bucket = math.floor(64 * math.log2(row["rate_bps"])) if is_rate(row) else None
        key = (*({**row, **more}[name] for name in by), rtt, bucket)
        cell = found.setdefault(key, [0, 0.0, math.inf, 0.0, 0, capacity])
        cell[0] += 1
        cell[5] = max(cell[5], capacity) if capacity else None
        if bucket is not None:
            rate = row["rate_bps"]
            cell[1:5] = [cell[1] + rate, min(cell[2], rate), max(cell[3], rate),
                         cell[4] + (row["bytes"] or 0)]  # fmt: skip
    return found


@pytest.mark.parametrize(
    "by", [(), ("streams",), ("from_site",), ("site_pair", "modality"), ("from_site", "to_site")]
)
def test_cells_are_what_adding_up_row_by_row_gives(
    transfers: Transfers, table: pa.Table, by: tuple[str, ...]
) -> None:
    cells = transfers.cells(by=by)
    assert cells.column_names == [*by, *CELL_COLUMNS]
    wanted = by_hand(table.to_pylist(), by, transfers.infrastructure)
    found = {(*(row[name] for name in by), row["rtt_ms"], row["bucket"]): row
             for row in cells.to_pylist()}  # fmt: skip
    assert len(found) == cells.num_rows
    assert {key: row["n"] for key, row in found.items()} == {k: c[0] for k, c in wanted.items()}
    for key, row in found.items():
        n, total, low, high, moved, capacity = wanted[key]
        assert row["capacity_bps"] == capacity
        if key[-1] is None:
            assert (row["sum_bps"], row["low_bps"], row["moved_bytes"]) == (None, None, 0)
        else:
            assert row["sum_bps"] == pytest.approx(total, rel=1e-12)
            assert (row["low_bps"], row["high_bps"], row["moved_bytes"]) == (low, high, moved)
            assert low * low * n <= row["sum_square"] * (1 + 1e-12)


def test_powers_of_two_are_in_their_own_bucket(transfers: Transfers) -> None:
    rates = [2.0**power for power in range(0, 50)]
    with open_transfers(tables=[transfers_table([{"rate_bps": rate} for rate in rates])]) as opened:
        cells = opened.cells()
    assert cells["bucket"].to_pylist() == [64 * power for power in range(0, 50)]


@pytest.mark.parametrize("odd", [None, math.nan, -1.0, math.inf])
def test_what_is_no_round_trip_time_gives_way_to_the_stated_one(odd: float | None) -> None:
    hosts = {"from_host": "a.anl", "to_host": "b.ornl", "rate_bps": 1e9}
    table = transfers_table([{**hosts, "rtt_ms": odd}, {**hosts, "rtt_ms": 3.0}])
    with open_transfers(tables=[table], infrastructure=three_sites()) as opened:
        assert opened.cells()["rtt_ms"].to_pylist() == [3.0, 11.8]
        assert opened.counts().without_rtt == 1
    with open_transfers(tables=[table]) as opened:
        assert opened.cells()["rtt_ms"].to_pylist() == [3.0, None]


def test_a_selection_leaves_the_rows_that_fit_and_no_others(
    transfers: Transfers, table: pa.Table
) -> None:
    known = transfers.infrastructure
    assert known is not None
    month = START + datetime.timedelta(days=30)
    cases: list[tuple[Selection, Any]] = [
        (Selection(), lambda r, a, b: True),
        (Selection(modality="T"), lambda r, a, b: r["modality"] == "T"),
        (Selection(tools=("iperf3",)), lambda r, a, b: r["tool"] == "iperf3"),
        (Selection(sites=("anl", "BNL")), lambda r, a, b: {a, b} <= {"ANL", "BNL"}),
        (Selection(at_site="ORNL"), lambda r, a, b: "ORNL" in (a, b)),
        (Selection(pairs=(("ORNL", "ANL"),)), lambda r, a, b: {a, b} == {"ANL", "ORNL"}),
        (Selection(where={"streams": (1, None)}), lambda r, a, b: r["streams"] in (1, None)),
        (Selection(where={"from_host": (None,)}), lambda r, a, b: r["from_host"] is None),
        (Selection(where={"complete": (False,)}), lambda r, a, b: not r["complete"]),
        (Selection(since=month), lambda r, a, b: r["started_at"] >= month),
        (Selection(until=month), lambda r, a, b: r["started_at"] < month),
        (Selection(min_rate_bps=1e8), lambda r, a, b: not is_rate(r) or r["rate_bps"] >= 1e8),
        (Selection(max_rate_bps=1e8), lambda r, a, b: not is_rate(r) or r["rate_bps"] <= 1e8),
        (Selection(min_bytes=2**50), lambda r, a, b: (r["bytes"] or 0) >= 2**50),
        (Selection(max_duration_s=9, min_duration_s=3), lambda r, a, b: 3 <= r["duration_s"] <= 9),
    ]
    for selection, fits in cases:
        wanted = [
            row
            for row in table.to_pylist()
            if fits(row, known.site_of(row["from_host"]), known.site_of(row["to_host"]))
        ]
        assert wanted and (selection == Selection() or len(wanted) < ROWS)
        counts = transfers.counts(selection)
        assert counts.rows == len(wanted), selection
        assert counts.failed == sum(not is_rate(row) for row in wanted)
        assert counts.without_rate == sum(r["complete"] and not is_rate(r) for r in wanted)
        assert counts.without_rtt == sum(row["rtt_ms"] is None for row in wanted)
        assert sum(transfers.cells(selection)["n"].to_pylist()) == len(wanted)


def test_unknown_hosts_are_counted_and_named(transfers: Transfers, table: pa.Table) -> None:
    counts = transfers.counts()
    ends = [(row["from_host"], row["to_host"]) for row in table.to_pylist()]
    assert counts.unknown_hosts == (("elsewhere", sum("elsewhere" in pair for pair in ends)),)
    assert counts.of_unknown_hosts == sum("elsewhere" in p or None in p for p in ends)


def test_rows_come_newest_first_with_sites_and_stated_round_trip_times(
    transfers: Transfers, table: pa.Table
) -> None:
    rows = transfers.rows(Selection(sites=("ANL", "BNL"), where={"complete": (True,)}), limit=200)
    assert rows.column_names[-3:] == ["from_site", "to_site", "capacity_bps"]
    times = rows["started_at"].to_pylist()
    assert times == sorted(times, reverse=True) and len(times) == 200
    assert None not in rows["rtt_ms"].to_pylist()
    for row in rows.to_pylist():
        assert row["capacity_bps"] == (1e10 if row["from_site"] == row["to_site"] else 1e11)
    newest = max(row["started_at"] for row in table.to_pylist())
    assert transfers.rows(limit=1)["started_at"].to_pylist() == [newest]


def test_distinct_values_come_with_how_often(transfers: Transfers, table: pa.Table) -> None:
    wanted = collections.Counter(table["streams"].to_pylist())
    found = transfers.distinct("streams")
    assert found == wanted
    assert list(found.values()) == sorted(wanted.values(), reverse=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("farline.store.transfers.opened.MAX_VALUES", 10)
        with pytest.raises(LimitError, match="rate_bps: more than 10 different"):
            transfers.distinct("rate_bps")


def test_periods_count_from_1970(transfers: Transfers, table: pa.Table) -> None:
    cells = transfers.cells(by=["period"], period_s=7 * 86_400)
    week = [int(moment.timestamp() // (7 * 86_400)) for moment in table["started_at"].to_pylist()]
    counted: collections.Counter[int] = collections.Counter()
    for row in cells.to_pylist():
        counted[row["period"]] += row["n"]
    assert counted == collections.Counter(week)


def test_an_answer_that_would_be_too_large_is_refused(
    transfers: Transfers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farline.store.transfers.opened.MAX_CELL_ROWS", 100)
    with pytest.raises(LimitError, match="more than 100 cells by streams: use fewer keys"):
        transfers.cells(by=["streams"])


def test_too_many_hosts_are_refused(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farline.store.transfers.sites.MAX_HOSTS", 3)
    with (
        open_transfers(tables=[table], infrastructure=three_sites()) as opened,
        pytest.raises(SpecError, match="more than 3 different hosts"),
    ):
        opened.cells()


@draws(8, tuple(HealthCheck))
@given(cuts=st.lists(st.integers(0, ROWS), max_size=4), seed=st.integers(0, 2**16))
def test_neither_order_nor_splitting_changes_a_cell(
    table: pa.Table, cuts: list[int], seed: int
) -> None:
    import numpy as np

    order = np.random.default_rng(seed).permutation(ROWS)
    mixed = table.take(pa.array(order))
    edges = [0, *sorted(cuts), ROWS]
    parts = [mixed.slice(a, b - a) for a, b in itertools.pairwise(edges)]
    answers = []
    for tables in ([table], parts):
        with open_transfers(tables=tables, infrastructure=three_sites()) as opened:
            answers.append(opened.cells(by=["site_pair"]))
    one, other = answers
    exact = [name for name in one.column_names if name not in ("sum_bps", "sum_square", "busy_s")]
    assert one.select(exact).equals(other.select(exact))
    for name in ("sum_bps", "sum_square", "busy_s"):
        for a, b in zip(one[name].to_pylist(), other[name].to_pylist(), strict=True):
            assert a == b or a == pytest.approx(b, rel=1e-12)


def test_nothing_opened_is_an_empty_answer() -> None:
    with open_transfers() as opened:
        assert opened.cells(by=["streams"]).num_rows == 0
        assert opened.counts().rows == 0
        assert opened.rows().num_rows == 0


def test_without_an_infrastructure_there_are_no_sites(table: pa.Table) -> None:
    with open_transfers(tables=[table]) as opened:
        assert opened.cells()["capacity_bps"].null_count == opened.cells().num_rows
        assert opened.counts().unknown_hosts == ()
        for ask in (
            lambda: opened.cells(by=["site_pair"]),
            lambda: opened.cells(Selection(at_site="ANL")),
            lambda: opened.counts(Selection(sites=("ANL",))),
        ):
            with pytest.raises(SpecError, match="need an infrastructure"):
                ask()


def test_an_unknown_site_is_named_with_those_there_are(transfers: Transfers) -> None:
    with pytest.raises(
        SpecError, match=("'CERN' is not a site of three; its sites are ANL, BNL, ORNL")
    ):
        transfers.cells(Selection(pairs=(("ANL", "CERN"),)))


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (["stream"], "by 'stream': no such key; allowed: tool, modality"),
        (["rate_bps"], "by 'rate_bps'"),
        (["period"], "give the length of a period"),
    ],
)
def test_keys_that_cells_cannot_have_are_refused(
    transfers: Transfers, by: list[str], words: str
) -> None:
    with pytest.raises(SpecError, match=words):
        transfers.cells(by=by)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"modality": "X"}, "modality 'X' is not one of T, E, H, F"),
        ({"where": {"speed": (1,)}}, "where 'speed': no such column.*allowed: tool"),
        ({"where": {"rate_bps": (1,)}}, "where 'rate_bps'"),
        ({"where": {"streams": ("four",)}}, "streams: 'four' is not of type int32"),
        ({"where": {"streams": (True,)}}, "streams: True is not of type int32"),
        ({"where": {"tool": "iperf3"}}, "tool: 'iperf3' is not a list"),
        ({"where": {"tool": ()}}, "is not a list of values"),
        ({"min_rate_bps": -1}, "rate_bps: limit -1"),
        ({"min_bytes": 2, "max_bytes": 1}, "bytes: the smallest, 2, is above the largest, 1"),
        ({"since": START, "until": START}, "is not before until"),
    ],
)
def test_a_selection_that_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        Selection(**options)
    assert "\n" not in caught.value.message
