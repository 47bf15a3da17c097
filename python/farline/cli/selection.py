"""The filters that `runs` and `export` share, and the store they look into."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.cli.words import Words
from farline.spec.values import option_at
from farline.store import RunFilter
from farline.store.filters import read_since, read_where

if TYPE_CHECKING:
    from farline.store import Store

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILTERS = (
    click.option("--campaign", metavar="NAME|last", help="Select runs of this campaign."),
    click.option(
        "--transport",
        type=Words(option_at("transport").choices),
        help="Select runs over this transport.",
    ),
    click.option(
        "--status",
        type=Words(["complete", "partial", "failed"]),
        help="Select runs with this outcome.",
    ),
    click.option(
        "--since", metavar="TIME", help="Select runs since a date, a time, or an age such as 2h."
    ),
    click.option(
        "--where",
        multiple=True,
        metavar="OPTION=VALUES",
        help="Select runs with these values, such as streams=1,4 or tcp.mss_bytes=none.",
    ),
)


def filter_options(command: _Command) -> _Command:
    """`--campaign`, `--transport`, `--status`, `--since`, `--where`."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


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
