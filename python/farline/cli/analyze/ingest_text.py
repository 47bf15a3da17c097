"""What `farline analyze ingest` prints: what was taken in, what could not be read, what is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from farline.analysis import Refused, Taken
from farline.analysis.reading import format_of
from farline.cli.analyze.json import print_document
from farline.cli.analyze.options import unused_defaults
from farline.cli.analyze.text import ABSENT, say, show_table
from farline.spec.units import counted

if TYPE_CHECKING:
    from farline.formats import Tally
    from farline.store.transfers import KeptLog

SHOWN = 5
"""Malformed records that are shown of each log; `--malformed` has all."""
_OUTCOMES = {
    "new": "ingested",
    "same": "already present",
    "grown": "has grown: replaces the kept log",
    "reread": "read again: replaces the kept log",
}


def show_outcome(found: Sequence[Taken | Refused], as_json: bool) -> None:
    """What became of each log; why some were refused goes to standard error."""
    taken = [one for one in found if isinstance(one, Taken)]
    refused = [one for one in found if isinstance(one, Refused)]
    if as_json:
        print_document(
            {"logs": [document(one) for one in taken],
             "refused": [_refusal(one) for one in refused]}
        )  # fmt: skip
        return
    if taken:
        heads = ["log", "format", "transfers", "failed", "skipped", "malformed", ""]
        show_table(heads, [_row(one) for one in taken], words=2, note=True)
    _show_skipped([one.tally for one in found if one.tally is not None])
    for one in found:
        if one.tally is not None:
            _show_odd(one.path.name, one.tally)
            for line in unused_defaults(one.path.name, one.tally):
                say(line, hang="  ")
    _show_beside(taken)
    for one in refused:
        named = one.path.name in one.why
        click.echo(f"farline: {one.why if named else f'{one.path}: {one.why}'}", err=True)


def _row(one: Taken) -> list[str]:
    counts = one.kept.counts
    skipped = sum(many for name, many in counts.items() if name.startswith("skipped: "))
    complete = one.kept.rows - one.kept.failed
    return [
        one.path.name,
        format_of(one.kept.reader),
        f"{complete:,}",
        f"{one.kept.failed:,}",
        f"{skipped:,}",
        f"{counts.get('malformed', 0):,}",
        _OUTCOMES[one.outcome],
    ]


def _show_skipped(tallies: Sequence[Tally]) -> None:
    """What stands in logs beside transfers, and how often."""
    skipped: Counter[str] = Counter()
    for tally in tallies:
        skipped.update(tally.skipped)
    if skipped:
        parts = [f"{why} {many:,}" for why, many in skipped.most_common()]
        say(f"Skipped because they are not transfers: {', '.join(parts)}.", hang="  ")


def _show_odd(name: str, tally: Tally) -> None:
    """The first of the records that could not be read."""
    if not tally.malformed:
        return
    say(f"{name}: {counted(tally.malformed, 'record')} could not be read:", hang="  ")
    for odd in tally.first_malformed[:SHOWN]:
        say(f"line {odd.line}: {odd.reason}: {odd.text}", indent="  ", hang="    ")
    if tally.malformed > SHOWN:
        say(f"and {tally.malformed - SHOWN:,} more (--malformed FILE.tsv has all)", indent="  ")


def _show_beside(taken: Sequence[Taken]) -> None:
    """Of logs taken in now, others of the same name: perhaps the same transfers again."""
    lines = [
        f"{one.path.name}: beside {kept.log.digest[:12]} {_likeness(one, kept)}, both count; if"
        f" they overlap, --forget {kept.log.digest[:12]}"
        for one in taken
        if one.outcome != "same"
        for kept in one.beside
    ]
    for line in lines[:SHOWN]:
        say(line, hang="  ")
    if len(lines) > SHOWN:
        say(f"and {len(lines) - SHOWN:,} more logs beside others (--json has all)")


def _likeness(one: Taken, kept: KeptLog) -> str:
    if kept.log.name == one.kept.log.name:
        return "of the same name"
    return f"({kept.log.name}), which begins in the same way"


def document(one: Taken) -> dict[str, Any]:
    """A log that was taken in, for programs."""
    return {
        "path": str(one.path),
        "format": format_of(one.kept.reader),
        "outcome": one.outcome,
        "beside": [{"name": k.log.name, "digest": k.log.digest} for k in one.beside],
        "filled": None if one.tally is None else one.tally.filled,
        **kept_document(one.kept),
        "first_malformed": [] if one.tally is None else one.tally.first_malformed,
    }


def _refusal(one: Refused) -> dict[str, Any]:
    return {"path": str(one.path), "why": one.why, "tally": one.tally}


def kept_document(kept: KeptLog) -> dict[str, Any]:
    """A kept log, for programs."""
    return {
        "name": kept.log.name,
        "digest": kept.log.digest,
        "size_bytes": kept.log.size_bytes,
        "reader": kept.reader,
        "kept_at": kept.kept_at,
        "transfers": kept.rows - kept.failed,
        "failed": kept.failed,
        "counts": kept.counts,
    }


def show_kept(logs: Sequence[KeptLog] | None, forgotten: Sequence[KeptLog], as_json: bool) -> None:
    """What is kept, where it was asked for, and what was forgotten."""
    if as_json:
        parts: dict[str, Any] = {"forgotten": [kept_document(kept) for kept in forgotten]}
        if logs is not None:
            parts["logs"] = [kept_document(kept) for kept in logs]
        print_document(parts)
        return
    for kept in forgotten:
        click.echo(f"forgot {kept.log.name}: {counted(kept.rows, 'transfer')}")
    if logs is None:
        return
    if not logs:
        click.echo("no logs are kept; farline analyze ingest FILE adds one")
        return
    rows = [
        [kept.log.name, format_of(kept.reader), f"{kept.rows - kept.failed:,}", f"{kept.failed:,}",
         kept.kept_at[:16].replace("T", " ") or ABSENT, kept.log.digest[:12]]
        for kept in logs
    ]  # fmt: skip
    show_table(["log", "format", "transfers", "failed", "ingested (UTC)", "digest"], rows, words=2)
