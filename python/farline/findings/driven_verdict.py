"""What can be said of a run of a driven tool: its ends' CPUs, where the kernel counted them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from farline.findings.finding import percent
from farline.profiles.run_totals import stream_figures
from farline.spec._types import RunRecord, Verdict
from farline.spec.units import rate_human

BUSY_CPU = 0.9
"""A client or server of one thread that uses this much of a CPU has no more to give."""

LONG_ENOUGH_S = 0.5
"""Below this, the start of a program is most of its CPU time."""


def driven_verdict(record: RunRecord) -> Verdict:
    """What limited it, as far as that can be seen from outside of the tool."""
    driven: Any = record.get("driven")
    tool = driven["tool"]
    if record["status"] != "complete":
        error = record.get("error")
        why = error["message"] if error else f"{tool} was stopped"
        return _said("unknown", why, [])
    evidence = [*_own_lines(driven), *(str(note) for note in driven["notes"])]
    busy = _busy_end(record)
    if busy is None:
        line = f"{tool} does not say what limited it; no CPU is known to have been busy"
        return _said("unknown", line, evidence)
    end, share = busy
    sends = (end == "client") == (record["spec"].get("direction", "forward") == "forward")
    role = "sender" if sends else "receiver"
    line = f"the {role}'s CPU: {tool} used {percent(share)} of one CPU there"
    return _said(f"{role}-cpu", line, evidence)


def _said(limit: str, line: str, evidence: list[str]) -> Verdict:
    return cast("Verdict", {"limit": limit, "line": line, "evidence": evidence, "remedies": []})


def _busy_end(record: RunRecord) -> tuple[str, float] | None:
    """The busier end, if it is busy; of both directions at once neither is the sender."""
    is_short = record["driven"]["wall_s"] < LONG_ENOUGH_S  # type: ignore[index]
    if is_short or record["spec"].get("direction") == "bidirectional":
        return None
    figures = stream_figures(record)
    shares = {end: figures[f"{end}_cpu"] or 0.0 for end in ("client", "server")}
    end = max(shares, key=lambda name: shares[name])
    return (end, shares[end]) if shares[end] >= BUSY_CPU else None


def _own_lines(driven: Mapping[str, Any]) -> list[str]:
    """What the tool itself says of its rate, beside what counts."""
    found = []
    for way in ("forward", "reverse"):
        flow = driven.get(way)
        if flow and flow["own_rate_bps"]:
            found.append(
                f"{driven['tool']} itself reports {rate_human(flow['own_rate_bps'])} ({way})"
            )
    return found
