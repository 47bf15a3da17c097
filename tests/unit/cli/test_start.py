"""What a start imports: help and `import farline` answer before anything heavy is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

_HEAVY = (
    "numpy", "pyarrow", "duckdb", "ibis", "pandas", "scipy", "matplotlib", "rich", "tomllib",
    "farline._native", "asyncio", "subprocess", "urllib.request", "http", "ssl",
)  # fmt: skip


def imported(program: str) -> set[str]:
    """Modules that are loaded when `program` has run in a new interpreter."""
    code = f"import sys\n{program}\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stderr.split())


def heavy(modules: set[str]) -> set[str]:
    return modules.intersection(_HEAVY)


def test_importing_farline_loads_nothing_heavy() -> None:
    assert heavy(imported("import farline")) == set()


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_the_first_page_loads_nothing_heavy(words: list[str]) -> None:
    loaded = imported(f"from farline.cli.group import run\nrun({words!r})")
    assert heavy(loaded) == set()
    verbs = {name for name in loaded if name.startswith("farline.cli.")}
    assert not verbs & {"farline.cli.copy", "farline.cli.probe", "farline.cli.analyze"}


@pytest.mark.parametrize("verb", ["copy", "serve", "host", "ticket", "trust"])
def test_the_help_of_a_verb_loads_no_tables_and_no_figures(verb: str) -> None:
    loaded = imported(f"from farline.cli.group import run\nrun([{verb!r}, '--help'])")
    assert loaded.isdisjoint(
        {"numpy", "pyarrow", "duckdb", "ibis", "pandas", "scipy", "matplotlib"}
    )
