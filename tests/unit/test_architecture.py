"""Rules about imports that import-linter cannot see."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "farline"
DOORS = ("tools", "spec", "testbeds", "logs")
HEAVY = ("numpy", "scipy", "pyarrow", "pandas", "duckdb", "ibis", "matplotlib", "rich", "jinja2",
         "fastapi", "pydantic", "uvicorn")  # fmt: skip


def imported_modules(source: str) -> set[str]:
    """Full names of everything a file imports, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
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
