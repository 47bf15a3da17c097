"""Keeps rows as they come: a long bench can be run in parts, and goes on where it stopped."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from _contract import RESULTS
from _emulator.figures import Figure
from farline.errors import FarlineError

Group = Callable[["Effort"], Iterator[Figure]]


@dataclass(frozen=True)
class Effort:
    """How much of everything: the whole, or a short form to see that it works."""

    repetitions: int
    is_short: bool

    def seconds(self, whole: float, short: float) -> float:
        """Length of a part."""
        return short if self.is_short else whole


@dataclass(frozen=True)
class Bench:
    """A bench by name, and its groups of cases."""

    name: str
    about: str
    groups: Mapping[str, Group]
    columns: tuple[str, str] = ("seen", "stated")
    """What the two values of a row are called."""

    @property
    def header(self) -> str:
        """First line of the table."""
        ours, peer = self.columns
        values = f"{'case':38} {ours:>8} {peer:>8} {'unit':6}"
        return f"{values} {'ratio':>6} {'low':>5} {'high':>5}"

    @property
    def path(self) -> Path:
        """Where its results are kept."""
        return RESULTS / f"{self.name}.json"


def main(bench: Bench) -> int:
    """Runs the groups asked for, prints rows as they come, keeps them; 1 if a row fell short."""
    options = _parse(bench)
    effort = Effort(1 if options.short else 3, options.short)
    chosen = _chosen(bench, options.cases)
    kept = _kept_rows(bench) if options.resume or options.cases else []
    if options.resume:
        # What was measured in short does not stand for the whole.
        done = {row["group"] for row in kept if row["complete"] and row["short"] <= effort.is_short}
        chosen = [name for name in chosen if name not in done]
    print(f"{bench.name}\n{bench.header}", flush=True)
    broken = 0
    for name in chosen:
        kept = [row for row in kept if row["group"] != name]
        try:
            _run_group(bench, name, effort, kept)
        except (FarlineError, OSError, RuntimeError, ValueError, TimeoutExpired) as problem:
            # Other groups do not depend on this one. Its rows so far stay, as incomplete.
            print(f"    FAILED {name}: {problem}", flush=True)
            broken += 1
    short = [row["case"] for row in kept if not row["reached"]]
    print(f"{len(kept)} rows, {len(short)} short, {broken} groups failed: {bench.path}")
    return 1 if short or broken or not kept else 0


def _parse(bench: Bench) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=bench.about)
    parser.add_argument(
        "--cases",
        default=os.environ.get("CASES", ""),
        help=f"groups to run of {', '.join(bench.groups)}; others' rows stay [$CASES]",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        default=bool(os.environ.get("RESUME")),
        help="leave out groups that are whole in the results [$RESUME]",
    )
    parser.add_argument(
        "--short",
        action="store_true",
        default=bool(os.environ.get("SHORT")),
        help="every part in short: to see that it works [$SHORT]",
    )
    return parser.parse_args()


def _chosen(bench: Bench, cases: str) -> list[str]:
    names = [name.strip() for name in cases.split(",") if name.strip()]
    for name in names:
        if name not in bench.groups:
            raise SystemExit(f"--cases: {name!r} is none; there are {', '.join(bench.groups)}")
    return names or list(bench.groups)


def _kept_rows(bench: Bench) -> list[dict[str, Any]]:
    if not bench.path.exists():
        return []
    rows: list[dict[str, Any]] = json.loads(bench.path.read_text(encoding="utf-8"))["rows"]
    return rows


def _run_group(bench: Bench, name: str, effort: Effort, kept: list[dict[str, Any]]) -> None:
    """Adds the rows of a group to those kept, and writes after each; complete at its end."""
    print(f"# {name}, {time.strftime('%H:%M:%S')}", file=sys.stderr, flush=True)
    others = len(kept)
    for figure in bench.groups[name](effort):
        print(_line(figure), flush=True)
        kept.append(_as_row(figure, effort))
        _write(bench, kept)
    for row in kept[others:]:
        row["complete"] = True
    _write(bench, kept)


def _as_row(figure: Figure, effort: Effort) -> dict[str, Any]:
    return {
        **asdict(figure),
        "reached": figure.reached,
        "valid": figure.valid,
        "short": effort.is_short,
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "complete": False,
    }


def _line(figure: Figure) -> str:
    """A row within 80 columns; what is wrong with it stands at its end."""
    values = f"{figure.ours:8.6g} {figure.peer:8.6g} {figure.unit:6}"
    ratios = f"{figure.ratio:6.2f} {figure.low:5.1f} {figure.high:5.1f}"
    return f"{figure.case:38} {values} {ratios}{_complaint(figure)}"


def _complaint(figure: Figure) -> str:
    if not figure.valid:
        reasons = {reason for stamp in figure.stamps for reason in stamp["reasons"]}
        return f"\n    invalid: {'; '.join(sorted(reasons))}"
    return "" if figure.reached else f"\n    SHORT: must be {figure.must:g}; {figure.allowed}"


def _write(bench: Bench, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes all rows at once, so that a run that is ended leaves a whole file."""
    from farline.tools.native import host_facts

    RESULTS.mkdir(exist_ok=True)
    document = {
        "name": bench.name,
        "host": host_facts(),
        "groups": list(bench.groups),
        "rows": list(rows),
    }
    part = bench.path.with_suffix(".part")
    part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    part.replace(bench.path)
