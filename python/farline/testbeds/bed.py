"""A running testbed, as programs and tests use it.

```python
from farline import testbeds

with testbeds.Testbed.up(testbeds.load("dumbbell", rate_bps="1Gbit", rtt_s="50ms")) as bed:
    server = bed.hosts["sink"].popen(["iperf3", "-s", "-1"])
    with bed.stamped() as stamp:
        bed.hosts["source"].run(["iperf3", "-c", "sink", "-t", "5"], check=True)
    assert stamp.value["valid"], stamp.value["reasons"]
```
"""

from __future__ import annotations

import base64
import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from farline.errors import FarlineError, SystemFailure, UnreachableError, UsageError
from farline.spec.links import RTT, half
from farline.spec.topology import read_document
from farline.spec.values import read_value
from farline.testbeds import processes, route, state
from farline.testbeds.control import Control
from farline.testbeds.host import Host, Port
from farline.testbeds.start import start

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np
    import numpy.typing as npt

    from farline.spec._types import Topology, ValidityStamp

END_TIMEOUT_S = 20.0
"""Time a keeper has to remove what its bed left, before it is ended and that is done for it."""

SNAP_BYTES = 128
"""Bytes of each packet that a capture keeps unless told: headers."""

Ending = Literal["down", "killed", "swept"]
"""How a bed ended: by its keeper; its keeper had to be killed; its keeper was dead already."""

_numbers = itertools.count(1)


@dataclass
class Stamp:
    """A validity stamp that has its value once its interval has ended."""

    _value: ValidityStamp | None = None

    @property
    def value(self) -> ValidityStamp:
        """The stamp.

        Raises:
            UsageError: while the interval lasts.
        """
        if self._value is None:
            raise UsageError("testbed: a stamp has no value before its interval has ended")
        return self._value


@dataclass(frozen=True)
class PathFacts:
    """A path between two hosts as emulated now."""

    rtt_s: float
    rate_bps: int | None


