"""What is asked of a copy: its two ends, its spec, how it is reached, repeated and kept."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from farline.copying.locations import (
    Endpoints,
    SshHost,
    StandingServer,
    ThisHost,
    read_endpoints,
)
from farline.copying.pools import NodePool
from farline.errors import UsageError

if TYPE_CHECKING:
    from farline.tools.ssh_command import SshCommand

SAMPLING_S = 0.5
"""Seconds per sample unless the spec says otherwise."""

LOOK_S = 0.2
"""Seconds per sample where a budget of harm is kept: of several round trips one is on time."""

MOST_LOOK_S = 1.0
"""Longest time between two looks at the path with which a budget of harm can be kept."""

RETRY_FOR_S = 600.0
"""A copy is given up when nothing has moved for so long, unless it is asked otherwise."""

TUNE_WORDS = ("auto", "stored", "off")
"""How the number of streams comes about where none is stated: from what was found for the path, and
changed while the copy runs; from what was found alone; from neither."""

OWN_DISKS_WORDS = ("source", "destination", "both")
"""The end whose nodes have disks of their own, and share no file system."""

MESSAGE_STREAMS = 2
"""Streams beside those of the data that carry what both ends say."""


class DataPath(NamedTuple):
    """How the data get from host to host where a firewall stands between this one and ssh's."""

    tunnel: bool = False
    """Through ssh."""
    connect_back: int | None = None
    """The other host connects to this port of this one; 0 lets the kernel choose."""
    single_port: bool = False
    """Control and data share one port there."""
    data_ports: tuple[int, int] | None = None
    """First and last port there for data streams."""

    def flags(self) -> list[str]:
        """What is asked for, as the command line has it."""
        given = {
            "--tunnel": self.tunnel,
            "--connect-back": self.connect_back is not None,
            "--single-port": self.single_port,
            "--data-ports": self.data_ports is not None,
        }
        return [flag for flag, is_given in given.items() if is_given]

    def server_words(self) -> list[str]:
        """What the server there is started with."""
        ports = ["--data-ports", "{}-{}".format(*self.data_ports)] if self.data_ports else []
        return [*ports, *(["--single-port"] if self.single_port else [])]


class NameList(NamedTuple):
    """Names to copy, relative to the one source: a file here, or what can be read but once."""

    source: Path | BinaryIO
    zero_terminated: bool = False
    """Whether names end with a zero byte and not with a line."""


_PLAIN = DataPath()


