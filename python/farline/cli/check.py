"""`farline check`: files held against the receipt of their copy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from farline.cli.command import Command
from farline.cli.shown import shown
from farline.copying.receipt_check import Noted, check_files, noted_files
from farline.errors import UsageError
from farline.findings.finding import counted
from farline.spec.units import size_human

DIFFERS = 23
"""Exit code when some files are not what the receipt says: that of a copy of which some failed."""


@click.command(cls=Command, short_help="Check files against the receipt of their copy.")
@click.argument("receipt", type=click.Path(path_type=Path))
@click.argument("destination", type=click.Path(path_type=Path))
@click.option("-q", "--quiet", is_flag=True, help="Print only files that differ.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(receipt: Path, destination: Path, quiet: bool, as_json: bool) -> int:
    """Read every file below DESTINATION for which RECEIPT has a checksum, and compare.

    RECEIPT is a file that `farline copy --receipt` wrote, DESTINATION the folder, or the one file,
    that the copy went to. Files without a checksum in the receipt are counted, but not read.
    """
    if not destination.exists():
        raise UsageError(f"{destination}: no such file or folder")
    tally: Counter[str] = Counter()
    wrong: list[dict[str, str]] = []
    for found in check_files(_with_sums(receipt, tally), destination):
        tally["bytes"] += found.noted.size
        tally["same" if found.problem is None else "different"] += 1
        if found.problem is not None:
            wrong.append({"path": found.noted.path, "reason": found.problem})
    if not (tally["blake3"] or tally["xxh3"]):
        raise UsageError(f"{receipt}: has no checksums, so there is nothing to check")
    wrong.sort(key=lambda one: one["path"])
    if as_json:
        click.echo(json.dumps(_document(tally, wrong)))
    else:
        _print(tally, wrong, quiet)
    return DIFFERS if wrong else 0


def _with_sums(receipt: Path, tally: Counter[str]) -> Iterator[Noted]:
    for noted in noted_files(receipt):
        tally[noted.hash] += 1
        if noted.digits is not None:
            yield noted


def _document(tally: Counter[str], wrong: list[dict[str, str]]) -> dict[str, Any]:
    names = ("same", "different", "bytes", "blake3", "xxh3")
    counts = {name: tally[name] for name in names}
    return {"schema": 1, **counts, "without_checksum": tally["none"], "failures": wrong}


def _print(tally: Counter[str], wrong: list[dict[str, str]], quiet: bool) -> None:
    for one in wrong:
        click.echo(shown(f"{one['path']}: {one['reason']}"))
    if quiet:
        return
    kinds = [f"{tally[kind]} {name}" for kind, name in (("blake3", "BLAKE3"), ("xxh3", "XXH3"))
             if tally[kind]]  # fmt: skip
    size = size_human(tally["bytes"])
    click.echo(f"checked   {counted(tally['same'] + tally['different'], 'file')}, {size} "
               f"({', '.join(kinds)})")  # fmt: skip
    click.echo(f"same      {tally['same']}")
    if wrong:
        click.echo(f"different {tally['different']}")
    if tally["none"]:
        click.echo(f"unchecked {counted(tally['none'], 'file')} without a checksum in the receipt")
