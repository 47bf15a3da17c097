"""Results to the values of the gallery."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from farline.plots.gallery import Entry, Gallery, Line
from farline.plots.gallery_page import write_gallery
from farline.reproduce.item import Item
from farline.reproduce.results import Result
from farline.spec.units import counted

_BUDGET = {
    "emulator": "emulator",
    "host": "other work of this host",
    "repetition": "repetition",
    "whole": "all together",
}


def write_pages(items: Sequence[Item], results: Iterable[Result], folder: Path) -> Path:
    """Writes the gallery of results into `folder`; the path of its index.

    Raises:
        SystemFailure: when the folder cannot be written.
    """
    by_item = {result.item: result for result in results}
    entries = [_entry(item, by_item[item.id]) for item in items if item.id in by_item]
    return write_gallery(
        Gallery(
            entries=entries,
            made=max((result.made_at for result in by_item.values()), default=""),
            facts=_facts(by_item.values(), len(items) - len(entries)),
            version=version("farline"),
            command=_command(by_item.values()),
        ),
        folder,
    )


def _facts(results: Iterable[Result], without: int) -> str:
    """The scale, and how many items have no result here: counts are of the others alone."""
    scales = sorted({result.scale for result in results})
    if not scales:
        return "no results yet"
    said = f"{' and '.join(scales)} scale"
    return f"{said}; {counted(without, 'item')} not reproduced yet" if without else said


def _command(results: Iterable[Result]) -> str:
    """What makes such results again."""
    full = any(result.scale == "full" for result in results)
    return "farline reproduce --all --scale full" if full else "farline reproduce --all"


def _entry(item: Item, result: Result) -> Entry:
    return Entry(
        id=item.id,
        paper=item.paper,
        place=item.place,
        title=item.title,
        claim=item.claim,
        verdict=result.verdict,
        is_text=item.kind == "text",
        reason=result.reason,
        instead=result.instead,
        scaling=item.scaling,
        notes=result.notes,
        lines=[Line(one.text, one.paper, one.ours, one.holds) for one in result.checks],
        pictures=result.pictures,
        budget=[
            (_BUDGET[name], f"{100 * share:.2g} %")
            for name, share in result.budget.items()
            if result.budget.get("whole")
        ],
        commands=result.commands,
        plans=result.plans,
        facts=[(name, text) for name, text in result.facts],
        drift=result.drift,
        made=f"{result.scale} scale, {result.made_at}",
        guide=item.guide,
    )
