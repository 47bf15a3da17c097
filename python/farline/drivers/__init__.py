"""Tools of other makers, driven: each moves data or measures as farline's own engine does.

What it does: one file per tool. A driver says what its tool can do in farline's words
(`abilities`), makes the command lines of both ends from a run spec, and reads what came of it.
The room starts and ends the tool's own servers on this host, on a host of a testbed or over ssh,
gives every process a time-out, looks at the destination itself, and makes a `RunRecord` like any
other, in which what the tool does not say stays unknown.

What it must not do: keep results, judge them, print, decide what to run; invent a figure; put a
password or a key where other users of a host see it.

In: a target, a run spec whose `tool` names the driver, and a place for each end. Out: a
`RunResult` of `farline.tools`, whose record has what the tool said under `driven`. Failures are
`farline.errors`.

```text
 RunSpec ─► words (taken, or refused by name) ─► driver ─► command lines ─► processes ─► places
                                                   ▲                           │
 RunRecord ◄─ record ◄─ figures ◄─ driver.read ◄───┴── output, wall clock ◄────┘
                           ▲── destination: sizes and hashes
```

Start with `driver.py` (`Driver`), then `driven_tool.py` (`DrivenTool`), then `iperf3.py` for a
tester and `scp.py` for a mover. `catalogue.py` lists the drivers.
"""

from farline.drivers.catalogue import NATIVE, drivers, find_driver, tool_of
from farline.drivers.driven_tool import DrivenTool
from farline.drivers.driver import Abilities, Driver
from farline.drivers.places import Here, InHost, OverSsh, Place, Standing
from farline.drivers.words import resolve_driven

__all__ = [
    "NATIVE",
    "Abilities",
    "DrivenTool",
    "Driver",
    "Here",
    "InHost",
    "OverSsh",
    "Place",
    "Standing",
    "drivers",
    "find_driver",
    "resolve_driven",
    "tool_of",
]
