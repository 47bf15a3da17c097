"""The release checklist: `python -m scripts.release 1.0.0-rc1`. Changes nothing.

Each line is one thing that a release promises, with what to do where it does not hold. The version
is in `Cargo.toml` alone; everything else reads it from there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from farline.spec.deprecations import DEPRECATIONS, Deprecation
from scripts import dist
from scripts.old_peers import PEERS, built

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-(?:alpha|beta|rc)(\d+))?")
Check = Callable[[str], Iterator[str]]
"""Gives a line for each thing that is missing, with what to do."""


def git(*words: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout


def version(wanted: str) -> Iterator[str]:
    """The version is well formed, later than the last, and the one in Cargo.toml."""
    if VERSION.fullmatch(wanted) is None:
        yield f"{wanted} is no version: MAJOR.MINOR.PATCH, with -rcN where it is a candidate"
    elif order(wanted) < order(dist.version()):
        yield f"{wanted} is earlier than {dist.version()}, which is in Cargo.toml"
    elif wanted != dist.version():
        yield (
            f'write version = "{wanted}" below [workspace.package] in Cargo.toml, and run cargo'
            " update --workspace for Cargo.lock"
        )


def order(text: str) -> tuple[int, int, int, int]:
    """By which versions sort: a candidate is before what it is a candidate for."""
    found = VERSION.fullmatch(text)
    assert found is not None, text
    major, minor, patch = (int(found[index]) for index in (1, 2, 3))
    return major, minor, patch, int(found[4]) if found[4] else sys.maxsize


def one_place(_wanted: str) -> Iterator[str]:
    """No other file states a version of its own."""
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        if re.search(r'^version = "', manifest.read_text(encoding="utf-8"), re.MULTILINE):
            yield f"{manifest.relative_to(ROOT)}: write version.workspace = true"
    if re.search(r'^version = "', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M):
        yield "pyproject.toml: leave version out, it is dynamic"


def changelog(wanted: str) -> Iterator[str]:
    """Users can read what is new: a section of this version with a date, none unreleased."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if re.search(rf"^## \[{re.escape(wanted)}\] (.* )?\d{{4}}-\d\d-\d\d$", text, re.M) is None:
        yield f"CHANGELOG.md: a heading `## [{wanted}] YYYY-MM-DD` over what is unreleased"


def clean_tree(_wanted: str) -> Iterator[str]:
    """What is built is what is committed."""
    if changed := git("status", "--porcelain", "--untracked-files=no").split("\n")[:-1]:
        yield f"{len(changed)} changed files are not committed"


def old_versions(_wanted: str) -> Iterator[str]:
    """Every protocol version has its recorded frames, and a build that is held against this one."""
    text = (ROOT / "crates/session/src/message/mod.rs").read_text(encoding="utf-8")
    found = re.search(r"VersionRange = VersionRange \{ min: (\d+), max: (\d+) \}", text)
    assert found is not None
    for number in range(int(found[1]), int(found[2]) + 1):
        if not (ROOT / f"crates/session/tests/wire/v{number}.txt").exists():
            yield f"crates/session/tests/wire/v{number}.txt: record the frames of version {number}"
        if number not in {peer.protocol for peer in PEERS}:
            yield f"scripts/old_peers.py: name a commit of protocol version {number}"
    if missing := {peer.name for peer in PEERS} - {peer.name for peer in built()}:
        yield f"make old-peers, then tests/interop/test_old_peers.py: {', '.join(sorted(missing))}"


def deprecations(wanted: str) -> Iterator[str]:
    """What was announced to go with this version is gone."""
    for one in due(DEPRECATIONS, wanted):
        yield f"{one.name}: announced to go with {one.removed_in}: take it out, with its entry"


def due(known: Sequence[Deprecation], wanted: str) -> list[Deprecation]:
    """What has to be gone in a version; a candidate of a version counts as that version."""
    final = order(wanted.partition("-")[0])
    return [one for one in known if order(one.removed_in) <= final]


def packages(wanted: str) -> Iterator[str]:
    """`make dist` has been run, for both processors, with the programs for --bootstrap."""
    folder = ROOT / "python/farline/tools/carried"
    for machine, architecture in dist.ARCHITECTURES.items():
        package = f"farline_{dist.debian_version(wanted)}_{architecture}.deb"
        if not (dist.DIST / package).exists():
            yield f'dist/{package} is missing: make dist MACHINES="x86_64 aarch64"'
        if not (folder / f"linux-{machine}").exists():
            yield f"{folder.relative_to(ROOT)}/linux-{machine} is missing: make carried"


CHECKS: tuple[Check, ...] = (
    version, one_place, changelog, clean_tree, old_versions, deprecations, packages,
)  # fmt: skip

BY_HAND = (
    ".ci/run passes in a fresh clone, without FARLINE_LONG and with it",
    "make dist twice, in two folders: the same SHA256SUMS",
    "the packages in clean roots: .venv/bin/pytest tests/interop/test_clean_root.py"
    " tests/interop/test_service.py",
    "the guides name no version that is gone: grep the number of the last release in docs",
    "git tag vVERSION at the commit that all of this was done with",
)
"""What takes hours or a person."""


def main(words: Sequence[str]) -> int:
    """Says what holds and what does not; 0 where nothing is missing."""
    if len(words) != 1:
        sys.exit("usage: python -m scripts.release VERSION")
    failed = 0
    for check in CHECKS:
        lines = list(check(words[0]))
        failed += bool(lines)
        about = (check.__doc__ or "").splitlines()[0]
        print(f"{'not yet' if lines else 'ok':8} {about}")
        for line in lines:
            print(f"{'':8}   {line}")
    for line in BY_HAND:
        print(f"{'by hand':8} {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
