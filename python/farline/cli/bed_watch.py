"""What a run's record says of the testbed around it: from marks, stamps and samples of the bed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.campaign.path_watch import PathSeen

if TYPE_CHECKING:
    from farline.testbed import CurrentBed


@dataclass(frozen=True)
class BedWatch:
    """Watches runs of a client on a testbed's host."""

    here: CurrentBed

    def start(self) -> int:
        """Marks where a run begins; samples of the links from before it are let go."""
        self.here.bed.link_samples()
        return self.here.bed.mark()

    def finish(self, mark: int, server_address: str) -> PathSeen | None:
        """The path since `mark`; None where the server is on no other host of the testbed."""
        from farline.testbed import path_record

        server = self.here.host_of(_host_part(server_address))
        if server is None or server == self.here.host:
            return None
        bed = self.here.bed
        path = path_record(bed, self.here.host, server, bed.stamp(mark))
        return PathSeen(path, bed.link_samples())


def _host_part(address: str) -> str:
    """`10.77.0.2:5470` without its port, `[fd77::1]:5470` without its brackets too."""
    return address.rpartition(":")[0].strip("[]")
