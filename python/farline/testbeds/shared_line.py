"""A testbed whose main link two sides share: hosts of both, servers, clocks, what counts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError, UsageError
from farline.fairness.wire import wires_between
from farline.testbeds.bed import Testbed
from farline.testbeds.host import Host
from farline.testbeds.host_tool import HostTool
from farline.testbeds.lookup import running_bed
from farline.testbeds.record import CurrentBed
from farline.testbeds.run_watch import BedWatch
from farline.testbeds.serving import serving
from farline.testbeds.topology import load

if TYPE_CHECKING:
    from farline.tools import Tool

_TICK_S = 2.0
"""Longest wait for the next row of link samples."""
_LOOK_ROWS = 2000
"""Rows of samples that are looked through for a side's packets: some seconds of a small network."""
_CONTROL = "net.ipv4.tcp_congestion_control"
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
"""What namespaces may choose; the kernel refuses others there, root's too."""
_DATA = 20_000
"""Bytes within one sample that are more than what setting up a run sends."""

Hosts = Mapping[str, tuple[str, str]]
"""Client and server of each side."""

Driven = Callable[[str, Host, Host, str], "tuple[Tool, str]"]
"""Another maker's tool by its name, between two hosts, the second of which has that address; and
the target that it is given."""


def no_other_tool(name: str, _client: Host, _server: Host, _address: str) -> tuple[Tool, str]:
    """Where nothing but farline itself runs."""
    raise UsageError(f"tool {name!r} cannot run on a testbed; allowed: native")


@dataclass(frozen=True)
class BedLine:
    """The main link of a testbed as a line that sides share. Made by `bed_line`."""

    bed: Testbed
    hosts: Hosts
    targets: Mapping[str, str]
    """The ticket of the server of each side."""
    beds: Mapping[str, Testbed]
    """A connection of its own for each side: they are asked from threads."""
    driven: Driven

    @property
    def capacity_bps(self) -> float | None:
        """Rate of the main link."""
        return line_rate(self.bed.topology(), self.link)

    @property
    def link(self) -> str:
        """Name of the main link."""
        return self.bed.main_link

    def tool(self, side: str, name: str) -> tuple[Tool, str]:
        """What runs a side, and its target.

        Raises:
            UsageError: when there is no such tool.
        """
        client, server = self.hosts[side]
        if name == "native":
            return HostTool(self.bed.hosts[client]), self.targets[side]
        ends = self.bed.hosts[client], self.bed.hosts[server]
        return self.driven(name, *ends, self.bed.address(server, client))

    def watch(self, side: str) -> BedWatch:
        """What watches the path of a side."""
        return BedWatch(CurrentBed(self.beds[side], self.hosts[side][0]), self.link)

    def clock_us(self) -> int:
        """The emulator's clock, at the moment at which a row of samples came."""
        row = self.bed.sample_row()
        until = time.monotonic() + _TICK_S
        while self.bed.sample_row() == row and time.monotonic() < until:
            time.sleep(0.002)
        return int(self.bed.link_samples(row)["end_us"].max())

    def sends(self, side: str, since_us: int) -> bool:
        """Whether packets of a side left the network since that moment, by the emulator's clock."""
        client, server = self.hosts[side]
        wires = wires_between(self.bed.topology(), client, server, self.link, 0.0)
        rows = self.bed.link_samples(max(0, self.bed.sample_row() - _LOOK_ROWS))
        mine = (rows["link"] == wires.exit.link) & (rows["direction"] == wires.exit.direction)
        return int(rows["out_bytes"][mine & (rows["start_us"] >= since_us)].max(initial=0)) > _DATA


@contextmanager
def bed_line(bed: Testbed, hosts: Hosts, driven: Driven = no_other_tool) -> Iterator[BedLine]:
    """Servers on the hosts of a running bed for as long as the block runs.

    Raises:
        UsageError: when a host is not there, or hosts of two sides are the same.
        SpecError: when the main link does not lie between both ends of each side.
    """
    check_hosts(bed.topology(), bed.main_link, hosts)
    with ExitStack() as stack:
        targets, beds = {}, {}
        for side, (client, server) in hosts.items():
            address = bed.address(server, client)
            _where, ticket = stack.enter_context(serving(bed.hosts[server], address))
            targets[side] = ticket
            beds[side] = Testbed.attach(bed.name)
            stack.callback(beds[side].close)
        yield BedLine(bed, hosts, targets, beds, driven)


