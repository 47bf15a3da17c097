"""farline measures, explains and moves bulk data over long fat networks.

```python
import farline

with farline.serve() as server:
    run = farline.probe(server.ticket(), duration_s="2s").wait()
print(run.throughput_bps, run.verdict["line"])
```

Jobs: `probe`, `profile`, `contend`, `copy`, `tune`, `measure_storage`. Each goes on in a thread of
its own, gives events as it is iterated (`async for` as well), ends with `.wait()` or `await`, and
stops by `.cancel()`. For as long as a block runs: `serve`, `testbed`. Before a copy:
`estimate`. Names on another host, without a copy: `open_folder`.
Questions to what was measured: `open_store`, `ingest`, `throughput_profile`, `explain`, `report`.
Failures are `farline.errors`, all of `FarlineError`.

Names are imported when they are first used. ARCHITECTURE.md has the rooms behind them.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "Campaign",
    "Contention",
    "Copy",
    "Estimate",
    "FarlineError",
    "Folder",
    "PartialCopy",
    "Run",
    "Server",
    "StorageMeasurement",
    "Store",
    "ThroughputProfile",
    "Tune",
    "contend",
    "copy",
    "estimate",
    "explain",
    "ingest",
    "measure_storage",
    "open_folder",
    "open_store",
    "probe",
    "profile",
    "report",
    "serve",
    "testbed",
    "throughput_profile",
    "tune",
]

_ROOMS = {
    "Campaign": "api.campaign",
    "Contention": "api.contention",
    "Copy": "api.copy",
    "Estimate": "api.estimate",
    "FarlineError": "errors",
    "Folder": "api.folder",
    "PartialCopy": "api.copy",
    "Run": "api.run",
    "Server": "api.serving",
    "StorageMeasurement": "api.storage",
    "Store": "store",
    "ThroughputProfile": "profiles.throughput_profile",
    "Tune": "api.tuning",
    "contend": "api.contention",
    "copy": "api.copy",
    "estimate": "api.estimate",
    "explain": "api.measurements",
    "ingest": "api.measurements",
    "measure_storage": "api.storage",
    "open_folder": "api.folder",
    "open_store": "api.stores",
    "probe": "api.run",
    "profile": "api.campaign",
    "report": "api.measurements",
    "serve": "api.serving",
    "testbed": "api.testbeds",
    "throughput_profile": "api.measurements",
    "tune": "api.tuning",
}
"""Where each name is; `__init__.pyi` says the same to type checkers."""


def __getattr__(name: str) -> Any:
    """Imports what is asked for when it is (PEP 562), so that `import farline` is quick."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"farline.{_ROOMS[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
