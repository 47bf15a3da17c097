"""Nodes of both ends: asked for where there are none, and kept where another end lost its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from farline.cluster import ends as ends_module
from farline.cluster.ends import NodeEnds
from farline.cluster.nodes import Nodes
from farline.copying.locations import Endpoints, Host, SshHost
from farline.errors import BusyError
from farline.tools import never_stop
from farline.tools.ssh_command import SshCommand
from tests.support.steps import finished

if TYPE_CHECKING:
    from farline.tools.events import Steps


class Scheduler:
    """Gives a node to whoever asks, until it takes it back or has none."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gone: set[str] = set()
        self.released: list[str] = []
        self.is_full = False

    def get_nodes(
        self, host: Host, ssh: Any, peers: Sequence[str], most: Any, should_stop: Any
    ) -> Steps[Nodes]:
        """The node of an end, named by how often it was asked for."""
        assert isinstance(host, SshHost)
        yield None
        if self.is_full and host.target == "sink":
            raise BusyError("full")
        self.asked.append(host.target)
        name = f"{host.target}{self.asked.count(host.target)}"
        return Nodes(
            (SshHost(name),), SshCommand(), lambda: self.released.append(name),
            lambda: name in self.gone,
        )  # fmt: skip


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    found = Scheduler()
    monkeypatch.setattr(ends_module, "get_nodes", found.get_nodes)
    return found


def both() -> NodeEnds:
    """The ends of a copy between two pools."""
    source, sink = SshHost("source"), SshHost("sink")
    return NodeEnds(Endpoints(source, ("/a",), sink, "/b"), None, [])


def names(found: NodeEnds) -> list[list[str]]:
    """Targets of the nodes of each end."""
    return [[host.target for host, _ in found._places(side)] for side in (0, 1)]


def test_an_end_whose_nodes_were_taken_back_gets_others_and_the_other_end_keeps_its_own(
    scheduler: Scheduler,
) -> None:
    found = both()
    finished(found._get_nodes(None, never_stop))
    assert names(found) == [["source1"], ["sink1"]] and found._lost() == []
    scheduler.gone.add("sink1")
    found._give_up(found._lost())
    finished(found._get_nodes(None, never_stop))
    assert names(found) == [["source1"], ["sink2"]]
    assert scheduler.released == ["sink1"]
    found._release_nodes()
    assert scheduler.released == ["sink1", "source1", "sink2"] and names(found) == [[], []]


def test_nodes_of_one_end_wait_for_those_of_the_other(scheduler: Scheduler) -> None:
    found, scheduler.is_full = both(), True
    with pytest.raises(BusyError):
        finished(found._get_nodes(None, never_stop))
    scheduler.is_full = False
    finished(found._get_nodes(None, never_stop))
    assert names(found) == [["source1"], ["sink1"]] and scheduler.asked == ["source", "sink"]
