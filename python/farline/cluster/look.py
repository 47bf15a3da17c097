"""Whether the nodes of each end see the same files, and what each can do, before a copy begins."""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from farline.cluster.crew import at_once
from farline.copying.event_lines import ORDER_SCHEMA
from farline.copying.node_look import LOOKED, PREFIX
from farline.errors import FarlineError, ProtocolError, UsageError, VersionError
from farline.logs import Log
from farline.spec.units import counted, rate_human, size_human
from farline.tools.job import result_of
from farline.tools.ssh import RemoteCommand

if TYPE_CHECKING:
    from farline.tools import StopQuestion
    from farline.tools.ssh_command import SshCommand

_LOG = Log(__name__)
ANSWER_S = 15.0
"""A node that does not answer for so long is not waited for: it is asked nothing."""
_BROKEN_S = 0.5
"""What failed to start gets so long to end by itself."""


@dataclass(eq=False)
class Node:
    """One node, and the command that answers there, if any does."""

    name: str
    command: RemoteCommand | None = None
    place: Mapping[str, str] | None = None
    """By which its streams are placed, where they are to be: `own` and `towards`, addresses of this
    node and of one that it exchanges data with."""
    has: dict[str, Any] = field(default_factory=dict)
    """What it has said so far."""
    error: FarlineError | None = None
    """Why it cannot be asked."""

    def start(self, ssh: SshCommand, should_stop: StopQuestion) -> None:
        """Starts a command; one that does not start, or cannot be asked, is none."""
        command: RemoteCommand | None = None
        try:
            command = RemoteCommand(ssh, self.name, ["copy", "--order"])
            ready: Mapping[str, Any] = result_of(command.start(should_stop))
            data = ready.get("data")
            if isinstance(data, dict) and data.get("looks"):
                self.command = command
                return
            self.error = VersionError(
                f"{self.name}: farline on that host is older and cannot say what the node has: "
                "install this version there"
            )
        except FarlineError as error:
            self.error = error
        _LOG.debug("a node was not looked at", node=self.name, reason=str(self.error))
        if command is not None:
            command.close(_BROKEN_S)

    def ask(self, **question: Any) -> None:
        """Asks, and keeps what it says."""
        if self.command is None:
            return
        if self.place is not None:
            question["place"] = dict(self.place)
        self.command.send({"schema": ORDER_SCHEMA, "look": question})
        until = time.monotonic() + ANSWER_S
        try:
            while time.monotonic() < until:
                line = self.command.line(0.1)
                if line is not None and line.get("event") == LOOKED:
                    self.has.update(line["data"])
                    return
        except FarlineError as error:
            self.error = error
        except (TypeError, ValueError) as error:
            self.error = ProtocolError(f"{self.name}: invalid answer: {error!r}")
        _LOG.debug("a node gave no answer", node=self.name, reason=str(self.error))

    def close(self) -> None:
        """Ends it, and so what was made there."""
        if self.command is not None:
            self.command.close()
        self.command = None


def look(
    sources: Sequence[Node],
    sinks: Mapping[Node, SshCommand],
    paths: Sequence[str],
    destination: str,
    should_stop: StopQuestion,
    own_disks: tuple[bool, bool] = (False, False),
) -> dict[str, dict[str, Any]]:
    """Capacities of the nodes by their names. Those of the source answer already; on those of the
    destination a command is started for the time of this. `own_disks` says of each end whether its
    nodes are to have disks of their own, and not to see the same files.

    Nodes that cannot be asked, since their farline is older, are taken to be as the others.

    Raises:
        UsageError: when a node does not see what another one of its end does, or does where it
            should have a disk of its own.
    """
    others = list(sinks)
    try:
        at_once([partial(node.start, ssh, should_stop) for node, ssh in sinks.items()])
        plain = [path for path in paths if not any(sign in path for sign in "*?[")]
        at = (plain or ["/"])[0]
        at_once([partial(one.ask, see=plain, capacity=at) for one in sources])
        if not own_disks[0]:
            _check_sources(sources, plain)
        _check_sinks(others, destination, own_disks[1])
        found = [(node.name, node.has.get("capacity")) for node in (*sources, *others)]
        return {name: has for name, has in found if has}
    finally:
        at_once([node.close for node in others])


def _check_sources(nodes: Sequence[Node], paths: Sequence[str]) -> None:
    """A path that one node sees is there for all."""
    told = [(node.name, node.has["seen"]) for node in nodes if node.has.get("seen")]
    for at, path in enumerate(paths):
        there = [name for name, seen in told if seen[at]]
        away = [name for name, seen in told if not seen[at]]
        if there and away:
            raise UsageError(
                f"{away[0]} does not see {path}, which is on {there[0]}: the nodes of one end must "
                "see the same files; leave that node out, or, if each node has a disk of its own, "
                "use --own-disks source"
            )


def _check_sinks(nodes: Sequence[Node], destination: str, own_disks: bool) -> None:
    """What one node makes, the others see; where they have disks of their own, none does."""
    first = next((node for node in nodes if node.command is not None), None)
    if first is None:
        return
    if len(nodes) == 1:
        first.ask(capacity=destination)
        return
    first.ask(make=destination, name=f"{PREFIX}{secrets.token_hex(16)}", capacity=destination)
    made = first.has.get("made")
    others = [node for node in nodes if node is not first]
    see = [made] if made else []
    at_once([partial(one.ask, see=see, capacity=destination) for one in others])
    for other in others:
        if made and own_disks and other.has.get("seen") == [True]:
            raise UsageError(
                f"{other.name} sees what {first.name} writes at {destination}: these nodes share a "
                "file system there; leave --own-disks out, and all of them carry every file"
            )
        if made and not own_disks and other.has.get("seen") == [False]:
            raise UsageError(
                f"{other.name} does not see what {first.name} writes at {destination}: the nodes "
                "of one end must share a file system there; leave that node out, or, if each node "
                "has a disk of its own, place whole files on them with --own-disks destination"
            )


def shares(
    pairs: Sequence[tuple[str, str]], capacities: Mapping[str, Mapping[str, Any]]
) -> list[float]:
    """How fast the interfaces of each pair of nodes are beside those of the fastest, 0 to 1.

    Pairs that have a node in common share its interface. What is not known bounds nothing.
    """
    used = Counter(name for pair in pairs for name in pair)
    rates = []
    for pair in pairs:
        speeds = [(capacities.get(name, {}).get("nic_bps"), used[name]) for name in pair]
        rates.append(min((speed / many for speed, many in speeds if speed), default=math.inf))
    most = max((rate for rate in rates if rate < math.inf), default=math.inf)
    return [1.0 if rate == math.inf else rate / most for rate in rates]


def capacity_text(name: str, capacity: Mapping[str, Any]) -> str:
    """What a node has, as one line."""
    words = [counted(int(capacity["cpus"]), "CPU")] if "cpus" in capacity else []
    if memory := capacity.get("memory_bytes"):
        words.append(f"{size_human(memory)} of memory")
    if speed := capacity.get("nic_bps"):
        words.append(f"interface {rate_human(speed)}")
    if free := capacity.get("free_bytes"):
        words.append(f"{size_human(free)} free")
    return f"{name}: {', '.join(words)}"
