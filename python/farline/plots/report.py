"""The report of a campaign: one page for a browser, figures for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from farline.errors import SystemFailure
from farline.plots.data import LAST, CampaignData, load_campaign
from farline.plots.whole_file import write_whole

PAGE = "report.html"
FORMATS = ("png", "svg")


def write_report(
    store_path: Path,
    campaign: str,
    out_dir: Path,
    formats: Sequence[str] = FORMATS,
    count_invalid: bool = False,
) -> Path:
    """Write `report.html` and `figures/` into `out_dir`; returns the page's path.

    `campaign` is a campaign's name or "last". What is there under the same names is replaced;
    the page appears whole or not at all. With `count_invalid` runs count too whose emulated path
    did not do what it should.

    Raises:
        UsageError: no such store or campaign.
        SystemFailure: the folder cannot be written.
    """
    data = load_campaign(store_path, campaign or LAST, count_invalid)
    return write_campaign(data, out_dir, formats)


def write_campaign(data: CampaignData, out_dir: Path, formats: Sequence[str] = FORMATS) -> Path:
    """The same from values that are already in memory."""
    from farline.plots.figures import write_figures
    from farline.plots.page import render_page

    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        figures = write_figures(data, out_dir / "figures", formats) if formats else []
        page = out_dir / PAGE
        write_whole(page, render_page(data, [path.name for path in figures]))
    except OSError as error:
        raise SystemFailure(f"{out_dir}: cannot write the report: {error.strerror}") from error
    return page
