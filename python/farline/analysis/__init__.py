"""Measurements of any origin into profiles, coefficients, comparisons, causes and a page.

What it does: takes in logs of other tools (`ingest`); opens logs, Parquet files, a store and
tables of an engine as one (`open_measurements`); of what a selection means makes profiles over
round-trip time (`throughput_profiles`), comparisons (`compare`, `compare_method`), sites beside
each other (`sites`), causes (`explain`) and the page (`report`).

What it must not do: print, parse a command line, read a format itself (that is `ingest`'s), do
the arithmetic of profiles, models or causes (that is in the rooms of these names), draw.

In: names of files, a `Store`, an `Infrastructure`, a `Selection`, a `Shape`. Out: frozen values,
those that figures are drawn from among them, with sentences on what does not count.

```python
with open_measurements(["gridftp.log"], infrastructure=Path("sites.toml")) as source:
    views, left_out = throughput_profiles(source, select(modality="E"), by=["streams"])
```

Start with `open_measurements` in sources.py, then cells.py and views.py; page.py for all at once.
"""

from __future__ import annotations

from farline.analysis.comparison import Compared, ComparedMethod, compare, compare_method
from farline.analysis.intake import Refused, Taken, ingest
from farline.analysis.measured import Explained, explain
from farline.analysis.page import Sites, report, sites
from farline.analysis.reading import Reading
from farline.analysis.selection import select
from farline.analysis.sources import Measurements, open_measurements
from farline.analysis.views import Shape, throughput_profiles
from farline.store.transfers import Selection

__all__ = [
    "Compared",
    "ComparedMethod",
    "Explained",
    "Measurements",
    "Reading",
    "Refused",
    "Selection",
    "Shape",
    "Sites",
    "Taken",
    "compare",
    "compare_method",
    "explain",
    "ingest",
    "open_measurements",
    "report",
    "select",
    "sites",
    "throughput_profiles",
]
