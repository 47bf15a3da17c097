"""Slurm clusters for tests: a controller and nodes in the hosts of a testbed, as root, no systemd.

The munge socket is in the cluster's folder, which all hosts see. What is started ends with the
cluster.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from farline.testbeds import Host

NOTHING: Mapping[str, str] = {}
_More = tuple[str, Mapping[str, str], Callable[[Path], Mapping[str, str]], Path | None]
PACKAGES = "slurmctld, slurmd, slurm-client and munge"

_CONF = """\
ClusterName={name}
SlurmctldHost={head}
SlurmctldPort=6817
SlurmdPort=6818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdTimeout=10
KillWait=2
Licenses=wan_gbps:100
MailProg=/bin/true
NodeName={nodes} CPUs=1 RealMemory=2000 State=UNKNOWN
PartitionName=xfer Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True)
class SlurmCluster:
    """One that is up."""

    folder: Path
    head: Host
    nodes: tuple[Host, ...]

    @property
    def via(self) -> str:
        """A template that leads to where its commands run."""
        setting = f"SLURM_CONF={self.folder}/slurm.conf"
        return shlex.join(self.head.command(["env", setting, "{argv}"], cwd="/"))

    def asked(self, *words: str) -> str:
        """What one of its commands prints."""
        return _run(self.head, ["env", f"SLURM_CONF={self.folder}/slurm.conf", *words])

    def free_nodes(self) -> int:
        """How many nodes nobody uses."""
        return int(self.asked("sinfo", "-h", "-t", "idle", "-o", "%D").strip() or 0)

    def wait_until_free(self, count: int, timeout_s: float = 20.0) -> None:
        """Until so many are."""
        until = time.monotonic() + timeout_s
        while self.free_nodes() != count:
            assert time.monotonic() < until, self.asked("sinfo", "-N", "-l") + self.logs()
            time.sleep(0.1)

    def wait_until_idle(self, timeout_s: float = 20.0) -> None:
        """Until there is no job, waiting, running or ending."""
        until = time.monotonic() + timeout_s
        while listed := self.asked("squeue", "-h").strip():
            assert time.monotonic() < until, listed + self.logs()
            time.sleep(0.1)

    def logs(self) -> str:
        """The ends of its logs."""
        return "".join(log.read_text()[-2000:] for log in self.folder.glob("*.log"))


def _run(host: Host, words: Sequence[str]) -> str:
    done = host.run(list(words), timeout=30)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return str(done.stdout)


@contextmanager
def slurm_cluster(
    name: str,
    nodes: Sequence[Host],
    settings: str = "",
    beside: Mapping[str, str] = NOTHING,
    environment: Callable[[Path], Mapping[str, str]] = lambda _: NOTHING,
    disks: Path | None = None,
) -> Iterator[SlurmCluster]:
    """A cluster of these hosts, its controller on the first, until the block ends.

    More settings and files `beside` slurm.conf; the controller's environment by its folder. What
    runs on a node sees `disks`/NODE at `disks`/here.
    Its folder has a short name: Slurm makes Unix sockets in it, whose paths have 107 bytes at most.
    """
    with (
        tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as folder,
        _cluster(Path(folder), name, nodes, (settings, beside, environment, disks)) as cluster,
    ):
        yield cluster


@contextmanager
def _cluster(folder: Path, name: str, nodes: Sequence[Host], more: _More) -> Iterator[SlurmCluster]:
    settings, beside, environment, disks = more
    missing = [word for word in ("slurmctld", "slurmd", "salloc", "munged") if not _which(word)]
    if missing:
        pytest.skip(f"{', '.join(missing)} not found: install {PACKAGES}")
    folder.chmod(0o755)
    for part in ("munge", "state"):
        (folder / part).mkdir()
    (folder / "munge").chmod(0o711)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    names = ",".join(host.name for host in nodes)
    conf = folder / "slurm.conf"
    conf.write_text(_CONF.format(name=name, head=nodes[0].name, folder=folder, nodes=names))
    with conf.open("a") as file:
        file.write(settings)
    for file_name, text in beside.items():
        (folder / file_name).write_text(text)
        (folder / file_name).chmod(0o755)
    own = [f"{word}={value}" for word, value in environment(folder).items()]
    cluster = SlurmCluster(folder, nodes[0], tuple(nodes))
    try:
        _munge(folder)
        _daemon(nodes[0], ["slurmctld", "-f", str(conf)], own)
        for host in nodes:
            _daemon(host, ["slurmd", "-N", host.name, "-f", str(conf)], disks=disks)
        cluster.wait_until_free(len(nodes))
        yield cluster
    finally:
        _end(folder)


def _which(word: str) -> str | None:
    return shutil.which(word, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _munge(folder: Path) -> None:
    place = folder / "munge"
    subprocess.run(
        [
            str(_which("munged")), "--force", f"--key-file={place}/key",
            f"--socket={place}/socket", f"--pid-file={place}/pid", f"--log-file={place}/log",
            f"--seed-file={place}/seed",
        ],
        check=True, capture_output=True,
    )  # fmt: skip


def _daemon(
    host: Host, words: Sequence[str], environment: Sequence[str] = (), disks: Path | None = None
) -> None:
    own: list[str] = []
    if disks is not None:
        bind = f'mount --bind {disks}/{host.name} {disks}/here && exec "$@"'
        own = ["unshare", "-m", "sh", "-c", bind, "sh"]
    _run(host, [*own, "env", *environment, str(_which(words[0])), *words[1:]])


def _end(folder: Path) -> None:
    """Ends what has a file with its number in the folder, and waits until it is gone."""
    pids = [*folder.glob("*.pid"), *folder.glob("munge/pid")]
    numbers = [int(pid.read_text()) for pid in pids if pid.exists() and pid.read_text().strip()]
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(number, signal_number)
        until = time.monotonic() + 5
        while any(Path(f"/proc/{number}").exists() for number in numbers):
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        else:
            return
