"""Plans of `plans/`, and what a scale changes in them.

A plan is read, changed in the named places, checked, and written into the folder of the results;
`farline profile` or `farline fairness` runs that file. Nothing of a plan is kept here twice.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from farline.errors import UsageError

Scale = Literal["quick", "full"]
SCALES: tuple[Scale, ...] = ("quick", "full")

Verb = Literal["profile", "fairness"]

Changes = Mapping[str, Any]
"""Values by dotted place in a plan: `grid.streams`; None takes the key away; `point` keeps the
points of these names, and `point.NAME.rate_bps` is that of one of them."""


@dataclass(frozen=True, slots=True)
class Source:
    """A campaign: a plan and its scales.

    `quick` and `full` are what a scale changes, `quick_words` says so for people. `before` are
    commands of farline that go first. A tool that is not installed is named by its driver.
    """

    name: str
    plan: str
    quick: Changes
    quick_words: str
    full: Changes = field(default_factory=dict)
    full_words: str = "The plan as it is."
    verb: Verb = "profile"
    before: Sequence[Sequence[str]] = ()

    def campaign(self, scale: Scale) -> str:
        """What the campaign is called in the store."""
        return f"{self.name}-{scale}"

    def changes(self, scale: Scale) -> Changes:
        """What the scale changes."""
        return self.quick if scale == "quick" else self.full

    def words(self, scale: Scale) -> str:
        """The same for people."""
        return self.quick_words if scale == "quick" else self.full_words


def plans_folder(named: Path | None = None) -> Path:
    """The folder of the plans: as named, of the checkout that runs, or `plans` here.

    Raises:
        UsageError: when it is not there.
    """
    beside = Path(__file__).resolve().parents[3] / "plans"
    tried = [named] if named is not None else [beside, Path.cwd() / "plans"]
    for folder in tried:
        if (folder / "tpg-table1.toml").is_file():
            return folder
    listed = " or ".join(str(folder) for folder in tried)
    raise UsageError(
        f"no plans in {listed}: run this in a checkout of farline, or name the folder with --plans"
    )


def plan_document(source: Source, scale: Scale, folder: Path) -> dict[str, Any]:
    """The plan of a source at a scale, as tables.

    Raises:
        FarlineError: when the plan cannot be read or is not allowed as changed.
    """
    from farline.spec.toml_reading import read_toml

    path = folder / source.plan
    try:
        document: dict[str, Any] = copy.deepcopy(dict(read_toml(path.read_text("utf-8"))))
    except OSError as error:
        raise UsageError(f"{path}: cannot read the plan: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: not a plan: {error}") from error
    table = "campaign" if source.verb == "profile" else "fairness"
    document.setdefault(table, {})["name"] = source.campaign(scale)
    for place, value in source.changes(scale).items():
        try:
            _change(document, place, value)
        except (LookupError, AttributeError, TypeError, StopIteration) as error:
            raise UsageError(
                f"{path}: the {scale} scale changes {place!r}, which this plan does not have"
            ) from error
    document.pop("figure", None)  # the gallery draws its own, and theirs may name what is gone
    testbed = document.get("path", {}).get("testbed", "")
    if testbed.endswith(".toml"):
        document["path"]["testbed"] = str(folder.parent / testbed)
    _check(document, source.verb)
    return document


def plan_text(document: Mapping[str, Any]) -> str:
    """A plan as a file."""
    from farline.plots.plan_text import tables_toml

    return tables_toml(document) + "\n"


def _change(document: dict[str, Any], place: str, value: Any) -> None:
    if place == "point":
        document["point"] = [one for one in document["point"] if one["name"] in value]
        return
    *way, last = place.split(".")
    table = document
    if way[:1] == ["point"]:
        name = ".".join(way[1:])
        table, way = next(one for one in document["point"] if one["name"] == name), []
    for key in way:
        table = table.setdefault(key, {})
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value


def _check(document: Mapping[str, Any], verb: Verb) -> None:
    from farline.campaign import plan as campaign_plan
    from farline.campaign.contention import plan as contention_plan

    if verb == "profile":
        campaign_plan.plan_from_document(copy.deepcopy(dict(document)))
    else:
        contention_plan.plan_from_document(copy.deepcopy(dict(document)))
