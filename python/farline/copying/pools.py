"""Several nodes as one end of a copy: how they are written, and pools with a name.

```text
dtn[1-8].example.org:/archive/         nodes that ssh leads to; also alice@dtn1,dtn2:/archive/
dtn1%10.1.0.1,dtn2%10.1.0.2:/archive/  with addresses for data, where they are others
slurm:xfer:8/archive/                  8 nodes of Slurm's partition xfer
slurm:xfer:2-8/archive/                2 to 8: it begins with those that are free, more join it
testbed:nodes:sink-[1-4]/archive/      hosts of a testbed
archive-dtns:/archive/                 a pool of pools.toml
```

`$XDG_CONFIG_HOME/farline/pools.toml` has a table for each pool: `nodes` (ssh), `slurm` (a
partition) with `count`, or `nodes` with `command`, a template such as `pbsdsh -n {index} --
{argv}`. Where Slurm's commands run on another host, `login` names it, or `via` is a template that
leads there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farline.errors import UsageError
from farline.spec.user_folders import user_folder

MOST_NODES = 1024

_COUNT = r"(?:(?P<least>[1-9]\d{0,3})-)?(?P<count>[1-9]\d{0,3})"
_SLURM = rf"slurm:(?P<partition>[A-Za-z0-9_.+-]*):{_COUNT}(?P<path>/.*)"
_SLURM_STUB = r"slurm:(?P<partition>[A-Za-z0-9_.+-]*):[0-9-]+(?:[:/].*)?"
_TESTBED = r"testbed:(?P<bed>[A-Za-z0-9_.-]+):(?P<nodes>[^/:]+)(?P<path>/.*)"
_RANGE = r"(?P<head>[^\[\],]*)\[(?P<ranges>[0-9,-]+)\](?P<tail>[^\[\],]*)"
_NODE = r"(?:[A-Za-z0-9_][A-Za-z0-9._+$-]*@)?[A-Za-z0-9_][A-Za-z0-9._-]*(?:%[A-Za-z0-9.:_-]+)?"


@dataclass(frozen=True)
class Node:
    """One node: its name for control, and its address for data where that is another."""

    name: str
    address: str | None = None


@dataclass(frozen=True)
class NodePool:
    """Several nodes that see the same files, as one end of a copy."""

    text: str
    """As it was written."""
    engine: str
    """`ssh`, `slurm`, `testbed` or `command`."""
    nodes: tuple[Node, ...] = ()
    """Empty where an engine chooses them."""
    count: int = 0
    """How many are asked of an engine that chooses."""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Of the engine: `partition`, `licenses`, `bed`, `command` and the like."""
    least: int = 0
    """With how many of `count` a copy begins; the others join it."""

    def __str__(self) -> str:
        return self.text


def split_pool(text: str) -> tuple[NodePool, str] | None:
    """Pool and path of a location, if it is one of a pool.

    Raises:
        UsageError: for a list of nodes or a file of pools that cannot be read.
    """
    if found := re.fullmatch(_SLURM, text, re.DOTALL):
        count = int(found["count"])
        least = int(found["least"] or count)
        what = text[: -len(found["path"])]
        if least > count:
            raise UsageError(f"{what}: {least}-{count} is not a range; write it as 2-8")
        settings = {"partition": found["partition"]}
        return NodePool(what, "slurm", (), count, settings, least), found["path"]
    if found := re.fullmatch(_SLURM_STUB, text, re.DOTALL):
        raise UsageError(
            f"{text}: after the partition come a number of nodes and a path from the root, as in "
            f"slurm:{found['partition']}:8/data"
        )
    if found := re.fullmatch(_TESTBED, text, re.DOTALL):
        what = text[: -len(found["path"])]
        nodes = read_nodes(found["nodes"])
        return NodePool(what, "testbed", nodes, 0, {"bed": found["bed"]}), found["path"]
    return _named_or_listed(text)


def _named_or_listed(text: str) -> tuple[NodePool, str] | None:
    before, path = _split_path(text)
    if not before or "/" in before:
        return None
    pool: NodePool | None = None
    if re.search(r"[,\[]", before) and not before.partition("@")[2].startswith("["):
        if before.startswith("["):
            return None
        pool = NodePool(before, "ssh", read_nodes(before))
    elif path:
        pool = pool_of(before)
    if pool is None:
        return None
    if not path.startswith("/"):
        raise UsageError(
            f"{text}: several nodes need a path from the root, as in {before}:/{path or 'data'}"
        )
    return pool, path


def _split_path(text: str) -> tuple[str, str]:
    """What stands before the path, and the path: both are empty where there is no colon. Addresses
    for data may have colons of their own."""
    before, colon, path = text.partition(":")
    if "%" in before and ":/" in text:
        head, _, rest = text.partition(":/")
        if re.search(r"[,\[]", head):
            return head, f"/{rest}"
    return (before, path) if colon else ("", "")


