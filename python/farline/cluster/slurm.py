"""Nodes from Slurm: an allocation, a step on each node, and giving them back.

The allocation is one of `salloc` whose command reads its standard input to the end, and so holds
the nodes for as long as this process lives: a farline that is killed (`kill -9`) closes that input,
and Slurm has its nodes back a moment later, those that it still waited for as well. Each program is
a step of its own (`srun -N1 -n1 -w NODE`): the lines of several tasks of one step would be cut and
mixed. Steps end with SIGTERM (`scancel -s TERM`), for a signal to `srun` itself kills them. Within
a job of the user's, its nodes are used, and stay his.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farline.errors import BusyError, FarlineError, InterruptedRun, SystemFailure, UsageError
from farline.logs import Log
from farline.tools import Stop
from farline.tools.child import Child
from farline.tools.events import Notice, NoticeKind
from farline.tools.step_command import ARGV, filled

if TYPE_CHECKING:
    from farline.tools import StopQuestion
    from farline.tools.events import Steps

_LOG = Log(__name__)

NAME = "farline-copy"
MARK = "farline-nodes"
"""Before the job's number and its nodes, in the line of what holds them."""
HOLDER = ("sh", "-c", f'echo "{MARK} $SLURM_JOB_ID $SLURM_JOB_NODELIST"; exec cat >/dev/null')
_LEADS = ("SLURM_CONF", "SLURM_JWT", "SLURM_CLUSTERS")
"""How Slurm's commands find their cluster; what else it sets in a job is of that job alone."""
NOTICE_S = 10.0
_POLL_S = 0.05
_ASK_S = 30.0
"""A client of Slurm that takes longer is given up."""
_GRACE_S = 2.0
_HELD = re.compile(rb"(?:^|\n)" + MARK.encode() + rb" (\d+) (\S+)\n")
_JOB = re.compile(r"(?:Granted|Pending) job allocation (\d+)")
_BUSY = re.compile(
    r"Requested nodes are busy|Immediate execution impossible|Job submit/allocate failed: Required "
    r"node not available",
    re.IGNORECASE,
)
_NOT_IN_TIME = "Unable to allocate resources: Connection timed out"
"""What salloc says when the seconds of `--immediate` are over; no connection has failed."""
_WRONG = re.compile(r"^(?:salloc: )?(?:error|fatal): (.*)$")
_REASONS = {
    "Licenses": "licences that others hold",
    "Priority": "jobs with a higher priority",
    "Resources": "nodes that others use",
}


@dataclass(frozen=True)
class SlurmRequest:
    """What is asked of Slurm, in its own words."""

    partition: str | None
    count: int
    least: int | None = None
    """So many are enough to begin with; None for `count`."""
    account: str | None = None
    qos: str | None = None
    licenses: str | None = None
    """Such as `wan_gbps:50`: how sites admit transfers."""
    reservation: str | None = None
    time_limit: str | None = None
    """Minutes, or as D-HH:MM:SS."""
    immediate_s: int | None = None
    """Nodes that are not free within so many seconds are not waited for."""
    options: tuple[str, ...] = ()
    """Further options of salloc."""

    @property
    def is_immediate(self) -> bool:
        """Whether nodes that are not free at once, or soon, are not waited for."""
        asked = any(one.startswith(("--immediate", "-I")) for one in self.options)
        return asked or self.immediate_s is not None

    def words(self) -> list[str]:
        """The command that asks for it."""
        given = {
            "partition": self.partition, "account": self.account, "qos": self.qos,
            "licenses": self.licenses, "reservation": self.reservation, "time": self.time_limit,
            "immediate": self.immediate_s,
        }  # fmt: skip
        flags = [f"--{name}={value}" for name, value in given.items() if value is not None]
        few = "" if self.least in (None, self.count) else f"{self.least}-"
        # Without the last, what holds nodes goes on when Slurm has taken them back.
        shape = [f"--nodes={few}{self.count}", "--ntasks-per-node=1", "--kill-command=TERM"]
        return ["salloc", f"--job-name={NAME}", *shape, *flags, *self.options, *HOLDER]


