"""How many streams, stripes and nodes were found for two groups of nodes, and what was tried.

One JSON file for each, `STORE/paths/nodes-NETWORK.json`. Settings are labels as Yildirim and Kosar
2011 write them, `4stm-1str-2n-1str-2n` (`farline.models.end_to_end.NodeSetting`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from farline.errors import SpecError
from farline.spec.json_text import read_object

if TYPE_CHECKING:
    from pathlib import Path

NODE_CHOICE_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """What was found. Rates are bit/s over all nodes together; None is unknown."""

    network: str
    made_s: float
    label: str
    rate_bps: float
    default: str
    default_bps: float | None
    samples: Mapping[str, float] = field(default_factory=dict)
    """Throughput by label, in the order in which they were tried."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why each phase ended: of `streams`, `stripes`, `nodes`; `all` where time was over before."""
    nodes: int = 1
    """Nodes a side that could be used."""
    rtt_ms: float | None = None
    nic_bps: float | None = None
    process_bps: float | None = None

    @property
    def gain(self) -> float | None:
        """Throughput over the default's."""
        return None if not self.default_bps else self.rate_bps / self.default_bps


def node_choice_path(folder: Path, network: str) -> Path:
    """Where it is kept, in the folder `paths` of a store."""
    safe = "".join(c if c.isalnum() or c in ".-_" else f"%{ord(c):x}" for c in network)
    return folder / f"nodes-{safe[:200]}.json"


def write_node_choice(folder: Path, temp: Path, choice: NodeChoice) -> Path:
    """Keeps it in place of the one before.

    Raises:
        SystemFailure: when the store refuses.
    """
    from farline.store.disk import make_folder, publish_text

    make_folder(folder)
    target = node_choice_path(folder, choice.network)
    document = {"schema": NODE_CHOICE_SCHEMA, **asdict(choice)}
    publish_text(temp, target, json.dumps(document, indent=1))
    return target


def read_node_choice(folder: Path, network: str) -> NodeChoice | None:
    """What was found; None where there is nothing, or nothing that this version can read."""
    try:
        with node_choice_path(folder, network).open("rb") as file:
            document = read_object(file.read())
        if document.pop("schema") != NODE_CHOICE_SCHEMA:
            return None
        return NodeChoice(**document)
    except (OSError, SpecError, ValueError, TypeError, KeyError):
        return None


def forget_node_choice(folder: Path, network: str) -> bool:
    """Deletes it; whether there was one.

    Raises:
        SystemFailure: when the store refuses.
    """
    from farline.store.disk import system_failures

    path = node_choice_path(folder, network)
    with system_failures(f"deleting {path}"):
        there = path.exists()
        path.unlink(missing_ok=True)
    return there
