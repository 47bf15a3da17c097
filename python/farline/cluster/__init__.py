"""Many nodes as one endpoint, started by an engine that people already run.

What it does: gets nodes (Slurm, ssh, a testbed, a command of one's own), has farline run on them,
cuts a copy into parts that node pairs carry at the same time, and ends it as one copy: one receipt,
one progress, one resume.
What it must not do: move bytes; schedule nodes itself; decide what a file is or when it is whole
(the copy protocol does); print.
In: a `CopyRequest` with an end of several nodes (`farline.copying.pools`). Out: `Sessions`, which
`CopyJob` drives as any other.
Start with `copy_job` and `sessions.NodeSessions`, then `plan` (parts) and `crew` (who carries
them); for nodes with disks of their own with `own_disks` and `placement`.
"""

from farline.cluster.copy_job import copy_job

__all__ = ["copy_job"]
