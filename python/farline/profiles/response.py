"""How throughput responds to the parameters: one point per setting, from run rows.

A control-response plot (Yun et al. 2015, section II.B) needs, for every setting of the varied
parameters, the runs made with it and the mean of these runs with its confidence interval.
The run is the unit: interval samples inside one run are not independent and are never pooled.
Only complete runs count towards a mean. Failed and partial runs are counted beside it and are
never taken for a zero; so are runs over an emulated path that did not do what it should.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from farline.profiles.rate_interval import rate_interval, worth_saying

Setting = bool | int | float | str | tuple[Any, ...] | None
"""Value of one parameter; None is "left to the kernel or to farline"."""

Row = Mapping[str, Any]
"""One run, flattened: dotted spec names, results, `status`, `run_id`."""

_VALUE_COLUMNS = {"throughput_bps": "total_bps"}


@dataclass(frozen=True, slots=True)
class ResponsePoint:
    """One setting and what its runs came to.

    `values` holds one figure per complete run, `run_ids` the runs they come from, in the same
    order. `low` and `high` bound the confidence interval of the mean; they are None with fewer
    than two values, as `mean` is with none.
    """

    settings: Mapping[str, Setting]
    values: tuple[float, ...] = ()
    run_ids: tuple[str, ...] = ()
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    failed: int = 0
    partial: int = 0
    invalid: int = 0
    """Complete runs left out because their emulated path did not do what it should."""
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Runs behind the mean."""
        return len(self.values)

    @property
    def key(self) -> tuple[Setting, ...]:
        """The settings as a value to look up by."""
        return tuple(self.settings.values())


def response(
    rows: Sequence[Row],
    parameters: Sequence[str],
    value: str = "throughput_bps",
    confidence: float = 0.95,
    count_invalid: bool = False,
) -> list[ResponsePoint]:
    """Group `rows` by `parameters` and give the mean of `value` in each group.

    Runs whose emulated path was not valid are left out unless `count_invalid` says otherwise.

    `value` is any numeric column; `throughput_bps` stands for `total_bps`, the whole run with
    its ramp, which is what the papers plot. Points come in the order of their settings.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence: {confidence} is not between 0 and 1")
    column = _VALUE_COLUMNS.get(value, value)
    groups: dict[tuple[Setting, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(setting_of(row, name) for name in parameters), []).append(row)
    ordered = sorted(groups, key=lambda key: [setting_order(setting) for setting in key])
    return [
        _point(
            dict(zip(parameters, key, strict=True)), groups[key], column, confidence, count_invalid
        )
        for key in ordered
    ]


def varying_parameters(rows: Sequence[Row], names: Iterable[str] | None = None) -> list[str]:
    """Parameters that have more than one value in `rows`, in the order of the option table.

    `names` are the columns to look at; by default every option of a run that a campaign may vary.
    """
    candidates = sweepable_parameters() if names is None else names
    return [name for name in candidates if len({setting_of(row, name) for row in rows}) > 1]


def is_determined(rows: Sequence[Row], name: str, others: Sequence[str]) -> bool:
    """Whether the values of `others` leave only one value for parameter `name`.

    A default that follows from another option (the block size of a transport, say) is no
    parameter of the campaign although it varies.
    """
    found: dict[tuple[Setting, ...], Setting] = {}
    for row in rows:
        key = tuple(setting_of(row, other) for other in others)
        if found.setdefault(key, setting_of(row, name)) != setting_of(row, name):
            return False
    return True


def sweepable_parameters() -> list[str]:
    """Dotted names of what a campaign may vary: of the emulated path, and options of a run."""
    from farline.spec.links import VARIABLE_KEYS
    from farline.spec.table import OPTIONS

    paths = [f"path.{key}" for key in VARIABLE_KEYS]
    return [*paths, *(option.path for option in OPTIONS if option.sweep)]


def setting_of(row: Row, name: str) -> Setting:
    """Value of parameter `name` in `row` as something that can be compared and looked up."""
    return _hashable(row.get(name))


def setting_order(setting: Setting) -> tuple[int, float, str]:
    """Sort key over values of any type: what was left open first, then numbers, then words."""
    if setting is None:
        return (0, 0.0, "")
    if isinstance(setting, (bool, int, float)):
        return (1, float(setting), "")
    return (2, 0.0, str(setting))


def mean_interval(
    values: Sequence[float], confidence: float = 0.95
) -> tuple[float, float | None, float | None]:
    """Mean and confidence interval of figures that are not below 0; see `rate_interval`.

    No interval with fewer than two values.
    """
    from scipy.special import stdtrit

    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return mean, None, None
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * math.sqrt(variance / n)
    low, high = rate_interval(mean, half) or (None, None)
    return mean, low, high


def _point(
    settings: Mapping[str, Setting],
    rows: Sequence[Row],
    column: str,
    confidence: float,
    count_invalid: bool,
) -> ResponsePoint:
    whole = [row for row in rows if row.get("status") == "complete"]
    complete = [row for row in whole if count_invalid or not is_invalid(row)]
    measured = [(row, row[column]) for row in complete if is_figure(row.get(column))]
    values = tuple(float(figure) for _, figure in measured)
    mean, low, high = mean_interval(values, confidence) if values else (None, None, None)
    if low is not None and high is not None:
        low, high = worth_saying((low, high)) or (None, None)
    return ResponsePoint(
        settings=settings,
        values=values,
        run_ids=tuple(str(row.get("run_id", "")) for row, _ in measured),
        mean=mean,
        low=low,
        high=high,
        failed=sum(row.get("status") == "failed" for row in rows),
        partial=sum(row.get("status") == "partial" for row in rows),
        invalid=len(whole) - len(complete),
        limits=count_limits(complete),
    )


def is_invalid(row: Row) -> bool:
    """Whether the run went over an emulated path that did not do what it should."""
    return row.get("valid") is False


def count_limits(rows: Iterable[Row]) -> dict[str, int]:
    """How many runs each limit of the verdicts held back, most frequent first."""
    counts: dict[str, int] = {}
    for row in rows:
        limit = str(row.get("verdict_limit") or "unknown")
        counts[limit] = counts.get(limit, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def is_figure(value: object) -> bool:
    """Whether `value` is a finite number; NaN is how a table says that there is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _hashable(value: Any) -> Setting:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Mapping):
        return tuple((name, _hashable(item)) for name, item in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(item) for item in value)
    return value  # type: ignore[no-any-return]