class Testbed:
    """A connection to a running bed; several may exist at once.

    As a context manager it ends the bed. `warnings` are lines about what the machine could not
    give it.
    """

    __test__ = False  # pytest: this is no test

    def __init__(self, folder: Path) -> None:
        """Connects to the bed in `folder`; see `up` and `attach`.

        Raises:
            UnreachableError: when it is not up.
        """
        self.folder = folder
        self._control = Control(folder)
        self._facts: dict[str, Any] = self._control.ask("describe")
        self.name: str = self._facts["name"]
        self.warnings: list[str] = self._facts["warnings"]
        self._start_topology: Topology = self._control.ask("topology")
        self.hosts: dict[str, Host] = {host.name: host for host in self._hosts()}
        self._next_row: int = self.sample_row()
        self.lost_sample_rows = 0
        """Rows that `link_samples` was asked for too late."""
        # Held from now on: its number may be another's by the time the bed is to end.
        self._keeper = processes.Process.hold(self._facts["pid"], self._facts["start_ticks"])

    @classmethod
    def up(cls, topology: Topology, name: str | None = None, keep: bool = False) -> Testbed:
        """Starts a bed; unless `keep`, it ends with this process, however that ends.

        `name` is the topology's, followed by numbers, unless given.

        Raises:
            UsageError: when a bed of that name is up.
            SystemFailure: when this machine lacks what a bed needs; the line says what.
        """
        own = f"{topology['name'][:16]}-{os.getpid()}-{next(_numbers)}"
        return cls(start(topology, name or own, keep))

    @classmethod
    def attach(cls, name: str) -> Testbed:
        """Connects to a bed that is up.

        Raises:
            UnreachableError: when it is not; what a dead keeper left is removed then.
        """
        state.check_name(name)
        try:
            return cls(state.own_directory() / name)
        except UnreachableError:
            raise UnreachableError(_why_not_up(name)) from None

    def __enter__(self) -> Testbed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    def down(self) -> None:
        """Ends the bed and every program inside; nothing of it is left afterwards."""
        try:
            self._control.ask("stop")
        except FarlineError:  # it may have ended already, or this connection has
            if self._keeper is not None:
                self._keeper.send(signal.SIGTERM)
        self.close()
        if self._keeper is not None and not self._keeper.wait(END_TIMEOUT_S):
            self._keeper.end()
        with state.locked(self.folder.parent) as folder:
            state.recover(folder)

    def close(self) -> None:
        """Ends this connection and its captures; the bed stays, if it is one that stays."""
        self._control.close()

    def describe(self) -> dict[str, Any]:
        """What the keeper says of itself: name, process, warnings, layout, namespaces, failure."""
        facts: dict[str, Any] = self._control.ask("describe")
        return facts

    def _hosts(self) -> Iterator[Host]:
        layout = self._facts["layout"]
        user = f"/proc/{self._facts['pid']}/ns/user" if self._facts["user_namespace"] else None
        specs = {host["name"]: host for host in self._start_topology["hosts"]}
        links = [link["name"] for link in self._start_topology["links"]]
        for host in layout["hosts"]:
            name = host["name"]
            ports = [layout["ports"][number] for number in host["ports"]]
            yield Host(
                name=name,
                bed=self.name,
                folder=self.folder,
                ports=tuple(_port(port, links) for port in ports),
                namespaces=self._facts["namespaces"][name],
                user_namespace=user,
                groups=tuple(self._facts["host_groups"].get(name, ())),
                cpus=tuple(specs[name].get("cpus") or ()),
            )

    @property
    def main_link(self) -> str:
        """Name of the link that `rtt_s`, `rate_bps` and their like mean."""
        return self._start_topology.get("main_link") or self._start_topology["links"][0]["name"]

    def topology(self) -> Topology:
        """The topology as it stands now, changes included."""
        now: Topology = self._control.ask("topology")
        return now

    def address(self, host: str, seen_from: str) -> str:
        """The IPv4 address of `host` on the shortest way from `seen_from`.

        Raises:
            UsageError: when there is no such host, or no way.
        """
        port = route.nearest_port(self._facts["layout"], self._host(seen_from), self._host(host))
        return self.hosts[host].ports[port].address

    def address6(self, host: str, seen_from: str) -> str:
        """The same for IPv6."""
        port = route.nearest_port(self._facts["layout"], self._host(seen_from), self._host(host))
        return self.hosts[host].ports[port].address6

    def _host(self, name: str) -> Host:
        if name not in self.hosts:
            raise UsageError(f"{name!r} is not a host; allowed: {', '.join(self.hosts)}")
        return self.hosts[name]

    def path(self, client: str, server: str) -> PathFacts:
        """Round-trip time and rate between two hosts as emulated now.

        `server` may be an address, or a name as in the client's `/etc/hosts`: a host's own means
        the address on the shortest way.

        Raises:
            UsageError: when one is no host, or no links join them.
        """
        facts = self._control.ask("path", client=client, server=server)
        return PathFacts(float(facts["rtt_s"]), facts["rate_bps"])

    def change(self, link: str | None = None, direction: str = "both", **changes: object) -> None:
        """Changes a link now, the main link if none is named.

        `changes` are fields of a `PipeChange` (`rate_bps`, `delay_s`, `loss`, `up`, ...) or
        `rtt_s`, half of which is the delay of each direction; texts with units will do.

        Raises:
            SpecError: when a change is not allowed, or there is no such link.
            UsageError: when a value cannot be read.
        """
        try:
            change = _read_change(direction, changes)
        except ValueError as error:
            raise UsageError(f"testbed: {error}") from None
        document = {"link": link or self.main_link, "direction": direction, "change": change}
        self._control.ask("change", change=document)

    def cut(self, link: str | None = None, direction: str = "both") -> None:
        """Cuts a link: what is on it and what comes is lost."""
        self.change(link, direction, up=False)

    def restore(self, link: str | None = None, direction: str = "both") -> None:
        """Mends a link that was cut."""
        self.change(link, direction, up=True)

    def mark(self) -> int:
        """Begins an interval for `stamp`."""
        return int(self._control.ask("mark"))

    def stamp(self, mark: int) -> ValidityStamp:
        """How far what ran since the mark can be trusted."""
        value: ValidityStamp = self._control.ask("stamp", mark=mark)
        return value

    @contextmanager
    def stamped(self) -> Iterator[Stamp]:
        """A stamp about what runs in the block; it has its value when the block ends."""
        mark = self.mark()
        stamp = Stamp()
        try:
            yield stamp
        finally:
            stamp._value = self.stamp(mark)

    def sample_row(self) -> int:
        """Number of the row of samples that comes next, for `link_samples`."""
        return int(self._control.ask("samples")["next"])

    def link_samples(self, since: int | None = None) -> dict[str, npt.NDArray[np.int64]]:
        """Samples of all links, one array per column of `LinkSamples`.

        From row `since` on (0: all there are); without it, what came since the last call
        without it, or since this connection was made. The keeper has the last hours only: rows
        asked for too late are counted in `lost_sample_rows`.
        """
        import numpy as np

        answer = self._control.ask("samples", since=self._next_row if since is None else since)
        if since is None:
            self._next_row = answer["next"]
        if since != 0:
            self.lost_sample_rows += answer["lost_rows"]
        return {
            name: np.frombuffer(base64.b64decode(text), dtype="<i8")
            for name, text in answer["columns"].items()
        }

    def counters(self) -> Any:
        """Counters of every link and direction since the start, and the relay's own."""
        return self._control.ask("counters")

    def capture(
        self,
        path: str | Path,
        link: str | None = None,
        direction: str = "both",
        snap_bytes: int = SNAP_BYTES,
    ) -> None:
        """Writes what a link carries into a pcap file, `snap_bytes` (64 to 65535) of each packet.

        It ends with `stop_capture`, with this connection, or with the bed.
        """
        self._control.ask(
            "capture",
            link=link or self.main_link,
            direction=direction,
            path=str(Path(path).absolute()),
            snap_bytes=snap_bytes,
        )

    def stop_capture(self, link: str | None = None) -> Any:
        """Ends the captures of a link; how many packets were written, and how many missed."""
        return self._control.ask("stop_capture", link=link or self.main_link)


