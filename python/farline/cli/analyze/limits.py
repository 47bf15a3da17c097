"""What hosts and file systems can do: as stated, as described, or as measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farline.cli.analyze.sources import Opened
    from farline.profiles.cells import Cell
    from farline.spec.infrastructure import Infrastructure, Site
    from farline.store.transfers import Selection


UNKNOWN = "none known"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in bit/s of every host and file system that counts, and where they come from."""

    host_bps: tuple[float, ...] = ()
    file_bps: tuple[float, ...] = ()
    origin: str = UNKNOWN


def limits_from(
    source: Opened, wanted: Selection, host_bps: Sequence[float], file_bps: Sequence[float]
) -> Limits:
    """The limits of the sites that are meant: of each kind as stated, else described, or measured.

    So a limit of hosts that is stated leaves those of file systems as they are described.
    """
    stated = Limits(tuple(host_bps), tuple(file_bps), "as stated")
    found = _filled(Limits(), stated)
    if source.infrastructure is not None:
        found = _filled(found, _described(source.infrastructure, wanted))
    if not (found.host_bps and found.file_bps):
        found = _filled(found, _measured(source, wanted))
    return found


def _filled(found: Limits, further: Limits) -> Limits:
    """What is known, and of the kind of which nothing is known what is known further."""
    host_bps = () if found.host_bps else further.host_bps
    file_bps = () if found.file_bps else further.file_bps
    if not (host_bps or file_bps):
        return found
    origin = further.origin
    if found.origin != UNKNOWN:
        kinds = ("file systems", "hosts") if host_bps else ("hosts", "file systems")
        origin = f"{kinds[0]} {found.origin}, {kinds[1]} {further.origin}"
    return Limits(found.host_bps or host_bps, found.file_bps or file_bps, origin)


def _described(infrastructure: Infrastructure, wanted: Selection) -> Limits:
    named = wanted.named_sites
    # Transfers at one site have their other end anywhere.
    whole = not named or wanted.at_site is not None
    sites = [site for site in infrastructure.sites if whole or site.name in named]
    return Limits(
        tuple(site.host_bps for site in sites if site.host_bps is not None),
        tuple(_file_limits(sites)),
        f"of {infrastructure.name}",
    )


def _file_limits(sites: Iterable[Site]) -> Iterable[float]:
    for site in sites:
        for system in site.file_systems:
            yield from (rate for rate in (system.read_bps, system.write_bps) if rate is not None)


def _measured(source: Opened, wanted: Selection) -> Limits:
    """The best that each host (H) and file system (F) did on average, whatever the settings."""
    from farline.cli.analyze.cells import cells

    found = {
        kind: _best(cells(source, replace(wanted, modality=kind), keys), keys)
        for kind, keys in (
            ("H", ("from_host", "streams")),
            ("F", ("from_host", "file_system", "streams", "concurrency")),
        )
    }
    return Limits(found["H"], found["F"], "as measured (H, F)")


def _best(found: Sequence[Cell], keys: Sequence[str]) -> tuple[float, ...]:
    """For each host (and file system) the largest mean over its settings."""
    settings = ("streams", "concurrency")
    best: dict[tuple[object, ...], float] = {}
    for cell in found:
        place = tuple(cell.keys[key] for key in keys if key not in settings)
        if cell.n:
            best[place] = max(best.get(place, 0.0), cell.mean_bps)
    return tuple(best.values())
