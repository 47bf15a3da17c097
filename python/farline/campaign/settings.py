"""A plan's grid, multiplied out: every setting as a whole spec, checked before anything runs."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from farline.campaign.path_table import PATH
from farline.campaign.plan import Plan
from farline.campaign.plan_values import nest
from farline.campaign.points import POINT
from farline.drivers import resolve_driven
from farline.errors import FarlineError, SpecError
from farline.spec._types import RunSpec
from farline.spec.table import COPY, TRANSPORT_SECTIONS
from farline.tools.native import resolve_spec

MOST_SETTINGS = 10_000
TRANSPORT_DEFAULT = "tcp"

Validate = Callable[[dict[str, Any]], dict[str, Any]]
"""Gives a spec document resolved, or raises SpecError."""


@dataclass(frozen=True)
class Setting:
    """One combination: its key, the values that vary in this campaign, the whole spec.

    `path` has what the emulated link is set to before the run, by the options' keys.
    """

    key: str
    varied: Mapping[str, Any]
    spec: Mapping[str, Any]
    path: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The varied values for people: `streams=4 tcp.congestion_control=reno`."""
        return " ".join(f"{name}={plain(value)}" for name, value in self.varied.items()) or "fixed"


@dataclass(frozen=True)
class Campaign:
    """A plan made definite: this is what the journal keeps."""

    id: str
    plan: Plan
    seed: int
    settings: tuple[Setting, ...]
    reference: Setting | None

    def setting(self, key: str) -> Setting:
        """The setting with `key`, the reference included."""
        return self._by_key[key]

    @property
    def all_settings(self) -> tuple[Setting, ...]:
        """The settings, and the reference where it is none of them."""
        return tuple(self._by_key.values())

    @property
    def link_keys(self) -> tuple[str, ...]:
        """Keys of all that any setting sets on the emulated link, the reference included."""
        paths = (setting.path for setting in self.all_settings)
        return tuple(dict.fromkeys(key for path in paths for key in path))

    @functools.cached_property
    def _by_key(self) -> dict[str, Setting]:
        reference = [self.reference] if self.reference is not None else []
        return {setting.key: setting for setting in [*reference, *self.settings]}


def make_campaign(plan: Plan, validate: Validate) -> Campaign:
    """Every setting of `plan`, checked by `validate`; a name and, where open, a seed are drawn.

    Raises:
        SpecError: when a combination is not allowed; the line names it.
    """
    settings = expand(plan, validate)
    seed = secrets.randbelow(2**53) if plan.seed is None else plan.seed
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    return Campaign(
        id=f"{plan.name}-{stamp}-{secrets.token_hex(2)}",
        plan=plan,
        seed=seed,
        settings=settings,
        reference=_reference(plan, settings, validate),
    )


def expand(plan: Plan, validate: Validate) -> tuple[Setting, ...]:
    """All settings of a plan, in the order of its axes.

    Raises:
        SpecError: when a combination is not allowed, an axis applies to no run, two points are one
            setting, or there are more than `MOST_SETTINGS`.
    """
    _check_size(plan)
    _check_used(plan)
    found: dict[str, Setting] = {}
    for choice in _combinations(plan):
        setting = _setting(plan, choice, validate)
        _check_other_point(found.setdefault(setting.key, setting), setting)
    return tuple(found.values())


def _check_other_point(first: Setting, setting: Setting) -> None:
    one, other = first.varied.get(POINT), setting.varied.get(POINT)
    if one != other:
        raise SpecError(
            f"[[{POINT}]] {other}: the same run as {one}: all options have the same values"
        )


@dataclass(frozen=True)
class _Choice:
    """One value of everything that varies: as it is shown, and the options that follow."""

    shown: Mapping[str, Any]
    options: Mapping[str, Any]

    def but(self, other: _Choice) -> _Choice:
        """With what the other says instead."""
        return _Choice({**self.shown, **other.shown}, {**self.options, **other.options})


