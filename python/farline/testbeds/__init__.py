"""Testbeds: hosts on one machine, joined by emulated links.

What it does: reads topologies and presets (`topology`), starts one *keeper* process per bed
that owns the emulator and the hosts' namespaces (`keeper`, spoken to through `control`), runs
programs inside hosts (`host`), changes links while they carry traffic (`bed`), caps CPU and
disks (`caps`), raises the kernel's limits on TCP memory meanwhile (`kernel`), and leaves
nothing behind whatever dies (`state`). `record` puts the path into a run's record, `fixture`
gives beds to tests.

What it must not do: move or delay a packet (the extension's emulator does), measure anything
(`campaign` does, inside hosts), print. It imports nothing of `campaign`, `plots`, `store`.

In: topology documents (TOML with units, presets, overrides). Out: running hosts, link
samples, counters, validity stamps, `EmulatedPath` documents; `farline.errors` with one line.

```text
 preset, TOML ─► topology.load ─► Testbed.up ─► keeper process ─► _native.Emulator
                                     │               │ unix socket, JSON lines
   hosts["a"].run([...]) ◄───────────┴───────────────┘
```

Namespaces exist only as open files of the keeper: when it dies the kernel removes them. What
the kernel does not remove is written down in the bed's folder before it is made, and the next
`up`, `down` or `list` works it off.

Start with `bed.Testbed`, then `keeper.main`, then `state.recover`.
"""

from farline.testbeds.bed import Testbed, take_down
from farline.testbeds.host import Host
from farline.testbeds.record import CurrentBed, current_bed, path_record
from farline.testbeds.state import BedInfo, list_beds, sweep
from farline.testbeds.topology import load, presets

__all__ = [
    "BedInfo",
    "CurrentBed",
    "Host",
    "Testbed",
    "current_bed",
    "list_beds",
    "load",
    "path_record",
    "presets",
    "sweep",
    "take_down",
]
