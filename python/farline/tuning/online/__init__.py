"""Tuning while a copy runs: ticks of its three stages in, the count of streams and a reason out.

What it does: holds a setting, tries others for seconds, notices when the path has changed, bounds
what that costs, leaves room to others where it is asked to be polite; says how many files at once
the reading end needs, by what waits between its stages.

What it must not do: know a clock, a copy or a transport. Who drives a copy hands in a `Tick` every
half second and does what the decisions say.

```text
Tick ─► window: levels ─► controller: probe, keep, confirm, back, hold ─► Decision
                alarm: changes, noise ┘          └ account: what may be lost
Fills ─► sides: readers of the sending end ─► count
```

The rules and their constants are in docs/design/tune-online.md. Start with controller.py.
"""

from __future__ import annotations

from farline.tuning.online.controller import (
    Decision,
    OnlineController,
    OnlineSettings,
    Reason,
)
from farline.tuning.online.window import TICK_S, Tick

__all__ = ["TICK_S", "Decision", "OnlineController", "OnlineSettings", "Reason", "Tick"]
