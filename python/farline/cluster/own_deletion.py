"""What is deleted on nodes with disks of their own: what each has and the sources do not. Pure.

Each node sees what the sources have, so the look of its pair tells what it has beyond that. All of
it is deleted once every file is copied, if all nodes answered, all saw the same sources, no name
failed, and it is as many names as was said; else nothing. Each node is told how many of them are
its own, and deletes nothing if it finds another number.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farline.errors import UsageError
from farline.spec.units import counted

Lines = Callable[[], Iterable[Mapping[str, Any]]]
"""Lines of a receipt, which may be read again."""
_NOTHING = "nothing was deleted"
_CHANGED = {
    "delete": None, "max_delete": None, "existing": None, "dry_run": False, "overwrite": "never",
    "sync_level": "time",
}  # fmt: skip
"""What looks and sessions that delete are told otherwise than was asked; and what it is unasked."""


def check_deletion(own: tuple[bool, bool]) -> None:
    """Whether a copy in which the nodes of these ends have disks of their own may delete.

    Raises:
        UsageError: when no node sees all that the sources have.
    """
    if own[0]:
        raise UsageError(
            "--delete: cannot be combined with --own-disks source or both, where no node sees all "
            "that the sources have; leave --delete out, or copy from each node by itself"
        )


@dataclass(frozen=True, slots=True)
class Surplus:
    """What nodes have and the sources do not."""

    names: Mapping[str, set[str]]
    """Paths by node."""
    doubtful: str | None = None
    """One of them that another node did find at the sources."""

    @classmethod
    def of(cls, looks: Mapping[str, Lines]) -> Surplus:
        """Of the looks by node. What is below a name that is no folder at the sources is left
        out: that name fails, or what is in its way makes way for it."""
        found = {
            node: {line["path"] for line in lines() if line["status"] == "would-delete"}
            for node, lines in looks.items()
        }
        asked = {above for names in found.values() for name in names for above in _with_above(name)}
        there: set[str] = set()
        plain: set[str] = set()
        for lines in looks.values() if asked else ():
            for line in lines():
                if line["status"] != "would-delete" and line["path"] in asked:
                    there.add(line["path"])
                    if line["kind"] != "folder":
                        plain.add(line["path"])
        names = {
            node: {name for name in ours if plain.isdisjoint(_with_above(name)[1:])}
            for node, ours in found.items()
        }
        return cls(names, min(there & set().union(*names.values()), default=None))


def _with_above(path: str) -> list[str]:
    """A path and the folders that it is in."""
    return [path, *(path[:at] for at in range(len(path)) if path[at] == "/")]


def why_not(
    nodes: Sequence[str],
    looks: Mapping[str, Mapping[str, Any] | None],
    surplus: Surplus,
    count: int,
    failed: int,
    copy: Mapping[str, Any],
) -> str | None:
    """Why none of `count` names is deleted; None where all of them are, or would be.

    `looks` has the records of the looks by node, without nodes that have failed since; `failed` is
    how many names were not copied.
    """
    if away := [node for node in nodes if looks.get(node) is None]:
        return f"{_NOTHING}: {', '.join(away)} did not answer or failed"
    for node, record in looks.items():
        if record is not None and (problems := record["copy"].get("problems")):
            return f"{_NOTHING}: {node}: {str(problems[0]).removeprefix(f'{_NOTHING}: ')}"
    if surplus.doubtful is not None:
        return (
            f"{_NOTHING}: source nodes do not see the same: {surplus.doubtful} is there on one of "
            "them and not on another"
        )
    if failed:
        return f"{_NOTHING}: {counted(failed, 'name')} failed"
    names, most = counted(count, "name"), copy.get("max_delete")
    if most is not None and count > most:
        return f"{_NOTHING}: {names} to delete, but --max-delete allows {most}"
    if not copy.get("dry_run") and count != copy["delete"]:
        return f"{_NOTHING}: {names} to delete, but {copy['delete']} confirmed"
    return None


def without_deletion(copy: Mapping[str, Any]) -> dict[str, Any]:
    """The `copy` of a session that carries files and deletes nothing."""
    return {key: value for key, value in copy.items() if key not in ("delete", "max_delete")}


def deletion_copy(copy: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The `copy` of the session that deletes `count` names on a node, and neither makes nor
    replaces anything.

    What it takes for another file keeps its own time: by existence alone it would get that of the
    source, and be taken for equal afterwards. Sums would be made of all that the source has.
    """
    level = copy.get("sync_level", "time")
    changed = {
        "delete": count, "existing": True, "overwrite": "never",
        "sync_level": "time" if level in ("exists", "checksum") else level,
    }  # fmt: skip
    return {**without_deletion(copy), **changed}


def as_asked(record: Mapping[str, Any], copy: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a session with what was asked of the copy as a whole."""
    told = {key: value for key, value in record["spec"]["copy"].items() if key not in _CHANGED}
    asked = {key: copy.get(key, usual) for key, usual in _CHANGED.items()}
    stated = {key: value for key, value in asked.items() if value is not None}
    return {**record, "spec": {**record["spec"], "copy": {**told, **stated}}}


def without_skips(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record of a session that deleted: names that are on other nodes were not skipped."""
    if not record.get("copy"):
        return record
    report = {key: value for key, value in record["copy"].items() if key != "skips"}
    return {**record, "copy": report}


def check_apart(
    sources: tuple[Iterable[str], Sequence[str]], destination: tuple[Iterable[str], str]
) -> None:
    """Whether what is deleted cannot be what is copied; each end as its nodes and its paths.

    Raises:
        UsageError: when a node is of both ends, and a source is below the destination.
    """
    both = sorted(set(sources[0]) & set(destination[0]))
    top = _plain(destination[1])
    for path in sources[1] if both else ():
        if f"{_plain(path)}/".startswith(f"{top}/"):
            raise UsageError(
                f"--delete: {path} is in {destination[1]}, on {both[0]} of both ends, and would be "
                "deleted; copy to another folder, or leave --delete out"
            )


def _plain(path: str) -> str:
    return posixpath.normpath(path).rstrip("/")