@dataclass(frozen=True)
class Slurm:
    """Slurm's commands, on this host or where `via` leads."""

    via: tuple[str, ...] = (ARGV,)

    def child(self, words: Sequence[str]) -> Child:
        """One that goes on for a while.

        Raises:
            SystemFailure: when it is missing.
        """
        command = filled(self.via, words)
        if shutil.which(command[0]) is None:
            raise SystemFailure(_missing(command[0]))
        return Child(command)

    def asked(self, *words: str) -> str:
        """What one prints.

        Raises:
            SystemFailure: when it is missing or fails.
        """
        try:
            done = subprocess.run(
                filled(self.via, words), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=_ASK_S,
            )  # fmt: skip
        except FileNotFoundError:
            raise SystemFailure(_missing(words[0])) from None
        except subprocess.TimeoutExpired:
            raise SystemFailure(f"{words[0]}: no answer within {_ASK_S:g} s") from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise SystemFailure(f"{words[0]}: {last}")
        return done.stdout

    def quietly(self, *words: str) -> None:
        """One whose failure changes nothing: nodes are given back as far as they can be."""
        try:
            self.asked(*words)
        except FarlineError as error:
            _LOG.debug("slurm did not take back nodes", reason=error.message)

    def names(self, text: str) -> tuple[str, ...]:
        """Names of a list such as `n[1-4]`."""
        return tuple(self.asked("scontrol", "show", "hostnames", text).split()) if text else ()

    def has_steps(self, job: str) -> bool:
        """Whether programs still run on a job's nodes."""
        try:
            listed = self.asked("squeue", "-h", "-s", "-j", job, "-o", "%i").split()
        except FarlineError:
            return False
        return any(not step.endswith((".extern", ".batch")) for step in listed)

    def reason(self, job: str) -> str:
        """What a job waits for."""
        try:
            word = self.asked("squeue", "-h", "-j", job, "-o", "%r").strip()
        except FarlineError:
            return ""
        return "" if word in ("", "None") else _REASONS.get(word, word)


@dataclass
class SlurmAllocation:
    """Nodes that are ours for a while."""

    slurm: Slurm
    job: str
    nodes: tuple[str, ...]
    holder: Child | None = None
    """What holds it; a job of the user's needs none, and is not ended."""
    _is_released: bool = field(default=False, init=False)

    @property
    def is_over(self) -> bool:
        """Whether Slurm has the nodes back: given back, out of time, or cancelled by somebody."""
        return self._is_released or (self.holder is not None and not self.holder.is_alive)

    def step(self) -> tuple[str, ...]:
        """The template of a program on a node."""
        before = () if self.holder is None else _without_own_job()
        return (
            *before, "srun", f"--jobid={self.job}", "-N1", "-n1", "-w", "{node}", "--overlap", "-u",
            "--mpi=none", ARGV,
        )  # fmt: skip

    def release(self) -> None:
        """Gives the nodes back: what still runs on them is asked to end first."""
        if self._is_released or self.holder is None:
            return
        self._is_released = True
        if self.slurm.has_steps(self.job):
            self.slurm.quietly("scancel", "-s", "TERM", self.job)
        until = time.monotonic() + _GRACE_S
        while time.monotonic() < until and self.slurm.has_steps(self.job):
            time.sleep(_POLL_S)
        self.slurm.quietly("scancel", self.job)
        self.holder.close(_GRACE_S)


def allocate(
    slurm: Slurm, request: SlurmRequest, should_stop: StopQuestion
) -> Steps[SlurmAllocation]:
    """Nodes of a partition, once Slurm gives them; a notice says what it waits for.

    Without a partition, within a job of the user's: the nodes of that job.

    Raises:
        UsageError: for a partition, account and the like that Slurm does not accept.
        BusyError: when the nodes are not free in the time that was stated; it is not asked again.
        SystemFailure: without Slurm's commands.
        InterruptedRun: when somebody would not wait.
    """
    own = os.environ.get("SLURM_JOB_ID")
    if own and request.partition is None:
        yield None
        return SlurmAllocation(slurm, own, _own_nodes(slurm, request))
    holder = slurm.child(request.words())
    try:
        job, listed = yield from _granted(slurm, holder, request.is_immediate, should_stop)
        return SlurmAllocation(slurm, job, slurm.names(listed), holder)
    except BaseException:
        if (pending := _job_in(holder.said.lines())) is not None:
            slurm.quietly("scancel", pending)
        holder.close(_GRACE_S)
        raise


