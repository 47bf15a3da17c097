"""Why a command over ssh ended, or never began: from its exit code and what was printed.

Shells differ: bash exits with 127 for a command that it does not find, csh and nushell with 1, and
a login shell that lets nobody in says so on standard output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from farline.errors import (
    AuthError,
    FarlineError,
    PeerError,
    ProtocolError,
    TimeoutFailure,
    UnreachableError,
    UsageError,
    VersionError,
)
from farline.spec.foreign_text import QUOTED_CHARACTERS, plain_lines, quoted
from farline.tools.usual_folders import FOLDERS, found_path, is_nowhere

_NOT_EXECUTABLE = 126
_NOT_FOUND = 127
_SSH_FAILED = 255

_MISSING = re.compile(
    r"command not found|unknown command|: not found|no such file or directory"
    r"|is not recognized as an internal or external command|command `.*` not found",
    re.IGNORECASE,
)
_RESTRICTED = re.compile(r"restricted|permission denied", re.IGNORECASE)
_TOO_OLD = re.compile(r"no such option: --(?:copy-session|mark|order)|no such command", re.I)
_REASON = re.compile(
    r"^(?:ssh|mux|kex|banner|channel|command-line|unix_listener|client_loop|packet_write_wait)\b"
    r"|^(?:Connection|Host key|Could not|Unable|Bad |No |Load key|Timeout|Received disconnect"
    r"|Disconnected|Too many|bind|@ )|Permission denied|IDENTIFICATION|: line \d+: ",
    re.IGNORECASE,
)
"""How a line of ssh begins that tells why it failed; banners and warnings do not."""

_INSTALL = (
    "install it there (`make setup` in a clone of farline in ~/farline), give its path with "
    "--remote-farline PATH, or have a program for this copy sent with --bootstrap"
)
_UNMARKED = re.compile(rb'"event": ?"ready".*"ticket"')
_REASONS_SHOWN = 2

_TAKEN_BACK = {
    "Cannot execute command-line and remote command": "RemoteCommand=none",
    "Could not request local forwarding": "ClearAllForwardings=yes",
    "remote port forwarding failed": "ClearAllForwardings=yes",
}
"""What ssh fails with where its configuration asks for more than a login, and what takes that back.

Not given to every ssh: old ones know the first option neither."""


def why_ended(
    target: str, farline: str, code: int | None, said: Sequence[str], printed: bytes = b""
) -> FarlineError:
    """Why a command over ssh ended before it had said what it should.

    `said` has the last lines of its standard error, `printed` the end of its standard output.
    """
    last = said[-1] if said else quoted(printed)
    if code == _SSH_FAILED:
        return ssh_failure(target, said)
    if any(_TOO_OLD.search(line) for line in said):
        return VersionError(
            f"{target}: farline on that host is too old for this version: {last}; install the "
            "same version on both hosts"
        )
    if is_missing(farline, code, said, printed):
        return UsageError(
            f"{target}: {farline} was not found on that host; install farline there, or give its "
            "path with --remote-farline" + _shell_said(last)
        )
    if code == _NOT_EXECUTABLE or any(_RESTRICTED.search(line) for line in _naming(farline, said)):
        return _cannot_run(target, farline, last)
    what = "does not answer"
    if code is not None:
        what = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
    return ProtocolError(f"{target}: farline on that host {what}" + (f": {last}" if last else ""))


def is_missing(farline: str, code: int | None, said: Sequence[str], printed: bytes = b"") -> bool:
    """Whether the shell there did not find `farline`; on a terminal it says so where it prints."""
    lines = _naming(farline, said or plain_lines(printed)[-1:])
    return code == _NOT_FOUND or any(_MISSING.search(line) for line in lines)


def _naming(farline: str, said: Sequence[str]) -> list[str]:
    return [line for line in said if farline.split()[-1] in line]


def _cannot_run(target: str, farline: str, last: str) -> UsageError:
    return UsageError(
        f"{target}: {farline} cannot be run on that host: {last or 'no reason given'}; give "
        "the path of farline with --remote-farline"
    )


def why_search_ended(
    target: str, code: int | None, said: Sequence[str], printed: bytes = b""
) -> FarlineError:
    """The same where farline is not in the PATH there, and was looked for in the usual folders."""
    last = said[-1] if said else ""
    if (path := found_path(printed)) is not None:
        # What is missing now is what its first line names: the Python of a venv that has gone.
        if is_missing(path, code, said, printed):
            return _cannot_run(target, path, last or quoted(printed))
        return why_ended(target, path, code, said, printed)
    if code == _SSH_FAILED:
        return ssh_failure(target, said)
    if is_nowhere(printed):
        return UsageError(
            f"{target}: farline was not found on that host: it is neither in the PATH of the shell "
            f"nor in {', '.join(FOLDERS)}; {_INSTALL}"
        )
    return UsageError(
        f"{target}: farline was not found on that host: it is not in the PATH of the shell, which "
        f"does not run the search of other folders either; {_INSTALL}"
        + _shell_said(last or quoted(printed))
    )


def _shell_said(last: str) -> str:
    return f" (the shell on that host: {last})" if last else ""


def taking_back(said: Sequence[str]) -> str | None:
    """The option that takes back what ssh's configuration asks for, if ssh failed because of it."""
    text = "\n".join(said)
    return next((option for failure, option in _TAKEN_BACK.items() if failure in text), None)


def ssh_failure(target: str, said: Sequence[str]) -> FarlineError:
    """What ssh itself failed with; the other end where it lets nobody in, else the path."""
    text = " ".join(said)
    reasons = [line for line in said if _REASON.search(line)] or list(said)
    last = "; ".join(dict.fromkeys(reasons[-_REASONS_SHOWN:]))
    last = last or f"no reason given; `ssh -v {target} true` says more"
    kind: type[PeerError] | type[UnreachableError] = UnreachableError
    advice = ""
    if "Host key verification failed" in text or "HOST IDENTIFICATION" in text:
        kind = AuthError
        if "HAS CHANGED" not in text:
            advice = f"; run `ssh {target}` once to check its key and accept it"
    elif "Permission denied" in text:
        kind = AuthError
    return kind(f"ssh {target}: {last}{advice}")


def not_started(target: str, limit_s: float, said: Sequence[str], printed: bytes) -> TimeoutFailure:
    """farline has not begun there within `limit_s`."""
    told = [
        f"{who} printed: {text}"
        for who, text in (
            ("ssh", quoted("\n".join(said), QUOTED_CHARACTERS)),
            ("the remote shell", quoted(printed)),
        )
        if text
    ]
    seen = "; ".join(told) or (
        "neither ssh nor the remote shell printed anything that can be shown"
        if printed
        else "neither ssh nor the remote shell printed anything"
    )
    advice = (
        f"check that `ssh {target} true` ends by itself (a start-up file of the shell, such as "
        ".bashrc, may wait for input or run another program)"
    )
    if _UNMARKED.search(printed):
        advice = (
            "another farline, not started by this command, answers on that host: let the forced "
            "command of sshd run $SSH_ORIGINAL_COMMAND, and install the same version on both hosts"
        )
    return TimeoutFailure(
        f"{target}: farline did not start on that host within {limit_s:g} s: {seen}; {advice}, or "
        "allow more time with --start-timeout"
    )
