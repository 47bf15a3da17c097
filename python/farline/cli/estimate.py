"""`farline estimate SRC... DST`: how long a copy will take, how sure that is, what to reserve.

Reads a command line, asks `farline.copying.estimates`, prints the answer.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farline.cli.command import Command
from farline.cli.common import store_option
from farline.cli.limits import RATE, SECONDS, SIZE, UnitType
from farline.spec.units import parse_file_count

if TYPE_CHECKING:
    from datetime import tzinfo

    from farline.copying.locations import Endpoints
    from farline.estimating import Question


def _read_confidence(text: str) -> float:
    from farline.estimating.confidence import parse_confidence

    return parse_confidence(text)


@click.command(cls=Command, short_help="Estimate how long a copy will take.")
@click.argument("places", nargs=-1, metavar="SRC... DST")
@click.option(
    "--size", type=SIZE, help="Assume this many bytes in all (default: count sources on this host)."
)
@click.option(
    "--files",
    type=UnitType("count", parse_file_count),
    metavar="N",
    help="Assume this many files (default: count sources on this host; 1 with --size alone).",
)
@click.option(
    "--deadline",
    metavar="TIME",
    help="Say whether the copy is complete by then, and when it has to start: '2026-12-01 18:00',"
    " with an offset or a time zone such as Europe/Zurich behind it, or 36h from now.",
)
@click.option(
    "--start", metavar="TIME", help="Assume that the copy starts at this time (default now)."
)
@click.option(
    "--confidence",
    type=UnitType("confidence", _read_confidence),
    default="90%",
    metavar="SHARE",
    help="Reserve so that the copy is complete in time with this confidence (default 90%).",
)
@click.option(
    "--streams",
    type=click.IntRange(1, 1024),
    help="Assume this many streams (default: as the last copy over the path).",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1024),
    help="Assume this many files at a time (default: as the last copy over the path).",
)
@click.option(
    "--sample",
    type=SECONDS,
    help="Copy for this long first and learn from it; what arrives is kept, and a copy continues"
    " there (default: send nothing).",
)
@click.option(
    "--link",
    type=RATE,
    help="Assume that the slowest link has this rate, where no copy over the path has shown it"
    " (default: the fastest interface of this host).",
)
@click.option(
    "--rtt",
    type=SECONDS,
    help="Assume this round-trip time, where no copy over the path has shown it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the estimate as one JSON document.")
@store_option
def command(
    places: tuple[str, ...],
    size: float | None,
    files: float | None,
    deadline: str | None,
    start: str | None,
    confidence: float,
    streams: int | None,
    concurrency: int | None,
    sample: float | None,
    link: float | None,
    rtt: float | None,
    as_json: bool,
    store_path: Path | None,
) -> None:
    """Estimate how long a copy from SRC to DST will take, and how certain that is.

    Learns from every copy in the store: most from those over the same path, least from a model of
    published transfers; the interval shows how much is known. Sends nothing except a --sample.
    With --deadline, prints when the copy has to start, and what to reserve on the network, to meet
    the deadline.
    """
    from farline.copying.estimates import estimate_copy, question_of
    from farline.copying.locations import Location, read_endpoints

    ends = read_endpoints(places)

    def asked(sampled: str | None) -> tuple[Question, tzinfo | None]:
        return question_of(
            ends, time.time(), size_bytes=_whole(size), files=_whole(files), deadline=deadline,
            start=start, confidence=confidence, streams=streams, concurrency=concurrency,
            link_bps=link, rtt_s=rtt, sample=sampled,
        )  # fmt: skip

    question, zone = asked(None)
    if sample is not None:
        # Asked anew: the sample has taken time, and what cannot be asked is refused before it.
        question, zone = asked(_sampled(ends, sample, store_path))
    estimate = estimate_copy(ends, question, store_path)
    source = ", ".join(str(Location(ends.source_host, path)) for path in ends.sources)
    destination = str(Location(ends.destination_host, ends.destination))
    if as_json:
        from farline.estimating.document import document_of

        click.echo(json.dumps(document_of(estimate, source, destination, zone), indent=2))
        return
    from farline.cli.estimate_text import lines

    for line in lines(estimate, source, destination, zone):
        click.echo(line)


def _sampled(ends: Endpoints, seconds: float, store_path: Path | None) -> str:
    from farline.cli.common import interruptible
    from farline.copying.sample import take_sample

    with interruptible() as asked:
        return take_sample(ends, seconds, store_path, asked)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
