"""The emulated path of a process inside a testbed's host."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farline.spec.path_watch import PathWatch

INSIDE = "FARLINE_TESTBED"
"""Set inside a testbed's hosts, to its name."""


def inside_testbed() -> bool:
    """Whether this process runs on a testbed's host."""
    return bool(os.environ.get(INSIDE))


def path_watch(link: str | None = None) -> PathWatch | None:
    """What watches the emulated path here; None outside of testbeds.

    `link` is what records are to call the main link, if not what the testbed calls so.

    Raises:
        FarlineError: when the testbed is gone.
    """
    if not inside_testbed():
        return None
    from farline.testbeds import current_bed
    from farline.testbeds.run_watch import BedWatch

    here = current_bed()
    return None if here is None else BedWatch(here, link)
