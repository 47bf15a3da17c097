"""`farline.testbed`: hosts on this machine, joined by emulated links, while a block runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farline.testbeds import Testbed


def testbed(
    source: str | Path = "back-to-back", *, name: str | None = None, **settings: Any
) -> Testbed:
    """Brings up a preset, a TOML file or TOML text: `with farline.testbed(rtt_s="50ms") as bed:`.

    Settings are those of the main link (`rate_bps="1Gbit"`, `rtt_s`, `loss`, `capacity_bdp` ...)
    and parameters of the topology. It ends with the block, or with this process. Needs root, or
    user namespaces.

    Raises:
        UsageError: when there is no such preset or file, or a testbed of that `name` is up.
        SpecError: when a setting is unknown or not allowed.
        SystemFailure: when this machine lacks what a testbed needs; the line says what.
    """
    from farline.testbeds import Testbed as TestbedType
    from farline.testbeds import load

    return TestbedType.up(load(source, **settings), name)
