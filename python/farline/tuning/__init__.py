"""How to use a path: which streams, files at once and pipelining, found with few samples.

What it does: turns past transfers and samples into a belief about settings, proposes the next
sample, stops for a recorded reason, chooses. Streams alone, three knobs, and streams, stripes and
nodes (Yildirim and Kosar 2011).

What it must not do: open a connection or a file (the job's sampler and store do); take a setting
whose predicted gain over the default is inside the noise; hide the default.

In: `PastTransfer` rows, a `Situation`, samples. Out: the next `Setting`, then a `Choice`.

```text
Situation ─► grids: settings, prior ─┐
PastTransfer ─► history: groups ─────┴─► belief ─► search: next, learn, reason ─► choice
                                                      ▲ │
                                       sampling: a run's record as a sample
nodes: streams, then stripes, then nodes, by themselves
```

All of these are pure: the same history and samples give the same steps. `job` is the shell around
them; `farline.api.tuning` has the samplers that reach hosts. Start with belief.py, then search.py.
docs/design/tuning.md says where the constants come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farline.tuning.choice import Choice, Cost, Expectation
    from farline.tuning.job import TuneJob, TuneRequest, TuneResult
    from farline.tuning.nodes import NodeSearch
    from farline.tuning.search import BeliefSearch, BracketSearch, Sample
    from farline.tuning.situation import Setting, Situation

__all__ = [
    "BeliefSearch",
    "BracketSearch",
    "Choice",
    "Cost",
    "Expectation",
    "NodeSearch",
    "Sample",
    "Setting",
    "Situation",
    "TuneJob",
    "TuneRequest",
    "TuneResult",
]

_PLACES = {
    "BeliefSearch": "search",
    "BracketSearch": "search",
    "Choice": "choice",
    "Cost": "choice",
    "Expectation": "choice",
    "NodeSearch": "nodes",
    "Sample": "search",
    "Setting": "situation",
    "Situation": "situation",
    "TuneJob": "job",
    "TuneRequest": "job",
    "TuneResult": "job",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for when it is."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