def _granted(
    slurm: Slurm, holder: Child, is_immediate: bool, should_stop: StopQuestion
) -> Steps[tuple[str, str]]:
    """The job's number and its nodes, as Slurm writes them, once it has them."""
    asked_s, told, printed = time.monotonic(), None, b""
    while True:
        if (more := holder.read(_POLL_S)) == b"":
            raise _not_held(holder, is_immediate)
        printed += more or b""
        if found := _HELD.search(printed):
            return found[1].decode(), found[2].decode()
        if should_stop() is not Stop.GO_ON:
            raise InterruptedRun("stopped while waiting for nodes of Slurm")
        yield None
        if time.monotonic() - asked_s < NOTICE_S:
            continue
        asked_s = time.monotonic()
        job = _job_in(holder.said.lines())
        if job is not None and (reason := slurm.reason(job)) and reason != told:
            told = reason
            yield Notice(NoticeKind.WAITING, f"Slurm job {job} waits for {reason}")


def _not_held(holder: Child, is_immediate: bool) -> FarlineError:
    """Why what was to hold the nodes has ended."""
    code, lines = holder.wait(_GRACE_S), holder.said.lines()
    if code == 0 and _job_in(lines) is not None:
        return SystemFailure(
            "Slurm: the allocation ended at once: what leads to salloc (via) passes no standard "
            "input on"
        )
    return _refused(lines, is_immediate)


def _job_in(lines: Sequence[str]) -> str | None:
    found = [match[1] for line in lines if (match := _JOB.search(line))]
    return found[-1] if found else None


def _refused(lines: Sequence[str], is_immediate: bool) -> FarlineError:
    """Why there are no nodes, in Slurm's own words."""
    wrong = [match[1] for line in lines if (match := _WRONG.match(line))]
    last = (wrong or list(lines) or ["no reason given"])[-1]
    is_late = is_immediate and any(_NOT_IN_TIME in line for line in lines)
    if is_late or any(_BUSY.search(line) for line in lines):
        why = "the nodes were not free in time" if is_late else last
        busy = BusyError(f"Slurm: {why}; wait longer (immediate_s), or ask for fewer nodes")
        busy.permanent = is_immediate
        return busy
    if any("revoked" in line.lower() for line in lines):
        return SystemFailure(f"Slurm: the allocation was cancelled: {last}")
    if any("establish a configuration source" in line for line in lines):
        return SystemFailure(
            f"Slurm: {last}: this host belongs to no cluster; run farline on a login node, or name "
            "one as login in pools.toml"
        )
    if any("Unable to contact" in line for line in lines):
        return SystemFailure(f"Slurm: {last}; check that slurmctld answers: sinfo")
    return UsageError(f"Slurm: {last}; sinfo lists partitions and nodes")


def _without_own_job() -> list[str]:
    """Takes from a command what Slurm set for the job that this process is in: srun would ask other
    nodes for that job's memory and devices too."""
    if "SLURM_JOB_ID" not in os.environ:
        return []
    of_job = [name for name in os.environ if name.startswith(("SLURM_", "SRUN_"))]
    return ["env", *(f"--unset={name}" for name in of_job if name not in _LEADS)]


def _own_nodes(slurm: Slurm, request: SlurmRequest) -> tuple[str, ...]:
    """The nodes of the job that this process is in."""
    nodes = slurm.names(os.environ.get("SLURM_JOB_NODELIST", ""))
    if len(nodes) < (request.least or request.count):
        raise UsageError(
            f"this Slurm job has {len(nodes)} nodes, but {request.count} were requested"
        )
    return nodes[: request.count]


def _missing(word: str) -> str:
    return (
        f"{word}: not found: Slurm's commands are not on this host; run farline on a login node, "
        "name one as login in pools.toml, or install the package slurm-client"
    )
