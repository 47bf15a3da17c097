"""Items to results: what is missing is measured, judged, compared with the last time, and kept."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from farline.errors import FarlineError, InterruptedRun, SystemFailure
from farline.reproduce.budget import NOTHING, Budget
from farline.reproduce.facts import facts_of
from farline.reproduce.item import Item, NotMeasured
from farline.reproduce.measured import Measured, trial_path
from farline.reproduce.plans import Scale, Source, plan_document, plan_text
from farline.reproduce.results import Result, drift_of, read_result, write_result
from farline.reproduce.shell import Asked, Ran, command_line, run_farline
from farline.reproduce.sources import SOURCES
from farline.reproduce.trials import TRIALS, Trial

ENOUGH_CODES = (0, 3)
"""Exit codes of a campaign whose runs are all there; 3: an expectation of its plan does not hold,
which is for the item to judge."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is told while it runs: a campaign that starts, ends or was there, or a result."""

    what: Literal["begins", "ends", "kept", "result"]
    name: str
    line: str = ""
    result: Result | None = None


Tell = Callable[[Step], None]


@dataclass
class Runner:
    """Reproduces items into a folder, each campaign once.

    With `resume` what the folder has already is not measured again: finished campaigns are taken
    as they are, interrupted ones are continued.
    """

    folder: Path
    plans: Path
    scale: Scale
    resume: bool
    tell: Tell
    asked: Asked
    _done: dict[str, str] = field(default_factory=dict)
    """Sources that were measured, with what kept one of them from its end, if anything."""

    def run(self, items: Sequence[Item]) -> list[Result]:
        """All items in order.

        Raises:
            InterruptedRun: when somebody wanted to stop; results so far are kept.
            SystemFailure: when the folder cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        return [self._one(item) for item in items]

    def _one(self, item: Item) -> Result:
        for name in item.sources:
            self._ensure(name)
        if self.asked():
            raise InterruptedRun("stopped; --resume continues where this ended")
        result = self._judged(item)
        result = replace(result, drift=drift_of(self._last(item), result))
        write_result(self.folder, result)
        self.tell(Step("result", item.id, result=result))
        return result

    def _last(self, item: Item) -> Result | None:
        return read_result(self.folder, item.id, self.scale)

    def _judged(self, item: Item) -> Result:
        made_at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        blank = Result(item.id, "not measured", self.scale, made_at, **self._how(item))
        if item.judge is None:
            return replace(blank, verdict="not possible here", reason=item.impossible)
        measured = Measured(self.folder, self.scale)
        try:
            evidence = item.judge(measured)
        except NotMeasured as error:
            return replace(blank, reason=self._why_not(item, error))
        return replace(
            blank,
            verdict=evidence.verdict,
            reason=evidence.reason if evidence.verdict == "differs" else "",
            instead=evidence.instead,
            checks=evidence.checks,
            pictures=evidence.pictures,
            notes=evidence.notes,
            budget=self._budget(item, measured).document(),
            facts=facts_of(measured, _campaigns(item)),
        )

    def _why_not(self, item: Item, error: NotMeasured) -> str:
        failures = [self._done[name] for name in item.sources if self._done.get(name)]
        return "; ".join(dict.fromkeys([*failures, error.message]))

    def _budget(self, item: Item, measured: Measured) -> Budget:
        names = [name for name in _campaigns(item) if SOURCES[name].verb == "profile"]
        return measured.budget(*names) if names else NOTHING

    def _how(self, item: Item) -> dict[str, Any]:
        """Commands and plans of an item, whether or not they ran now."""
        commands: list[str] = []
        plans: dict[str, str] = {}
        for name in item.sources:
            if name in TRIALS:
                commands += TRIALS[name].commands
                continue
            source = SOURCES[name]
            commands += [command_line(words) for words in (*source.before, self._words(source))]
            text = plan_text(plan_document(source, self.scale, self.plans))
            plans[f"{self._plan_path(source).name}, from plans/{source.plan}"] = text
        return {"commands": commands, "plans": plans}

    def _ensure(self, name: str) -> None:
        """Measures a source, unless it was in this run or stands in the folder already."""
        if name in self._done:
            return
        try:
            if name in TRIALS:
                self._try(TRIALS[name])
            else:
                self._measure(SOURCES[name])
            self._done[name] = ""
        except InterruptedRun:
            raise
        except FarlineError as error:
            self._done[name] = error.message
            self.tell(Step("ends", name, error.message))

    def _try(self, trial: Trial) -> None:
        path = trial_path(self.folder, trial.name, self.scale)
        if self.resume and path.is_file():
            self.tell(Step("kept", trial.name))
            return
        self.tell(Step("begins", trial.name, trial.words))
        path.unlink(missing_ok=True)
        found = trial.make(self.folder, self.scale, self.asked)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        self.tell(Step("ends", trial.name))

    def _measure(self, source: Source) -> None:
        document = plan_document(source, self.scale, self.plans)
        path = self._plan_path(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(plan_text(document), encoding="utf-8")
        state = self._state(source, document) if self.resume else "absent"
        if state == "finished":
            self.tell(Step("kept", source.name))
            return
        self.tell(Step("begins", source.name, source.words(self.scale)))
        for words in source.before:
            self._check(source, self._run(source, words), (0,))
        words = self._words(source, is_begun=state == "begun")
        ran = self._run(source, words)
        self.tell(Step("ends", source.name, f"{ran.wall_s:.0f} s, {ran.cpu_s:.0f} s of CPU"))
        self._check(source, ran, ENOUGH_CODES)

    def _run(self, source: Source, words: Sequence[str]) -> Ran:
        log = self.folder / "logs" / f"{source.campaign(self.scale)}.txt"
        return run_farline(words, self.folder, log, self.asked)

    def _check(self, source: Source, ran: Ran, codes: Sequence[int]) -> None:
        if ran.code not in codes:
            raise SystemFailure(
                f"{source.verb} {source.name} ended with exit code {ran.code}: {ran.last_line}"
            )

    def _state(self, source: Source, document: dict[str, Any]) -> str:
        """`finished`, `begun` or `absent`: what the store has of this very plan."""
        from farline.reproduce.kept import campaign_state

        return campaign_state(self.folder / "store", source, self.scale, document)

    def _plan_path(self, source: Source) -> Path:
        return self.folder / "plans" / f"{source.campaign(self.scale)}.toml"

    def _words(self, source: Source, is_begun: bool = False) -> list[str]:
        plan = str(self._plan_path(source).relative_to(self.folder))
        what = ["--resume", source.campaign(self.scale)] if is_begun else [plan]
        return [source.verb, *what, "--store", "store"]


def _campaigns(item: Item) -> list[str]:
    return [name for name in item.sources if name in SOURCES]


def kept_results(folder: Path, items: Sequence[Item], scale: Scale) -> Iterator[Result]:
    """The results that a folder has of items, in their order."""
    for item in items:
        found = read_result(folder, item.id, scale)
        if found is not None:
            yield found
