"""How far a copy is, in one line: for standard error that is no terminal, and below the bar."""

from __future__ import annotations

from collections.abc import Sequence

from farline.cli.copy.end import clock_text
from farline.copying.meter import Meter
from farline.spec.units import rate_human, size_human

LINE_WIDTH = 80


def progress_line(meter: Meter) -> str:
    """How far it is, in one line of at most 80 characters."""
    one = meter.latest
    if one is None:
        return "waiting for the other end"
    share, left_s = meter.share(), meter.left_s()
    done = f"{100 * share:5.1f} %" if share is not None else "      -"
    found = "" if one["all_found"] else "+"
    words = [
        f"{done} {size_human(one['settled_bytes'])} of {size_human(one['found_bytes'])}{found}",
        rate_human(meter.rate_now_bps()),
        *([f"{clock_text(left_s)} left"] if left_s is not None else []),
        *([f"{one['failed_files']} failed"] if one["failed_files"] else []),
        f"{one['settled_files']}/{one['found_files']}{found} files",
    ]
    return fitted(words, LINE_WIDTH)


def details(meter: Meter, width: int) -> str:
    """Bytes, files, failures, the rate on average, busy streams: as much as goes into one line."""
    one = meter.latest
    assert one is not None
    more = "" if one["all_found"] else "+"
    words = [
        f"{size_human(one['settled_bytes'])} of {size_human(one['found_bytes'])}{more}",
        *([f"{one['failed_files']} failed"] if one["failed_files"] else []),
        f"{one['settled_files']}/{one['found_files']}{more} files",
        clock_text(meter.elapsed_s),
        f"{rate_human(meter.rate_mean_bps())} on average",
        f"{one['busy_streams']} {'stream' if one['busy_streams'] == 1 else 'streams'} busy",
    ]
    return fitted(words, width)


def fitted(words: Sequence[str], width: int) -> str:
    """As many of `words` as go into one line, at least the first."""
    line, *rest = words
    for word in rest:
        if len(line) + 2 + len(word) > width:
            break
        line += f", {word}"
    return line
