"""`make old-peers`: builds of earlier commits, for `tests/interop/test_old_peers.py`.

Each is a folder of the cache with the Python code of its commit, its extension, and a program
`farline`; `carried` is the program that is sent to other hosts, where the commit has one. They run
with the packages of this environment. What was built is used again, and nothing of it belongs into
the repository.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class OldPeer:
    """A commit to build: the last that spoke a version of the control protocol, unless stated."""

    name: str
    commit: str
    protocol: int
    has_carried: bool = False


PEERS = (
    OldPeer("v1", "822c5489", 1),
    OldPeer("v2", "4d4c16ec", 2),
    OldPeer("v3", "bfb08918", 3),
    # The release of 0.2.0. What came between it and version 5 was in no release.
    OldPeer("v4", "246e7ab4", 4),
    # The first of their versions: what has changed since then without a new version must still fit.
    OldPeer("v5", "b956c589", 5, has_carried=True),
    OldPeer("v6", "8a49789b", 6, has_carried=True),
    OldPeer("v7", "da493b70", 7, has_carried=True),
)


def cache() -> Path:
    """Where builds are kept: `$FARLINE_OLD_PEERS`, else in the user's cache."""
    if named := os.environ.get("FARLINE_OLD_PEERS"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "farline-old-peers"


def folder_of(peer: OldPeer) -> Path:
    """Where a build is, or would be."""
    return cache() / f"{peer.name}-{peer.commit}"


def built() -> list[OldPeer]:
    """What the cache has, oldest first."""
    return [peer for peer in PEERS if (folder_of(peer) / "python").exists()]


def command(peer: OldPeer) -> tuple[str, ...]:
    """Runs the farline of a build, in the environment of whoever asks: builds outlast checkouts."""
    return ("env", f"PYTHONPATH={folder_of(peer) / 'python'}", sys.executable, "-m", "farline")


def build(peer: OldPeer) -> None:
    """Builds a commit into the cache; a build that fails leaves nothing there."""
    target = folder_of(peer)
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{peer.name}-", dir=cache()) as place:
        source, made = Path(place) / "source", Path(place) / "made"
        source.mkdir()
        made.mkdir()
        unpack(peer, source)
        env = {
            **os.environ,
            # Dependencies are built once for all commits that lock the same versions.
            "CARGO_TARGET_DIR": str(cache() / "target"),
            "CARGO_INCREMENTAL": "0",
            "CARGO_PROFILE_DEV_DEBUG": "0",
            "PYO3_BUILD_EXTENSION_MODULE": "1",
            "PYO3_PYTHON": sys.executable,
        }
        packages = ["farline-py", *(["farline-carried"] if peer.has_carried else [])]
        chosen = [word for name in packages for word in ("--package", name)]
        done = subprocess.run(
            ["cargo", "build", "--quiet", "--locked", *chosen], cwd=source, env=env, check=False
        )
        if done.returncode != 0:
            sys.exit(f"old-peers: {peer.name} ({peer.commit}) cannot be built")
        fill(peer, source, made)
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)


def unpack(peer: OldPeer, source: Path) -> None:
    """The sources of its commit."""
    archive = subprocess.run(
        ["git", "archive", peer.commit], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode != 0:
        said = archive.stderr.decode(errors="replace").strip()
        sys.exit(f"old-peers: {peer.commit} is not in this clone (git fetch --unshallow): {said}")
    # New times (-m): cargo takes what another commit left in its folder for that of these sources.
    subprocess.run(["tar", "-x", "-m", "-C", source], input=archive.stdout, check=True)
    text = (source / "crates/session/src/message/mod.rs").read_text(encoding="utf-8")
    found = re.search(r"VERSIONS: VersionRange = VersionRange \{ min: \d+, max: (\d+) \}", text)
    if found is None or int(found[1]) != peer.protocol:
        sys.exit(f"old-peers: {peer.commit} does not speak version {peer.protocol}")


def fill(peer: OldPeer, source: Path, made: Path) -> None:
    """What runs: Python's part, the extension in it, the version it says it has, a program."""
    python = made / "python"
    (source / "python").rename(python)
    output = cache() / "target" / "debug"
    shutil.copy(output / "lib_native.so", python / "farline" / "_native.abi3.so")
    manifest = tomllib.loads((source / "Cargo.toml").read_text(encoding="utf-8"))
    version = manifest["workspace"]["package"]["version"]
    info = python / f"farline-{version}.dist-info"
    info.mkdir()
    text = f"Metadata-Version: 2.4\nName: farline\nVersion: {version}\n"
    (info / "METADATA").write_text(text, encoding="utf-8")
    if peer.has_carried:
        shutil.copy(output / "farline-carried", made / "carried")


def main(words: Sequence[str]) -> int:
    """Builds what is named, or all; says where each is."""
    parser = argparse.ArgumentParser(prog="old-peers", description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(peer.name for peer in PEERS))
    parser.add_argument(
        "--keep-target", action="store_true", help="Keep what cargo built on the way."
    )
    chosen = parser.parse_args(words)
    if unknown := set(chosen.names) - {peer.name for peer in PEERS}:
        parser.error(f"{', '.join(sorted(unknown))}: unknown")
    for peer in PEERS:
        if chosen.names and peer.name not in chosen.names:
            continue
        if peer not in built():
            print(f"old-peers: building {peer.name} ({peer.commit})", file=sys.stderr, flush=True)
            build(peer)
        print(folder_of(peer))
    if not chosen.keep_target:
        shutil.rmtree(cache() / "target", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
