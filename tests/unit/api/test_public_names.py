"""The public names: all there, all documented, all typed for who reads the package."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import farline

pytestmark = pytest.mark.unit


def test_every_name_is_there_and_documented() -> None:
    for name in farline.__all__:
        found = getattr(farline, name)
        assert inspect.getdoc(found), name


def test_no_name_is_hidden_by_a_room() -> None:
    for name in farline.__all__:
        assert not inspect.ismodule(getattr(farline, name)), name


def test_type_checkers_see_the_same_names() -> None:
    stub = Path(farline.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    places = {alias.name: node.module for node in imports for alias in node.names}
    assert set(places) == set(farline.__all__)
    for name, module in places.items():
        assert module is not None
        assert getattr(import_module(module), name) is getattr(farline, name)


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'teleport'"):
        _ = getattr(farline, "teleport")  # noqa: B009


def test_the_guide_names_what_there_is_and_all_of_it() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guide" / "python.md").read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        compile(block, "python.md", "exec")
    named = set(re.findall(r"\bfarline\.(\w+)", page)) - {"tools", "analysis", "example"}
    assert {name for name in named if not hasattr(farline, name)} == set()
    functions = {name for name in farline.__all__ if inspect.isfunction(getattr(farline, name))}
    assert functions - named == set()
