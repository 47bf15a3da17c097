"""Measurements as cells: asked for, told apart by columns or sites, grouped into profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from farline.analysis.sources import Measurements
from farline.errors import UsageError
from farline.profiles.cells import Cell, cells_from_table
from farline.spec.transfers import TRANSFER_COLUMNS
from farline.spec.units import size_text
from farline.store.transfers import Selection

SITE = "site"
"""Cells by site: each cell counts for the sites at both its ends."""
SETTINGS = ("streams", "buffer_bytes", "congestion_control")
"""What a path is measured with: rates with others of these are not of one kind."""
_ENDS = ("from_site", "to_site")
_HOSTS = ("from_host", "to_host")


def read_by(text: str | None) -> tuple[str, ...]:
    """Columns from `--by streams,congestion_control`; `site` stands for the sites at the ends.

    Raises:
        UsageError: for what is no column.
    """
    if text is None:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    kinds = {"timestamp", "double"}
    allowed = [SITE, "site_pair", *_ENDS]
    allowed += [name for name, kind in TRANSFER_COLUMNS.items() if kind not in kinds]
    for name in names:
        if name not in allowed:
            raise UsageError(f"--by {name!r}: allowed: {', '.join(allowed)}")
    return tuple(name for name in names if name != "modality")


def cells(
    source: Measurements, wanted: Selection, by: Sequence[str] = (), period_s: float | None = None
) -> list[Cell]:
    """Cells of the transfers that are meant, told apart by modality and the columns `by`."""
    names = tuple(dict.fromkeys(("modality", *by)))
    return cells_from_table(source.transfers.cells(wanted, names, period_s=period_s), names)


def site_cells(
    source: Measurements, wanted: Selection, by: Sequence[str] = (), period_s: float | None = None
) -> list[Cell]:
    """Cells by the sites at both ends too, without those whose sites are not known.

    Without an infrastructure each host is a site of its own. `Transfers.counts` says how many
    transfers have an end at no site.
    """
    found = fine_cells(source, wanted, by, period_s)
    return [cell for cell in found if None not in ends_of(cell)]


def fine_cells(
    source: Measurements, wanted: Selection, by: Sequence[str] = (), period_s: float | None = None
) -> list[Cell]:
    """Cells by the sites at both ends, known or not."""
    if source.infrastructure is not None:
        return cells(source, wanted, (*_ENDS, *by), period_s)
    found = cells(source, wanted, (*_HOSTS, *by), period_s)
    return [replace(cell, keys=_renamed(cell.keys)) for cell in found]


def period_cells(source: Measurements, wanted: Selection, period_s: float) -> list[Cell]:
    """Cells by sites, settings and period, in which transfers started at a known time."""
    found = site_cells(source, wanted, ("period", *SETTINGS), period_s)
    return [cell for cell in found if cell.keys["period"] is not None]


def ends_of(cell: Cell) -> tuple[object, object]:
    """The sites at both ends."""
    return cell.keys["from_site"], cell.keys["to_site"]


def _renamed(keys: Mapping[str, object]) -> dict[str, object]:
    names = dict(zip(_HOSTS, _ENDS, strict=True))
    return {names.get(name, name): value for name, value in keys.items()}


def grouped(found: Sequence[Cell], by: Sequence[str]) -> dict[tuple[object, ...], list[Cell]]:
    """Cells by the values of their keys, in the order in which they come."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in found:
        groups.setdefault(tuple(cell.keys[name] for name in by), []).append(cell)
    return groups


def by_site(found: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells to and from each site, sites by name; a cell between two counts for both."""
    groups: dict[str, list[Cell]] = {}
    for cell in found:
        for site in dict.fromkeys(map(str, ends_of(cell))):
            groups.setdefault(site, []).append(cell)
    return dict(sorted(groups.items()))


def value_text(name: str, value: object) -> str:
    """A key's value for people: `64MiB` of buffers, `not stated` where it is not known."""
    if value is None:
        return "not stated"
    if name.endswith("_bytes") and isinstance(value, int):
        return size_text(value)
    return str(value)
