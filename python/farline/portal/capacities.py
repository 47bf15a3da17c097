"""Which capacities a transfer between two sites uses, as the infrastructure states them."""

from __future__ import annotations

from collections.abc import Iterable

from farline.errors import SpecError
from farline.spec.infrastructure import Infrastructure


def site_name(infrastructure: Infrastructure | None, names: Iterable[str]) -> str:
    """The site that an end is: the first of its names that one knows, else its first name."""
    several = list(names)
    if infrastructure is not None:
        for name in several:
            if (site := infrastructure.site_of(name)) is not None:
                return site
    return several[0]


def resources_between(
    infrastructure: Infrastructure | None, source: str, destination: str
) -> dict[str, int]:
    """Names and capacities (bit/s) of what a transfer from one site to another shares.

    The path in this direction, what the sending site's hosts give out, what the receiving site's
    take in. Directions of a path are apart: networks carry both at once.

    Raises:
        SpecError: when a site is unknown, or no capacity of the path is stated.
    """
    if infrastructure is None:
        raise SpecError(
            "nothing can be reserved: no sites are described; start the service with --sites FILE"
        )
    (first,) = infrastructure.sites_named((source,))
    (second,) = infrastructure.sites_named((destination,))
    capacity_bps = infrastructure.capacity(first, second)
    if not capacity_bps:
        raise SpecError(
            f"{first} to {second}: the capacity is unknown; state capacity_bps of the connection "
            "in the file of the sites"
        )
    found = {f"{first} > {second}": int(capacity_bps)}
    for name, sign in ((first, "out of"), (second, "into")):
        if host_bps := infrastructure.site(name).host_bps:
            found[f"{sign} {name}"] = int(host_bps)
    return found
