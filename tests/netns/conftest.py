"""Two hosts on one machine: network namespaces joined by parallel veth links.

Each fixture makes its own namespaces and removes them, whatever the test did.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FARLINE = Path(sys.executable).with_name("farline")
SKIP_REASON = "needs root and network namespaces"


def run(*command: str | Path, check: bool = True) -> str:
    """Output of a short command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def _can_make_namespaces() -> bool:
    if os.geteuid() != 0:
        return False
    probe = subprocess.run(["unshare", "--net", "true"], capture_output=True)
    return probe.returncode == 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    if _can_make_namespaces():
        return
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=SKIP_REASON))


@dataclass
class Host:
    """One namespace; `addresses[k]` is its end of link k."""

    namespace: str
    addresses: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)

    def command(self, *command: str | Path) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *map(str, command)]

    def run(self, *command: str | Path, check: bool = True) -> str:
        return run(*self.command(*command), check=check)

    def start(self, *command: str | Path, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*command),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def received_bytes(self, link: int) -> int:
        """Bytes that came in over a link, by the kernel's own counter."""
        shown = json.loads(self.run("ip", "-s", "-j", "link", "show", self.devices[link]))
        return int(shown[0]["stats64"]["rx"]["bytes"])


@contextmanager
def two_hosts(links: int, mtu_bytes: int) -> Iterator[tuple[Host, Host]]:
    """Client and server host, joined by `links` veth links."""
    client = Host(f"fl-c-{os.getpid()}")
    server = Host(f"fl-s-{os.getpid()}")
    with ExitStack() as stack:
        for host in (client, server):
            run("ip", "netns", "add", host.namespace)
            stack.callback(run, "ip", "netns", "delete", host.namespace, check=False)
            host.run("ip", "link", "set", "lo", "up")
        for link in range(links):
            _join(client, server, link, mtu_bytes)
        yield client, server


def _join(client: Host, server: Host, link: int, mtu_bytes: int) -> None:
    ends = [(client, f"c{link}", f"10.99.{link}.1"), (server, f"s{link}", f"10.99.{link}.2")]
    (_, near, _), (_, far, _) = ends
    client.run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
    client.run("ip", "link", "set", far, "netns", server.namespace)
    for host, device, address in ends:
        host.run("ip", "address", "add", f"{address}/24", "dev", device)
        host.run("ip", "link", "set", device, "mtu", str(mtu_bytes), "up")
        host.addresses.append(address)
        host.devices.append(device)


@dataclass
class Served:
    """A running `farline serve` and the ticket it printed."""

    process: subprocess.Popen[str]
    ticket: str


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts `farline serve` on a host; stops all that were started."""
    started: list[subprocess.Popen[str]] = []

    def start(host: Host, address: str, *options: str) -> Served:
        process = host.start(
            FARLINE, "serve", "--listen", address, "--state-dir", tmp_path / "state", *options
        )
        started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            words = [word for word in line.split() if word.startswith("farline://")]
            if words:
                return Served(process, words[0])
        raise AssertionError(f"no ticket printed: {process.stderr.read()}")  # type: ignore[union-attr]

    yield start
    for process in started:
        process.terminate()
        try:
            process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@pytest.fixture
def hosts() -> Iterator[Callable[[int, int], tuple[Host, Host]]]:
    """Makes two hosts with so many links of such an MTU."""
    with ExitStack() as stack:
        yield lambda links, mtu_bytes: stack.enter_context(two_hosts(links, mtu_bytes))


def probe(host: Host, ticket: str, *options: str) -> dict[str, Any]:
    """Record of one `farline probe` that must succeed."""
    text = host.run(FARLINE, "probe", ticket, "--no-store", "--json", *options)
    record: dict[str, Any] = json.loads(text)
    return record