# A few small files are copied before what is not needed of a dataclass could be made.
@dataclass(frozen=True, eq=False, repr=False)
class CopyRequest:
    """A copy as somebody wants it. `CopyJob` carries it out."""

    endpoints: Endpoints
    spec: Mapping[str, Any] = field(default_factory=dict)
    """A run spec without direction; its `copy` section without sources and destination."""
    ssh: SshCommand | None = None
    """How ssh is called; None calls it plainly. Only for an end that ssh leads to."""
    data_path: DataPath = _PLAIN
    archive: bool = False
    """Whether owners and groups are kept; by a ticket they are only where the spec says so."""
    name_list: NameList | None = None
    confirm_deletion: bool = False
    """Whether a dry run finds how many names would be deleted: `DeletionPlanned` then asks."""
    retry_for_s: float = RETRY_FOR_S
    retries: int | None = None
    """Begin again so many times at most; None is as long as `retry_for_s` says."""
    keep: bool = True
    """Whether records go to a store."""
    store_path: Path | None = None
    """Which one; None is the user's own."""
    tune: str | None = None
    """`auto`, `stored` or `off` (`TUNE_WORDS`); None is `auto` where no streams are stated."""
    max_harm: float | None = None
    """The share of their rate that others on the path may lose by it, 0 to 1; None is no bound."""
    place_streams: str | None = None
    """`auto` or `off`: whether streams between nodes run on the CPUs beside the interface that
    carries them, on nodes with several NUMA nodes; None is `auto`."""
    own_disks: str | None = None
    """`source`, `destination` or `both` (`OWN_DISKS_WORDS`): the nodes of that end have disks of
    their own, so each file is on one node; None for nodes that see the same files."""
    receipt: str | None = None
    """File that is to have a JSON line per name."""
    tell_files: bool = False
    """Whether every name is told as it is settled."""
    spent_s: float = 0.0
    """What the caller had taken before, which the record counts in."""

    @staticmethod
    def between(*locations: str, **settings: Any) -> CopyRequest:
        """A request for locations as people write them, the destination last.

        Raises:
            UsageError: when these are no sources on one host and a destination.
        """
        return CopyRequest(read_endpoints(locations), **settings)

    @property
    def is_local(self) -> bool:
        """Whether both ends are on this host."""
        hosts = (self.endpoints.source_host, self.endpoints.destination_host)
        return all(isinstance(host, ThisHost) for host in hosts)

    @property
    def is_remote(self) -> bool:
        """Whether neither end is on this host."""
        hosts = (self.endpoints.source_host, self.endpoints.destination_host)
        return not any(isinstance(host, ThisHost) for host in hosts)

    @property
    def is_over_nodes(self) -> bool:
        """Whether an end has several nodes."""
        hosts = (self.endpoints.source_host, self.endpoints.destination_host)
        return any(isinstance(host, NodePool) for host in hosts)

    @property
    def paths(self) -> Path | None:
        """Folder of the settings that were found for paths; None where none is to be used."""
        if self.tune == "off" or not self.keep or self.is_local:
            return None
        from farline.store.default_folder import usual_path

        store = self.store_path or usual_path()
        return None if store is None else store / "paths"

    @property
    def most_streams(self) -> int | None:
        """Streams of data for which there are ports; None where any number goes."""
        ports = self.data_path.data_ports
        return None if ports is None else ports[1] - ports[0] + 1 - MESSAGE_STREAMS

    @property
    def tunes_live(self) -> bool:
        """Whether the number of streams is tuned while the copy runs.

        Unless that is asked for, only where nothing else is said of streams and rates, over TCP and
        between two hosts.
        """
        copy = self.spec.get("copy") or {}
        if copy.get("dry_run") or self.tune not in (None, "auto"):
            return False
        if self.max_harm is not None or self.is_over_nodes:
            return False
        if self.tune == "auto":
            return True
        is_said = "streams" in self.spec or copy.get("total_rate_bps") or copy.get("give_way")
        return not (is_said or self.is_local or self.spec.get("transport", "tcp") != "tcp")

    def check(self) -> None:
        """Refuses what cannot be.

        Raises:
            UsageError: with the option that does not go with the rest.
        """
        _check_removal(self)
        if self.name_list is not None and not isinstance(self.endpoints.source_host, ThisHost):
            raise UsageError("--files-from: works only with a source on this host")
        _check_placing(self)
        _check_own_disks(self)
        _check_tuning(self)
        _check_budget(self)
        _check_ssh(self)
        _check_ports(self)
        _check_data_path(self)

    def document(self) -> dict[str, Any]:
        """The spec document with what follows from the two ends."""
        copy = dict(self.spec.get("copy") or {})
        by_ticket = StandingServer in map(
            type, (self.endpoints.source_host, self.endpoints.destination_host)
        )
        if self.archive and not by_ticket:
            # As with rsync.
            copy = {"owner": True, "group": True, **copy}
        always_sealed = self.spec.get("transport") == "quic"
        if self.is_local and copy.get("cipher") is None and not always_sealed:
            # Between two folders of one host nothing is sealed, unless that was asked for.
            copy["cipher"] = "none"
            _choose_sum(copy)
        interval_s = SAMPLING_S if self.max_harm is None else LOOK_S
        return {"interval_s": interval_s, **self.spec, "copy": copy}


def _choose_sum(copy: dict[str, Any]) -> None:
    """What never leaves the host needs no sum that holds against others on its way."""
    is_open = copy.get("hash", "auto") == "auto" and copy.get("verify") != "none"
    if is_open and copy.get("sync_level") != "checksum":
        copy["hash"] = "xxh3"


def _check_removal(request: CopyRequest) -> None:
    """Only the host that has the sources removes them: a reader may not, nor a server."""
    if not (request.spec.get("copy") or {}).get("remove_source_files"):
        return
    source, target = request.endpoints.source_host, request.endpoints.destination_host
    pulls = isinstance(target, ThisHost) and not isinstance(source, ThisHost)
    if pulls or isinstance(source, StandingServer):
        raise UsageError(
            f"--remove-source-files: a server does not remove files; run farline copy on"
            f" {source}, to this host or by a ticket of farline serve --write"
        )


def _check_placing(request: CopyRequest) -> None:
    """Nodes are asked where their interfaces are; one host is not."""
    if (word := request.place_streams) is None:
        return
    if word not in ("auto", "off"):
        raise UsageError(f"--place-streams {word}: unknown; allowed: auto, off")
    if not request.is_over_nodes:
        raise UsageError(
            "--place-streams: neither end has several nodes; use --client-cpus and --server-cpus "
            "with the CPUs that farline host --map shows"
        )
    stated = [name for name in ("client_cpus", "server_cpus") if request.spec.get(name)]
    if word == "auto" and stated:
        flag = f"--{stated[0].replace('_', '-')}"
        raise UsageError(f"--place-streams auto and {flag} cannot be combined: leave one out")


def _check_own_disks(request: CopyRequest) -> None:
    """An end of one host has one tree, and nothing is placed there."""
    if (word := request.own_disks) is None:
        return
    if word not in OWN_DISKS_WORDS:
        raise UsageError(f"--own-disks {word}: unknown; allowed: {', '.join(OWN_DISKS_WORDS)}")
    ends = {
        "source": request.endpoints.source_host, "destination": request.endpoints.destination_host
    }  # fmt: skip
    for name, host in ends.items():
        if word in (name, "both") and not isinstance(host, NodePool):
            raise UsageError(
                f"--own-disks {word}: the {name} is one host; name several nodes there, as in "
                "dtn[1-4]:/path, or leave --own-disks out"
            )


