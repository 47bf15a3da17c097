"""Transfers between seven sites as zstd Parquet, made once by DuckDB: a hundred million of them.

Eight hosts a site, all pairs alike often; round-trip times as in the example infrastructure with a
little queueing; rates that fall with the round-trip time and rise with streams, log-normal with a
spread of 20 %; two in a hundred failed. Columns that a GridFTP log has not are not there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from farline.spec.infrastructure import Infrastructure, Site
from farline.spec.infrastructure_text import read_infrastructure

ROWS, SHORT_ROWS = 100_000_000, 2_000_000
PARTS = 20
HOSTS_A_SITE = 8
FOLDER = Path("/tmp/farline-bench")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/infrastructures/seven-sites.toml"

_TABLES = """
create table hosts as select * from (values {hosts}) h(host_id, host, site);
create table paths as select * from (values {paths}) p(sender, receiver, base_ms);
"""
_NORMAL = "sqrt(-2 * ln(1 - random())) * cos(6.283185307179586 * random())"
_PART = f"""
copy (
  with drawn as (
    select i, (random() * {{count}})::int % {{count}} as f,
      (random() * {{count}})::int % {{count}} as t, random() as u,
      exp(0.2 * {_NORMAL}) as noise, exp(21 + 2 * {_NORMAL})::bigint as bytes,
      [1, 2, 4, 8, 16][1 + (random() * 5)::int % 5]::int as streams, -ln(1 - random()) as queued
    from range({{rows}}) r(i)),
  placed as (
    select drawn.*, a.host as from_host, b.host as to_host, base_ms,
      least(9.4e9, streams * 6e10 / (base_ms + 30)) * noise as rate
    from drawn join hosts a on a.host_id = f join hosts b on b.host_id = t
      join paths on sender = a.site and receiver = b.site)
  select 'gridftp' as tool, 'E' as modality,
    make_timestamp(1700000000000000 + ({{part}} * {{rows}} + i) * 300000::bigint) as started_at,
    8 * bytes / rate as duration_s, bytes, case when u < 0.98 then rate end as rate_bps,
    u < 0.98 as complete, case when u < 0.98 then '226' else '426' end as code,
    from_host, to_host, round(base_ms + 0.05 * queued, 3) as rtt_ms, streams,
    'htcp' as congestion_control, 'tcp' as transport, 'log-{{part}}' as source
  from placed
) to '{{path}}' (format parquet, compression zstd)
"""


def infrastructure() -> Infrastructure:
    """The seven sites of Rao et al. 2018 with the hosts of the made rows."""
    example = read_infrastructure(EXAMPLE.read_text(encoding="utf-8"), EXAMPLE.name)
    sites = tuple(Site(site.name, (f"dtn*.{site.name.lower()}",)) for site in example.sites)
    return Infrastructure(example.name, sites, example.connections, example.capacity_bps)


def made(rows: int) -> Path:
    """The folder with so many rows; made if it is not there."""
    import duckdb

    folder = FOLDER / f"transfers-{rows}"
    if folder.exists():
        return folder
    half = folder.with_suffix(".half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    with ExitStack() as stack:
        # When it is stopped, nothing of it stays.
        stack.callback(shutil.rmtree, half, ignore_errors=True)
        connection = stack.enter_context(duckdb.connect())
        connection.execute("set enable_progress_bar = false")
        sites = infrastructure()
        connection.execute(_TABLES.format(hosts=", ".join(_hosts(sites)), paths=_paths(sites)))
        count = len(sites.sites) * HOSTS_A_SITE
        for part in range(PARTS):
            path = half / f"part-{part:02}.parquet"
            query = _PART.format(part=part, rows=rows // PARTS, path=path, count=count)
            connection.execute(query)
        half.rename(folder)
    return folder


def _hosts(sites: Infrastructure) -> Iterator[str]:
    for at, name in enumerate(sites.site_names):
        for number in range(HOSTS_A_SITE):
            host = f"dtn{number + 1}.{name.lower()}"
            yield f"({at * HOSTS_A_SITE + number}, '{host}', '{name}')"


def _paths(sites: Infrastructure) -> str:
    both_ways = {
        pair: connection.rtt_ms
        for connection in sites.connections
        for pair in (connection.sites, connection.sites[::-1])
    }
    return ", ".join(f"('{a}', '{b}', {rtt}::double)" for (a, b), rtt in both_ways.items())
