"""`farline man`: the manual pages, shown by man(1) or written for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click

from farline.cli.command import Command
from farline.errors import SystemFailure, UsageError
from farline.spec.near import did_you_mean
from farline.spec.units import counted


@click.command(cls=Command, short_help="Show or write the manual pages.")
@click.argument("words", nargs=-1, metavar="[COMMAND...]")
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the pages of all commands below this folder, for MANPATH.",
)
def command(words: tuple[str, ...], folder: Path | None) -> int:
    """Show the manual page of a command, such as `farline man testbed up`.

    Where standard output is no terminal, prints the page in roff.
    """
    from farline.cli.group import cli
    from farline.cli.manual.roff import contexts, man_name, man_page

    pages = {man_name(one): one for one in contexts(cli)}
    if folder is not None:
        if words:
            raise click.UsageError("--output writes every page, so leave out the command")
        return _write(
            {name: man_page(one, version("farline")) for name, one in pages.items()}, folder
        )
    name = "-".join(("farline", *words))
    if name not in pages:
        known = [one.command_path.removeprefix("farline ") for one in pages.values()]
        meant = did_you_mean(" ".join(words), known) or "farline --help lists the commands"
        raise UsageError(f"no such command: {' '.join(words)}; {meant}")
    return _show(man_page(pages[name], version("farline")))


def _write(pages: dict[str, str], folder: Path) -> int:
    place = folder / "man1"
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (place / f"{name}.1").write_text(text, encoding="utf-8")
    except OSError as error:
        raise SystemFailure(f"{error.filename or place}: {error.strerror}") from None
    click.echo(f"{counted(len(pages), 'page')} in {place}")
    return 0


def _show(text: str) -> int:
    """man(1) shows the page on a terminal; without it, or elsewhere, it is printed as it is."""
    if sys.stdout.isatty() and shutil.which("man"):
        return subprocess.run(["man", "-l", "-"], input=text.encode(), check=False).returncode
    click.echo(text, nl=False)
    return 0
