"""Crates that a change may break."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Set
from pathlib import Path

HOLDS_NO_TESTS = "farline-py"
"""Built by `make dev` alone, with Python's symbols left open: cargo cannot run it."""


def affected(root: Path, changed: Set[str]) -> list[str]:
    """Names of changed crates, then of those that are built on them, by their distance."""
    folders, users = workspace(root)
    tops = {"/".join(path.split("/")[:2]) for path in changed} | {
        path.split("/")[0] for path in changed
    }
    near = [name for folder, name in folders.items() if folder in tops]
    return [name for name in by_distance(near, users) if name != HOLDS_NO_TESTS]


def without_library(root: Path) -> set[str]:
    """Crates that are programs alone: their tests are those of their `main.rs`."""
    folders, _ = workspace(root)
    return {name for folder, name in folders.items() if not (root / folder / "src/lib.rs").exists()}


def workspace(root: Path) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Crates by their folders, and for each the crates that depend on it."""
    command = ["cargo", "metadata", "--format-version=1", "--no-deps", "--offline", "--locked"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    packages = json.loads(done.stdout)["packages"]
    folders = {
        str(Path(one["manifest_path"]).parent.relative_to(root)): str(one["name"])
        for one in packages
    }
    users: dict[str, set[str]] = {name: set() for name in folders.values()}
    for one in packages:
        for used in one["dependencies"]:
            users.get(used["name"], set()).add(one["name"])
    return folders, users


def by_distance(near: list[str], users: Mapping[str, Set[str]]) -> list[str]:
    """The names, and all that use them: those that use them directly first."""
    found, edge = list(near), list(near)
    while edge:
        edge = sorted({user for name in edge for user in users[name]} - set(found))
        found += edge
    return found
