"""A path whose middle takes smaller packets than both ends, and tells nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

MTU = 1400
ASK = "from farline.tools.path_mtu import passing_bytes; print(passing_bytes('10.99.2.1', {}))"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=20)


@pytest.fixture
def near() -> Iterator[str]:
    """The namespace of one end: `near - a - b - far`, 1400 bytes in the middle, no ICMP."""
    names = [f"fl{os.getpid()}{part}" for part in ("near", "a", "b", "far")]
    near, a, b, far = names
    try:
        for name in names:
            ip("netns", "add", name)
        for left, right in ((near, a), (a, b), (b, far)):
            ends = (f"to{right[-4:]}", f"to{left[-4:]}")
            peer = ("peer", "name", ends[1], "netns", right)
            ip("link", "add", ends[0], "netns", left, "type", "veth", *peer)
        addresses = {
            (near, a): "10.99.1.1/24", (a, near): "10.99.1.2/24", (a, b): "10.99.3.1/24",
            (b, a): "10.99.3.2/24", (b, far): "10.99.2.2/24", (far, b): "10.99.2.1/24",
        }  # fmt: skip
        for (name, other), address in addresses.items():
            device = f"to{other[-4:]}"
            ip("-n", name, "addr", "add", address, "dev", device)
            mtu = MTU if {name, other} == {a, b} else 1500
            ip("-n", name, "link", "set", device, "mtu", str(mtu), "up")
        ip("-n", near, "route", "add", "default", "via", "10.99.1.2")
        ip("-n", far, "route", "add", "default", "via", "10.99.2.2")
        ip("-n", a, "route", "add", "10.99.2.0/24", "via", "10.99.3.2")
        ip("-n", b, "route", "add", "10.99.1.0/24", "via", "10.99.3.1")
        for router in (a, b):
            forward = ["sysctl", "-qw", "net.ipv4.ip_forward=1"]
            subprocess.run(["ip", "netns", "exec", router, *forward], check=True, timeout=20)
            # What a router says itself, "fragmentation needed" above all, goes nowhere.
            ip("-n", router, "rule", "add", "iif", "lo", "blackhole")
        yield near
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, timeout=20)


def test_the_packet_that_passes_is_found_to_the_byte(near: str) -> None:
    for largest, passes in ((1500, MTU), (1300, 1300)):
        command = ["ip", "netns", "exec", near, sys.executable, "-c", ASK.format(largest)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == str(passes), done.stderr
