"""From hosts to sites: matched here, host by host, and joined to rows as a small table of numbers.

An engine cannot match networks and wildcards, and need not: a log of a hundred million transfers
has some thousands of hosts. Rows get the numbers of their sites; names come back with the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError
from farline.spec.infrastructure import Infrastructure, pair_of
from farline.store.transfers.selection import Selection

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

MAX_HOSTS = 100_000
"""More distinct hosts are refused: then the column holds something else."""
FROM, TO = "from_site_id", "to_site_id"


@dataclass(frozen=True)
class HostSites:
    """Which site each host of the rows belongs to: its number in `infrastructure.sites`."""

    infrastructure: Infrastructure
    numbers: Mapping[str, int | None]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Hosts of no site, sorted."""
        return tuple(sorted(host for host, number in self.numbers.items() if number is None))

    def number(self, site: str) -> int:
        """A site's number.

        Raises:
            SpecError: when there is no such site.
        """
        (known,) = self.infrastructure.sites_named((site,))
        return self.infrastructure.site_names.index(known)

    def name(self, number: int | None) -> str | None:
        """A site's name; None for none."""
        return None if number is None else self.infrastructure.sites[number].name

    def table(self) -> pa.Table:
        """Hosts that belong to a site, each with the site's number."""
        import pyarrow as pa

        known = {host: number for host, number in self.numbers.items() if number is not None}
        return pa.table(
            {
                "host": pa.array(list(known), pa.string()),
                "site_id": pa.array(list(known.values()), pa.int32()),
            }
        )

    def rtt_ms(self, pair: tuple[int | None, int | None]) -> float | None:
        """The stated round-trip time between two sites; None where none is known."""
        a, b = (self.name(number) for number in pair)
        found = None if a is None or b is None else self.infrastructure.connection(a, b)
        return None if found is None else found.rtt_ms

    def capacity_bps(self, pair: tuple[int | None, int | None]) -> float | None:
        """The capacity between two sites, else that of the infrastructure."""
        a, b = (self.name(number) for number in pair)
        if a is None or b is None:
            return self.infrastructure.capacity_bps
        return self.infrastructure.capacity(a, b)

    @property
    def one_capacity(self) -> bool:
        """Whether all connections have the infrastructure's capacity."""
        stated = {connection.capacity_bps for connection in self.infrastructure.connections}
        return stated <= {None, self.infrastructure.capacity_bps}


def match_hosts(infrastructure: Infrastructure, hosts: Iterable[str | None]) -> HostSites:
    """The sites of hosts.

    Raises:
        SpecError: when there are more than `MAX_HOSTS`, or patterns of two sites fit one equally.
    """
    known = sorted({host for host in hosts if host is not None})
    if len(known) > MAX_HOSTS:
        raise SpecError(
            f"more than {MAX_HOSTS} different hosts: from_host and to_host do not seem to "
            "hold host names"
        )
    names = infrastructure.site_names
    sites = {host: infrastructure.site_of(host) for host in known}
    return HostSites(
        infrastructure, {h: None if s is None else names.index(s) for h, s in sites.items()}
    )


def with_sites(rows: ir.Table, host_sites: ir.Table) -> ir.Table:
    """Rows with the numbers of their sites in `FROM` and `TO`; null for hosts of no site."""
    senders, receivers = host_sites.view(), host_sites.view()
    rows = rows.left_join(senders, rows.from_host == senders.host).select(
        rows, **{FROM: senders.site_id}
    )
    return rows.left_join(receivers, rows.to_host == receivers.host).select(
        rows, **{TO: receivers.site_id}
    )


def site_predicates(rows: ir.Table, wanted: Selection, known: HostSites) -> list[Any]:
    """What a selection asks of the sites of `with_sites` rows."""
    predicates: list[Any] = []
    sender, receiver = rows[FROM], rows[TO]
    if wanted.sites:
        numbers = [known.number(site) for site in wanted.sites]
        predicates += [sender.isin(numbers), receiver.isin(numbers)]
    if wanted.at_site is not None:
        number = known.number(wanted.at_site)
        predicates.append((sender == number) | (receiver == number))
    if wanted.pairs:
        between = None
        for a, b in ((known.number(a), known.number(b)) for a, b in wanted.pairs):
            one = ((sender == a) & (receiver == b)) | ((sender == b) & (receiver == a))
            between = one if between is None else between | one
        predicates.append(between)
    return predicates


def pair_text(known: HostSites, pair: tuple[int | None, int | None]) -> str | None:
    """The two sites of a row in one text without an order; None where one is unknown."""
    a, b = (known.name(number) for number in pair)
    return None if a is None or b is None else " - ".join(pair_of(a, b))
