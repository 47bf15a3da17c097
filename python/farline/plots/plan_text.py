"""A campaign's plan as the TOML that would run it again, and the command that does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_TABLES = ("fixed", "grid", "together", "point", "path", "data", "figure")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def plan_toml(journal: Mapping[str, Any]) -> str:
    """The plan of a campaign's journal as a plan file; empty where there is none.

    The seed that was drawn is written out, so that the order of the runs is the same too.
    """
    plan = journal.get("plan")
    if not plan:
        return ""
    campaign = dict(plan.get("campaign") or {})
    if journal.get("seed") is not None:
        campaign["seed"] = journal["seed"]
    tables = {"campaign": campaign, **{name: plan.get(name) for name in _TABLES}}
    blocks = [block for name, table in tables.items() for block in _all_blocks(name, table or {})]
    return "\n\n".join(blocks)


def tables_toml(document: Mapping[str, Any]) -> str:
    """A document of tables as TOML."""
    blocks = [block for name, table in document.items() for block in _all_blocks(name, table)]
    return "\n\n".join(blocks)


def shown_names(journal: Mapping[str, Any]) -> list[str]:
    """Names of what the plan varies that are no options: points, and options that vary as one."""
    plan = journal.get("plan") or {}
    return [*(["point"] if plan.get("point") else []), *(plan.get("together") or {})]


def varied_of(journal: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What varies in each setting of the campaign, by the setting's key."""
    settings = [*(journal.get("settings") or []), journal.get("reference") or {}]
    return {item["key"]: item["varied"] for item in settings if item}


def grid_axes(journal: Mapping[str, Any]) -> set[str]:
    """Names of what the plan varies: options by dotted path, points, groups of options."""
    plan = journal.get("plan") or {}
    grid = plan.get("grid") or {}
    path = {f"path.{key}" for key, raw in (plan.get("path") or {}).items() if isinstance(raw, list)}
    return (
        path
        | set(shown_names(journal))
        | {
            f"{key}.{name}" if isinstance(value, Mapping) else key
            for key, value in grid.items()
            for name in (value if isinstance(value, Mapping) else (key,))
        }
    )


def rerun_command(journal: Mapping[str, Any], server_address: str) -> str:
    """What to type to run it again, with the plan saved as plan.toml."""
    target = journal.get("target") or server_address
    if not journal.get("plan"):
        return f"farline profile {target}"
    if journal["plan"].get("path"):
        return "farline profile plan.toml"
    return f"farline profile {target} plan.toml"


def _all_blocks(name: str, table: Any) -> Iterator[str]:
    """The blocks of a table, or of each table of a list."""
    if isinstance(table, Mapping):
        yield from _blocks(name, table)
        return
    for item in table:
        first, *rest = _blocks(name, item)
        yield "\n\n".join([first.replace(f"[{name}]", f"[[{name}]]", 1), *rest])


def _blocks(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if plain:
        lines = [
            f"{_key(key)} = {_value(value)}" for key, value in plain.items() if value is not None
        ]
        yield "\n".join([f"[{name}]", *lines])
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _blocks(f"{name}.{_key(key)}", value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key)


def _value(value: Any) -> str:
    """TOML spells numbers, texts and booleans as JSON does; tables inside lists go inline."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
