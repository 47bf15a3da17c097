"""What is said of pairs of nodes that are given up."""

from __future__ import annotations

from typing import cast

import pytest

from farline.cluster.changes import Changes
from farline.cluster.crew import Crew, Lane
from farline.cluster.parts_queue import PartsQueue
from farline.copying.remote_to_remote import RemoteToRemote
from farline.errors import SystemFailure
from farline.tools import never_stop


@pytest.mark.parametrize(
    ("left", "told"),
    [(1, "the others take over its part"), (0, "no pair is left: b1: disk full")],
)
def test_others_take_over_only_where_there_are_any(left: int, told: str) -> None:
    crew = Crew([], PartsQueue([], left), lambda part: {}, Changes("N", {}, left), never_stop)
    lane = Lane(0, "a1 to b1", cast("RemoteToRemote", None), "/d/")
    assert told in crew._given_up(lane, SystemFailure("b1: disk full"))