def read_nodes(text: str) -> tuple[Node, ...]:
    """Nodes of a list with commas and ranges: `dtn[1-3,7],other%10.0.0.1`; a user before the first
    name is everybody's who has none.

    Raises:
        UsageError: for a name that is none, a name twice, or more than 1024.
    """
    if re.search(r"[\[\]]", re.sub(r"\[[^\[\]]*\]", "", text)):
        raise UsageError(
            f"{text}: a bracket has no other end; write nodes as dtn1,dtn2 or dtn[1-8]"
        )
    names = [name for word in _words(text) for name in _expanded(word)]
    user = names[0].partition("@")[0] if names and "@" in names[0] else ""
    names = [name if "@" in name or not user else f"{user}@{name}" for name in names]
    if bad := next((name for name in names if not re.fullmatch(_NODE, name)), None):
        raise UsageError(f"{text}: {bad!r} is not a node; write nodes as dtn1,dtn2 or dtn[1-8]")
    if len(names) > MOST_NODES:
        raise UsageError(f"{text}: {len(names)} nodes; allowed: up to {MOST_NODES}")
    parted = [name.partition("%") for name in names]
    plain = [name for name, _, _ in parted]
    if twice := next((name for name in plain if plain.count(name) > 1), None):
        raise UsageError(f"{text}: {twice} is named twice")
    return tuple(Node(name, address or None) for name, _, address in parted)


def _words(text: str) -> list[str]:
    """What is between commas that are in no brackets."""
    return re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text)


def _expanded(word: str) -> Iterable[str]:
    found = re.fullmatch(_RANGE, word)
    if found is None:
        return [word]
    names = []
    for part in found["ranges"].split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise UsageError(f"{word}: {part!r} is not a range; write it as 1-8")
        end = int(last) if dash else int(first)
        if not int(first) <= end < int(first) + MOST_NODES:
            raise UsageError(f"{word}: {part!r} is not a range of 1 to {MOST_NODES} nodes")
        width = len(first) if first.startswith("0") else 0
        numbers = range(int(first), end + 1)
        names += [f"{found['head']}{number:0{width}d}{found['tail']}" for number in numbers]
    return names


def pools_file() -> Path | None:
    """Where pools have their names; None for a user without a folder of settings."""
    config = user_folder("XDG_CONFIG_HOME", ".config")
    return None if config is None else config / "farline" / "pools.toml"


def pool_of(name: str) -> NodePool | None:
    """The pool of this name, if there is one.

    Raises:
        UsageError: when the file, or the pool in it, makes no sense.
    """
    path = pools_file()
    table = _pools(path).get(name)
    if table is None:
        return None
    if not isinstance(table, dict):
        raise UsageError(f"{path}: {name}: is not a table; write [{name}] and its nodes below")
    return _pool(name, table, f"{path}: [{name}]")


def pool_names() -> list[str]:
    """Names of pools.

    Raises:
        UsageError: when the file cannot be read.
    """
    return list(_pools(pools_file()))


def _pools(path: Path | None) -> dict[str, Any]:
    """The tables of the file; none where there is no file."""
    if path is None or not path.exists():
        return {}
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not valid UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from None


_KEYS = {
    "nodes": list, "slurm": str, "count": int, "command": str, "account": str, "qos": str,
    "licenses": str, "reservation": str, "time_limit": str, "immediate_s": int, "options": list,
    "login": str, "via": str, "farline": str, "least": int,
}  # fmt: skip
_SLURM_ONLY = (
    "account", "qos", "licenses", "reservation", "time_limit", "immediate_s", "options", "login",
    "via", "least",
)  # fmt: skip


def _pool(name: str, table: Mapping[str, Any], where: str) -> NodePool:
    for key, value in table.items():
        if key not in _KEYS:
            raise UsageError(f"{where}: {key} is unknown; allowed: {', '.join(_KEYS)}")
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):
            raise UsageError(f"{where}: {key}: must be {_KEYS[key].__name__}")
    if ("slurm" in table) == ("nodes" in table):
        raise UsageError(f"{where}: give either nodes, or slurm with the name of a partition")
    if "slurm" in table:
        if not 1 <= table.get("count", 0) <= MOST_NODES:
            raise UsageError(f"{where}: count: 1 to {MOST_NODES} nodes are allowed")
        if not 1 <= table.get("least", 1) <= table["count"]:
            raise UsageError(f"{where}: least: 1 to {table['count']} (count) nodes are allowed")
        if "login" in table and "via" in table:
            raise UsageError(f"{where}: give login or via, not both")
        settings = {key: table[key] for key in (*_SLURM_ONLY, "farline") if key in table}
        settings["partition"] = table["slurm"]
        least = settings.pop("least", table["count"])
        return NodePool(name, "slurm", (), table["count"], settings, least)
    if wrong := next((key for key in (*_SLURM_ONLY, "count") if key in table), None):
        raise UsageError(f"{where}: {wrong}: works only with slurm")
    nodes = read_nodes(",".join(map(str, table["nodes"])))
    if not nodes:
        raise UsageError(f"{where}: nodes: name at least one")
    own = {key: table[key] for key in ("command", "farline") if key in table}
    return NodePool(name, "command" if "command" in table else "ssh", nodes, 0, own)