def _check_tuning(request: CopyRequest) -> None:
    """RBUDP sends at a rate that is set, for each stream: more streams are more rate."""
    if request.tune not in (None, *TUNE_WORDS):
        words = ", ".join(TUNE_WORDS)
        raise UsageError(f"--tune {request.tune}: unknown; allowed: {words}")
    if request.tune == "auto" and request.spec.get("transport") == "rbudp":
        raise UsageError(
            "--tune auto: RBUDP sends at a set rate, which more streams would multiply; set --rate,"
            " or leave --tune out"
        )


def _check_budget(request: CopyRequest) -> None:
    """A budget of harm is kept by the rate, so by this host, and by no other rule beside it."""
    if request.max_harm is None:
        return
    copy = request.spec.get("copy") or {}
    if not 0 < request.max_harm < 1:
        raise UsageError(
            f"--max-harm {request.max_harm:g}: out of range; allowed: above 0, below 1"
        )
    if request.spec.get("transport", "tcp") != "tcp":
        raise UsageError("--max-harm: works over TCP only; leave --transport out, or --max-harm")
    if copy.get("give_way"):
        raise UsageError("--max-harm and --yield cannot be combined: --yield harms nobody")
    if request.tune == "auto":
        raise UsageError("--max-harm and --tune auto cannot be combined: leave --tune out")
    if request.is_remote:
        raise UsageError(
            "--max-harm: works where this host is one end; run farline copy on the other"
        )
    if request.spec.get("interval_s", SAMPLING_S) > MOST_LOOK_S:
        raise UsageError(f"--max-harm: needs --interval {MOST_LOOK_S:g}s or less")


def _check_ssh(request: CopyRequest) -> None:
    """What concerns ssh goes with nothing else."""
    ends = request.endpoints
    if {SshHost, NodePool} & set(map(type, (ends.source_host, ends.destination_host))):
        return
    given = (["ssh"] if request.ssh is not None else []) + request.data_path.flags()
    if given:
        raise UsageError(f"{given[0]}: neither end is reached over ssh ([user@]host:path)")


def _check_ports(request: CopyRequest) -> None:
    """Streams without a port would wait for ever."""
    streams, most = request.spec.get("streams", 1), request.most_streams
    if most is not None and streams > most:
        first, last = request.data_path.data_ports or (0, 0)
        need = "stream needs" if streams == 1 else "streams need"
        raise UsageError(
            f"--data-ports {first}-{last}: {last - first + 1} ports, but {streams} {need} "
            f"{streams + MESSAGE_STREAMS} (two more than the number of streams)"
        )


def _check_data_path(request: CopyRequest) -> None:
    """Refuses ways around a firewall where there is none, and two of them."""
    flags = request.data_path.flags()
    impossible = request.is_remote or request.spec.get("transport", "tcp") != "tcp"
    for flag in ("--tunnel", "--connect-back"):
        if flag in flags and impossible:
            raise UsageError(
                f"{flag}: works only with TCP, between this host and one reached over ssh"
            )
    if "--connect-back" in flags and len(flags) > 1:
        other = next(flag for flag in flags if flag != "--connect-back")
        raise UsageError(
            f"--connect-back: the data ports are on this host, so {other} has no effect"
        )


@contextmanager
def listed(names: NameList | None, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document with the file of the names; what can be read but once is kept in one meanwhile.

    So is a file whose name no document can have, as it is not UTF-8.

    Raises:
        UsageError: when the names cannot be read.
    """
    if names is None:
        yield document
        return
    if isinstance(names.source, Path):
        _check_readable(names.source)
    if isinstance(names.source, Path) and not names.zero_terminated:
        path = str(names.source.absolute())
        if _is_text(path):
            yield _with_list(document, path)
            return
    import shutil
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="farline-names-") as file:
        if isinstance(names.source, Path):
            try:
                with names.source.open("rb") as source:
                    shutil.copyfileobj(source, file)
            except OSError as error:
                raise UsageError(f"--files-from {names.source}: {error.strerror}") from None
        else:
            shutil.copyfileobj(names.source, file)
        if names.zero_terminated:
            # One name without an end is told from lines by it; what is between two is no name.
            file.write(b"\0")
        file.flush()
        yield _with_list(document, file.name)


def _check_readable(path: Path) -> None:
    """Refuses a list that cannot be read, before anything is made at the destination."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # whoever opens it says why
    if stat.S_ISDIR(mode):
        raise UsageError(f"--files-from {path}: is a folder; name a file with a name on each line")
    if not os.access(path, os.R_OK, effective_ids=True):
        raise UsageError(f"--files-from {path}: {os.strerror(errno.EACCES)}")


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_list(document: dict[str, Any], path: str) -> dict[str, Any]:
    return {**document, "copy": {**document.get("copy", {}), "source_list": path}}
