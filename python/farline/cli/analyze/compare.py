"""`farline analyze compare`: two selections of the same sources over the RTTs that both cover."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.analyze.options import (
    check_figure,
    json_option,
    selection_options,
    shape_from,
    shape_options,
    source_from,
    source_options,
)
from farline.cli.limits import RATE

if TYPE_CHECKING:
    from farline.cli.analyze.sources import Opened
    from farline.cli.analyze.views import Shape
    from farline.profiles.throughput_profile import ThroughputProfile
    from farline.store.transfers import Selection

_HELP = """Compare two selections of the same measurements.

\b
  farline analyze compare --a modality=E --b modality=T --infrastructure sites.toml
  farline analyze compare --a modality=E,site=ANL --b modality=E,site=ORNL ...
  farline analyze compare --method strict --infrastructure sites.toml

Difference, ratio and coefficients are over the round-trip times that both cover, and nowhere
else. A selection is KEY=VALUE,...: modality, site (at either end), sites (at both), since, until,
min-rate, min-bytes, or any column; it adds to what --modality, --where and the like say of both.

With --method the file transfer method itself is profiled (papers/5, section 3.4): what file
transfers (A, modality E unless said otherwise) reach of what memory to memory (B, modality T),
hosts and file systems allow. `strict` takes the least of these at each round-trip time, `paper` is
equation 2.2 as printed. Limits of hosts, and of file systems, are as stated here, else those that
the infrastructure has of the sites of A, else as measured there (modality H and F).
"""


@click.command("compare", help=_HELP, short_help="Two selections: difference and ratio.")
@source_options
@selection_options
@shape_options
@click.option("--a", "first", metavar="KEY=VALUE,...", help="The first selection.")
@click.option("--b", "second", metavar="KEY=VALUE,...", help="The second selection.")
@click.option("--method", type=click.Choice(["strict", "paper"]),
              help="Profile the file transfer method of A over B.")  # fmt: skip
@click.option(
    "--host-limit", type=RATE, multiple=True, help="What a host can do; several if given."
)
@click.option("--file-limit", type=RATE, multiple=True, help="The same of a file system.")
@click.option("--figure", type=click.Path(path_type=Path, dir_okay=False),
              help="Draw into FILE.png or FILE.svg.")  # fmt: skip
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Compares, prints and draws."""
    from farline.cli.analyze.selection import selection_from
    from farline.cli.analyze.sources import opened

    method = options["method"]
    texts = _selections(options)
    check_figure(options["figure"])
    shape = shape_from(options)
    with opened(source_from(options)) as source:
        base = selection_from(options, source.infrastructure)
        a, b = (
            _profile(source, base, text, shape, flag)
            for text, flag in zip(texts, ("--a", "--b"), strict=True)
        )
        if method is not None:
            from farline.cli.analyze.limits import limits_from
            from farline.cli.analyze.selection import at_the_sites_of

            there = at_the_sites_of(base, texts[0], source.infrastructure, "--a")
            limits = limits_from(source, there, options["host_limit"], options["file_limit"])
    if method is None:
        _compare(a, b, shape, options, as_json)
    else:
        from farline.cli.analyze.method import show_method

        show_method(a, b, limits, shape, options, as_json)


def _selections(options: dict[str, Any]) -> tuple[str, str]:
    """The two selections as texts; with `--method` they are E and T unless stated."""
    first, second = options["first"], options["second"]
    if options["method"] is not None:
        return _of_modality(first, "E", "--a"), _of_modality(second, "T", "--b")
    for name in ("host_limit", "file_limit"):
        if options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} goes with --method")
    if first is None or second is None:
        raise click.UsageError("compare what? Give --a and --b, such as --a modality=E")
    return first, second


def _of_modality(text: str | None, modality: str, flag: str) -> str:
    """A selection with this modality, unless it states one."""
    from farline.cli.analyze.selection import keys_of

    if not text:
        return f"modality={modality}"
    return text if "modality" in keys_of(text, flag) else f"modality={modality},{text}"


def _profile(
    source: Opened, base: Selection, text: str, shape: Shape, flag: str
) -> ThroughputProfile:
    """The profile of one of the two.

    Raises:
        SpecError: when nothing fits, or nothing that does has a round-trip time.
    """
    from farline.cli.analyze.cells import cells
    from farline.cli.analyze.selection import narrowed
    from farline.cli.analyze.views import profile_from
    from farline.errors import SpecError

    wanted = narrowed(base, text, source.infrastructure, flag)
    try:
        return profile_from(cells(source, wanted), shape, text)
    except SpecError as error:
        raise SpecError(f"{flag} {text}: {error.message}") from None


def _compare(
    a: ThroughputProfile,
    b: ThroughputProfile,
    shape: Shape,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    from farline.cli.analyze.compare_text import comparison_document, draw_comparison_of, print_both
    from farline.cli.analyze.json import print_document
    from farline.profiles.calculus import compare

    found = compare(a, b, shape.confidence)
    if options["figure"] is not None:
        draw_comparison_of(a, b, found, options["figure"])
    if as_json:
        print_document(comparison_document(a, b, found))
        return
    print_both(a, b, found)
    if options["figure"] is not None:
        click.echo(options["figure"])
