"""The filters that `runs` and `export` share, and the store they look into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.spec.values import option_at
from farline.store import RunFilter
from farline.store.filters import read_since, read_where

if TYPE_CHECKING:
    from farline.store import Store

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILTERS = (
    click.option("--campaign", help="Only runs of this campaign (a name, or last)."),
    click.option(
        "--transport",
        type=click.Choice(option_at("transport").choices),
        help="Only this one.",
    ),
    click.option(
        "--status", type=click.Choice(["complete", "partial", "failed"]), help="Only such runs."
    ),
    click.option("--since", metavar="TIME", help="Since a date, a time, or an age such as 2h."),
    click.option(
        "--where",
        multiple=True,
        metavar="OPTION=VALUES",
        help="Only runs with these values, such as streams=1,4 or tcp.mss_bytes=none.",
    ),
)


def filter_options(command: _Command) -> _Command:
    """`--campaign`, `--transport`, `--status`, `--since`, `--where`."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def store_option(command: _Command) -> _Command:
    """`--store PATH` of a command that only reads."""
    return click.option(
        "--store",
        "store_path",
        type=click.Path(path_type=Path, file_okay=False),
        help="Where runs are kept [$FARLINE_STORE, or farline/store under $XDG_DATA_HOME].",
    )(command)


def read_filter(
    store: Store,
    campaign: str | None,
    transport: str | None,
    status: str | None,
    since: str | None,
    where: tuple[str, ...],
) -> RunFilter:
    """The filter that the options say.

    Raises:
        SpecError: for a time or a value that cannot be read.
        UsageError: for a campaign that is not there.
    """
    return RunFilter(
        campaign=store.campaign_name(campaign) if campaign else None,
        transport=transport,
        status=status,
        since=read_since(since) if since else None,
        where=read_where(where),
    )
