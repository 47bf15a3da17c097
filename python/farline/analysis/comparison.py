"""Two profiles over the round-trip times that both cover, and the file transfer method's own.

Rao et al. 2018, section 3.4: what file transfers reach of what memory to memory, hosts and file
systems allow. What hosts and file systems can do is as stated, as described, or as measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from farline.analysis.cells import cells
from farline.analysis.selection import at_the_sites_of, narrowed
from farline.analysis.sources import Measurements
from farline.analysis.views import DEFAULT_SHAPE, Shape, profile_from
from farline.errors import SpecError
from farline.plots import analysis_values as drawn
from farline.profiles import calculus
from farline.profiles.cells import Cell
from farline.profiles.method_profile import How, MethodProfile, method_profile
from farline.profiles.throughput_profile import ThroughputProfile
from farline.spec.infrastructure import Infrastructure, Site
from farline.spec.units import rate_human
from farline.store.transfers import EVERYTHING, Selection

UNKNOWN = "none known"


@dataclass(frozen=True)
class Compared:
    """Two profiles, and their difference and ratio."""

    first: ThroughputProfile
    second: ThroughputProfile
    result: calculus.Comparison

    @property
    def figure(self) -> drawn.Comparison:
        """The difference as figures have it."""
        a, b, found = self.first, self.second, self.result
        return drawn.Comparison(
            name=f"{a.label} less {b.label}",
            kind="difference",
            first=a,
            second=b,
            rtt_ms=found.difference.rtt_ms,
            values=found.difference.mean_bps,
            deviation=found.difference.standard_error_bps,
            words=f"{a.label} less {b.label}, over the round-trip times that both cover",
        )


def compare(
    source: Measurements,
    first: str,
    second: str,
    base: Selection = EVERYTHING,
    shape: Shape = DEFAULT_SHAPE,
) -> Compared:
    """Compares two selections such as `modality=E,site=ORNL`, each a part of `base`.

    Raises:
        SpecError: when nothing fits one of them, or they have no round-trip times in common.
    """
    a, b = _both(source, base, (first, second), shape)
    return Compared(a, b, calculus.compare(a, b, shape.confidence))


@dataclass(frozen=True)
class ComparedMethod:
    """Profiles of file transfers and of memory to memory, limits, and the method's own profile."""

    files: ThroughputProfile
    network: ThroughputProfile
    limits: Limits
    result: MethodProfile

    @property
    def words(self) -> str:
        """What the method's profile says, in a line."""
        found = self.result
        cap = "" if found.cap_bps is None else f", and at most {rate_human(found.cap_bps)}"
        if found.how == "paper":
            return f"What file transfers reach, by equation 2.2 of Rao et al. 2018{cap}"
        return f"What file transfers reach of what memory to memory does{cap}"

    @property
    def figure(self) -> drawn.Comparison:
        """The method's profile as figures have it."""
        made = self.result.profile
        return drawn.Comparison(
            name="file transfer method",
            kind="ratio",
            first=self.files,
            second=self.network,
            rtt_ms=made.rtt_ms,
            values=made.mean_bps,
            deviation=made.standard_error_bps,
            score=self.result.coefficients,
            words=self.words,
        )


def compare_method(
    source: Measurements,
    files: str = "modality=E",
    network: str = "modality=T",
    base: Selection = EVERYTHING,
    shape: Shape = DEFAULT_SHAPE,
    *,
    how: How = "strict",
    host_bps: Sequence[float] = (),
    file_bps: Sequence[float] = (),
) -> ComparedMethod:
    """Profiles the file transfer method of the selection `files` over `network`.

    `strict` takes the least of all limits at each round-trip time, `paper` is equation 2.2 as
    printed. Limits of hosts and file systems that are not stated are those of the sites of
    `files`: described, else measured.

    Raises:
        SpecError: when no RTT is covered by both, or `paper` lacks the capacity.
    """
    e, t = _both(source, base, (files, network), shape)
    there = at_the_sites_of(base, files, source.infrastructure, "--a")
    limits = limits_from(source, there, host_bps, file_bps)
    found = method_profile(
        e, t, host_bps=limits.host_bps, file_bps=limits.file_bps,
        how=how, confidence=shape.confidence,
    )  # fmt: skip
    return ComparedMethod(e, t, limits, found)


def _both(
    source: Measurements, base: Selection, texts: tuple[str, str], shape: Shape
) -> tuple[ThroughputProfile, ThroughputProfile]:
    first, second = zip(("--a", "--b"), texts, strict=True)
    return _profile(source, base, first, shape), _profile(source, base, second, shape)


def _profile(
    source: Measurements, base: Selection, named: tuple[str, str], shape: Shape
) -> ThroughputProfile:
    """The profile of one of the two.

    Raises:
        SpecError: when nothing fits, or nothing that does has a round-trip time.
    """
    flag, text = named
    wanted = narrowed(base, text, source.infrastructure, flag)
    try:
        return profile_from(cells(source, wanted), shape, text)
    except SpecError as error:
        raise SpecError(f"{flag} {text}: {error.message}") from None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in bit/s of every host and file system that counts, and where they come from."""

    host_bps: tuple[float, ...] = ()
    file_bps: tuple[float, ...] = ()
    origin: str = UNKNOWN


def limits_from(
    source: Measurements, wanted: Selection, host_bps: Sequence[float], file_bps: Sequence[float]
) -> Limits:
    """The limits of the sites that are meant: of each kind as stated, described or measured.

    What was measured of file systems is by their profiles (`farline storage`), else by other tools.

    So a limit of hosts that is stated leaves those of file systems as they are described.
    """
    stated = Limits(tuple(host_bps), tuple(file_bps), "as stated")
    found = _filled(Limits(), stated)
    if source.infrastructure is not None:
        found = _filled(found, _described(source.infrastructure, wanted))
    found = _filled(found, _profiled(source, wanted))
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


def _profiled(source: Measurements, wanted: Selection) -> Limits:
    """What all processes reach by the profiles of file systems of the hosts that are meant."""
    if not source.profiles:
        return Limits()
    keys = ("from_host", "to_host")
    found = cells(source, replace(wanted, modality="E"), keys)
    hosts = {str(cell.keys[key]).casefold() for cell in found for key in keys}
    caps = [
        direction.most_bps
        for profile in source.profiles
        if profile.host.casefold() in hosts
        for direction in (profile.read, profile.write)
        if direction is not None
    ]
    return Limits((), tuple(caps), "by profiles of file systems")


def _measured(source: Measurements, wanted: Selection) -> Limits:
    """The best that each host (H) and file system (F) did on average, whatever the settings."""
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