_NOTHING = _Choice({}, {})
_UNNAMED = {"sources": ["data/"], "destination": "copy"}
"""Stands for the folders of a campaign's files, which get names when it runs (`data_set`)."""


def _factors(plan: Plan) -> dict[str, tuple[_Choice, ...]]:
    """The choices of everything that varies, by the names that the plan has for them."""
    found: dict[str, tuple[_Choice, ...]] = {}
    if plan.points:
        found[POINT] = tuple(
            _Choice({POINT: point.name, **point.values}, point.values) for point in plan.points
        )
    for path, values in plan.axes.items():
        found[path] = tuple(_Choice({path: value}, {path: value}) for value in values)
    for name, group in plan.together.items():
        found[name] = tuple(
            _Choice({name: value}, dict.fromkeys(group.options, value)) for value in group.values
        )
    return found


def _transports(plan: Plan) -> tuple[str, ...]:
    """Every transport that some run of the plan may have."""
    stated = [point.values["transport"] for point in plan.points if "transport" in point.values]
    if len(stated) < len(plan.points) or not stated:
        stated.append(plan.fixed.get("transport", TRANSPORT_DEFAULT))
    return plan.axes.get("transport", tuple(dict.fromkeys(stated)))


def _check_used(plan: Plan) -> None:
    """Refuses options of a transport that no run of the plan has."""
    transports = _transports(plan)
    parts: list[tuple[str, Iterable[str]]] = [("fixed", plan.fixed), ("grid", plan.axes)]
    parts += [(f"together.{name}", group.options) for name, group in plan.together.items()]
    for point in plan.points:
        own = point.values.get("transport")
        _check_applies(f"point {point.name}", point.values, transports if own is None else (own,))
    for part, paths in parts:
        _check_applies(part, paths, transports)


def _check_applies(part: str, paths: Iterable[str], transports: tuple[str, ...]) -> None:
    for path in paths:
        if not any(_applies(path, transport) for transport in transports):
            section, _, name = path.rpartition(".")
            raise SpecError(
                f"[{part}.{section}] {name}: applies to no run:"
                f" the transport is {', '.join(map(str, transports))}"
            )


def _check_size(plan: Plan) -> None:
    count = 1
    for values in plan.factors.values():
        count *= len(values)
        if count > MOST_SETTINGS:
            raise SpecError(f"[grid]: more than {MOST_SETTINGS} combinations; list fewer values")


def _combinations(plan: Plan) -> Iterator[_Choice]:
    """Every combination of what varies; a transport takes only its sections."""
    for choices in itertools.product(*_factors(plan).values()):
        yield _that_applies(plan, functools.reduce(_Choice.but, choices, _NOTHING))


def _that_applies(plan: Plan, choice: _Choice) -> _Choice:
    transport = _transport(plan, choice)
    options = {path: v for path, v in choice.options.items() if _applies(path, transport)}
    left_out = choice.options.keys() - options.keys()
    tied = {
        name
        for name, group in plan.together.items()
        if not any(path in options for path in group.options)
    }
    return _Choice({n: v for n, v in choice.shown.items() if n not in left_out | tied}, options)


def _transport(plan: Plan, choice: _Choice) -> object:
    return choice.options.get("transport", plan.fixed.get("transport", TRANSPORT_DEFAULT))


def _applies(path: str, transport: object) -> bool:
    section = path.partition(".")[0]
    return section not in TRANSPORT_SECTIONS or section == transport


def _setting(plan: Plan, choice: _Choice, validate: Validate) -> Setting:
    from farline.spec.links import check_together

    transport = _transport(plan, choice)
    fixed = {path: value for path, value in plan.fixed.items() if _applies(path, transport)}
    document = nest({**fixed, **choice.options})
    link = _link_values(document.pop(PATH, {}))
    if plan.data is not None:
        document[COPY] = {**document.get(COPY, {}), **_UNNAMED}
    try:
        check_together(link)
        spec = _sampled(validate(resolve_driven(document)), "interval_s" in document)
    except (FarlineError, ValueError) as error:
        text = " ".join(f"{path}={plain(value)}" for path, value in choice.shown.items())
        line = error.message if isinstance(error, FarlineError) else f"[{PATH}] {error}"
        raise SpecError(f"{text or 'the plan'}: {line}") from None
    return Setting(key_of(spec, link), choice.shown, spec, link)


