"""Where queries over transfers run: DuckDB in this process, or any engine that Ibis reaches.

An engine is named by a URL: `duckdb` is the default, `pyspark://...` a Spark session,
`trino://USER@HOST:PORT/CATALOG/SCHEMA` a Trino cluster. What an engine does not have it says in
one line.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError, SystemFailure

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

EMBEDDED = "duckdb"
SPARK = "pyspark"
MEMORY_SHARE = 0.5
"""Of this machine's memory for embedded DuckDB, which spills to disk beyond it."""

_NOT_SETTINGS = {"database", "read_only", "extensions"}
_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00")
_LOCAL_SPARK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # As many as there are tables to join: two hundred, the default, are slower on one machine.
    "spark.sql.shuffle.partitions": "8",
}
_SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True)
class Engine:
    """A connection to an engine. Made by `open_engine`."""

    name: str
    backend: Any

    def arrow(self, expression: ir.Table) -> pa.Table:
        """The result of an expression, as its Ibis schema has it.

        Raises:
            SystemFailure: when the engine refuses or cannot read what it should.
        """
        try:
            return self.backend.to_pyarrow(expression)
        except Exception as error:
            # Every engine has errors of its own, and nothing in common but this.
            raise SystemFailure(f"{self.name}: {_first_line(error)}") from error

    def parquet(self, paths: Sequence[str]) -> ir.Table:
        """Rows of Parquet files that the engine can read; columns by name, missing ones null.

        Raises:
            SpecError: when the engine reads no files, or not these.
        """
        try:
            if self.name == SPARK:
                return self._spark_parquet(paths)
            if self.name == EMBEDDED:
                return self.backend.read_parquet(list(paths), union_by_name=True)
            tables = [self.backend.read_parquet(path) for path in paths]
        except Exception as error:
            raise SpecError(
                f"{', '.join(paths[:3])}: {self.name} cannot read it: {_first_line(error)}"
            ) from error
        return tables[0].union(*tables[1:]) if len(tables) > 1 else tables[0]

    def table(self, name: str) -> ir.Table:
        """A table that the engine has: `NAME`, `SCHEMA.NAME` or `CATALOG.SCHEMA.NAME`.

        Raises:
            SpecError: when it has not.
        """
        *place, last = name.split(".")
        try:
            return self.backend.table(last, database=tuple(place) or None)
        except Exception as error:
            raise SpecError(f"{self.name}: no table {name!r}: {_first_line(error)}") from error

    def memory(self, rows: pa.Table) -> ir.Table:
        """A table of this process, which the engine gets a copy of."""
        import ibis

        if self.name != SPARK:
            return ibis.memtable(rows)
        # Ibis would go through pandas, which has no whole numbers beside unknown ones.
        name = ibis.util.gen_name("farline_rows")
        self.backend._session.createDataFrame(rows).createOrReplaceTempView(name)
        return self.backend.table(name)

    def _spark_parquet(self, paths: Sequence[str]) -> ir.Table:
        import ibis

        name = ibis.util.gen_name("farline_parquet")
        frame = self.backend._session.read.option("mergeSchema", "true").parquet(*paths)
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)


@contextlib.contextmanager
def open_engine(url: str = EMBEDDED) -> Iterator[Engine]:
    """Opens the engine that a URL names for as long as the block runs.

    Raises:
        SpecError: when there is no such engine, or what it needs is not installed.
        SystemFailure: when it cannot be reached.
    """
    name = url.partition("://")[0].strip().casefold()
    if name == SPARK:
        with _spark(url) as backend:
            yield Engine(name, backend)
        return
    backend = _duckdb(url) if name == EMBEDDED else _other(name, url)
    try:
        yield Engine(name, backend)
    finally:
        backend.disconnect()


