"""An infrastructure: sites, their hosts and file systems, and the connections between them.

Rao et al. 2018, section 3: S = {S_1, ..., S_N}, each with a file system F_i and a transfer host
H_i, and connections with their round-trip times and capacities. People write it as TOML
(`infrastructure_text`); measurements are joined to it by host.
"""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from farline.errors import SpecError
from farline.spec.host_patterns import HostPatterns


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system of a site, and what it was stated to do; None where nothing was stated."""

    name: str
    read_bps: float | None = None
    write_bps: float | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """A site: which hosts are its own, and what they can take in and give out at most.

    `hosts` are patterns: host names with `*` and `?`, IP addresses, networks such as
    `192.0.2.0/24`, or the names and identifiers of Globus endpoints. A site's name is always one
    of them.
    """

    name: str
    hosts: tuple[str, ...] = ()
    host_bps: float | None = None
    file_systems: tuple[FileSystem, ...] = ()
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """The path between two sites, or within one (both names alike). Both directions are alike."""

    sites: tuple[str, str]
    rtt_ms: float
    capacity_bps: float | None = None


@dataclass(frozen=True)
class Infrastructure:
    """Sites and connections; `capacity_bps` is L, for connections that state none."""

    name: str
    sites: tuple[Site, ...]
    connections: tuple[Connection, ...] = ()
    capacity_bps: float | None = None

    def __post_init__(self) -> None:
        """Refuses what contradicts itself.

        Raises:
            SpecError: for a site named twice or with pairs that a name cannot hold, a connection
                to a site that is not there, two connections of one pair, or a host pattern that
                two sites claim.
        """
        _refuse_names([site.name for site in self.sites], self.name)
        for connection in self.connections:
            self._refuse_strangers(connection.sites)
        pairs = collections.Counter(pair_of(*connection.sites) for connection in self.connections)
        for pair, times in pairs.items():
            if times > 1:
                raise SpecError(
                    f"{self.name}: {times} connections between {pair_name(*pair)}; only one "
                    "is allowed"
                )
        _ = self._patterns

    @property
    def site_names(self) -> tuple[str, ...]:
        """Names of the sites, as written."""
        return tuple(site.name for site in self.sites)

    def site(self, name: str) -> Site:
        """A site by its name, capitals or not.

        Raises:
            SpecError: when there is none.
        """
        (known,) = self.sites_named((name,))
        return self._by_name[known.casefold()]

    def sites_named(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names of sites as they are written here, from names with capitals or without.

        Raises:
            SpecError: when one of them is no site of this infrastructure.
        """
        found = []
        for name in names:
            if name.strip().casefold() not in self._by_name:
                raise SpecError(
                    f"{name!r} is not a site of {self.name}; its sites are "
                    f"{', '.join(self.site_names)}"
                )
            found.append(self._by_name[name.strip().casefold()].name)
        return tuple(dict.fromkeys(found))

    def site_of(self, host: str | None) -> str | None:
        """Name of the site that a host belongs to; None where no pattern fits.

        A whole name or address goes before a network or a wildcard; of networks the smallest, of
        wildcards the one with most letters.

        Raises:
            SpecError: when the patterns of two sites fit equally well.
        """
        return None if host is None else self._patterns.owner_of(host)

    def connection(self, a: str, b: str) -> Connection | None:
        """The connection of two sites in either order; None where none is described."""
        return self._by_pair.get(pair_of(a, b))

    def rtts(self, sites: Iterable[str] | None = None) -> tuple[float, ...]:
        """Round-trip times in ms of all connections, or of those with an end in `sites`; sorted.

        Sites in two pairs of the same round-trip time give it once.
        """
        wanted = None if sites is None else set(self.sites_named(sites))
        return tuple(
            sorted(
                {
                    connection.rtt_ms
                    for connection in self.connections
                    if wanted is None or wanted & set(connection.sites)
                }
            )
        )

    def capacity(self, a: str, b: str) -> float | None:
        """Capacity of a connection in bit/s: its own, else that of the infrastructure."""
        found = self.connection(a, b)
        stated = None if found is None else found.capacity_bps
        return self.capacity_bps if stated is None else stated

    @functools.cached_property
    def _by_name(self) -> Mapping[str, Site]:
        return {site.name.casefold(): site for site in self.sites}

    @functools.cached_property
    def _by_pair(self) -> Mapping[tuple[str, str], Connection]:
        return {pair_of(*connection.sites): connection for connection in self.connections}

    @functools.cached_property
    def _patterns(self) -> HostPatterns:
        return HostPatterns({site.name: (site.name, *site.hosts) for site in self.sites})

    def _refuse_strangers(self, ends: tuple[str, str]) -> None:
        for end in ends:
            if end not in self.site_names:
                raise SpecError(
                    f"{self.name}: connection {pair_name(*ends)}: unknown site {end!r}; the sites "
                    f"are {', '.join(self.site_names)}"
                )


def pair_of(a: str, b: str) -> tuple[str, str]:
    """Two sites without an order: sorted by name."""
    return (a, b) if a <= b else (b, a)


def pair_name(a: str, b: str) -> str:
    """Two sites without an order in one text, such as `ANL - ORNL`."""
    return " - ".join(pair_of(a, b))


def all_pairs(sites: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Every pair of N sites, each with itself too: N (N + 1) / 2 of them."""
    return tuple(pair_of(a, b) for a, b in itertools.combinations_with_replacement(tuple(sites), 2))


def _refuse_names(names: list[str], where: str) -> None:
    if not names:
        raise SpecError(f"{where}: no sites; at least one is needed")
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise SpecError(
                f"{where}: two sites are called {name!r} (upper and lower case are not "
                "distinguished)"
            )
        if not name.strip() or " - " in name or "," in name or name != name.strip():
            raise SpecError(
                f"{where}: {name!r} is not a valid site name: it cannot contain commas or ' - "
                "', or begin or end with a space"
            )
