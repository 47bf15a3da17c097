"""`farline testbed change`, `cut`, `restore` and `capture`: links while they carry traffic."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from farline.cli.command import Command
from farline.cli.common import interruptible
from farline.cli.link_flags import link_flags, take_link_values
from farline.cli.testbed_status import link_line
from farline.cli.words import Words
from farline.errors import SystemFailure
from farline.spec.links import LINK_OPTIONS, VARIABLE_KEYS, change_of, find_link
from farline.spec.units import counted
from farline.testbeds.lookup import find_bed_and_link

_VARIABLE = [option for option in LINK_OPTIONS if option.key in VARIABLE_KEYS]
_WORDS = click.argument("words", metavar="[NAME] [LINK]", nargs=-1)
_DIRECTION = click.option(
    "--direction",
    type=Words(["both", "forward", "reverse"]),
    default="both",
    help="Apply to this direction; forward is from the link's a to its b (default both).",
)
_POLL_S = 0.1


@click.command(cls=Command, short_help="Change a link while it carries traffic.")
@_WORDS
@link_flags(_VARIABLE)
@_DIRECTION
def change(words: tuple[str, ...], direction: str, **options: Any) -> None:
    """Change a link while it carries traffic (default: the main link).

    Packets in flight keep the delay they left with, and their order.
    """
    values = take_link_values(options)
    if not values:
        raise click.UsageError("nothing to change: see --help for the options")
    if direction != "both" and "rtt_s" in values:
        raise click.UsageError("--rtt applies to both directions: for one direction use --delay")
    if {"rtt_s", "delay_s"} <= values.keys():
        raise click.UsageError("--rtt and --delay cannot be combined: both set the delay")
    bed, link = find_bed_and_link(words)
    try:
        wanted = change_of(values, find_link(bed.topology(), link))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    bed.change(link, direction, **wanted)
    click.echo(link_line(find_link(bed.topology(), link)))


@click.command(cls=Command, short_help="Cut a link.")
@_WORDS
@_DIRECTION
def cut(words: tuple[str, ...], direction: str) -> None:
    """Cut a link: all packets on it are lost until `farline testbed restore`."""
    bed, link = find_bed_and_link(words)
    bed.cut(link, direction)
    click.echo(f"{link} is cut; undo with: farline testbed restore {bed.name} {link}")


@click.command(cls=Command, short_help="Restore a link that was cut.")
@_WORDS
@_DIRECTION
def restore(words: tuple[str, ...], direction: str) -> None:
    """Restore a link that was cut."""
    bed, link = find_bed_and_link(words)
    bed.restore(link, direction)
    click.echo(f"{link} is up")


@click.command(cls=Command, short_help="Capture the packets of a link in a pcap file.")
@click.argument("words", metavar="[NAME] [LINK] FILE", nargs=-1, required=True)
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
    help="Capture for this long (default: until interrupted).",
)  # fmt: skip
@click.option(
    "--snap", type=click.IntRange(64, 65535), default=128, metavar="N",
    help="Keep the first N bytes of each packet (default 128).",
)  # fmt: skip
@_DIRECTION
def capture(words: tuple[str, ...], seconds: float | None, snap: int, direction: str) -> None:
    """Capture the packets that leave a link in a pcap file, with the times of the emulation."""
    bed, link = find_bed_and_link(words[:-1])
    path = Path(words[-1])
    with interruptible(quiet=True) as asked:
        bed.capture(path, link, direction, snap)
        until = None if seconds is None else time.monotonic() + seconds
        while not asked.count and (until is None or time.monotonic() < until):
            time.sleep(_POLL_S)
        end = bed.stop_capture(link)
    if end.get("error"):
        raise SystemFailure(f"{path}: {end['error']}")
    click.echo(
        f"{path}: {counted(end['written_packets'], 'packet')}, {end['missed_packets']} missed"
    )
