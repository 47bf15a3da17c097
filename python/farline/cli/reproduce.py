"""`farline reproduce`: the papers' figures, tables and numbers, measured and checked here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.command import Command
from farline.cli.common import interruptible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from farline.reproduce.item import Item
    from farline.reproduce.results import Result
    from farline.reproduce.runner import Step

DIFFERS_CODE = 3
"""Exit code when all was judged and an item differs from its paper, or could not be measured."""
_OUTPUT = Path("farline-reproduce")


@click.command(cls=Command, short_help="Reproduce the figures of the papers.")
@click.argument("names", metavar="[ITEM]...", nargs=-1)
@click.option("--list", "is_list", is_flag=True, help="List all items, with their last verdict.")
@click.option("--all", "is_all", is_flag=True, help="Reproduce every item.")
@click.option(
    "--computed",
    "is_computed",
    is_flag=True,
    help="Reproduce the items that need no measurement.",
)
@click.option(
    "--paper",
    "is_paper",
    is_flag=True,
    help="Write a report of the kept results as Markdown, with figures; measure nothing.",
)
@click.option(
    "--scale",
    type=click.Choice(["quick", "full"]),
    default="quick",
    help="Measure less and shorter, or as long as the papers (default quick).",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Use the measurements that the folder has, and continue interrupted ones.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=_OUTPUT,
    help="Keep measurements, results and pages in this folder (default farline-reproduce).",
)
@click.option(
    "--plans",
    "plans",
    type=click.Path(path_type=Path, file_okay=False),
    help="Read plans from this folder (default: that of the checkout, else ./plans).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON document.")
def command(
    names: tuple[str, ...],
    is_list: bool,
    is_all: bool,
    is_computed: bool,
    is_paper: bool,
    scale: str,
    resume: bool,
    folder: Path,
    plans: Path | None,
    as_json: bool,
) -> int:
    """Reproduce figures, tables and numbers of the papers that farline builds on.

    Each ITEM has the claim of its paper, a plan or a computation, checks, and a verdict:
    agrees, differs (with the reason), or not possible here. Measurements run on emulated
    paths. Writes a page per item and an index.html that open offline.
    """
    from farline.reproduce.items import ITEMS, items_named

    if is_list:
        if names or is_all or is_computed or is_paper:
            raise click.UsageError("--list cannot be combined with items to reproduce or --paper")
        return _print_list(ITEMS, folder, scale, as_json)
    if sum((bool(names), is_all, is_computed, is_paper)) != 1:
        raise click.UsageError("name an ITEM, or give --all, --computed, --paper or --list")
    if is_paper:
        return _write_paper(folder.absolute(), scale, as_json)
    chosen = items_named(names) if names else [one for one in ITEMS if is_all or not one.sources]
    return _reproduce(chosen, folder, plans, scale, resume, as_json)


def _reproduce(
    items: Sequence[Item],
    folder: Path,
    plans: Path | None,
    scale: Any,
    resume: bool,
    as_json: bool,
) -> int:
    from farline.reproduce.items import ITEMS
    from farline.reproduce.pages import write_pages
    from farline.reproduce.plans import plans_folder
    from farline.reproduce.runner import Runner, shown_results

    folder = folder.absolute()
    # A result that is damaged is told before hours of measuring, not by the pages after them.
    list(shown_results(folder, ITEMS))
    with interruptible() as asked:
        needs_plans = plans is not None or any(item.sources for item in items)
        where = plans_folder(plans) if needs_plans else Path("plans")
        runner = Runner(folder, where, scale, resume, _show, asked)
        results = runner.run(items)
    page = write_pages(ITEMS, shown_results(folder, ITEMS), folder)
    if as_json:
        document = {"schema": 1, "page": str(page), "items": [one.document() for one in results]}
        click.echo(json.dumps(document, indent=2))
    else:
        _print_results(results)
        click.echo(f"pages: {page}")
    bad = any(result.verdict in ("differs", "not measured") for result in results)
    return DIFFERS_CODE if bad else 0


def _write_paper(folder: Path, scale: Any, as_json: bool) -> int:
    from farline.reproduce.items import ITEMS
    from farline.reproduce.paper import write_paper
    from farline.reproduce.runner import kept_results

    paper = write_paper(ITEMS, kept_results(folder, ITEMS, scale), folder / "paper")
    click.echo(json.dumps({"schema": 1, "paper": str(paper)}) if as_json else f"paper: {paper}")
    return 0


def _show(step: Step) -> None:
    if step.what == "begins" or (step.what == "ends" and step.line):
        click.echo(f"{step.name}: {step.line}", err=True)
    elif step.what == "kept":
        click.echo(f"{step.name}: measured before", err=True)


def _print_results(results: Sequence[Result]) -> None:
    from farline.cli.analyze.text import say

    width = max(len(result.item) for result in results)
    for result in results:
        held = sum(check.holds for check in result.checks)
        checks = f"{held} of {len(result.checks)} checks hold" if result.checks else ""
        click.echo(f"{result.item:{width}}  {result.verdict:17}  {checks}".rstrip())
        for check in result.checks:
            if not check.holds:
                said = f"; paper: {check.paper}" if check.paper else ""
                say(f"does not hold: {check.text}: {check.ours}{said}", "  ", "    ")
        if result.reason:
            say(result.reason, "  ")
        for line in result.drift:
            say(f"changed: {line}", "  ", "    ")
    agreeing = sum(result.verdict == "agrees" for result in results)
    click.echo(f"{agreeing} of {len(results)} agree")


def _print_list(items: Sequence[Item], folder: Path, scale: str, as_json: bool) -> int:
    from farline.reproduce.results import read_result

    last = {item.id: read_result(folder, item.id, scale) for item in items}
    if as_json:
        rows = [
            {"item": i.id, "paper": i.paper, "place": i.place, "claim": i.claim,
             "sources": list(i.sources), "verdict": _verdict(last[i.id])}
            for i in items
        ]  # fmt: skip
        click.echo(json.dumps({"schema": 1, "items": rows}, indent=2))
        return 0
    _print_items(items, {name: _verdict(result) or "-" for name, result in last.items()})
    return 0


def _print_items(items: Sequence[Item], verdicts: Mapping[str, str]) -> None:
    """A line for each item below its paper, folded where the terminal is narrow."""
    from farline.cli.analyze.text import say

    width = max(len(item.id) for item in items)
    column = max(len(verdict) for verdict in verdicts.values())
    paper = ""
    for item in items:
        if item.paper != paper:
            paper = item.paper
            click.echo(f"{paper}:")
        start = f"{item.id:{width}}  {verdicts[item.id]:{column}}  "
        say(f"{item.place}: {item.title}", start, " " * len(start))


def _verdict(result: Result | None) -> str | None:
    return None if result is None else result.verdict
