"""The texts that farline can print, read from the source: phrases, with `{}` for what is filled in.

Docstrings, `--help` texts and generated files are left out: other tests hold these.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "python" / "farline"

_HELP = {"help", "short_help", "metavar", "epilog", "options_metavar"}
"""Arguments of click whose text `--help` prints."""

_HELP_NAME = re.compile(r"_HELP$|^(COMMANDS|VERBS|LETTERS)$")
"""Variables that hold texts of `--help`."""

_NOT_TEXT = ("compile", "sql", "execute", "raw_sql", "query", "Template", "TypeVar", "NewType")
"""Calls whose strings are for machines."""

_PHRASE = re.compile(r"[A-Za-z]{2,}[,;:.)]* +[({'\"`]*(?:[A-Za-z{]|\d)")
_MACHINE = re.compile(r"\(\?P?<|\\[dsw]|\bSELECT\b|\bFROM\b.*\bWHERE\b|^[a-z_]+( [a-z_]+=)?$")


@dataclass(frozen=True, order=True)
class Text:
    """A text and where it stands."""

    text: str
    file: str
    line: int


def printed_texts(folder: Path = SOURCES) -> list[Text]:
    """Every phrase of the Python sources that may reach a user, sorted by its words."""
    found: list[Text] = []
    for path in sorted(folder.rglob("*.py")):
        if not (path.parent.name == "spec" and path.name.startswith("_")):
            name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [Text(text, name, line) for text, line in _phrases(tree)]
    return sorted(found)


def _phrases(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Strings in the order of the source, without those that are no text for people."""
    skipped = _docstrings(tree)
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if id(node) in skipped or _is_for_machines(node) or _is_help(node):
            continue
        if isinstance(node, ast.JoinedStr | ast.Constant):
            text = _template(node)
            if text and _PHRASE.search(text) and not _MACHINE.search(text):
                yield " ".join(text.split()), node.lineno
        if isinstance(node, ast.JoinedStr):
            stack += [part for part in node.values if isinstance(part, ast.FormattedValue)]
        elif isinstance(node, ast.keyword) and node.arg in _HELP:
            continue
        else:
            stack += ast.iter_child_nodes(node)


def _template(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = [str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values]
    return "".join(parts)


def _docstrings(tree: ast.AST) -> set[int]:
    """Expressions that are a string and nothing else."""
    return {
        id(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _is_help(node: ast.AST) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return any(isinstance(one, ast.Name) and _HELP_NAME.search(one.id) for one in targets)


def _is_for_machines(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _NOT_TEXT


CATALOGUE = ROOT / "tests" / "data" / "printed-texts.txt"


def catalogue() -> str:
    """Every text once, one a line, sorted: where it stands in the sources does not matter."""
    texts = {found.text for found in printed_texts()}
    return "".join(f"{text}\n" for text in sorted(texts))


if __name__ == "__main__":
    CATALOGUE.write_text(catalogue(), encoding="utf-8")
    print(CATALOGUE.relative_to(ROOT))
