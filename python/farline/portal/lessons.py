"""The course of the page Learn: its labs, what somebody predicted, and whether that held."""

from __future__ import annotations

import functools
import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from farline.errors import SpecError
from farline.portal.database import Database
from farline.portal.experiment_results import Bar
from farline.portal.problems import NotFoundError
from farline.spec.units import rate_human

RECORDED = "recorded"
"""Stands for an experiment: the measurement that comes with the lab."""

PLATEAU, HALF = 0.9, 0.5
MBIT = 1e6


@dataclass(frozen=True)
class Question:
    """What is predicted.

    `kind`: `rate`, in Mbit/s, of the bar `of`, right within `tolerance` of what was measured;
    `best`, `worst`: a bar; `plateau`: the first bar with nine tenths of the best rate; `half`: the
    first bar with less than half of the first one's rate.
    """

    text: str
    kind: str
    of: str | None = None
    tolerance: float = 0.0


@dataclass(frozen=True)
class Recorded:
    """A real measurement that comes with a lab."""

    bars: Sequence[Bar]
    made: str
    """When, with which farline and on which machine."""


@dataclass(frozen=True)
class Lab:
    """One lab: its texts, its plan, its question, and what was measured once."""

    name: str
    number: int
    title: str
    goal: str
    story: str
    setup: str
    minutes: int
    explanation: Sequence[str]
    teacher: str
    plan: str
    question: Question
    recorded: Recorded

    @property
    def verb(self) -> str:
        """The command that runs its plan: `profile`, or `fairness` for a plan of one."""
        return "fairness" if "fairness" in tomllib.loads(self.plan) else "profile"

    @property
    def choices(self) -> Sequence[str]:
        """What can be chosen; nothing where a rate is predicted."""
        return () if self.question.kind == "rate" else [one.label for one in self.recorded.bars]

    @property
    def command(self) -> str:
        """What does the same in a shell."""
        return f"farline {self.verb} {self.name}.toml --report report"


@dataclass(frozen=True)
class Prediction:
    """What somebody predicted, and the experiment that it is held against."""

    user: str
    lab: str
    text: str
    experiment: str | None
    at_s: float


@dataclass(frozen=True)
class Judged:
    """What was measured, in words, and whether the prediction holds."""

    measured: str
    holds: bool


@functools.cache
def labs() -> Mapping[str, Lab]:
    """All labs by name, in the order of the course."""
    folder = files("farline.portal") / "labs"
    names = sorted(one.name[:-5] for one in folder.iterdir() if one.name.endswith(".toml"))
    made = [
        _lab(name, (folder / f"{name}.toml").read_text("utf-8"),
             (folder / f"{name}.json").read_text("utf-8"))
        for name in names
    ]  # fmt: skip
    return {one.name: one for one in made}


def _lab(file: str, text: str, recorded: str) -> Lab:
    number, _, name = file.partition("-")
    table, kept = tomllib.loads(text), json.loads(recorded)
    question = Question(**table.pop("question"))
    bars = [Bar(**one) for one in kept["bars"]]
    return Lab(
        name=name, number=int(number), question=question, recorded=Recorded(bars, kept["made"]),
        **table,
    )  # fmt: skip


def lab_of(name: str) -> Lab:
    """A lab by name.

    Raises:
        NotFoundError: when there is none.
    """
    if name not in labs():
        raise NotFoundError(f"lab {name[:40]}: there is no such lab; allowed: {', '.join(labs())}")
    return labs()[name]


def checked(lab: Lab, text: str) -> str:
    """A prediction as it is kept.

    Raises:
        SpecError: when it is not an answer to the question.
    """
    if lab.choices:
        if text not in lab.choices:
            raise SpecError(f"prediction {text[:40]!r}: choose one of {', '.join(lab.choices)}")
        return text
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e6:
        raise SpecError(f"prediction {text[:40]!r}: write a number in Mbit/s, such as 12.5")
    return f"{value:g}"


def judged(lab: Lab, prediction: str, bars: Sequence[Bar]) -> Judged | None:
    """Whether a prediction holds; None where what it is about was not measured."""
    if lab.question.kind == "rate":
        return _judged_rate(lab.question, float(prediction), bars)
    if [one.label for one in bars] != list(lab.choices):
        return None
    found = _PLACES[lab.question.kind](bars)
    if found is None:
        return None
    return Judged(f"{found.label} ({rate_human(found.mean_bps)})", prediction == found.label)


def _judged_rate(question: Question, mbit: float, bars: Sequence[Bar]) -> Judged | None:
    bar = next((one for one in bars if one.label == question.of), None)
    if bar is None:
        return None
    away = abs(mbit * MBIT - bar.mean_bps)
    return Judged(rate_human(bar.mean_bps), away <= question.tolerance * bar.mean_bps)


def _rate(bar: Bar) -> float:
    return bar.mean_bps


def _plateau(bars: Sequence[Bar]) -> Bar | None:
    most = max(map(_rate, bars))
    return next((one for one in bars if one.mean_bps >= PLATEAU * most), None)


def _half(bars: Sequence[Bar]) -> Bar | None:
    return next((one for one in bars if one.mean_bps < HALF * bars[0].mean_bps), None)


_PLACES: Mapping[str, Callable[[Sequence[Bar]], Bar | None]] = {
    "best": lambda bars: max(bars, key=_rate),
    "worst": lambda bars: min(bars, key=_rate),
    "plateau": _plateau,
    "half": _half,
}


class Lessons:
    """How far each user is: one prediction of each lab, until they begin it again."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database, self._now = database, now

    def predict(self, user: str, lab: Lab, text: str) -> None:
        """Keeps a prediction in place of an earlier one.

        Raises:
            SpecError: when it is not an answer to the question.
        """
        row = (user, lab.name, checked(lab, text), self._now())
        with self._database.write() as write:
            write.execute(
                "INSERT OR REPLACE INTO predictions(user, lab, prediction, experiment, at_s)"
                " VALUES (?, ?, ?, NULL, ?)",
                row,
            )

    def hold_against(self, user: str, lab: Lab, experiment: str) -> None:
        """Names the experiment that shows whether the prediction holds."""
        with self._database.write() as write:
            write.execute(
                "UPDATE predictions SET experiment = ? WHERE user = ? AND lab = ?",
                (experiment, user, lab.name),
            )

    def forget(self, user: str, lab: Lab) -> None:
        """Begins a lab again."""
        with self._database.write() as write:
            write.execute("DELETE FROM predictions WHERE user = ? AND lab = ?", (user, lab.name))

    def of_user(self, user: str) -> Mapping[str, Prediction]:
        """The predictions of a user, by lab."""
        rows = self._database.rows("SELECT * FROM predictions WHERE user = ?", (user,))
        return {row["lab"]: _prediction(row) for row in rows}

    def everybody(self) -> Sequence[Prediction]:
        """All predictions, by user and lab."""
        rows = self._database.rows("SELECT * FROM predictions ORDER BY user, lab")
        return [_prediction(row) for row in rows]


def _prediction(row: Any) -> Prediction:
    return Prediction(row["user"], row["lab"], row["prediction"], row["experiment"], row["at_s"])
