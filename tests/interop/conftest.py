"""Both UDT peers, built once, on loopback and on the hosts of a testbed.

The tests run against libudt 4.11 (Debian's libudt-dev) through the program in `libudt_peer`, and
against GridFTP's UDT driver. With FARLINE_LONG=1 there is `test_long` too: gigabytes, every path at
several round trips, ten minutes over a hostile link. It takes about an hour.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Benches are programs, not a package: what they share with these tests is found beside them.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))

from _udt import peers
from _udt.peers import End
from farline.testbeds import Testbed, load, needs
from farline.testbeds.fixture import SKIP_REASON
from tests.interop.clean_root import bare, deb, root, wheel

__all__ = ["bare", "deb", "root", "wheel"]

collect_ignore = [] if os.environ.get("FARLINE_LONG") == "1" else ["test_long.py"]

Programs = dict[str, Path]
LIMIT_S = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips where libudt's end cannot be built; a test's time does not count what is set up."""
    reason = peers.missing()
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(LIMIT_S, func_only=True))
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The two peers by name; FARLINE_UDT_PEER names another program than the Rust one."""
    other = os.environ.get("FARLINE_UDT_PEER")
    ours = Path(other) if other else peers.farline_peer("dev")
    return {"farline": ours, "libudt": peers.libudt_peer()}


@pytest.fixture
def end(programs: Programs) -> Callable[[str], End]:
    """An end on loopback by the name of its program."""
    return lambda name: End(programs[name])


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    """A 10 Gb/s cable of 20 ms between two hosts, for the tests of one file."""
    if needs.missing() is not None:
        pytest.skip(SKIP_REASON)
    with Testbed.up(load("back-to-back", rtt_s="20ms", mtu_bytes=1500)) as bed:
        yield bed
