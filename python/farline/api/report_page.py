"""The page of a campaign, whatever it measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.campaign.contention.names import journal_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from farline.store import Store


def write_page(
    store: Store, campaign: str, folder: Path, formats: Sequence[str], count_invalid: bool = False
) -> Path:
    """Writes `report.html` and its figures of a campaign into `folder`; the page's path.

    `formats` are those of the figures, `png` and `svg`; without any the page alone is written.

    Raises:
        UsageError: when there is no such campaign, or nothing of it can be drawn.
        SystemFailure: when the folder cannot be written.
    """
    if store.campaign_name(campaign) in journal_names(store):
        # Only here: it knows of all tools and transports, and takes its time to import.
        from farline.api.contention import report_of_contention

        return report_of_contention(store, campaign, folder, formats, count_invalid)
    from farline.plots.report import write_report

    return write_report(store.path, campaign, folder, formats, count_invalid)
