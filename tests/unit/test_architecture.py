"""Rules about imports that import-linter cannot see."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "farline"
DOORS = ("tools", "spec", "testbeds", "logs")
HEAVY = ("numpy", "scipy", "pyarrow", "pandas", "duckdb", "ibis", "matplotlib", "rich", "jinja2",
         "fastapi", "pydantic", "uvicorn")  # fmt: skip


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a file without what is there for types alone."""
    yield node
    for child in ast.iter_child_nodes(node):
        names_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        yield from () if names_types else walk(child)


def imported_modules(
    source: str, nodes: Callable[[ast.AST], Iterator[ast.AST]] = ast.walk
) -> set[str]:
    """Full names of everything a file imports, inside functions too."""
    found: set[str] = set()
    for node in nodes(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
            found.add(node.module)
    return found


@pytest.mark.parametrize(
    "statement",
    [
        "from farline import _native",
        "import farline._native",
        "from farline._native import start_run",
        "def f():\n    from farline import _native",
    ],
)
def test_an_import_of_the_extension_is_seen(statement: str) -> None:
    assert "farline._native" in imported_modules(statement)


def test_only_four_rooms_import_the_extension() -> None:
    importers = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if "farline._native" in imported_modules(path.read_text(encoding="utf-8"))
    }
    assert importers, "nothing imports the extension: the search is wrong"
    assert importers <= set(DOORS)


def name_of(path: Path) -> str:
    """The full name of the module in a file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def test_no_file_imports_one_that_imports_it_over_any_number_of_others() -> None:
    """Packages only hand names on, and stand for the files that have them."""
    files = {name_of(path): path for path in PACKAGE.rglob("*.py")}
    taken = {
        name: imported_modules(files[name].read_text(encoding="utf-8"), walk) for name in files
    }

    def home(name: str) -> str | None:
        """The file that defines what is imported under a name."""
        if name in files:
            return None if files[name].stem == "__init__" else name
        package, _, last = name.rpartition(".")
        if package not in files or files[package].stem != "__init__":
            return package if package in files else None
        handed = [one for one in taken[package] if one.endswith(f".{last}")]
        return home(handed[0]) if handed else None

    graph = {
        name: {there for one in taken[name] if (there := home(one)) not in (None, name)}
        for name, path in files.items()
        if path.stem != "__init__"
    }
    assert sum(map(len, graph.values())) > 2 * len(graph), "hardly any imports: the search is wrong"
    list(TopologicalSorter(graph).static_order())


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from farline.cli.group import run\n"
        "run(['--help'])\n"
        f"print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []"
