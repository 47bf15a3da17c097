"""Logs of transfers between sites that are made up, with the schema of those that are not public.

The logs behind Rao et al. 2018, Figs. 1(c), 7(c), 14 and 15 are not published. What can be
reproduced is the way from such logs to profiles, coefficients and culprits: these have the sites
and the counts of the paper, rates that follow from stated limits of each site, and scatter. The
same logs come out every time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farline.profiles.throughput_profile import ThroughputProfile

_SCATTER = 0.12
_PER_PAIR = 12


@dataclass(frozen=True, slots=True)
class Made:
    """An infrastructure: sites with what their file systems give, and how its tool is limited."""

    name: str
    files_gbps: Mapping[str, float]
    rtt_ms: Mapping[tuple[str, str], float]
    window_mb: float
    """All windows of a transfer together: rate times round-trip time is no more."""
    capacity_gbps: float
    seed: int = 2018

    @property
    def sites(self) -> Sequence[str]:
        """Names of the sites."""
        return tuple(self.files_gbps)

    def rate_gbps(self, source: str, sink: str) -> float:
        """What a transfer reaches: the slower file system, or the window."""
        rtt_ms = self.rtt_ms[source, sink]
        files = min(self.files_gbps[source], self.files_gbps[sink])
        return min(files, 8 * self.window_mb / rtt_ms, self.capacity_gbps)

    def table(self, near: Sequence[str] = ()) -> str:
        """The log as a table, or that of the transfers with an end at one of some sites."""
        chance = random.Random(self.seed)
        rows = ["started_at,from_host,to_host,modality,duration_s,rate_bps"]
        for (a, b), number in itertools.product(self.rtt_ms, range(_PER_PAIR)):
            if near and not {a, b} & set(near):
                continue
            source, sink = (a, b) if number % 2 else (b, a)
            rate = self.rate_gbps(a, b) * chance.lognormvariate(0, _SCATTER)
            day, hour = 1 + number % 28, chance.randrange(24)
            seconds = chance.randrange(60, 900)
            rows.append(
                f"2018-03-{day:02}T{hour:02}:00:00Z,dtn.{source.lower()}.example,"
                f"dtn.{sink.lower()}.example,E,{seconds},{1e9 * min(rate, self.capacity_gbps):.0f}"
            )
        return "\n".join(rows) + "\n"

    def description(self) -> str:
        """The sites and their connections, as `farline analyze --infrastructure` reads them."""
        lines = [f'name = "{self.name}"', f'capacity_bps = "{self.capacity_gbps:g}G"', ""]
        for site in self.sites:
            lines += [f"[sites.{site}]", f'hosts = ["*.{site.lower()}.example"]', ""]
        lines.append("[connections]")
        lines += [f'"{a} - {b}" = "{rtt:g}ms"' for (a, b), rtt in self.rtt_ms.items()]
        return "\n".join(lines) + "\n"


def profiles(
    made: Made, folder: Path, of: Sequence[Sequence[str]] = ()
) -> dict[str, ThroughputProfile]:
    """Profiles from the log as it is read: `all`, each site, and groups of sites."""
    folder.mkdir(parents=True, exist_ok=True)
    log, sites = folder / f"{made.name}.csv", folder / f"{made.name}.toml"
    log.write_text(made.table(), encoding="utf-8")
    sites.write_text(made.description(), encoding="utf-8")
    found = {"all": _profile(log, sites, made)}
    for site in made.sites:
        found[site] = _profile(log, sites, made, at_site=site)
    for group in of:
        part = folder / f"{made.name}-{'-'.join(group)}.csv"
        part.write_text(made.table(group), encoding="utf-8")
        found["-".join(group)] = _profile(part, sites, made)
    return found


def _profile(
    log: Path, described: Path, made: Made, at_site: str | None = None
) -> ThroughputProfile:
    from farline.analysis import Shape, open_measurements, select, throughput_profiles

    with open_measurements([str(log)], infrastructure=described) as source:
        shape = Shape(capacity_bps=1e9 * made.capacity_gbps)
        wanted = select(source.infrastructure, at_site=at_site)
        views, _ = throughput_profiles(source, wanted, shape=shape)
    return views[0].profile


_US = {
    ("ANL", "NCSA"): 6.0, ("ANL", "NERSC"): 45.6, ("ANL", "ORNL"): 24.0, ("NCSA", "NERSC"): 48.0,
    ("NCSA", "ORNL"): 22.6, ("NERSC", "ORNL"): 63.0,
}  # fmt: skip

PETASCALE = Made(
    "petascale", {"ANL": 35.0, "NCSA": 22.0, "NERSC": 18.0, "ORNL": 30.0}, _US, 110.0, 100.0
)
PRODUCTION = Made(
    "production",
    {"ANL": 9.0, "BNL": 1.6, "NERSC": 2.5, "PNNL": 0.8, "ORNL": 8.0},
    {("ANL", "ORNL"): 24.0, ("ANL", "BNL"): 22.6, ("ANL", "NERSC"): 45.6, ("ANL", "PNNL"): 38.5,
     ("BNL", "ORNL"): 17.2, ("BNL", "NERSC"): 73.8, ("BNL", "PNNL"): 66.6,
     ("NERSC", "ORNL"): 61.0, ("NERSC", "PNNL"): 24.8, ("PNNL", "ORNL"): 57.3},
    30.0, 10.0,
)  # fmt: skip
ALIKE = Made("alike", dict.fromkeys(PRODUCTION.files_gbps, 8.0), PRODUCTION.rtt_ms, 30.0, 10.0)
"""The sites of `PRODUCTION` with one and the same file system everywhere."""
