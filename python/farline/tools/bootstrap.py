"""Sends a program to a host without farline: the far end of a copy, in one file, kept in a cache.

`crates/carried` is that program: static, for one processor, without Python. It is sent over ssh,
checked there by its SHA-256, tried, and only then put under its name in `~/.cache/farline` (or
`$XDG_CACHE_HOME/farline`) of the user who logs in; a later copy finds it there and checks it again.
`remove_programs` takes all of them away.

The scripts are passed to `sh` in single quotes and have no character that bash, tcsh or fish would
read within these. What they say stands behind a mark (`start_mark`), for shells print other text.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from farline.errors import InterruptedRun, SystemFailure, TimeoutFailure, UsageError
from farline.logs import Log
from farline.spec.foreign_text import quoted
from farline.spec.units import size_human
from farline.tools import Stop, StopQuestion
from farline.tools.child import Child
from farline.tools.events import Notice, NoticeKind
from farline.tools.ssh_failure import ssh_failure
from farline.tools.start_mark import MarkedLines, mark_of, new_nonce

if TYPE_CHECKING:
    from farline.tools.events import Steps
    from farline.tools.ssh_command import SshCommand

_LOG = Log(__name__)

PROGRAMS = Path(__file__).parent / "carried"
"""Where an installation has the programs: `linux-x86_64` and so on."""

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Other names of processors, as kernels say them."""

_SSH_FAILED = 255
_STEP_S = 0.1
_ANSWER_S = 60.0
"""So long a script may say nothing, where the user has not allowed another time."""
_CHUNK_BYTES = 64 * 1024
_NAME_DIGITS = 16
"""Digits of the SHA-256 in the name of a file in the cache."""

_FOLDER = "m=$1$2; d=${XDG_CACHE_HOME:-$HOME/.cache}/farline; "
_SUM = (
    "sum() { { sha256sum $1 || shasum -a 256 $1 || openssl dgst -sha256 -r $1; } 2>/dev/null"
    " | cut -c 1-64; }; "
)
_LOOK = (
    _FOLDER + _SUM + 'echo "${m}system $(uname -s) $(uname -m)"; echo "${m}folder $d"; '
    'cd "$d" 2>/dev/null && [ -x $3 ] && echo "${m}sum $(sum $3)"; echo "${m}end"'
)
_SEND = (
    _FOLDER + _SUM + 'umask 077; if mkdir -p "$d" && cd "$d" && cat > new-$$; then '
    'echo "${m}sum $(sum new-$$)"; if [ "$(sum new-$$)" = $4 ]; then chmod 700 new-$$; '
    'if r=$(./new-$$ --version 2>&1); then mv -f new-$$ $3 && echo "${m}kept"; '
    'else echo "${m}refused $r"; fi; fi; rm -f new-$$; fi; echo "${m}end"'
)
_REMOVE = (
    _FOLDER + 'if cd "$d" 2>/dev/null; then for f in farline-*; do [ -f "$f" ] && rm -f "$f" && '
    'echo "${m}removed $d/$f"; done; cd / && rmdir "$d" 2>/dev/null; fi; echo "${m}end"'
)