def check_hosts(topology: Any, link: str, hosts: Hosts) -> None:
    """Refuses hosts that a router's counters cannot tell apart.

    Raises:
        UsageError: when a host is not there, or is named twice.
        SpecError: when the link does not lie between both ends of each side.
    """
    known = [host["name"] for host in topology["hosts"]]
    named = [name for pair in hosts.values() for name in pair]
    for name in named:
        if name not in known:
            raise UsageError(
                f"{name!r} is not a host of {topology['name']}: its hosts are {', '.join(known)}"
            )
        if named.count(name) > 1:
            raise UsageError(f"host {name!r} is named twice: each end of both sides needs its own")
    for client, server in hosts.values():
        try:
            wires_between(topology, client, server, link, 0.0)
        except ValueError as error:
            raise SpecError(f"[path] {error}") from None


def planned_topology(network: Any) -> tuple[Any, str]:
    """The topology that a measurement is on and its main link: a running testbed's, or a new one.

    `network` has `testbed`, `link`, `options` and the rest of a plan's table [path].

    Raises:
        UsageError: when there is no such preset or file, or options of a running testbed's link.
        SpecError: when something is not allowed.
    """
    bed = running_bed(network.testbed)
    if bed is None:
        topology = new_topology(network)
    else:
        topology, name = bed.topology(), bed.name
        bed.close()
        _refuse_options(network, name)
    return topology, topology.get("main_link") or topology["links"][0]["name"]


def line_rate(topology: Any, link: str) -> float | None:
    """Rate of a link away from its end `a`; None without a limit."""
    rate = next(one for one in topology["links"] if one["name"] == link)["forward"].get("rate_bps")
    return float(rate) if rate else None


def new_topology(network: Any) -> Any:
    """A whole topology: CUBIC where it says nothing and the kernel allows it as the default of a
    namespace, the background as far away as wanted.
    """
    overrides = dict(network.options)
    if network.link is not None:
        overrides["main_link"] = network.link
    if network.host_cpus is not None:
        overrides["host_cpus"] = network.host_cpus
    topology: Any = load(network.testbed, **overrides)
    if _may_be_default("cubic"):
        for host in topology["hosts"]:
            # Tools that cannot choose a congestion control have the same one on every machine.
            host.setdefault("sysctls", {}).setdefault(_CONTROL, "cubic")
    if network.background_rtt_s is not None:
        _put_further(topology, network.background_hosts[0], network.background_rtt_s)
    return topology


def _may_be_default(control: str) -> bool:
    """Whether a network namespace may have a congestion control as its default."""
    try:
        allowed = _ALLOWED.read_text(encoding="ascii").split()
    except OSError:
        return False
    return control in allowed


def _put_further(topology: Any, host: str, rtt_s: float) -> None:
    """Delays the link of a host so that its path has this round-trip time in all."""
    main = topology.get("main_link") or topology["links"][0]["name"]
    shared = next(link for link in topology["links"] if link["name"] == main)
    own = next((link for link in topology["links"] if host in (link["a"], link["b"])), None)
    near_s = sum(way.get("delay_s") or 0.0 for way in _ways(shared, twice=True))
    if own is None or own is shared:
        raise UsageError(f"{host!r} has no link of its own to the shared one")
    if rtt_s < near_s:
        raise SpecError(
            f"[path] background_rtt_s: {rtt_s:g} is less than the shared link's {near_s:g} s"
        )
    for way in _ways(own):
        way["delay_s"] = (way.get("delay_s") or 0.0) + (rtt_s - near_s) / 2


def _ways(link: Any, twice: bool = False) -> list[dict[str, Any]]:
    """The directions of a link; one without a way back of its own is the same both ways."""
    back = link.get("reverse")
    if back is None:
        return [link["forward"]] * (2 if twice else 1)
    return [link["forward"], back]


def _refuse_options(network: Any, name: str) -> None:
    stated = [*network.options, *(["link"] if network.link else [])]
    stated += ["background_rtt_s"] if network.background_rtt_s is not None else []
    stated += ["host_cpus"] if network.host_cpus is not None else []
    if stated:
        raise UsageError(
            f"testbed {name!r} is up, and {', '.join(stated)} needs a new one: leave it out, or"
            f" remove the testbed first with `farline testbed down {name}`"
        )


@contextmanager
def running_line(network: Any, hosts: Hosts, driven: Driven = no_other_tool) -> Iterator[BedLine]:
    """The line of a plan: of a testbed that is up, or of a new one that ends with the block."""
    bed = running_bed(network.testbed)
    if bed is None:
        name = f"fairness-{secrets.token_hex(3)}"
        with Testbed.up(new_topology(network), name) as new, bed_line(new, hosts, driven) as line:
            yield line
        return
    try:
        _refuse_options(network, bed.name)
        with bed_line(bed, hosts, driven) as line:
            yield line
    finally:
        bed.close()