def _link_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is set between runs; what only a new testbed can have is the testbed's own."""
    from farline.spec.links import VARIABLE_KEYS

    return {key: value for key, value in values.items() if key in VARIABLE_KEYS}


def _sampled(spec: dict[str, Any], stated: bool) -> dict[str, Any]:
    """`spec` with an interval between samples that fits its duration, unless one was stated."""
    if stated:
        return spec
    return {**spec, "interval_s": sampling_interval_s(spec.get("duration_s"))}


def sampling_interval_s(duration_s: float | None) -> float:
    """Seconds between samples when nobody says: a hundred samples, or some hundreds if it is long.

    Enough to find the warm-up (MSER-5 needs fifty), few enough for a run of a day, and never
    below 50 ms: a look every 10 ms cost a stream up to 9 % of its throughput on two CPUs.
    """
    if duration_s is None:
        return 0.1
    return round(min(1.0, max(duration_s / 600, min(0.1, max(0.05, duration_s / 100)))), 3)


def sampled_spec(document: Mapping[str, Any]) -> RunSpec:
    """The whole spec of one run, checked, sampled often enough where nobody says how often.

    Raises:
        SpecError: when a value or a combination is not allowed.
    """
    spec = resolve_spec(resolve_driven(document))
    if document.get("interval_s") is None:
        spec["interval_s"] = sampling_interval_s(spec.get("duration_s"))
    return spec


def _reference(plan: Plan, settings: tuple[Setting, ...], validate: Validate) -> Setting | None:
    if plan.reference == "none" or (plan.reference == "first" and len(settings) == 1):
        return None
    if isinstance(plan.reference, str):
        return settings[0]
    factors = _factors(plan)
    named = {name: value for name, value in plan.reference.items() if name in factors}
    chosen = [_pick(plan, name, factors[name], named) for name in factors]
    others = {path: value for path, value in plan.reference.items() if path not in named}
    wanted = functools.reduce(_Choice.but, [*chosen, _Choice({}, others)], _NOTHING)
    shown = {name: others.get(name, value) for name, value in wanted.shown.items()}
    return _setting(plan, _that_applies(plan, replace(wanted, shown=shown)), validate)


def _pick(plan: Plan, name: str, choices: tuple[_Choice, ...], named: Mapping[str, Any]) -> _Choice:
    """What the reference has of one factor: what it names, else the first.

    Values of options need not be among those of the grid; a point must be in the list.
    """
    if name not in named:
        return choices[0]
    value = named[name]
    if name in plan.together:
        return _Choice({name: value}, dict.fromkeys(plan.together[name].options, value))
    if name != POINT:
        return _Choice({name: value}, {name: value})
    for choice in choices:
        if choice.shown[POINT] == value:
            return choice
    names = ", ".join(str(choice.shown[POINT]) for choice in choices)
    raise SpecError(f"[campaign] reference: no point {value!r}; points: {names}")


def key_of(spec: Mapping[str, Any], link: Mapping[str, Any] | None = None) -> str:
    """Short name of a resolved spec: the same spec over the same link has it everywhere."""
    unseeded = {name: value for name, value in spec.items() if name != "seed"}
    if link:
        unseeded[PATH] = dict(link)
    text = json.dumps(unseeded, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def run_seed(campaign_seed: int, *identity: object) -> int:
    """Seed of one run, drawn from the campaign's: below 2^53, so that JSON keeps it exactly."""
    text = json.dumps([campaign_seed, *identity])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 11


def plain(value: object) -> str:
    """A value as a word of a line."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))
