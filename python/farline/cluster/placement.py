"""On which node each file is, where nodes have disks of their own. Pure.

A file that is on a node stays there: an update must find its earlier version. A new one goes where
its name says, by rendezvous hashing (Thaler and Ravishankar 1998): each node has a weight for each
name, and the heaviest has the file. So every file has one place that needs no table, whatever the
order of the nodes, and a node more takes only its share of the names. Where it is known what nodes
have already, the lighter one of a new file's first two nodes takes it, by bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from farline.errors import UsageError
from farline.spec.units import counted

_CHOICES = 2
"""Of so many nodes the one with fewest bytes takes a new file (Mitzenmacher 2001)."""
_NAMED = 3
"""So many names are told of that are on several nodes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A name that is to be placed."""

    path: str
    """Below the destination, as text."""
    size: int
    """Bytes of content."""
    is_folder: bool = False
    """A folder may be on several nodes: each has those that its files are in."""


def ranked(path: str, nodes: Iterable[str]) -> list[str]:
    """Nodes by their weight for a name, the heaviest first."""

    def weight(node: str) -> tuple[bytes, str]:
        said = f"{node}\0{path}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(said, digest_size=8).digest(), node

    return sorted(nodes, key=weight, reverse=True)


def place(
    entries: Iterable[Entry],
    nodes: Sequence[str],
    there: Mapping[str, Sequence[str]],
    known: Mapping[str, str],
    loads: Mapping[str, int] | None = None,
) -> dict[str, str]:
    """The node of every path; it may be one that is not among the nodes of this copy.

    `there` are the nodes on which each path was found just now; `known` where a path is by an
    earlier copy, also on nodes that do not answer; `loads` the bytes that each node has, where an
    earlier copy says so: then new files even them out.

    Raises:
        UsageError: for files that are on several nodes: it cannot be told which one is the file.
    """
    listed = list(entries)
    check_once({one.path: there.get(one.path, ()) for one in listed if not one.is_folder})
    node_of: dict[str, str] = {}
    taken = dict(loads or {})
    for one in listed:
        found = there.get(one.path)
        # A new one has its place in the order of what was found; its node follows below.
        node_of[one.path] = found[0] if found else known.get(one.path, "")
    fresh = [one for one in listed if not node_of[one.path]]
    # Large ones first: small ones even out what these leave uneven.
    for one in sorted(fresh, key=lambda entry: (-entry.size, entry.path)):
        choices = ranked(one.path, nodes)[: _CHOICES if loads is not None else 1]
        node = min(choices, key=lambda name: taken.get(name, 0))
        taken[node] = taken.get(node, 0) + one.size
        node_of[one.path] = node
    return node_of


def check_once(nodes_of: Mapping[str, Sequence[str]]) -> None:
    """Refuses files that several nodes have.

    Raises:
        UsageError: which names the first of them, and their nodes.
    """
    twice = {path: nodes for path, nodes in nodes_of.items() if len(nodes) > 1}
    if not twice:
        return
    told = [f"{path} ({' and '.join(twice[path])})" for path in sorted(twice)[:_NAMED]]
    more = len(twice) - len(told)
    others = f" and {counted(more, 'more name')}" if more else ""
    raise UsageError(
        f"on several nodes: {', '.join(told)}{others}; with --own-disks each file is on one node: "
        "remove the copies that are wrong, or leave --own-disks out if these nodes share a file "
        "system"
    )


def without_parents(entries: Iterable[Entry]) -> list[Entry]:
    """Entries without folders that have something in them: they come with what is in them."""
    listed = list(entries)
    parents = {
        path[:at]
        for path in (one.path for one in listed)
        for at in range(len(path))
        if path[at] == "/"
    }
    return [one for one in listed if not (one.is_folder and one.path in parents)]