def _duckdb(url: str) -> Any:
    """Embedded DuckDB: all CPUs and half of the memory, unless the URL says otherwise."""
    import duckdb
    import ibis

    place, settings = _place_and_settings(url)
    total_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    defaults = {
        "memory_limit": f"{int(total_bytes * MEMORY_SHARE / 2**20)}MiB",
        # DuckDB's own choice is the folder one happens to be in.
        "temp_directory": str(Path(tempfile.gettempdir()) / f"farline-duckdb-{os.getuid()}"),
    }
    fixed = sorted(_NOT_SETTINGS & set(settings))
    if fixed:
        raise SpecError(
            f"engine {url!r}: {fixed[0]} cannot be set; a database is given by its path and is "
            "opened read-only"
        )
    try:
        backend = ibis.duckdb.connect(
            place or ":memory:", read_only=bool(place), **{**defaults, **settings}
        )
    except (duckdb.Error, OSError) as error:
        raise SpecError(f"engine {url!r}: {_first_line(error)}") from error
    # It would print on standard output, between the lines of a document. Where it is off already,
    # as in a notebook without ipywidgets, DuckDB may refuse to have it set.
    # All is fetched: a result that is not at its end keeps others from the connection.
    setting = backend.raw_sql("select current_setting('enable_progress_bar')").fetchall()
    if setting[0][0]:
        backend.raw_sql("set enable_progress_bar = false")
    return backend


def _place_and_settings(url: str) -> tuple[str, dict[str, str]]:
    """What stands between `//` and `?`, and the settings behind it."""
    _, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    return place, dict(urllib.parse.parse_qsl(query, keep_blank_values=True))


def _other(name: str, url: str) -> Any:
    import ibis

    if "://" not in url:
        raise SpecError(
            f"engine {url!r}: write {EMBEDDED}, or a URL such as pyspark:// or trino://HOST"
        )
    known = sorted(ibis.util.backend_entry_points(), key=lambda point: point.name)
    if name not in {point.name for point in known}:
        names = ", ".join(point.name for point in known)
        raise SpecError(f"engine {name!r}: unknown to Ibis; allowed: {names}")
    try:
        return ibis.connect(url)
    except ImportError as error:
        raise SpecError(_missing(name, error)) from error
    except Exception as error:
        raise SystemFailure(f"engine {url!r}: {_first_line(error)}") from error


@contextlib.contextmanager
def _spark(url: str) -> Iterator[Any]:
    """A Spark session as Ibis has it; stopped at the end if it was made here."""
    if importlib.util.find_spec("pyspark") is None:
        raise SpecError(_missing(SPARK, None))
    import ibis

    SparkSession = importlib.import_module("pyspark.sql").SparkSession
    there = SparkSession.getActiveSession()
    place, settings = _place_and_settings(url)
    try:
        session = there or _make_session(SparkSession.builder, place, settings)
        backend = ibis.pyspark.connect(session)
    except Exception as error:
        raise SystemFailure(f"engine {url!r}: {_first_line(error)}") from error
    try:
        _need_utc(session)
        yield backend
    finally:
        if there is None:
            session.stop()


def _need_utc(session: Any) -> None:
    """Refuses a session that would shift every time without a zone."""
    zone = session.conf.get("spark.sql.session.timeZone")
    if zone not in _UTC:
        raise SpecError(
            f"engine {SPARK!r}: the time zone of the session is {zone!r}, and times here are UTC:"
            " set its spark.sql.session.timeZone to 'UTC'"
        )


def _make_session(builder: Any, place: str, settings: Mapping[str, str]) -> Any:
    """A session on the master that the URL names, else on the one of Spark's own settings."""
    master = f"spark://{place}" if place else settings.get("spark.master")
    remote = "spark.remote" in settings
    local = not remote and (master or os.environ.get("MASTER", "local")).startswith("local")
    chosen = {**_SPARK, **(_LOCAL_SPARK if local else {}), **settings}
    if master is not None:
        chosen["spark.master"] = master
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session = builder.appName("farline").getOrCreate()
    if not remote:
        session.sparkContext.setLogLevel("ERROR")
    return session


def _missing(name: str, error: ImportError | None) -> str:
    extra = "spark" if name == SPARK else None
    how = (
        f"install farline with its extra {extra!r}"
        if extra
        else f"install ibis-framework with its extra {name!r}"
    )
    reason = "" if error is None else f" ({_first_line(error)})"
    return f"engine {name!r}: a required package is not installed{reason}: {how}"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
