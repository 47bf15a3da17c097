"""Plans of campaigns in the editor: read by farline's own reader, multiplied out, judged.

Who may use a page is not who has a shell here. So a service starts campaigns over an emulated line
alone, from a preset: a plan that names programs, files, folders or a running testbed can be written
and checked here, and is run with the command.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError

if TYPE_CHECKING:
    from farline.campaign.plan import Plan

MOST_TEXT, MOST_SETTINGS, MOST_SHOWN = 64_000, 2_000, 24
"""Characters of a plan, settings that the editor multiplies out, and those that it lists."""

LONGEST_S = 24 * 3600.0
"""How long a plan may take at most to be started here."""

FILES = frozenset({"rbudp.file"})
"""Options that name a file."""


@dataclass(frozen=True)
class CheckedPlan:
    """What a plan comes to: runs and seconds at least and at most.

    Seconds are None where a run ends by bytes. `refusal` says why it cannot be started here.
    """

    name: str
    varies: Mapping[str, Sequence[str]]
    settings: int
    shown: Sequence[str]
    runs: tuple[int, int]
    seconds: tuple[float | None, float | None]
    refusal: str | None

    @property
    def counts(self) -> Sequence[tuple[int, int, str]]:
        """Of what there is how much, at least and at most."""
        return ((self.settings, self.settings, "setting"), (*self.runs, "run"))


def check_plan(text: str) -> CheckedPlan:
    """Reads a plan of `farline profile`, and foresees what it takes.

    Raises:
        SpecError: for what is not TOML, unknown or not allowed; the line says where.
        UsageError: for hosts that the emulated network has not.
    """
    from farline.campaign.figure_table import check_figures
    from farline.campaign.plan import plan_from_document

    document = read_document(text)
    plan = plan_from_document(document)
    check_figures(plan.figures, plan.factors)
    size = math.prod(len(values) for values in plan.factors.values())
    if size > MOST_SETTINGS:
        raise SpecError(f"the grid has {size} settings; allowed here: up to {MOST_SETTINGS}")
    return _foreseen(plan, _refusal(plan, document))


def read_document(text: str) -> Mapping[str, Any]:
    """The tables of a plan's text.

    Raises:
        SpecError: for what is not TOML, or too long.
    """
    from farline.spec.toml_reading import read_toml

    if len(text) > MOST_TEXT:
        raise SpecError(f"the plan has {len(text)} characters; allowed: up to {MOST_TEXT}")
    try:
        found: Mapping[str, Any] = read_toml(text)
    except ValueError as error:
        raise SpecError(f"not TOML: {error}") from None
    return found


def _foreseen(plan: Plan, refusal: str | None) -> CheckedPlan:
    from farline.campaign.estimate import forecast
    from farline.campaign.setting_text import setting_text, value_text
    from farline.campaign.settings import make_campaign
    from farline.tools.native import resolve_spec

    campaign = make_campaign(plan, lambda spec: dict(resolve_spec(spec)))
    if refusal is None:
        _check_line(plan, campaign)
    found = forecast(campaign)
    return CheckedPlan(
        plan.name,
        {name: [value_text(name, one) for one in values] for name, values in plan.factors.items()},
        len(campaign.settings),
        [setting_text(one.varied) for one in campaign.settings[:MOST_SHOWN]],
        (found.least.runs, found.most.runs), (found.least.seconds, found.most.seconds),
        refusal or too_long(found.most.seconds),
    )  # fmt: skip


def _check_line(plan: Plan, campaign: Any) -> None:
    """Refuses what the emulated line cannot be, before anything is begun."""
    from farline.campaign.emulated_path import (
        DEFAULT_TESTBED,
        check_settings,
        end_hosts,
        testbed_overrides,
    )
    from farline.testbeds import load

    topology: Any = load(plan.place.testbed or DEFAULT_TESTBED, **testbed_overrides(plan))
    end_hosts(topology, plan)
    check_settings(campaign, topology)


def _options_of(plan: Plan) -> Iterable[str]:
    """Every option that a plan says anything of."""
    yield from plan.fixed
    yield from plan.axes
    for group in plan.together.values():
        yield from group.options
    for point in plan.points:
        yield from point.values
    if isinstance(plan.reference, Mapping):
        yield from plan.reference


def _refusal(plan: Plan, document: Mapping[str, Any]) -> str | None:
    """What of a plan is for people with a shell on this host."""
    if (reason := refused_testbed(plan.place.testbed)) is not None:
        return reason
    if "data" in document:
        return "[data]: copies between folders are not started here; see Transfers"
    if plan.store is not None:
        return "[campaign] store: what is started here goes into the store of this service"
    for name in _options_of(plan):
        if name.startswith("tool") or name in FILES:
            return f"{name}: programs and files of this host are not for plans that start here"
    if not plan.over_path:
        return "it has no table [path], so it needs a host: run it with the command below"
    return None


def refused_testbed(testbed: str | None) -> str | None:
    """Why a plan cannot be started here whose line is that of this testbed; None where it can."""
    from farline.testbeds import presets

    if testbed is not None and testbed not in presets():
        return f"[path] testbed: only presets can be started here: {', '.join(presets())}"
    return None


def too_long(seconds: float | None) -> str | None:
    """Why a plan cannot be started here that may take so long; None where it can."""
    if seconds is None:
        return "its runs have no duration_s, so how long it takes is not known"
    if seconds > LONGEST_S:
        return f"it may take {seconds / 3600:.0f} hours; started here are plans of up to 24 hours"
    return None
