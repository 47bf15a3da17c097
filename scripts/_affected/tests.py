"""Test files of `tests/unit` that a change may break."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

UNITS = "tests/unit/"
BENCHES = "benches"


def affected(root: Path, changed: Set[str]) -> list[str]:
    """Changed test files, then those that import something changed, by how many steps there are.

    Files that are no modules count for the tests that name them or their folder.
    """
    graph = import_graph(root)
    modules = {name for path in changed for name in module_names(path)}
    steps = distances(graph, modules)
    modules_of = {path: module_names(path)[0] for path in units(root)}
    found = {path: steps[name] for path, name in modules_of.items() if name in steps}
    for path in naming(root, changed):
        found.setdefault(path, 1)
    return sorted(found, key=lambda path: (found[path], path))


def units(root: Path) -> Iterator[str]:
    """Every file with unit tests."""
    for path in sorted((root / UNITS).rglob("test_*.py")):
        yield path.relative_to(root).as_posix()


def module_names(path: str) -> list[str]:
    """Names by which a file is imported; none if it is no Python."""
    if not path.endswith((".py", ".pyi")):
        return []
    parts = path.rpartition(".")[0].removesuffix("/__init__").split("/")
    if parts[0] in ("python", BENCHES):
        return [".".join(parts[1:])]
    return [".".join(parts)]


def import_graph(root: Path) -> dict[str, set[str]]:
    """For each module of ours the modules that import it."""
    import grimp

    sys.path[:0] = [str(folder) for folder in (root / "python", root / BENCHES, root)]
    packages = [path.parent.name for path in sorted((root / BENCHES).glob("*/__init__.py"))]
    graph = grimp.build_graph("farline", "tests", "scripts", *packages, cache_dir=None)
    importers = {name: set(graph.find_modules_that_directly_import(name)) for name in graph.modules}
    for stem, names in importers_of_programs(root):
        importers.setdefault(stem, set()).update(names)
    return importers


def importers_of_programs(root: Path) -> Iterator[tuple[str, set[str]]]:
    """The same for the single files of benches, which belong to no package."""
    texts = {
        module_names(path.relative_to(root).as_posix())[0]: path.read_text(encoding="utf-8")
        for folder in (BENCHES, "tests")
        for path in sorted((root / folder).rglob("*.py"))
    }
    for path in sorted((root / BENCHES).glob("*.py")):
        line = re.compile(rf"^\s*(from|import) {path.stem}\b", re.MULTILINE)
        yield path.stem, {name for name, text in texts.items() if line.search(text)}


def distances(importers: Mapping[str, Set[str]], changed: Iterable[str]) -> dict[str, int]:
    """Steps from a change to each module that imports it, directly or not; 0 for itself."""
    found = dict.fromkeys(changed, 0)
    edge = set(found)
    while edge:
        step = max(found[name] for name in edge) + 1
        edge = {user for name in edge for user in importers.get(name, ())} - found.keys()
        found |= dict.fromkeys(edge, step)
    return found


def naming(root: Path, changed: Set[str]) -> Iterator[str]:
    """Tests that read changed files: beside a changed conftest, or with a name in their text."""
    conftests = [
        path.removesuffix("conftest.py") for path in changed if path.endswith("/conftest.py")
    ]
    others = {path for path in changed if not module_names(path) and not path.startswith("crates/")}
    words = {Path(path).name for path in others} | {f'"{path.split("/")[0]}"' for path in others}
    for path in units(root):
        text = (root / path).read_text(encoding="utf-8")
        if any(path.startswith(folder) for folder in conftests) or any(w in text for w in words):
            yield path
