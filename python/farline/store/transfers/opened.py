"""The door: transfers of any origin, opened as one, and what can be asked of them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.errors import LimitError, SpecError
from farline.spec.infrastructure import Infrastructure
from farline.spec.transfers import MODALITIES
from farline.store.disk import locked
from farline.store.engine import EMBEDDED, Engine, open_engine
from farline.store.filters import RunFilter
from farline.store.kept_logs import kept_view
from farline.store.layout import Layout
from farline.store.transfers import cell_query
from farline.store.transfers.cell_table import cell_table, row_sites
from farline.store.transfers.own_runs import run_transfers
from farline.store.transfers.rows import (
    ParquetFiles,
    canonical,
    checked_table,
    rate_is_to_fill,
    transfer_schema,
    unknown_modality,
)
from farline.store.transfers.selection import (
    EVERYTHING,
    SITE_KEYS,
    Selection,
    checked_column,
    checked_keys,
)
from farline.store.transfers.sites import (
    MAX_HOSTS,
    HostSites,
    match_hosts,
    site_predicates,
    with_sites,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from farline.store.store import Store

MAX_CELL_ROWS = 5_000_000
"""More rows of an answer are refused: then `by` tells too much apart."""
MAX_VALUES = 10_000
SHOWN_HOSTS = 20


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows a selection has, and of which kinds.

    `failed` includes `without_rate`: complete by their word, but with no rate from 1 bit/s up.
    `of_unknown_hosts` have an end that belongs to no site; `unknown_hosts` are the most frequent
    of these hosts with their rows. Without an infrastructure nothing is unknown.
    """

    rows: int
    failed: int
    without_rate: int
    without_rtt: int
    of_unknown_hosts: int = 0
    unknown_hosts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Transfers:
    """Transfers of any origin. Made by `open_transfers`, and valid while that is open."""

    engine: Engine
    table: ir.Table
    infrastructure: Infrastructure | None = None
    damaged: tuple[str, ...] = ()
    """One line per file of the store that cannot be read."""

    def cells(
        self,
        selection: Selection = EVERYTHING,
        by: Sequence[str] = (),
        *,
        period_s: float | None = None,
        rtt_decimals: int = 2,
    ) -> pa.Table:
        """Cells in their long form: a column for each of `by`, then those of `CELL_COLUMNS`.

        `by` are columns, `from_site`, `to_site`, `site_pair` (both names without an order) or
        `period` (whole number of periods of `period_s` seconds since 1970). Round-trip times are
        rounded to `rtt_decimals` of a millisecond; rows without one get that of their connection.

        Raises:
            SpecError: for an unknown key, site, or sites without an infrastructure.
            LimitError: when the answer would be of more than `MAX_CELL_ROWS` rows.
            SystemFailure: when the engine fails.
        """
        keys = checked_keys(by, period_s)
        if not 0 <= rtt_decimals <= 3:
            raise SpecError(f"rtt_decimals: {rtt_decimals} is not between 0 and 3")
        self._need_sites(any(key in SITE_KEYS for key in keys), "site keys")
        pairs = self._pairs()
        joined = pairs != "none" or any(key in SITE_KEYS for key in keys)
        rows = self._selected(selection, joined)
        query = cell_query.cell_rows(
            rows, keys, pairs=pairs, rtt_decimals=rtt_decimals, period_s=period_s
        )
        answer = self.engine.arrow(query.limit(MAX_CELL_ROWS + 1))
        if len(answer) > MAX_CELL_ROWS:
            raise LimitError(
                f"more than {MAX_CELL_ROWS} cells by {', '.join(keys) or 'round-trip time'}: use "
                "fewer keys, or round round-trip times more coarsely (rtt_decimals)"
            )
        return cell_table(answer, keys, self._known(joined), rtt_decimals)

    def rows(self, selection: Selection = EVERYTHING, limit: int = 1000) -> pa.Table:
        """So many rows, the newest first: the columns of a transfer, then `SITE_COLUMNS`.

        `rtt_ms` is that of the connection where the row has none.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if limit < 1:
            raise SpecError(f"limit: {limit} is not above 0")
        found = cell_query.first_rows(self._selected(selection, joined=False), limit)
        table = self.engine.arrow(found.select(*self.table.columns)).cast(transfer_schema())
        about = row_sites(table, self.host_sites)
        stated = pa.array(about["rtt_ms"], pa.float64())
        place = table.column_names.index("rtt_ms")
        table = table.set_column(place, "rtt_ms", pc.coalesce(table["rtt_ms"], stated))
        for name in ("from_site", "to_site"):
            table = table.append_column(name, pa.array(about[name], pa.string()))
        return table.append_column("capacity_bps", pa.array(about["capacity_bps"], pa.float64()))

    def counts(self, selection: Selection = EVERYTHING) -> Counts:
        """How many rows there are, and of which kinds; hosts of no site by name."""
        rows = self._selected(selection, joined=True)
        known = self.host_sites
        asked = cell_query.totals(rows, has_sites=known is not None)
        (row,) = self.engine.arrow(asked).to_pylist()
        unknown: tuple[tuple[str, int], ...] = ()
        if known is not None and known.unknown:
            found = self.engine.arrow(cell_query.host_counts(rows)).to_pylist()
            strangers = set(known.unknown)
            counted = [(str(r["host"]), int(r["rows"])) for r in found if r["host"] in strangers]
            unknown = tuple(sorted(counted, key=lambda one: (-one[1], one[0]))[:SHOWN_HOSTS])
        number = {name: int(value or 0) for name, value in row.items()}
        return Counts(
            rows=number["rows"],
            failed=number["rows"] - number["complete"],
            without_rate=number["without_rate"],
            without_rtt=number["without_rtt"],
            of_unknown_hosts=number.get("of_unknown_hosts", 0),
            unknown_hosts=unknown,
        )

    def distinct(self, column: str, selection: Selection = EVERYTHING) -> dict[object, int]:
        """The values of a column, each with how many rows have it; the most frequent first.

        Raises:
            SpecError: when there is no such column.
            LimitError: when it has more than `MAX_VALUES` values.
        """
        query = cell_query.values_of(
            self._selected(selection, joined=False), checked_column(column)
        )
        found = self.engine.arrow(query.limit(MAX_VALUES + 1)).to_pylist()
        if len(found) > MAX_VALUES:
            raise LimitError(f"column {column}: more than {MAX_VALUES} different values")
        ordered = sorted(found, key=lambda row: (-row["rows"], str(row["value"])))
        return {row["value"]: int(row["rows"]) for row in ordered}

    @functools.cached_property
    def host_sites(self) -> HostSites | None:
        """The site of every host of the rows; None without an infrastructure."""
        if self.infrastructure is None:
            return None
        rows = self.table
        ends = rows.select(host="from_host").union(rows.select(host="to_host"), distinct=True)
        found = self.engine.arrow(ends.limit(MAX_HOSTS + 2))
        return match_hosts(self.infrastructure, found["host"].to_pylist())

    def _selected(self, selection: Selection, joined: bool) -> ir.Table:
        """The rows that fit; if `joined`, with the numbers of their sites where there are any."""
        self._need_sites(bool(selection.named_sites), "sites")
        rows = cell_query.selected(self.table, selection)
        if self.infrastructure is None or not (joined or selection.named_sites):
            return rows
        known = self._known(joined=True)
        assert known is not None
        rows = with_sites(rows, self._host_table)
        predicates = site_predicates(rows, selection, known)
        return rows.filter(*predicates) if predicates else rows

    def _known(self, joined: bool) -> HostSites | None:
        """The sites of hosts; of none where rows are not told apart by them."""
        if self.infrastructure is None or joined:
            return self.host_sites
        return HostSites(self.infrastructure, {})

    @functools.cached_property
    def _host_table(self) -> ir.Table:
        assert self.host_sites is not None
        return self.engine.memory(self.host_sites.table())

    def _pairs(self) -> str:
        """Of which rows connections have to be told apart, for what they state."""
        known = self._known(joined=False)
        if known is None or not known.infrastructure.connections:
            return "none"
        if not known.one_capacity:
            return "all"
        return "without-rtt" if self._some_without_rtt else "none"

    @functools.cached_property
    def _some_without_rtt(self) -> bool:
        """Whether any row has no round-trip time; files say so without being read."""
        return len(self.engine.arrow(cell_query.first_without_rtt(self.table))) > 0

    def _need_sites(self, asked: bool, what: str) -> None:
        if asked and self.infrastructure is None:
            raise SpecError(
                f"{what} need an infrastructure file, which lists the hosts of each site"
            )


@contextlib.contextmanager
def open_transfers(
    *,
    store: Store | None = None,
    runs: RunFilter | None = None,
    logs: bool = True,
    files: Sequence[ParquetFiles | str] = (),
    views: Sequence[ParquetFiles | str] = (),
    tables: Sequence[pa.Table] = (),
    infrastructure: Infrastructure | None = None,
    engine: str = EMBEDDED,
) -> Iterator[Transfers]:
    """Opens transfers of all origins named as one, for as long as the block runs.

    Of `store`: its own runs that fit `runs` (none without), and with `logs` the logs it keeps.
    `files` are Parquet files that the engine can read; `views` are tables that the engine has,
    both with names of their own for columns if given as `ParquetFiles`. `tables` are Arrow tables
    with the columns of `transfer_schema`, such as a log read just now.

    Raises:
        SpecError: for an unknown engine, unreadable files, columns missing or of a wrong type.
        SystemFailure: when the engine or the disk fails.
    """
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(open_engine(engine))
        parts = [_parquet(opened, source) for source in files]
        parts += [_view(opened, source) for source in views]
        memory = [checked_table(table) for table in tables]
        damaged: tuple[str, ...] = ()
        if store is not None and runs is not None:
            memory.append(run_transfers(store, runs))
        if store is not None and logs:
            stack.enter_context(locked(store.layout.use_lock, exclusive=False))
            kept, damaged = _kept(opened, store.layout)
            parts += kept
        yield Transfers(opened, _all(opened, parts, memory), infrastructure, damaged)


def _parquet(engine: Engine, source: ParquetFiles | str) -> ir.Table:
    named = ParquetFiles(source) if isinstance(source, str) else source
    return _others(engine, engine.parquet([named.pattern]), named)


def _view(engine: Engine, source: ParquetFiles | str) -> ir.Table:
    named = ParquetFiles(source) if isinstance(source, str) else source
    return _others(engine, engine.table(named.pattern), named)


def _others(engine: Engine, table: ir.Table, named: ParquetFiles) -> ir.Table:
    """Other people's rows, of which two things have to be asked first.

    Each question ends at the first row that it finds.

    Raises:
        SpecError: when a row is of no modality that is known.
    """
    rows = canonical(table, named)
    if "modality" not in named.values:
        odd = engine.arrow(rows.filter(unknown_modality(rows)).select("modality").limit(1))
        if len(odd):
            raise SpecError(
                f"{named.pattern}: modality {odd['modality'][0].as_py()!r} is not one of "
                f"{', '.join(MODALITIES)}; map it, or set a value for rows without one"
            )
    to_fill = rows.filter(rate_is_to_fill(rows)).select("rate_bps").limit(1)
    return canonical(table, named, fill_rates=True) if len(engine.arrow(to_fill)) else rows


def _kept(engine: Engine, layout: Layout) -> tuple[list[ir.Table], tuple[str, ...]]:
    """Kept logs as rows, and what is damaged. The caller holds the shared lock."""
    view = kept_view(layout)
    paths = [str(layout.transfers / kept.file) for kept in view.logs]
    if not paths:
        return [], view.damaged
    return [canonical(engine.parquet(paths), ParquetFiles(str(layout.transfers)))], view.damaged


def _all(engine: Engine, parts: list[ir.Table], memory: list[pa.Table]) -> ir.Table:
    """One table of all rows; an empty one where nothing was named."""
    import ibis
    import pyarrow as pa

    if memory or not parts:
        joined = pa.concat_tables([transfer_schema().empty_table(), *memory])
        parts = [*parts, canonical(engine.memory(joined), ParquetFiles("tables in memory"))]
    return ibis.union(*parts, distinct=False) if len(parts) > 1 else parts[0]
