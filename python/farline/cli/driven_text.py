"""Lines about the tool that did a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

_PROOFS = {
    "hash": "sizes and SHA-256 hashes at the destination are the source's",
    "size": "sizes at the destination are the source's; contents were not compared",
    "none": "not verified from here: only the tool says that the files arrived",
}


def driven_lines(record: Mapping[str, Any]) -> list[str]:
    """The tool and its version, its command, how its copy was proved; none of farline's own."""
    driven = record.get("driven")
    if driven is None:
        return []
    version = f" {driven['version']}" if driven["version"] else ""
    code = "" if driven["exit_code"] is None else f", exit code {driven['exit_code']}"
    lines = [
        f"{'tool':<9}{driven['tool']}{version}, server: {driven['server']}; "
        f"{driven['wall_s']:.2f} s of wall clock{code}"
    ]
    if driven["client_command"]:
        lines.append(f"{'command':<9}{shlex.join(driven['client_command'])}")
    if (proof := driven["proof"]) is not None:
        files = driven["files"]
        lines.append(f"{'proof':<9}{files} file{'s' * (files != 1)}: {_PROOFS[proof]}")
    return lines
