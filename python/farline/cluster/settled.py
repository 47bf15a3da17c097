"""What became of each name of a copy whose nodes have disks of their own: tallies and receipt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farline.copying.exit_code import has_vanished

_MOST = 100
"""So many stand in a record; the receipt has all."""
_BETTER = ("copied", "would-copy", "updated", "would-update", "present")
"""Of several lines about a folder that is on several nodes, the first of these counts."""
_WELL = (*_BETTER, "skipped")
_MADE = ("copied", "would-copy")
_GONE = ("deleted", "would-delete")
_TALLY = {
    "copied": "copied", "would-copy": "copied", "present": "present", "updated": "updated",
    "would-update": "updated", "failed": "failed", "skipped": "skipped",
    "deleted": "deleted", "would-delete": "deleted",
}  # fmt: skip
_SUMS = ("resumed_bytes", "hole_bytes", "repeated_chunks", "unset_owners", "unset_groups")


@dataclass(eq=False, repr=False)
class Settled:
    """Lines of receipts, the last word on each name of each node."""

    marks_nodes: bool
    """Whether lines say on which node a name is."""
    _texts: dict[tuple[str, str], str] = field(default_factory=dict)
    """As text: 374 bytes a name, where dictionaries of the same lines take 1008."""
    _problems: list[str] = field(default_factory=list)

    def take(self, node: str, receipt: Path) -> None:
        """The receipt of a session, with `node` at its destination; none where it had not begun."""
        if not receipt.exists():
            return
        with receipt.open(encoding="utf-8") as file:
            for line in map(json.loads, file):
                self._put(node, line)

    def take_deleted(self, node: str, receipt: Path) -> None:
        """What a session has deleted that did nothing else, and its problems."""
        if not receipt.exists():
            return
        with receipt.open(encoding="utf-8") as file:
            for line in map(json.loads, file):
                is_problem = line["status"] == "failed" and line["kind"] == "other"
                if line["status"] in _GONE or is_problem:
                    self._put(node, line)

    def deleted(self, node: str) -> set[str]:
        """Paths that are gone from a node, or would be."""
        known = self._key(node, "", is_gone=True)[0]
        return {path for at, path in self._texts if at == known}

    def paths(self) -> set[str]:
        """Of which something was said, on any node."""
        return {path for _, path in self._texts}

    def failed(self) -> int:
        """How many lines are of what failed; what only disappeared forbids nothing."""
        lines = map(json.loads, self._texts.values())
        return sum(one["status"] == "failed" and not has_vanished(one) for one in lines)

    def fail(self, node: str, path: str, size: int, reason: str, kind: str = "file") -> None:
        """A name that nothing was said of, or that was not brought to its end."""
        known = self._texts.get(self._key(node, path))
        if known is None or json.loads(known)["status"] not in _WELL:
            line = {"path": path, "kind": kind, "status": "failed", "bytes": size, "reason": reason}
            self._put(node, line)

    def problem(self, node: str, path: str, problem: str) -> None:
        """What went wrong besides names, at a node."""
        self._problems.append(problem)
        line = {"path": path, "kind": "other", "status": "failed", "bytes": 0, "reason": problem}
        if self.marks_nodes and node:
            line["node"] = node
        self._texts[(f"node {node}", path)] = json.dumps(line)

    def _key(self, node: str, path: str, is_gone: bool = False) -> tuple[str, str]:
        # A folder that is deleted may make way for a file of the same name.
        return (("gone " if is_gone else "") + (node if self.marks_nodes else ""), path)

    def _put(self, node: str, line: dict[str, Any]) -> None:
        key = self._key(node, line["path"], line["status"] in _GONE)
        if self.marks_nodes:
            line["node"] = node
        if (text := self._texts.get(key)) is not None:
            before = json.loads(text)
            if line["status"] in _BETTER and before["status"] in _BETTER:
                # What an attempt before, or another node, has copied is there for the next one.
                line = min(before, line, key=lambda one: _BETTER.index(one["status"]))
        self._texts[key] = json.dumps(line)

    def write(self, receipt: Path) -> None:
        """The receipt of all."""
        with receipt.open("w", encoding="utf-8") as file:
            for text in self._texts.values():
                file.write(f"{text}\n")

    def report(self, reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """The report of the copy as one, of those of its sessions in their order.

        Names count once for each node that has them.
        """
        of = list(reports)
        problems = [line for one in of for line in one.get("problems", ())] + self._problems
        problems = list(dict.fromkeys(problems))
        counts = _Counts()
        for text in self._texts.values():
            counts.add(json.loads(text), problems)
        report: dict[str, Any] = {
            **of[-1],
            **counts.tallies,
            "made": counts.made,
            "vanished": counts.vanished,
            "failures": counts.named(),
            "problems": problems[:_MOST],
            "skips": [line for one in of for line in one.get("skips", ())][:_MOST],
            "not_kept": _not_kept(of),
            "sender": _joined_ends([one["sender"] for one in of]),
            "receiver": _joined_ends([one["receiver"] for one in of]),
        }
        for name in _SUMS:
            if any(name in one for one in of):
                report[name] = sum(one.get(name, 0) for one in of)
        for name in ("problems", "skips", "not_kept"):
            if not report[name]:
                del report[name]
        if not report["updated"]["files"]:
            del report["updated"]
        if not report["vanished"]:
            del report["vanished"]
        return report


class _Counts:
    """Counts lines as the engine does."""

    def __init__(self) -> None:
        names = ("found", "copied", "present", "updated", "failed", "skipped", "deleted")
        self.tallies = {name: {"files": 0, "bytes": 0} for name in names}
        self.made = 0
        self.vanished = 0
        self._failures: list[dict[str, Any]] = []
        self._gone: list[dict[str, Any]] = []

    def add(self, line: dict[str, Any], problems: list[str]) -> None:
        """One line; what went wrong besides names is no name that failed, but counts."""
        status, is_file = line["status"], line["kind"] == "file"
        if status not in _GONE:
            self._count("found", line)
        if status in _MADE and not is_file:
            self.made += 1
        elif status != "present" or is_file:
            # A folder that is there is neither made nor a file.
            self._count(_TALLY[status], line)
        if status == "failed" and line.get("reason") not in problems:
            self.vanished += has_vanished(line)
            named = self._gone if has_vanished(line) else self._failures
            named += [line] if len(named) < _MOST else []

    def named(self) -> list[dict[str, Any]]:
        """A hundred of what failed; what only disappeared after all others."""
        return [*self._failures, *self._gone][:_MOST]

    def _count(self, name: str, line: Mapping[str, Any]) -> None:
        self.tallies[name]["files"] += 1
        self.tallies[name]["bytes"] += line["bytes"]


def _not_kept(reports: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What destinations did not keep, of all of them by kind."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for lost in (lost for one in reports for lost in one.get("not_kept", ())):
        key = (lost["attribute"], lost["how"])
        names = lost["names"] + found.get(key, {"names": 0})["names"]
        found[key] = {**lost, "names": names}
    return list(found.values())


def _joined_ends(ends: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Times add up, memory is that of the largest, words are those of the last."""
    joined = dict(ends[-1])
    for name, value in joined.items():
        if name.endswith("_us"):
            joined[name] = sum(end.get(name, 0) for end in ends)
        elif isinstance(value, int) and not isinstance(value, bool):
            joined[name] = max(end.get(name, 0) for end in ends)
    return joined
