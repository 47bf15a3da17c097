"""The pages of the gallery: an index with a row per item, and a page for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from farline.errors import SystemFailure
from farline.plots.gallery import Curve, Entry, Gallery, Picture
from farline.plots.gallery_figures import data_link, picture_svg
from farline.plots.labels import NOTHING, digits
from farline.plots.page_parts import Tile, render
from farline.plots.tables import Cell, Column, Table, TableRow
from farline.plots.whole_file import write_whole

INDEX = "index.html"
_STYLES = ("page/report.css", "page/gallery.css")
_VERDICTS = ("agrees", "differs", "not possible here", "not measured")


def write_gallery(gallery: Gallery, folder: Path) -> Path:
    """Writes the index and a page per entry into `folder`; the path of the index.

    Raises:
        SystemFailure: when the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for entry in gallery.entries:
            write_whole(folder / f"{entry.id}.html", render_entry(entry, gallery))
        write_whole(folder / INDEX, render_index(gallery))
    except OSError as error:
        raise SystemFailure(f"{folder}: cannot write the gallery: {error.strerror}") from error
    return folder / INDEX


def render_index(gallery: Gallery) -> str:
    """The index as text."""
    figures = [entry for entry in gallery.entries if not entry.is_text]
    texts = [entry for entry in gallery.entries if entry.is_text]
    values = {
        "title": "The papers' figures, reproduced · farline",
        "heading": "The papers' figures, reproduced",
        "made": gallery.made,
        "facts": gallery.facts,
        "lead": _lead(figures, texts),
        "tiles": _tiles(figures, texts),
        "groups": _groups(figures),
        "texts": _groups(texts),
        "command": gallery.command,
        "version": gallery.version,
    }
    return render("gallery.html.j2", values, _STYLES, (), "{}")


def render_entry(entry: Entry, gallery: Gallery) -> str:
    """The page of an entry as text."""
    values = {
        "title": f"{entry.id} · farline",
        "heading": f"{entry.paper}, {entry.place}: {entry.title}",
        "entry": entry,
        "verdict_class": _class(entry.verdict),
        "pictures": [_drawn(picture, entry.id) for picture in entry.pictures],
        "version": gallery.version,
    }
    return render("gallery_item.html.j2", values, _STYLES, (), "{}")


def picture_table(picture: Picture) -> Table:
    """The numbers of a picture: a row for each x, a column for each curve."""
    places = list(dict.fromkeys(x for curve in picture.curves for x in curve.x))
    if picture.x_scale != "words" and all(isinstance(x, (int, float)) for x in places):
        places.sort(key=float)
    columns = [Column(picture.x_label)]
    columns += [Column(_heading(curve), number=True) for curve in picture.curves]
    rows = [TableRow([_cell(x), *(_value(curve, x) for curve in picture.curves)]) for x in places]
    return Table(columns, rows)


def _heading(curve: Curve) -> str:
    name = curve.name or "here"
    return f"{name} (paper)" if curve.of == "paper" else name


def _cell(x: float | str) -> Cell:
    return Cell(x if isinstance(x, str) else f"{x:g}", str(x))


def _value(curve: Curve, x: float | str) -> Cell:
    if x not in curve.x:
        return Cell(NOTHING)
    index = list(curve.x).index(x)
    text, value = digits(curve.y[index]), curve.y[index]
    ends = [side[index] for side in (curve.low, curve.high) if len(side) > index]
    if len(ends) == 2 and ends[1] is not None:
        text += f" ± {digits(ends[1] - value)}"
    return Cell(text, repr(value))


def _drawn(picture: Picture, item: str) -> dict[str, Any]:
    return {
        "id": picture.name,
        "caption": picture.caption,
        "light": data_link(picture_svg(picture)),
        "dark": data_link(picture_svg(picture, dark=True)),
        "table": picture_table(picture),
        "table_id": f"{item}-{picture.name}",
    }


def _lead(figures: Sequence[Entry], texts: Sequence[Entry]) -> str:
    agreeing = sum(entry.verdict == "agrees" for entry in figures)
    said = sum(entry.verdict == "agrees" for entry in texts)
    return (
        f"{agreeing} of {len(figures)} figures and tables agree with the papers, and {said} of "
        f"{len(texts)} sentences with a number. Where one differs, its page gives the reason and "
        "the measurement behind it."
    )


def _tiles(figures: Sequence[Entry], texts: Sequence[Entry]) -> list[Tile]:
    every = [*figures, *texts]
    found = []
    for verdict in _VERDICTS:
        count = sum(entry.verdict == verdict for entry in every)
        if count or verdict == "agrees":
            inside = sum(entry.verdict == verdict for entry in figures)
            note = f"{inside} figures and tables, {count - inside} sentences"
            found.append(Tile(verdict.capitalize(), str(count), note, verdict == "not measured"))
    return found


def _groups(entries: Sequence[Entry]) -> list[tuple[str, list[tuple[Entry, str]]]]:
    papers = dict.fromkeys(entry.paper for entry in entries)
    return [
        (paper, [(entry, _class(entry.verdict)) for entry in entries if entry.paper == paper])
        for paper in papers
    ]


def _class(verdict: str) -> str:
    return "verdict-" + verdict.replace(" ", "-")
