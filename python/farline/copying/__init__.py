"""Copies as jobs: files moved between this host and others, or between two others.

What it does: finds the way to the other end and lets the engine move the files, session after
session, until all is there or there is no use; keeps what came of it.

What it must not do: read, write or name a file that is copied, which the engine does; print, ask
or parse a command line; import what a copy of a few small files does without. The engine is begun
before anything is imported that the end needs: such a copy takes less time than the imports.

In: a `CopyRequest` (`request`: ends, spec, how it is reached, repeated and kept). Out: events of
`farline.tools.events` while it goes on, then a `CopyResult`: record, error, receipt, exit code.

```python
job = CopyJob(CopyRequest.between("results/", "user@dtn:/archive/"))
for event in job:
    ...
result = job.wait().checked()
```

Start with `job.CopyJob`; then `session` (one attempt), `retry` (the next one), `connector` (how the
other end is reached), `record_keeper`. A copy between two other hosts: `remote_to_remote` here,
`order` there.
"""

from __future__ import annotations

from farline.copying.job import CopyJob, CopyResult
from farline.copying.request import CopyRequest, DataPath, NameList

__all__ = ["CopyJob", "CopyRequest", "CopyResult", "DataPath", "NameList"]
