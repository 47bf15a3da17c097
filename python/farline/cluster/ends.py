"""The two ends of a copy over nodes: their nodes, got and given back, and pairs of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farline.cluster.crew import Lane
from farline.cluster.nodes import Nodes, get_nodes
from farline.copying.connector import SshConnector
from farline.copying.locations import Endpoints, SshHost, ThisHost, working_folder
from farline.copying.remote_to_remote import RemoteToRemote
from farline.tools.ssh import SshCommand

if TYPE_CHECKING:
    from farline.tools import StopQuestion
    from farline.tools.events import Steps

SILENT_S = 30.0
"""A node from which nothing has come for so long is given up: farline there speaks every 10 s."""
Place = tuple[SshHost, SshCommand]
"""A node, and how farline starts there."""
_ID_LETTERS = 32


@dataclass(eq=False, repr=False)
class NodeEnds:
    """Both ends, as they were asked for, and their nodes once they are here."""

    endpoints: Endpoints
    ssh: SshCommand | None
    server_words: list[str]
    _ends: list[list[Nodes]] = field(default_factory=list, init=False)
    """Of both ends what was got at once, and what came later."""

    def _get_nodes(self, most: int | None, should_stop: StopQuestion) -> Steps[None]:
        ends = self.endpoints
        hosts = (ends.source_host, ends.destination_host)
        # What has an address first: this host finds its own by it.
        order = sorted((0, 1), key=lambda side: isinstance(hosts[side], ThisHost))
        got: dict[int, Nodes] = {}
        for side in order:
            peers: list[str] = []
            if isinstance(hosts[side], ThisHost):
                other = got[1 - side]
                peers = [other.command.host_name(host.target, host.host) for host in other.hosts]
            nodes = yield from get_nodes(hosts[side], self.ssh, peers, most, should_stop)
            got[side] = nodes
            self._ends.append([nodes])
        self._ends = [[got[0]], [got[1]]]

    def _release_nodes(self) -> None:
        for nodes in (one for end in self._ends for one in end):
            nodes.release()
        self._ends = []

    def _places(self, side: int) -> list[Place]:
        """Nodes of an end, and how farline starts on each."""
        return [(host, nodes.command) for nodes in self._ends[side] for host in nodes.hosts]

    def _lane(self, number: int, source: Place, sink: Place) -> Lane:
        destination = self._destination()
        connector = SshConnector(sink[0], sink[1], "write", self.server_words)
        ends = Endpoints(source[0], self.endpoints.sources, sink[0], destination)
        settings = {"retries": 0, "retry_for_s": 0.0, "most_streams": None}
        sessions = RemoteToRemote(
            source[1], source[0], connector, ends, settings, keeps=True, silent_s=SILENT_S
        )
        targets = (source[0].target, sink[0].target)
        return Lane(number, " to ".join(targets), sessions, destination, targets=targets)

    # What is asked for

    def _destination(self) -> str:
        """A folder, whether it is there or not: all sessions must take it for the same."""
        path = self.endpoints.destination
        if isinstance(self.endpoints.destination_host, ThisHost) and not path.startswith("/"):
            path = f"{working_folder()}/{path}"
        return path if path.endswith("/") else f"{path}/"

    def _sources(self) -> tuple[str, ...]:
        if not isinstance(self.endpoints.source_host, ThisHost):
            return self.endpoints.sources
        here = working_folder()
        return tuple(
            path if path.startswith("/") else f"{here}/{path}" for path in self.endpoints.sources
        )

    def _id(self, *more: str) -> str:
        """What the copy is known by: the same ends are the same copy, whatever its nodes are.

        `more` tells apart what are copies of their own.
        """
        ends = self.endpoints
        said = [
            str(ends.source_host),
            *self._sources(),
            str(ends.destination_host),
            self._destination(),
            *more,
        ]
        return hashlib.sha256("\0".join(said).encode("utf-8", "surrogateescape")).hexdigest()[
            :_ID_LETTERS
        ]
