#!/usr/bin/env python3
"""What burst_buffer.lua calls: directives of job scripts to copies by farline.

    farline_stage.py check SCRIPT           says what is wrong with the directives of a job
    farline_stage.py in|out SCRIPT JOB      makes the copies of a job, as its owner
    farline_stage.py paths SCRIPT FILE      writes FARLINE_STAGED_1=... for the job's environment
    farline_stage.py teardown JOB           ends copies of a job that still run
    farline_stage.py status                 how far the copies are that run now

It runs on the controller's host as Slurm's user, which must be root if jobs are of other users. It
needs Python and `squeue`; `FARLINE` may name the command of farline, `FARLINE_STAGE_STATE` the
folder of its logs (/var/spool/slurm/farline). See docs/guide/slurm.md.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

STATE = Path(os.environ.get("FARLINE_STAGE_STATE", "/var/spool/slurm/farline"))
_DIRECTIVE = re.compile(r"#BB_LUA\s+(\S+)\s*(.*)")
_REPLACED = re.compile(r"(?<!\\)(?:\$(?:\{[^}]*\}?|\([^)]*\)?|\w+)|`[^`]*`?)")
"""What a shell would replace, where it is not within ''."""
_SPANS = re.compile(r"""\\.|'[^']*'|"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<plain>[^\\'"]+)""")
"""The parts of a line as a shell tells them apart."""
_PHASES = ("stage_in", "stage_out")
_RETRY_FOR = "365d"
"""A copy that is cut, or that waits for another of the same files (an array's tasks), is ended by
Slurm's own StageInTimeout and StageOutTimeout."""
_LOOK_S = 0.5
"""How often it is looked whether the job still wants its copy."""
_GRACE_S = 5.0
"""For a copy to end once it is asked to; three of them are less than Slurm's OtherTimeout."""


class StageError(Exception):
    """What the user reads."""


@dataclass(frozen=True)
class Directive:
    """One line of a script: options, sources and a destination of `farline copy`."""

    phase: str
    words: tuple[str, ...]

    @property
    def destination(self) -> str:
        """Where the files go."""
        return self.words[-1]


def directives(script: Path) -> list[Directive]:
    """Those of a script, whose copy in Slurm's spool may end with zero bytes.

    As Slurm reads them: up to the first command. Behind it they may be of a script in this one.

    Raises:
        StageError: for a line that is none.
    """
    found = []
    text = script.read_bytes().decode("utf-8", "surrogateescape").replace("\0", "")
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.startswith("#"):
            break
        if (match := _DIRECTIVE.match(line.strip())) is None:
            continue
        phase, rest = match.groups()
        try:
            words = tuple(shlex.split(rest))
        except ValueError as error:
            raise StageError(f"line {number}: {phase}: {error}") from None
        if phase not in _PHASES:
            raise StageError(f"line {number}: {phase}: unknown; use stage_in or stage_out")
        if (replaced := replaced_by_shells(rest)) is not None:
            raise StageError(
                f"line {number}: {phase}: {replaced} is not replaced here; write its value (a "
                "dollar sign in a name: within '')"
            )
        if sum(not word.startswith("-") for word in words) < 2 or words[-1].startswith("-"):
            raise StageError(f"line {number}: {phase}: write options, a source and a destination")
        for word in paths_of(words):
            if ":" not in (first := word.partition("/")[0]) and first:
                raise StageError(f"line {number}: {phase}: {word}: write the path in full")
        found.append(Directive(phase, words))
    return found


def replaced_by_shells(text: str) -> str | None:
    """The first variable or command that a shell would replace; what is quoted for it is none."""
    for span in _SPANS.finditer(text):
        if found := _REPLACED.search(span["quoted"] or span["plain"] or ""):
            return found[0]
    return None


def paths_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """The destination, and the source before it where that cannot be the value of an option."""
    is_source = not any(word.startswith("-") for word in words[-3:-1])
    return words[-2:] if is_source else words[-1:]