def _port(port: dict[str, Any], links: list[str]) -> Port:
    link = port["link"]
    return Port(
        device=port["device"],
        link=links[link] if isinstance(link, int) else link,
        address=port["address"],
        address6=port["address6"],
        mtu_bytes=port["mtu_bytes"],
    )


def _read_change(direction: str, changes: dict[str, object]) -> dict[str, Any]:
    """A `PipeChange` from its fields and `rtt_s`."""
    own = {name: value for name, value in changes.items() if name != RTT.key}
    change = read_document("PipeChange", own, "")
    if RTT.key in changes:
        if direction != "both" or "delay_s" in change:
            raise ValueError("rtt_s applies to both directions and cannot be combined with delay_s")
        rtt_s: Any = read_value(RTT, changes[RTT.key])
        change["delay_s"] = half(rtt_s)
    return change


def _why_not_up(name: str) -> str:
    names = [info.name for info in state.list_beds()]
    if name in names:
        return f"testbed {name!r} does not answer: remove it with `farline testbed down {name}`"
    none = "no testbed is up; `farline testbed up PRESET` brings one up"
    known = f"those that are: {', '.join(names)}" if names else none
    return f"testbed {name!r} is not up; {known}"


def take_down(name: str) -> Ending | None:
    """Ends a bed and removes what it left, even if its keeper is dead or does not answer.

    None if there was nothing of that name.

    Raises:
        SystemFailure: when something of it stays, or is not known to be a testbed's.
    """
    state.check_name(name)
    path = state.own_directory() / name
    known = state.read(path)
    if known is None and not os.path.lexists(path):
        return None
    how: Ending = "swept"
    keeper = known and known.pid and processes.Process.hold(known.pid, known.start_ticks)
    if keeper:
        how = _end_keeper(keeper, path)
    with state.locked(path.parent) as folder:
        left = state.recover(folder).left
        now = state.read(path)
    if name in left:
        raise SystemFailure(left[name])
    if now is not None and known is not None and now.token == known.token:
        raise SystemFailure(f"testbed {name!r}: it was still starting: run the command again")
    if now is None and os.path.lexists(path):
        raise SystemFailure(state.why_left(path))
    return how


def _end_keeper(keeper: processes.Process, folder: Path) -> Ending:
    """Asks a keeper to end, and ends it if it does not."""
    try:
        try:
            _ask_to_stop(folder)
        except FarlineError:
            has_ended = keeper.wait(0)
        else:
            has_ended = keeper.wait(END_TIMEOUT_S)
        if has_ended:
            return "down"
        keeper.end()
        return "killed"
    finally:
        keeper.close()


def _ask_to_stop(folder: Path) -> None:
    connection = Control(folder)
    try:
        connection.ask("stop")
    finally:
        connection.close()
