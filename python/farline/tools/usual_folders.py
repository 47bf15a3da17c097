"""Where farline is looked for on another host whose shell does not find it in its PATH.

A shell that ssh starts for one command reads few start-up files, so its PATH often lacks the folder
in which a user has installed farline.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

FOLDERS = (
    "~/.local/bin",
    "~/bin",
    "~/.cargo/bin",
    "~/.venv/bin",
    "~/farline/.venv/bin",
    "/usr/local/bin",
    "/opt/farline/bin",
)
"""The first that has an executable farline is used; `~` is the home folder on that host."""

_FOUND = re.compile(rb"farline found: (/[^\r\n]*/farline)\r?\n")
_NOWHERE = re.compile(rb"farline found: nowhere\r?\n")


def search_command(arguments: Sequence[str]) -> str:
    """A command line that runs the first farline in the usual folders with `arguments`.

    It prints the path on standard output before, or that there is none. The script has no character
    that bash, tcsh or fish would read within single quotes, so each passes it to `sh` as it is.
    """
    script = (
        f"for d in {' '.join(FOLDERS)}; do f=$d/farline; "
        '[ -f "$f" ] && [ -x "$f" ] && echo "farline found: $f" && exec "$f" "$@"; '
        'done; echo "farline found: nowhere"; exit 127'
    )
    return f"sh -c '{script}' sh {shlex.join(arguments)}"


def found_path(printed: bytes) -> str | None:
    """The path of the farline that a search has started, from its standard output."""
    found = _FOUND.search(printed)
    return found[1].decode(errors="backslashreplace") if found else None


def is_nowhere(printed: bytes) -> bool:
    """Whether a search has run and found nothing, from its standard output."""
    return _NOWHERE.search(printed) is not None
