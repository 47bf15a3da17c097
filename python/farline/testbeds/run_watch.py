"""What a run's record says of the testbed around it: from marks, stamps and samples of the bed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from farline.spec.path_watch import PathSeen
from farline.testbeds.record import CurrentBed, path_record

if TYPE_CHECKING:
    from farline.spec._types import Topology


@dataclass(frozen=True)
class BedWatch:
    """Watches runs of a client on a testbed's host.

    Records call `link` the main link, where one is named: it is the link that the runs are about.
    """

    here: CurrentBed
    link: str | None = None

    def start(self) -> int:
        """Marks where a run begins; samples of the links from before it are let go."""
        self.here.bed.link_samples()
        return self.here.bed.mark()

    def finish(self, mark: int, server_address: str) -> PathSeen | None:
        """The path since `mark`; None where the server is on no other host of the testbed."""
        address = _host_part(server_address)
        server = self.here.host_of(address)
        if server is None or server == self.here.host:
            return None
        bed = self.here.bed
        path = path_record(bed, self.here.host, server, bed.stamp(mark), address)
        if self.link is not None:
            topology = {**(path["topology"] or {}), "main_link": self.link}
            path = {**path, "topology": cast("Topology", topology)}
        return PathSeen(path, bed.link_samples())


def _host_part(address: str) -> str:
    """`10.77.0.2:5470` without its port, `[fd77::1]:5470` without its brackets too."""
    return address.rpartition(":")[0].strip("[]")
