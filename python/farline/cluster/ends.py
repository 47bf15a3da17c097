"""The two ends of a copy over nodes: their nodes, got and given back, and pairs of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from farline.cluster.crew import Lane, at_once
from farline.cluster.look import Node, look
from farline.cluster.nodes import Nodes, get_nodes
from farline.copying.connector import SshConnector
from farline.copying.locations import Endpoints, SshHost, ThisHost, working_folder
from farline.copying.remote_to_remote import RemoteToRemote
from farline.tools.host_layout import cpu_text
from farline.tools.ssh_command import SshCommand

if TYPE_CHECKING:
    from farline.copying.request import CopyRequest
    from farline.tools import StopQuestion
    from farline.tools.events import Steps

SILENT_S = 30.0
"""A node from which nothing has come for so long is given up: farline there speaks every 10 s."""
Place = tuple[SshHost, SshCommand]
"""A node, and how farline starts there."""
_ID_LETTERS = 32


class StreamPlacing(Enum):
    """Whether streams are placed on the CPUs beside interfaces; the values stand in records."""

    AUTO = "streams are placed beside their interfaces"
    OFF = "streams are not placed: --place-streams off"
    STATED = "streams are placed by --client-cpus and --server-cpus alone"

    @classmethod
    def of(cls, request: CopyRequest) -> StreamPlacing:
        """As a request asks for it."""
        if any(request.spec.get(name) for name in ("client_cpus", "server_cpus")):
            return cls.STATED
        return cls.OFF if request.place_streams == "off" else cls.AUTO


def _ask_alone(node: Node, ssh: SshCommand, should_stop: StopQuestion) -> None:
    """Starts a command on a node for one question."""
    try:
        node.start(ssh, should_stop)
        node.ask()
    finally:
        node.close()


@dataclass(eq=False, repr=False)
class NodeEnds:
    """Both ends, as they were asked for, and their nodes once they are here."""

    endpoints: Endpoints
    ssh: SshCommand | None
    server_words: list[str]
    placing: StreamPlacing = field(default=StreamPlacing.AUTO, kw_only=True)
    _ends: list[list[Nodes]] = field(default_factory=lambda: [[], []], init=False)
    """Of both ends what was got at once, and what came later; nothing where there are no nodes."""
    _capacities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, init=False)
    """What nodes have, by their names, once they were looked at."""
    _stream_places: dict[tuple[int, str], Mapping[str, Any]] = field(
        default_factory=dict, init=False
    )
    """By end and node the CPUs for streams there, and why these."""

    def _get_nodes(self, most: int | None, should_stop: StopQuestion) -> Steps[None]:
        """Nodes for each end that has none."""
        hosts = (self.endpoints.source_host, self.endpoints.destination_host)
        # What has an address first: this host finds its own by it.
        order = sorted((0, 1), key=lambda side: isinstance(hosts[side], ThisHost))
        for side in order:
            if self._ends[side]:
                continue
            peers: list[str] = []
            if isinstance(hosts[side], ThisHost):
                others = [(one.command, host) for one in self._ends[1 - side] for host in one.hosts]
                peers = [command.host_name(host.target, host.host) for command, host in others]
            self._ends[side].append(
                (yield from get_nodes(hosts[side], self.ssh, peers, most, should_stop))
            )

    def _lost(self) -> list[tuple[int, Nodes]]:
        """Nodes that their scheduler has taken back, with the end that they are of."""
        both = enumerate(self._ends)
        return [(side, nodes) for side, end in both for nodes in end if nodes.is_over()]

    def _give_up(self, lost: Sequence[tuple[int, Nodes]]) -> None:
        """Leaves nodes that were taken back; others stay where they are."""
        for side, nodes in lost:
            nodes.release()
            self._ends[side].remove(nodes)

    def _release_nodes(self) -> None:
        for nodes in (one for end in self._ends for one in end):
            nodes.release()
        self._ends = [[], []]

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

    # What nodes see and have

    def _look_at(
        self, lanes: Sequence[Lane], own_disks: tuple[bool, bool], should_stop: StopQuestion
    ) -> None:
        """Asks the nodes of pairs that have begun what they see and have.

        Raises:
            UsageError: when nodes do not see what they should.
        """
        sources = {
            lane.targets[0]: Node(
                lane.targets[0], lane.sessions.answering, self._place_question(0, lane)
            )
            for lane in lanes
        }
        sinks = {
            lane.targets[1]: Node(lane.targets[1], place=self._place_question(1, lane))
            for lane in lanes
        }
        # Of one sink alone there is nothing to compare.
        is_asked = len(sinks) > 1 or self.placing is StreamPlacing.AUTO
        by_name = {host.target: ssh for host, ssh in self._places(1)}
        started = {node: by_name[name] for name, node in sinks.items()} if is_asked else {}
        self._capacities = look(
            list(sources.values()), started, self._sources(), self._destination(), should_stop,
            own_disks,
        )  # fmt: skip
        self._note_places([*sources.values()], [*sinks.values()])

    def _look_at_later(self, lanes: Sequence[Lane], should_stop: StopQuestion) -> None:
        """Asks nodes that come later where streams run best there; one that fails is not asked."""
        if self.placing is not StreamPlacing.AUTO:
            return
        asked: list[list[Node]] = [[], []]
        works = []
        for side in (0, 1):
            by_name = {host.target: ssh for host, ssh in self._places(side)}
            for lane in {lane.targets[side]: lane for lane in lanes}.values():
                name = lane.targets[side]
                if (side, name) not in self._stream_places:
                    node = Node(name, place=self._place_question(side, lane))
                    asked[side].append(node)
                    works.append(partial(_ask_alone, node, by_name[name], should_stop))
        at_once(works)
        self._note_places(*asked)

    def _place_question(self, side: int, lane: Lane) -> Mapping[str, str] | None:
        """By which a node tells where streams of a pair run best: packets leave a source for the
        other node, and come to a sink at its own address."""
        if self.placing is not StreamPlacing.AUTO:
            return None
        towards = self._address(1 - side, lane.targets[1 - side])
        return (
            {"own": self._address(1, lane.targets[1]), "towards": towards}
            if side
            else {"towards": towards}
        )

    def _address(self, side: int, target: str) -> str:
        found = next(place for place in self._places(side) if place[0].target == target)
        return found[1].host_name(target, found[0].host)

    def _note_places(self, sources: Sequence[Node], sinks: Sequence[Node]) -> None:
        for side, nodes in enumerate((sources, sinks)):
            for node in nodes:
                self._stream_places[(side, node.name)] = node.has.get("place") or {
                    "why": "it does not say where streams run best"
                }

    def _place_streams(self, lanes: Sequence[Lane]) -> None:
        """Gives each pair the CPUs of its nodes; pairs that share a node begin at others."""
        for side in (0, 1):
            by_node: dict[str, list[Lane]] = {}
            for lane in lanes:
                by_node.setdefault(lane.targets[side], []).append(lane)
            for name, ours in by_node.items():
                cpus = list(self._stream_places.get((side, name), {}).get("cpus") or ())
                for number, lane in enumerate(ours):
                    first = number * len(cpus) // len(ours)
                    lane.cpus[side] = [*cpus[first:], *cpus[:first]]

    def _place_lines(self) -> list[str]:
        """Where streams run, for the record."""
        if self.placing is not StreamPlacing.AUTO:
            return [self.placing.value]
        placed, others = [], dict[str, list[str]]()
        for (_, name), place in self._stream_places.items():
            if place.get("cpus"):
                placed.append(f"{name}: streams on CPUs {cpu_text(place['cpus'])}: {place['why']}")
            else:
                others.setdefault(str(place["why"]), []).append(name)
        return [
            *placed,
            *(
                f"{', '.join(names)}: streams are not placed: {why}"
                for why, names in others.items()
            ),
        ]

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
