"""What the nodes of an end have, asked without a copy: capacities, and what they cannot answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from farline.cluster.crew import at_once
from farline.cluster.look import Node
from farline.cluster.nodes import get_nodes
from farline.copying.locations import Location, StandingServer, ThisHost, read_location
from farline.errors import FarlineError, ProtocolError, UsageError

if TYPE_CHECKING:
    from farline.tools import StopQuestion
    from farline.tools.events import Steps
    from farline.tools.ssh_command import SshCommand

_ENGINE = re.compile(r"(slurm|testbed):[^/]*")
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class SurveyedNode:
    """What one node has said, or why it has said nothing."""

    name: str
    address: str
    """Where its data go."""
    capacity: Mapping[str, Any]
    """As of `farline.copying.node_look.capacity`: what a node does not say is absent."""
    has_path: bool | None = None
    """Whether the path is there; None where it could not be asked."""
    error: FarlineError | None = None

    def document(self) -> dict[str, Any]:
        """As JSON: memory and disk in bytes, `nic_bps` in bit/s."""
        found = {"node": self.name, "address": self.address, **self.capacity}
        if self.has_path is not None:
            found["has_path"] = self.has_path
        if self.error is not None:
            found["error"] = self.error.failure()
        return found


@dataclass(frozen=True)
class Survey:
    """What was asked of whom, and what each node has."""

    location: Location
    nodes: tuple[SurveyedNode, ...]
    missing: int
    """Nodes that the engine did not have free."""

    @property
    def error(self) -> FarlineError | None:
        """What the first node failed with that did not answer."""
        return next((node.error for node in self.nodes if node.error is not None), None)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": 1,
            "place": str(self.location),
            "path": self.location.path,
            "nodes": [node.document() for node in self.nodes],
            "missing_nodes": self.missing,
        }


def read_place(text: str) -> Location:
    """Nodes as they are written for a copy; without a path, the root of their file systems is
    looked at.

    Raises:
        UsageError: for what names no nodes, or a server, which has no farline to ask.
    """
    if _ENGINE.fullmatch(text):
        text += "/"
    elif not set(":/") & set(text) and not text.startswith((".", "~")):
        text += ":/"
    location = read_location(text)
    if isinstance(location.host, StandingServer):
        raise UsageError(
            f"{location.host}: a server cannot be asked what it has; name nodes that ssh leads to, "
            "as in dtn[1-8]:/data, slurm:PARTITION:N/data, or a pool of pools.toml"
        )
    return location


def survey(location: Location, ssh: SshCommand | None, should_stop: StopQuestion) -> Steps[Survey]:
    """Gets the nodes, asks each what it has, and gives them back.

    Raises:
        FarlineError: when an engine has no nodes, or cannot be asked. A node that does not answer
            is part of the result.
    """
    host, path = location.host, location.path
    peers = [_LOOPBACK] if isinstance(host, ThisHost) else []
    nodes = yield from get_nodes(host, ssh, peers, None, should_stop)
    try:
        asked = [(Node(one.target), one) for one in nodes.hosts]
        yield None
        at_once([partial(_ask, node, nodes.command, path, should_stop) for node, _ in asked])
        found = [
            _surveyed(node, nodes.command.host_name(one.target, one.host)) for node, one in asked
        ]
    finally:
        nodes.release()
    return Survey(location, tuple(found), nodes.missing)


def _ask(node: Node, ssh: SshCommand, path: str, should_stop: StopQuestion) -> None:
    """Starts farline there for one question; what it says stands in the node."""
    try:
        node.start(ssh, should_stop)
        node.ask(see=[path], capacity=path)
    finally:
        node.close()


def _surveyed(node: Node, address: str) -> SurveyedNode:
    capacity = node.has.get("capacity") or {}
    seen = (node.has.get("seen") or [None])[0]
    error = node.error
    if error is None and not node.has:
        error = ProtocolError(f"{node.name}: farline on that host gave no answer; try again")
    return SurveyedNode(node.name, address, capacity, seen, error)
