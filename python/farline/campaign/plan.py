"""Plans: what a campaign varies, what it holds, how often it repeats.

```toml
[campaign]
name = "tcp-streams"          # letters, digits, '-', '_'
repetitions = 10              # or min_repetitions, max_repetitions, relative_half_width, confidence
reference = "first"           # "first", "none", or a table of options that differ from the first
seed = 1                      # drawn if absent, and recorded
[fixed]
duration_s = "10s"
[grid]                        # every combination is a setting
streams = "1..16*2"           # ranges FIRST..LAST*FACTOR or FIRST..LAST+STEP
block_bytes = ["64K", "1M"]   # lists; units as on the command line
[grid.tcp]                    # applies to runs of that transport only; [fixed.tcp] likewise
congestion_control = ["reno", "cubic"]
[together.buffer_bytes]       # options that vary as one, and [[point]], a list: see points.py
options = ["tcp.send_buffer_bytes", "tcp.receive_buffer_bytes"]
values = "128K..64M*2"
[path]                        # over an emulated link; lists vary it between runs
testbed = "back-to-back"      # preset, file, or name of a testbed that is up
rtt_s = [0, "11.8ms", "366ms"]
[data]                        # of copies ([fixed.copy], [grid.copy]): see data_table.py
files = ["1x1GiB"]
source = "/dev/shm"
[[figure]]                    # a picture to draw besides the usual ones: see figure_table.py
name = "block"
x = "block_bytes"
curves = "buffer_bytes"
```

Every key that is not known is refused with the keys that are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.campaign.data_table import DATA, DataTable, check_copies, read_data_table
from farline.campaign.figure_table import FIGURE, check_figures, figures_without, read_figures
from farline.campaign.path_table import PATH, PathPlace, read_path_table
from farline.campaign.plan_file import name_of, read_plan_file
from farline.campaign.plan_values import REFERENCE, flatten, nest, read_section
from farline.campaign.points import (
    POINT,
    TOGETHER,
    Point,
    Together,
    check_apart,
    points_without,
    read_points,
    read_together,
)
from farline.campaign.rules import Rules
from farline.errors import SpecError
from farline.spec.near import unknown
from farline.spec.units import parse_duration

if TYPE_CHECKING:
    from farline.plots.wanted import WantedFigure
    from farline.spec.options import Grid

Reference = str | Mapping[str, Any]
"""`first`, `none`, or values by dotted path that differ from the first setting."""

REFERENCE_WORDS = ("first", "none")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_RULE_KEYS = tuple(item.name for item in fields(Rules))
_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "repetitions": int,
    "min_repetitions": int,
    "max_repetitions": int,
    "relative_half_width": (int, float),
    "confidence": (int, float),
    "retries": int,
    "max_consecutive_failures": int,
    "reference": (str, dict),
    "reference_every": int,
    "seed": int,
    "pause_s": (int, float),
    "store": str,
    "count_invalid": bool,
}
_PARTS = ("campaign", "fixed", "grid", TOGETHER, POINT, PATH, DATA, FIGURE)


@dataclass(frozen=True)
class Plan:
    """A campaign before its settings are made.

    `fixed` has one value, `axes` the alternatives of each dotted path of a run's options, and of
    the link's as `path.KEY`.
    """

    name: str = "profile"
    rules: Rules = field(default_factory=Rules)
    reference: Reference = "first"
    reference_every: int = 8
    """Runs of a block between two runs of the reference setting; one more opens each block."""
    seed: int | None = None
    pause_s: float = 0.0
    store: str | None = None
    count_invalid: bool = False
    """Whether runs count over an emulated path that did not do what it should."""
    place: PathPlace = field(default_factory=PathPlace)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    together: Mapping[str, Together] = field(default_factory=dict)
    """Options that vary as one, by the name of the group."""
    points: tuple[Point, ...] = ()
    """Settings listed one by one; each is combined with everything that varies besides."""
    data: DataTable | None = None
    """Files to copy, of a plan of copies."""
    figures: tuple[WantedFigure, ...] = ()
    """Pictures to draw besides the usual ones."""

    def __post_init__(self) -> None:
        """Refuses what makes no sense, naming the key and what is allowed."""
        if not _NAME.fullmatch(self.name):
            raise SpecError(
                f"[campaign] name: {self.name!r} is not 1 to 64 letters, digits, '_' or '-'"
            )
        if isinstance(self.reference, str) and self.reference not in REFERENCE_WORDS:
            raise SpecError(
                f"[campaign] reference: {self.reference!r} is not allowed; allowed: "
                f"{', '.join(REFERENCE_WORDS)} or a table of options"
            )
        _check_range("reference_every", self.reference_every, 1, 1000)
        _check_range("pause_s", self.pause_s, 0, 86_400)
        if self.seed is not None:
            _check_range("seed", self.seed, 0, 2**53)
        check_apart(self.axes, self.together, self.points)
        check_copies(self.data, self._paths, self._values_of("direction"))

    def with_grid(self, grid: Grid) -> Plan:
        """This plan with what a command line says instead of its own values.

        `--seed` is the campaign's: each run's own seed is drawn from it.
        """
        said = dict(flatten(grid.fixed))
        seed = said.pop("seed", self.seed)
        given = {**said, **grid.axes}
        fixed = {path: value for path, value in self.fixed.items() if path not in given}
        axes = {path: values for path, values in self.axes.items() if path not in given}
        groups = {name: group.without(given) for name, group in self.together.items()}
        changed = replace(
            self,
            seed=seed,
            fixed={**fixed, **said},
            axes={**axes, **grid.axes},
            together={name: group for name, group in groups.items() if group is not None},
            points=points_without(self.points, given),
        )
        gone = self.factors.keys() - changed.factors.keys() - set(given)
        return replace(
            changed,
            reference=_reference_without(self.reference, gone | set(said)),
            figures=figures_without(self.figures, gone),
        )

    @property
    def factors(self) -> dict[str, tuple[Any, ...]]:
        """What varies, by name, in the order of the settings: points, options, groups."""
        points = {POINT: tuple(point.name for point in self.points)} if self.points else {}
        groups = {name: group.values for name, group in self.together.items()}
        return {**points, **self.axes, **groups}

    @property
    def _paths(self) -> set[str]:
        """Every option that the plan says anything of."""
        groups = (group.options for group in self.together.values())
        points = (point.values for point in self.points)
        return {path for part in (self.fixed, self.axes, *groups, *points) for path in part}

    def _values_of(self, path: str) -> set[object]:
        stated = [part.values[path] for part in self.points if path in part.values]
        stated += [self.fixed[path]] if path in self.fixed else []
        return {*stated, *self.axes.get(path, ())}

    @property
    def over_path(self) -> bool:
        """Whether the plan says anything of an emulated path."""
        named = (*self.fixed, *self.axes)
        return self.place != PathPlace() or any(name.startswith(f"{PATH}.") for name in named)

    def document(self) -> dict[str, Any]:
        """The plan as a document that `plan_from_document` reads to the same plan."""
        campaign = {key: getattr(self, key) for key in _KEYS if hasattr(self, key)}
        campaign.update({key: getattr(self.rules, key) for key in _RULE_KEYS})
        if isinstance(self.reference, Mapping):
            campaign["reference"] = nest(self.reference)
        fixed = nest(self.fixed)
        grid = nest({path: list(values) for path, values in self.axes.items()})
        path = {**self.place.document(), **fixed.pop(PATH, {}), **grid.pop(PATH, {})}
        document = {
            "campaign": {key: value for key, value in campaign.items() if value is not None},
            "fixed": fixed,
            "grid": grid,
            TOGETHER: {name: group.document() for name, group in self.together.items()},
            POINT: [point.document() for point in self.points],
            PATH: path,
            DATA: self.data.document() if self.data else {},
            FIGURE: [figure.document() for figure in self.figures],
        }
        always = ("campaign", "fixed", "grid")
        return {part: table for part, table in document.items() if table or part in always}


def load_plan(path: Path) -> Plan:
    """Reads a plan file.

    Raises:
        UsageError: when there is no such file or it is not TOML.
        SpecError: when something in it is unknown or not allowed; the line says where.
    """

    def made(document: Mapping[str, Any]) -> Plan:
        plan = plan_from_document(document, default_name=name_of(path, 64) or Plan.name)
        check_figures(plan.figures, plan.factors)
        return plan

    return read_plan_file(path, made)


def plan_from_document(document: Mapping[str, Any], default_name: str = Plan.name) -> Plan:
    """A plan from a document in the shape of a plan file.

    Raises:
        SpecError: when something in it is unknown or not allowed; the line says where.
    """
    _known("plan", document, _PARTS)
    campaign = _table(document, "campaign")
    _known("[campaign]", campaign, tuple(_KEYS))
    campaign = {key: _typed(key, value) for key, value in campaign.items()}
    settings = {
        key: campaign[key]
        for key in ("reference_every", "seed", "pause_s", "store", "count_invalid")
        if key in campaign
    }
    place, link_fixed, link_axes = read_path_table(_table(document, PATH))
    together = read_together(document.get(TOGETHER, {}))
    return Plan(
        name=campaign.get("name", default_name),
        rules=_rules(campaign),
        reference=_reference(campaign.get("reference", "first"), together),
        place=place,
        fixed={**dict(read_section("fixed", _table(document, "fixed"))), **link_fixed},
        axes={**dict(read_section("grid", _table(document, "grid"))), **link_axes},
        together=together,
        points=read_points(document.get(POINT, [])),
        data=read_data_table(_table(document, DATA)),
        figures=read_figures(document.get(FIGURE, []), together),
        **settings,
    )


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, Mapping):
        raise SpecError(f"{name}: must be a table [{name}]")
    return table


def _known(place: str, table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            raise SpecError(f"{place} {key}: unknown; {unknown(key, allowed)}")


def _typed(key: str, value: object) -> Any:
    wanted = _KEYS[key]
    if key == "pause_s" and isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError as error:
            raise SpecError(f"[campaign] {key}: {error}") from None
    if isinstance(value, bool) != (wanted is bool) or not isinstance(value, wanted):
        names = {
            bool: "true or false",
            str: "a text",
            int: "a whole number",
            dict: "a table",
            float: "a number",
        }
        kinds = wanted if isinstance(wanted, tuple) else (wanted,)
        kind = "a number" if float in kinds else " or ".join(names[item] for item in kinds)
        raise SpecError(f"[campaign] {key}: {value!r} is not {kind}")
    return value


def _check_range(key: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SpecError(
            f"[campaign] {key}: {value:g} is out of range; allowed: {low:g} to {high:g}"
        )


def _rules(campaign: Mapping[str, Any]) -> Rules:
    given = {key: campaign[key] for key in _RULE_KEYS if key in campaign}
    if "repetitions" in campaign:
        clash = [key for key in ("min_repetitions", "max_repetitions") if key in given]
        if clash:
            raise SpecError(
                f"[campaign] {clash[0]}: cannot be combined with repetitions: give one of the two"
            )
        given["min_repetitions"] = given["max_repetitions"] = campaign["repetitions"]
    elif "min_repetitions" in given:
        given.setdefault("max_repetitions", max(given["min_repetitions"], Rules().max_repetitions))
    elif "max_repetitions" in given:
        given["min_repetitions"] = min(given["max_repetitions"], Rules().min_repetitions)
    try:
        return Rules(**given)
    except SpecError as error:
        told = error.message
        if "repetitions" in campaign:
            told = told.replace("min_repetitions", "repetitions")
        raise SpecError(f"[campaign] {told}") from None


def _reference(value: str | Mapping[str, Any], together: Mapping[str, Together]) -> Reference:
    """A word, or values by dotted path; a group of options or a point by its name."""
    if isinstance(value, str):
        return value
    plain = {key: raw for key, raw in value.items() if key not in (POINT, *together)}
    named = {key: raw for key, raw in value.items() if key not in plain}
    for name, raw in named.items():
        if name != POINT:
            named[name] = together[name].read(f"[{REFERENCE}] {name}", raw)
    return {**dict(read_section(REFERENCE, plain)), **named}


def _reference_without(reference: Reference, gone: Collection[str]) -> Reference:
    """The reference without what a command line states, or has done away with."""
    if isinstance(reference, str):
        return reference
    return {name: value for name, value in reference.items() if name not in gone} or "first"