@dataclass(frozen=True)
class Program:
    """A program for a processor, as this host has it."""

    path: Path
    content: bytes

    @property
    def sha256(self) -> str:
        """Of its content, in hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def name(self) -> str:
        """What it is called in the cache: another content has another name."""
        return f"farline-{version('farline')}-{self.sha256[:_NAME_DIGITS]}"


def program_for(system: str, machine: str, named: Path | None) -> Program:
    """The program for a host of that system and processor (`uname -s`, `-m`), or the one `named`.

    Raises:
        UsageError: when there is none.
        SystemFailure: when it cannot be read.
    """
    kind = f"{system.lower()}-{_MACHINES.get(machine, machine)}"
    path = named or PROGRAMS / kind
    try:
        return Program(path, path.read_bytes())
    except FileNotFoundError:
        if named is not None:
            raise UsageError(f"--bootstrap-program {named}: no such file") from None
        have = sorted(one.name for one in PROGRAMS.glob("*-*")) if PROGRAMS.is_dir() else []
        raise UsageError(
            f"no program for {system} {machine} comes with this installation of farline (there is "
            f"{', '.join(have) or 'none'}): build it with `make carried` in a clone of farline, "
            "name one with --bootstrap-program, or install farline on that host"
        ) from None
    except OSError as error:
        raise SystemFailure(f"{path}: {error.strerror}") from error


def send_program(
    ssh: SshCommand, target: str, named: Path | None, should_stop: StopQuestion
) -> Steps[str]:
    """Has the program in the cache of `target`, sent only if it is not; its path there.

    `named` is a program to send in place of those that come with farline.

    Raises:
        FarlineError: when ssh fails, there is no program for that host, or it does not arrive as
            it was sent or does not run there.
        InterruptedRun: when somebody would not wait.
    """
    # Which file it is depends on the processor there: that of this host is looked for first.
    guess = _local_guess(named)
    said = yield from _run(ssh, target, _LOOK, [guess.name if guess else "-"], b"", should_stop)
    program = program_for(*_system(said, target), named)
    if guess is None or guess.name != program.name:
        said = yield from _run(ssh, target, _LOOK, [program.name], b"", should_stop)
    folder = _value(said, "folder", target)
    path = f"{folder}/{program.name}"
    if _found(said, "sum") == program.sha256:
        _LOG.debug("the program is in the cache there", host=target, path=path)
        return path
    size = size_human(len(program.content))
    yield Notice(NoticeKind.WAITING, f"sending farline ({size}) to {target}:{folder}")
    arguments = [program.name, program.sha256]
    said = yield from _run(ssh, target, _SEND, arguments, program.content, should_stop)
    _check_kept(said, target, folder, program)
    return path


def remove_programs(ssh: SshCommand, target: str, should_stop: StopQuestion) -> Steps[list[str]]:
    """Removes every program from the cache of `target`; the paths that were there.

    Raises:
        FarlineError: when ssh fails.
        InterruptedRun: when somebody would not wait.
    """
    said = yield from _run(ssh, target, _REMOVE, [], b"", should_stop)
    return [text for key, text in said.lines if key == "removed"]


def _local_guess(named: Path | None) -> Program | None:
    try:
        own = os.uname()
        return program_for(own.sysname, own.machine, named)
    except (UsageError, SystemFailure):
        return None


def _check_kept(said: _Said, target: str, folder: str, program: Program) -> None:
    if ("kept", "") in said.lines:
        return
    if (refusal := _found(said, "refused")) is not None:
        raise UsageError(
            f"{target}: the program that was sent does not run there: {refusal or 'no reason'}; "
            f"{folder} may be mounted noexec: install farline on that host, or set XDG_CACHE_HOME "
            "there"
        )
    if (found := _found(said, "sum")) is None:
        raise UsageError(
            f"{target}: the program cannot be kept in {folder} on that host"
            + (f": {said.complaint}" if said.complaint else "")
            + "; free that folder, set XDG_CACHE_HOME there, or install farline on that host"
        )
    if not found:
        raise UsageError(
            f"{target}: no program on that host computes SHA-256 (sha256sum, shasum, openssl): "
            "what is sent cannot be checked; install farline there"
        )
    raise SystemFailure(
        f"{target}: the program did not arrive as it was sent (SHA-256 {found[:_NAME_DIGITS]}… in "
        f"place of {program.sha256[:_NAME_DIGITS]}…); nothing was kept: try again"
    )


@dataclass(frozen=True)
class _Said:
    """What a script said: keys and values, and the last line of its standard error."""

    lines: Sequence[tuple[str, str]]
    complaint: str


def _found(said: _Said, key: str) -> str | None:
    return next((text for name, text in said.lines if name == key), None)


def _value(said: _Said, key: str, target: str) -> str:
    if (text := _found(said, key)) is None:
        raise UsageError(
            f"{target}: the shell on that host does not run the script that looks for a place"
            + (f": {said.complaint}" if said.complaint else "")
            + "; install farline there"
        )
    return text


def _system(said: _Said, target: str) -> tuple[str, str]:
    """System and processor."""
    system, _, machine = _value(said, "system", target).partition(" ")
    return system, machine


def _run(
    ssh: SshCommand,
    target: str,
    script: str,
    arguments: Sequence[str],
    data: bytes,
    should_stop: StopQuestion,
) -> Steps[_Said]:
    """Runs a script there with `data` as its input; what it said up to its end."""
    mark = mark_of(new_nonce())
    # In two words, so that an echo of the command is not taken for a marked line.
    halves = [mark[:8], mark[8:]]
    command = f"sh -c '{script}' sh {shlex.join([*halves, *arguments])}"
    child = Child([*ssh.words(target, "-T"), command])
    try:
        lines = MarkedLines(mark)
        kept: list[tuple[str, str]] = []
        limit_s = ssh.start_limit_s(target) if ssh.start_s is None else ssh.start_s
        quiet_since = time.monotonic()
        left = memoryview(data)
        while should_stop() is Stop.GO_ON:
            if left:
                child.send(bytes(left[:_CHUNK_BYTES]))
                left = left[_CHUNK_BYTES:]
                if not left:
                    child.end_input()
            more = child.read(0.0 if left else _STEP_S)
            if more:
                lines.feed(more)
                quiet_since = time.monotonic()
            while (line := lines.next()) is not None:
                key, _, text = line.decode("utf-8", "replace").strip().partition(" ")
                if key == "end":
                    return _Said(kept, _last(child))
                kept.append((key, quoted(text.encode()) if key == "refused" else text))
            if more == b"":
                raise _ended(child, target, kept)
            if not left and time.monotonic() - quiet_since > max(limit_s, _ANSWER_S):
                raise TimeoutFailure(
                    f"{target}: the script that keeps the program did not end within "
                    f"{max(limit_s, _ANSWER_S):g} s; allow more time with --start-timeout"
                )
            yield None
        raise InterruptedRun(f"ssh {target}: interrupted")
    finally:
        child.close(_STEP_S)


def _last(child: Child) -> str:
    return next(iter(child.said.lines()[-1:]), "")


def _ended(
    child: Child, target: str, kept: Sequence[tuple[str, str]]
) -> UsageError | SystemFailure:
    code, complaint = child.wait(1.0), _last(child)
    if code == _SSH_FAILED:
        failure: UsageError | SystemFailure = ssh_failure(target, child.said.lines())  # type: ignore[assignment]
        return failure
    done = f" after {kept[-1][0]!r}" if kept else ""
    return UsageError(
        f"{target}: the shell on that host ended with {code}{done} before the script that keeps "
        f"the program had run" + (f": {complaint}" if complaint else "") + "; install farline there"
    )
