"""The same questions have the same answers on every engine; what an engine lacks it says."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from farline.errors import FarlineError, SpecError, SystemFailure
from farline.store.engine import _need_utc, open_engine
from farline.store.transfers import ParquetFiles, open_transfers
from tests.support.engine_answers import answers
from tests.support.transfers import random_transfers

ROOT = Path(__file__).parents[3]
SPARK = "pyspark://?spark.master=local[2]&spark.driver.memory=1g&spark.sql.shuffle.partitions=2"
SUMS = ("sum_bps", "sum_square", "busy_s")
"""Equal to 1e-12 only, since an engine adds up in any order; everything else is equal."""


def why_no_spark() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "comparing engines needs PySpark: install farline with its extra 'spark'"
    return None if shutil.which("java") else "comparing engines needs Java: install a JRE"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("rows")
    for number in range(2):
        pq.write_table(random_transfers(2500, seed=number), folder / f"{number}.parquet")
    yield str(folder / "*.parquet")


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.timeout(600)
def test_spark_and_duckdb_give_the_same_answers(files: str, tmp_path: Path) -> None:
    # In a process of its own: Spark leaves a Java machine and sockets behind.
    subprocess.run(
        [sys.executable, "-m", "tests.support.engine_answers", SPARK, files, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), *sys.path])},
        check=True,
    )
    for name, one in answers("duckdb", files).items():
        other = pq.read_table(tmp_path / f"{name}.parquet")
        assert one.schema == other.schema
        sums = [column for column in one.column_names if column in SUMS and "n" in one.column_names]
        assert one.drop_columns(sums).equals(other.drop_columns(sums)), name
        for column in sums:
            pairs = zip(one[column].to_pylist(), other[column].to_pylist(), strict=True)
            assert all(a == b or a == pytest.approx(b, rel=1e-12) for a, b in pairs), (name, column)


def test_duckdb_takes_settings_from_its_url() -> None:
    with open_engine("duckdb://?threads=1&memory_limit=512MiB") as engine:
        settings = engine.backend.raw_sql(
            "select current_setting('threads'), current_setting('memory_limit')"
        ).fetchone()
    assert settings == (1, "512.0 MiB")


def test_duckdb_prints_no_progress_between_the_lines_of_a_document() -> None:
    with open_engine() as engine:
        (shown,) = engine.backend.raw_sql(
            "select current_setting('enable_progress_bar')"
        ).fetchone()
    assert shown is False


def test_duckdb_spills_beyond_half_of_the_memory() -> None:
    with open_engine() as engine:
        (text,) = engine.backend.raw_sql("select current_setting('memory_limit')").fetchone()
    half_gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**31
    number, unit = text.split()
    assert float(number) / (1024 if unit == "MiB" else 1) == pytest.approx(half_gib, abs=0.1)


def test_tables_of_an_engine_are_rows_too(tmp_path: Path) -> None:
    database = tmp_path / "logs.duckdb"
    table = random_transfers(100)
    import duckdb

    with duckdb.connect(str(database)) as connection:
        connection.register("here", table)
        connection.execute("create schema site; create table site.logs as select * from here")
    url = f"duckdb://{database}"
    with open_transfers(views=["site.logs"], engine=url) as opened:
        assert opened.counts().rows == 100
    named = ParquetFiles("site.logs", {"from_host": "to_host"})
    with open_transfers(views=[named], engine=url, tables=[table]) as opened:
        assert opened.counts().rows == 200
    with (
        pytest.raises(SpecError, match=r"duckdb: no table 'site\.nothing'"),
        open_transfers(views=["site.nothing"], engine=url),
    ):
        pass


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("quack://x", SpecError, "engine 'quack': unknown to Ibis; allowed:"),
        ("clickhouse", SpecError, "engine 'clickhouse': write duckdb, or a URL such as"),
        ("", SpecError, "engine '': write duckdb"),
        ("duckdb:///nowhere/at/all.duckdb", SpecError, "engine 'duckdb:///nowhere"),
        ("duckdb://?threads=none", SpecError, "engine 'duckdb://.threads=none'"),
        ("duckdb://?read_only=1", SpecError, "read_only cannot be set; a database is given"),
        ("duckdb://?database=x", SpecError, "database cannot be set"),
        ("trino://nobody@127.0.0.1:1/a/b", FarlineError, "trino"),
    ],
)
def test_an_engine_that_cannot_be_is_one_line(
    url: str, error: type[FarlineError], words: str
) -> None:
    with pytest.raises(error, match=words) as caught, open_engine(url):
        pass
    assert "\n" not in caught.value.message


def test_an_engine_that_is_not_installed_says_which_extra_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with (
        pytest.raises(SpecError, match=r"'pyspark'.*not installed: .*its extra 'spark'"),
        open_engine("pyspark://"),
    ):
        pass


def test_what_fails_inside_an_engine_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(random_transfers(2000), path)
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)
    with (
        pytest.raises(SystemFailure, match="duckdb: ") as caught,
        open_transfers(files=[str(path)]) as opened,
    ):
        opened.cells()
    assert "\n" not in caught.value.message


def test_asking_for_help_loads_no_engine() -> None:
    code = (
        "import sys, farline.store.transfers, farline.spec.infrastructure;"
        "print([n for n in ('ibis', 'duckdb', 'pyarrow', 'numpy', 'pandas') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Session:
    """A Spark session with a time zone and nothing else."""

    def __init__(self, zone: str) -> None:
        self.conf = {"spark.sql.session.timeZone": zone}


def test_a_spark_session_that_is_not_in_utc_is_refused() -> None:
    _need_utc(Session("UTC"))
    with pytest.raises(SpecError, match="'Europe/Berlin', and times here are UTC: set its spark"):
        _need_utc(Session("Europe/Berlin"))


def test_the_folder_that_duckdb_spills_into_is_the_users_own() -> None:
    with open_engine() as engine:
        (place,) = engine.backend.raw_sql(
            "select value from duckdb_settings() where name = 'temp_directory'"
        ).fetchone()
    assert place.endswith(f"farline-duckdb-{os.getuid()}")