def owner(job: str) -> pwd.struct_passwd:
    """The user of a job.

    Raises:
        StageError: when Slurm or the system does not know them.
    """
    # Not from what scontrol shows: the name that users give a job stands there before its owner.
    asked = ["squeue", "--all", "--noheader", "--states=all", f"--jobs={job}", "--format=%U"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    numbers = set(said.split())
    if len(numbers) != 1 or not (number := numbers.pop()).isdecimal():
        raise StageError(f"job {job}: its owner is not known to squeue")
    try:
        return pwd.getpwuid(int(number))
    except KeyError:
        raise StageError(f"job {job}: user {number} is not known on this host") from None


def copy(phase: str, script: Path, job: str) -> None:
    """Makes the copies of one phase, one after the other, as the job's owner."""
    wanted = [one for one in directives(script) if one.phase == f"stage_{phase}"]
    if not wanted:
        return
    user = owner(job)
    STATE.mkdir(parents=True, exist_ok=True)
    log, running = STATE / f"{job}.{phase}.log", STATE / f"{job}.{phase}.pid"
    environment = {
        "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name,
        "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"), "LANG": "C.UTF-8",
    }  # fmt: skip
    changes = os.geteuid() != user.pw_uid
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    farline = shlex.split(os.environ.get("FARLINE", "farline"))
    try:
        with log.open("wb") as file:
            log.chmod(0o600)
            for one in wanted:
                child = subprocess.Popen(
                    [*farline, "copy", "--progress", "--retry-for", _RETRY_FOR, *one.words],
                    env=environment, cwd="/", start_new_session=True,
                    stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                    user=user.pw_uid if changes else None,
                    group=user.pw_gid if changes else None,
                    extra_groups=groups if changes else None,
                )  # fmt: skip
                note_copy(running, child.pid)
                if code := ended(child, running):
                    raise StageError(f"stage_{phase}: {last_line(log)} (exit code {code})")
    finally:
        running.unlink(missing_ok=True)


def ended(child: subprocess.Popen[bytes], running: Path) -> int:
    """The exit code of a copy, which ends with whoever waits for it: Slurm kills that, not this.

    Raises:
        StageError: where nobody reads what is printed here any more.
    """
    reader = select.poll()
    reader.register(sys.stdout.fileno(), 0)
    while True:
        try:
            return child.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if reader.poll(0):
                end(running)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_GRACE_S)
                raise StageError("the job was cancelled") from None


def paths(script: Path, file: Path) -> None:
    """Where the inputs are, for the job's environment."""
    inputs = [one for one in directives(script) if one.phase == "stage_in"]
    lines = [f"FARLINE_STAGED_{number}={one.destination}" for number, one in enumerate(inputs, 1)]
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8", "surrogateescape")


def note_copy(running: Path, number: int) -> None:
    """Notes the process of a copy, with the time of its start: its number may be used again."""
    temporary = running.with_suffix(".new")
    temporary.write_text(f"{number} {started(number)}")
    temporary.replace(running)


def started(number: int) -> str:
    """When a process started, in clock ticks since the host did; "" for one that has ended.

    Fields 3 and 22 of proc_pid_stat(5).
    """
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def teardown(job: str) -> None:
    """Ends what still runs; its logs stay until the next job of this number."""
    for running in STATE.glob(f"{job}.*.pid"):
        end(running)


def end(running: Path) -> None:
    """Asks a copy to end, insists, kills it; the second signal lets it stop at once."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        if not is_there(running, number) or is_gone(running):
            break
    running.unlink(missing_ok=True)


def is_gone(running: Path) -> bool:
    """Whether a copy has ended within a moment."""
    until = time.monotonic() + _GRACE_S
    while is_there(running):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def is_there(running: Path, number: int = 0) -> bool:
    """Whether a copy runs; it is sent a signal."""
    try:
        process, start = running.read_text().split()
        if started(int(process)) != start:
            return False
        os.killpg(int(process), number)
    except (OSError, ValueError):
        return False
    return True


def status() -> str:
    """A line for each copy that runs."""
    lines = []
    for running in sorted(STATE.glob("*.pid")):
        if not is_there(running):
            continue
        job, phase, _ = running.name.split(".")
        lines.append(f"job {job} stage_{phase}: {last_line(running.with_suffix('.log'))}")
    return "\n".join(lines) or "farline: no copies run"


def last_line(log: Path) -> str:
    """The last that farline said, without its tickets."""
    text = log.read_bytes()[-4096:].decode("utf-8", "replace").replace("\r", "\n")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = lines[-1].removeprefix("farline: ") if lines else "begins"
    return re.sub(r"(farline://[^\s/#]+)/\S*", r"\1", last)


def leave_group() -> None:
    """Leaves the group of processes that Slurm kills: also a teardown, as a job is cancelled.

    Slurm 22.05 flushes the scripts of a cancelled job while its teardown begins, and does not
    call that again: what it had not done would stay undone.
    """
    with contextlib.suppress(PermissionError):
        os.setsid()


def main(words: list[str]) -> int:
    """Does what is asked for; one line says what went wrong."""
    try:
        match words:
            case ["check", script]:
                directives(Path(script))
            case ["in" | "out" as phase, script, job]:
                leave_group()
                copy(phase, Path(script), job)
            case ["paths", script, file]:
                paths(Path(script), Path(file))
            case ["teardown", job]:
                leave_group()
                teardown(job)
            case ["status"]:
                print(status())
            case _:
                raise StageError(f"unknown call: {shlex.join(words)}")
    except (StageError, OSError) as error:
        print(f"farline: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
