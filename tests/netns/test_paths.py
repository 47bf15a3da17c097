"""What a user can rely on across an emulated link: MTU, NIC pairs, cut links, dead servers."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from farline.testbeds import Host, Testbed
from farline.testbeds.fixture import MakeBed
from tests.netns.conftest import FARLINE, Ending, Served, probe, start

pytestmark = pytest.mark.netns

Serve = Callable[..., Served]


def carried_bytes(bed: Testbed) -> list[int]:
    """Bytes on the wire that came out of each link at its `b` end, by the link's own counter."""
    links = bed.counters()["links"]
    return [int(link["out_bytes"]) for link in links if link["direction"] == 0]


@pytest.mark.parametrize(("mtu_bytes", "mss_bytes"), [(1500, 1448), (9000, 8948)])
def test_segments_fit_the_link(
    testbed: MakeBed, serve: Serve, mtu_bytes: int, mss_bytes: int
) -> None:
    bed = testbed("back-to-back", mtu_bytes=mtu_bytes)
    client, server = bed.hosts["client"], bed.hosts["server"]
    served = serve(server)
    record = probe(client, served.ticket, "-t", "0.5", "-C", "reno")
    assert record["status"] == "complete"
    granted = [stream["granted"] for stream in record["streams"] if stream["end"] == 0]
    assert [grant["mss_bytes"] for grant in granted] == [mss_bytes]
    assert granted[0]["congestion_control"] == "reno"


@pytest.mark.alone
def test_datagrams_fill_the_mtu(testbed: MakeBed, serve: Serve) -> None:
    bed = testbed("back-to-back", mtu_bytes=9000)
    client, server = bed.hosts["client"], bed.hosts["server"]
    served = serve(server)
    record = probe(client, served.ticket, "-u", "-b", "100M", "-t", "0.5")
    sender = next(stream for stream in record["streams"] if stream["role"] == 0)
    assert sender["granted"]["packet_bytes"] == 8972
    assert record["summary"]["forward"]["total_bps"] == pytest.approx(100e6, rel=0.03)


def test_streams_take_nic_pairs_in_turn(testbed: MakeBed, serve: Serve) -> None:
    """Three links, three streams: each link carries a third of the payload."""
    bed = testbed("multi-nic", k=3, mtu_bytes=1500)
    client, server = bed.hosts["client"], bed.hosts["server"]
    served = serve(server)
    pairs = [
        option
        for source, destination in zip(client.addresses, server.addresses, strict=True)
        for option in ("--pair", f"{source}={destination}")
    ]
    before = carried_bytes(bed)
    record = probe(client, served.ticket, "-P", "3", "-n", "30M", "-C", "reno", *pairs)
    moved = [now - then for now, then in zip(carried_bytes(bed), before, strict=True)]
    streams = [stream for stream in record["streams"] if stream["end"] == 1]
    assert sum(stream["bytes"] for stream in streams) == 30 * 2**20
    for link, stream in enumerate(sorted(streams, key=lambda stream: stream["stream"])):
        assert stream["granted"]["local"].startswith(server.addresses[link])
        assert moved[link] >= stream["bytes"]


class Probe:
    """A `farline probe` on a host that has carried data when this is made."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Waits for its first interval."""
        self.process = process
        assert self.process.stdout is not None
        self._events = map(json.loads, self.process.stdout)
        if not any(event["event"] == "interval" for event in self._events):
            raise AssertionError(self.process.communicate()[1])

    def end(self, within_s: float) -> dict[str, Any]:
        """Its record, once it has ended by itself."""
        since = time.monotonic()
        *_, last = self._events
        self.process.communicate(timeout=within_s)
        assert time.monotonic() - since < within_s
        record: dict[str, Any] = last["data"]["farline"]
        return record


def failed_in_time(running: Probe, within_s: float) -> dict[str, Any]:
    """The record of a run that ends by itself, with an error and what was measured until then."""
    record = running.end(within_s=within_s)
    assert running.process.returncode not in (0, 130)
    assert record["status"] in {"failed", "partial"}
    assert record["error"]["message"]
    return record


MakeProbe = Callable[..., Probe]


@pytest.fixture
def probing(ending: Ending) -> MakeProbe:
    """Starts a probe on a host, which ends with the test."""

    def begin(client: Host, ticket: str, *options: str) -> Probe:
        words = ("--no-store", "--json-stream", "-i", "0.1", *options)
        return Probe(ending(start(client, FARLINE, "probe", ticket, *words)))

    return begin


def test_a_cut_link_ends_as_a_stated_failure(
    testbed: MakeBed, serve: Serve, probing: MakeProbe
) -> None:
    """Of every transport; side by side, for the wait is the same."""
    bed = testbed("back-to-back", mtu_bytes=1500)
    client, server = bed.hosts["client"], bed.hosts["server"]
    served = serve(server)
    ways = [
        ("-t", "60"),
        ("--transport", "udt", "-t", "60"),
        ("--transport", "rbudp", "--shared-path", "allow", "-n", "400M"),
    ]
    running = [probing(client, served.ticket, *way, "--rate", "100M") for way in ways]
    bed.cut()
    for one in running:
        record = failed_in_time(one, within_s=75)
        assert record["error"]["kind"] in {"timeout", "unreachable", "protocol"}
        assert sum(stream["bytes"] for stream in record["streams"]) > 0, "what was measured is kept"


def test_a_killed_server_is_noticed_at_once(
    testbed: MakeBed, serve: Serve, probing: MakeProbe
) -> None:
    bed = testbed("back-to-back", mtu_bytes=1500)
    client, server = bed.hosts["client"], bed.hosts["server"]
    served = serve(server)
    running = probing(client, served.ticket, "-t", "30")
    served.process.kill()
    record = running.end(within_s=10)
    assert running.process.returncode == 7, record["error"]
    assert record["error"]["kind"] == "protocol"


def test_ctrl_c_leaves_a_partial_record(testbed: MakeBed, serve: Serve, probing: MakeProbe) -> None:
    bed = testbed("back-to-back", mtu_bytes=1500)
    client, server = bed.hosts["client"], bed.hosts["server"]
    served = serve(server)
    running = probing(client, served.ticket, "-t", "30")
    running.process.send_signal(signal.SIGINT)
    record = running.end(within_s=10)
    assert running.process.returncode == 130
    assert record["status"] == "partial"
    assert record["server"] is not None, "the server's half is there too"
    assert record["summary"]["forward"]["bytes"] > 0
    again = probe(client, served.ticket, "-t", "0.2")
    assert again["status"] == "complete", "the server was reset"


def test_a_server_tells_a_second_client_that_it_is_busy(
    testbed: MakeBed, serve: Serve, probing: MakeProbe, ending: Ending
) -> None:
    bed = testbed("back-to-back", mtu_bytes=1500)
    client, server = bed.hosts["client"], bed.hosts["server"]
    served = serve(server, "--max-sessions", "1")
    first = probing(client, served.ticket, "-t", "30")
    words = ("probe", served.ticket, "--no-store", "-t", "1")
    second = ending(start(client, FARLINE, *words))
    _, complaint = second.communicate(timeout=10)
    assert second.returncode == 5
    assert "busy" in complaint.lower()
    first.process.send_signal(signal.SIGINT)
    assert first.end(within_s=15)["status"] == "partial"
