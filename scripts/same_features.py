"""Whether every way to call cargo asks the same features of every library: then each is built once.

Cargo joins features over the members that a command builds. What one member asks of a library that
others use too therefore stands in `crates/features`, which all depend on. Prints what differs
between a member alone and the whole workspace with its tests, and exits with 1 if something does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALONE = ("farline-py", "farline-session", "farline-mover", "farline-sim", "xtask")

Features = dict[str, set[str]]


def features(*selection: str, edges: str = "normal,build") -> Features:
    """Sets of features by library, as far as a selection of members needs it."""
    command = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"]
    done = subprocess.run(
        [*command, "--edges", edges, *selection],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: Features = {}
    for line in done.stdout.splitlines():
        library, bar, names = line.removesuffix(" (*)").partition("|")
        if bar:
            found.setdefault(library, set()).add(names)
    return found


def differences(one: Features, whole: Features) -> Iterator[str]:
    """What a member alone asks of a library otherwise than the workspace."""
    for library, sets in sorted(one.items()):
        for names in sorted(sets - whole.get(library, set())):
            more = {word for other in whole.get(library, ()) for word in other.split(",")}
            yield f"{library}: not {', '.join(sorted(more - set(names.split(','))))}"


def main() -> int:
    """1 if a library would be built twice."""
    whole = features("--workspace", edges="normal,build,dev")
    wrong = 0
    for member in ALONE:
        for difference in differences(features("--package", member), whole):
            print(f"{member} alone asks of {difference}: add it to crates/features/Cargo.toml")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
