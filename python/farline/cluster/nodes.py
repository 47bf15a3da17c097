"""Nodes of a pool, got from whoever has them, and how farline is started on each."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from farline.cluster.slurm import Slurm, SlurmRequest, allocate
from farline.copying.locations import Host, SshHost, ThisHost
from farline.copying.pools import NodePool
from farline.errors import UnreachableError, UsageError
from farline.tools.ssh_command import NAME, SshCommand
from farline.tools.step_command import StepCommand, read_template

if TYPE_CHECKING:
    from farline.tools import StopQuestion
    from farline.tools.events import Steps

THIS = "this host"


def _nothing() -> None:
    """There is nothing to give back."""


def _never() -> bool:
    """Nobody takes them away."""
    return False


More = Callable[["StopQuestion"], "Steps[Nodes]"]
"""Asks for the nodes that are missing; they come when the engine has them."""


@dataclass(frozen=True)
class Nodes:
    """Nodes of one end: hosts as `copying` addresses them, and how farline starts there."""

    hosts: tuple[SshHost, ...]
    command: SshCommand
    release: Callable[[], None] = _nothing
    """Gives them back to the engine; may be called twice."""
    is_over: Callable[[], bool] = _never
    """Whether the engine has taken them back: their time was over, say."""
    missing: int = 0
    """How many more are wanted."""
    more: More | None = None
    """Where some are missing that may come later."""


def get_nodes(
    host: Host,
    ssh: SshCommand | None,
    peers: Sequence[str],
    most: int | None,
    should_stop: StopQuestion,
) -> Steps[Nodes]:
    """The nodes of an end; of a host that is one alone, that one.

    `peers` are addresses of the other end, by which this host finds its own; `most` how many are
    wanted at most.

    Raises:
        FarlineError: when an engine has none, or cannot be asked.
    """
    if isinstance(host, ThisHost):
        return _this_host(peers)
    if isinstance(host, SshHost):
        return Nodes((host,), ssh or SshCommand())
    if not isinstance(host, NodePool):
        raise UsageError(
            f"{host}: a server cannot be combined with several nodes at the other end; name hosts "
            "that ssh leads to, or a pool"
        )
    ssh = ssh or SshCommand()
    host, farline = _called(host, ssh)
    if host.engine == "slurm":
        return (yield from _from_slurm(host, most, should_stop))
    nodes = host.nodes[:most]
    names = tuple(node.name for node in nodes)
    addresses = tuple(node.address or node.name.rpartition("@")[2] for node in nodes)
    if host.engine == "ssh":
        ssh = replace(ssh, remote_farline=farline)
        return Nodes(tuple(map(_ssh_host, names)), _SshPool.of(ssh, nodes))
    words = _own_program() if host.engine == "testbed" else _program_words(farline)
    step = StepCommand(
        nodes=names, addresses=addresses, template=_template(host), farline_words=words
    )
    return Nodes(tuple(map(SshHost, names)), step)


def _called(pool: NodePool, ssh: SshCommand) -> tuple[NodePool, str | None]:
    """What farline is called on nodes: as the command line says, else as pools.toml does."""
    farline = ssh.remote_farline or pool.settings.get("farline")
    if farline is None:
        return pool, None
    return replace(pool, settings={**pool.settings, "farline": farline}), str(farline)


def _program_words(farline: str | None) -> tuple[str, ...]:
    """The words of the command that farline is on a node.

    Raises:
        UsageError: for quotes that do not end.
    """
    try:
        return (NAME,) if farline is None else tuple(shlex.split(farline))
    except ValueError as error:
        raise UsageError(f"farline: {farline!r}: {error}") from None


def _template(pool: NodePool) -> tuple[str, ...]:
    if pool.engine == "testbed":
        bed = str(pool.settings["bed"])
        return (*_own_program(), "testbed", "exec", bed, "{node}", "--", "{argv}")
    return read_template(str(pool.settings["command"]))


def _own_program() -> tuple[str, ...]:
    """This farline, on this host."""
    return (sys.executable, "-m", "farline")


def _ssh_host(name: str) -> SshHost:
    user, _, host = name.rpartition("@")
    return SshHost(host, user or None)


@dataclass(frozen=True)
class _SshPool(SshCommand):
    """ssh to nodes that have addresses of their own for data."""

    addresses: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, ssh: SshCommand, nodes: Any) -> SshCommand:
        given = tuple((node.name, node.address) for node in nodes if node.address)
        return cls(**vars(ssh), addresses=given) if given else ssh

    def host_name(self, target: str, fallback: str) -> str:
        """The address for data, where it was given."""
        return dict(self.addresses).get(target) or super().host_name(target, fallback)


def _from_slurm(
    pool: NodePool, most: int | None, should_stop: StopQuestion, begun: int = 0
) -> Steps[Nodes]:
    """Nodes of a partition; `begun` of those that are wanted are here already."""
    settings = dict(pool.settings)
    partition = settings.pop("partition") or None
    via = _via(settings)
    farline = settings.pop("farline", None)
    if "options" in settings:
        settings["options"] = tuple(map(str, settings["options"]))
    count = (pool.count if most is None else min(most, pool.count)) - begun
    least = 1 if begun else min(pool.least, count)
    request = SlurmRequest(partition, count, least, **settings)
    got = yield from allocate(Slurm(via), request, should_stop)
    step = StepCommand(
        template=got.step(), via=via, nodes=got.nodes, addresses=got.nodes,
        farline_words=_program_words(farline),
    )  # fmt: skip
    missing = count - len(got.nodes) if got.holder is not None else 0
    there = begun + len(got.nodes)
    more: More | None = None
    if missing:
        more = partial(_more_from_slurm, pool, most, there)
    hosts = tuple(map(SshHost, got.nodes))
    return Nodes(hosts, step, got.release, lambda: got.is_over, missing, more)


def _more_from_slurm(
    pool: NodePool, most: int | None, there: int, should_stop: StopQuestion
) -> Steps[Nodes]:
    return _from_slurm(pool, most, should_stop, there)


def _via(settings: dict[str, Any]) -> tuple[str, ...]:
    """What leads to where Slurm's commands run: nothing, ssh to a login node, a template."""
    login, via = settings.pop("login", None), settings.pop("via", None)
    if login is not None:
        return ("ssh", "-T", login, "{command}")
    return ("{argv}",) if via is None else read_template(str(via))


def _this_host(peers: Sequence[str]) -> Nodes:
    """This host as a node: it starts farline itself."""
    step = StepCommand(
        nodes=(THIS,), addresses=(_address_towards(peers),), farline_words=_own_program()
    )
    return Nodes((SshHost(THIS),), step)


def _address_towards(peers: Sequence[str]) -> str:
    """The address by which the first of `peers` that has one sees this host: that of the interface
    that leads there.

    Raises:
        UnreachableError: when there is no way to any.
    """
    said = "none of the other end's nodes has an address"
    for peer in peers:
        try:
            family, kind, number, _, where = socket.getaddrinfo(peer, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind, number) as probe:
                probe.connect(where)
                return str(probe.getsockname()[0])
        except OSError as error:
            said = f"{peer}: {error.strerror}"
    raise UnreachableError(f"no address of this host leads to the other end's nodes: {said}")
