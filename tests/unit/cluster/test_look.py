"""What is told of nodes that cannot say what they have."""

from __future__ import annotations

import sys

import pytest

from farline.cluster.look import Node
from farline.errors import ProtocolError, VersionError
from farline.tools import never_stop
from farline.tools.step_command import ARGV, StepCommand

ANSWERS = """
import sys
from farline.tools.start_mark import mark_of
print(mark_of(sys.argv[sys.argv.index("--mark") + 1]) + sys.argv[1], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("line", "kind", "told"),
    [
        ('{"schema": 1, "event": "ready"}', VersionError, "a: farline on that host is older"),
        ('{"schema": 1, "data": {}}', VersionError, "a: farline on that host is older"),
        ('{"schema": 1, "data": 5}', VersionError, "a: farline on that host is older"),
        ("[]", ProtocolError, "a: farline on that host sent no JSON"),
    ],
)
def test_a_farline_that_begins_otherwise_is_told_as_one_of_another_version(
    line: str, kind: type[Exception], told: str
) -> None:
    template = (sys.executable, "-c", ANSWERS, line, ARGV)
    node = Node("a")
    node.start(StepCommand(template=template, nodes=("a",), addresses=("",)), never_stop)
    assert isinstance(node.error, kind), node.error
    assert node.error.message.startswith(told)
    assert node.command is None
