"""Items to results: what is missing is measured, judged, compared with the last time, and kept."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from farline.errors import FarlineError, InterruptedRun, SystemFailure, UsageError
from farline.plots.whole_file import write_whole
from farline.reproduce.budget import NOTHING, Budget
from farline.reproduce.facts import facts_of
from farline.reproduce.item import Item
from farline.reproduce.measured import Measured, NotMeasured, kept_trial, trial_path
from farline.reproduce.plans import SCALES, Scale, Source, plan_document, plan_text
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
    _absent: set[str] = field(default_factory=set)
    """Those of them that this run has no measurement of. The folder may have an older one."""

    def run(self, items: Sequence[Item]) -> list[Result]:
        """All items in order.

        Raises:
            InterruptedRun: when somebody wanted to stop; results so far are kept.
            SystemFailure: when the folder cannot be written.
            UsageError: when another process measures into the folder, or a plan cannot be read.
        """
        for item in items:
            self._how(item)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SystemFailure(
                f"{self.folder}: cannot make the folder for results: {error.strerror}"
            ) from error
        measures = any(item.sources for item in items)
        with _alone_in(self.folder) if measures else contextlib.nullcontext():
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
        failures = self._failures(item)
        if self._absent.intersection(item.sources):
            return replace(blank, reason="; ".join(failures))
        measured = Measured(self.folder, self.scale)
        try:
            evidence = item.judge(measured)
            budget = self._budget(item, measured)
        except FarlineError as error:
            return replace(blank, reason="; ".join(dict.fromkeys([*failures, error.message])))
        except (LookupError, ArithmeticError, ValueError, TypeError, StopIteration) as error:
            if not item.sources:
                raise
            lacks = f"what was measured is not enough to judge by ({error!r})"
            return replace(blank, reason="; ".join([*failures, lacks, "measure it again"]))
        return replace(
            blank,
            verdict=evidence.verdict,
            reason=evidence.reason if evidence.verdict == "differs" else "",
            instead=evidence.instead,
            checks=evidence.checks,
            pictures=evidence.pictures,
            notes=[*evidence.notes, *(f"Not all was measured: {one}" for one in failures)],
            budget=budget.document(),
            facts=facts_of(measured, _campaigns(item)),
        )

    def _failures(self, item: Item) -> list[str]:
        """What kept sources of an item from their end, each line once."""
        return list(dict.fromkeys(self._done[n] for n in item.sources if self._done.get(n)))

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
        if self.resume and self._has(trial):
            self.tell(Step("kept", trial.name))
            return
        self.tell(Step("begins", trial.name, trial.words))
        with _refusals(path):
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
        self._absent.add(trial.name)
        with _refusals(self.folder):
            found = trial.make(self.folder, self.scale, self.asked)
        with _refusals(path):
            write_whole(path, json.dumps(found, indent=1) + "\n")
        self._absent.discard(trial.name)
        self.tell(Step("ends", trial.name))

    def _has(self, trial: Trial) -> bool:
        try:
            return kept_trial(self.folder, trial.name, self.scale) is not None
        except NotMeasured:
            return False

    def _measure(self, source: Source) -> None:
        self._absent.add(source.name)
        document = plan_document(source, self.scale, self.plans)
        path = self._plan_path(source)
        with _refusals(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, plan_text(document))
        state = self._state(source, document) if self.resume else "absent"
        if state == "finished":
            self._absent.discard(source.name)
            self.tell(Step("kept", source.name))
            return
        before = None if state == "begun" else self._newest(source)
        self.tell(Step("begins", source.name, source.words(self.scale)))
        for words in source.before:
            self._check(source, self._run(source, words), (0,))
        words = self._words(source, is_begun=state == "begun")
        ran = self._run(source, words)
        self.tell(Step("ends", source.name, f"{ran.wall_s:.0f} s, {ran.cpu_s:.0f} s of CPU"))
        # At its end though some settings have no figures: they may be enough for an item.
        at_end = self._newest(source) != before and self._state(source, document) == "finished"
        if ran.code in ENOUGH_CODES or at_end:
            self._absent.discard(source.name)
        self._check(source, ran, ENOUGH_CODES)

    def _newest(self, source: Source) -> str | None:
        from farline.reproduce.kept import newest_campaign

        return newest_campaign(self.folder / "store", source, self.scale)

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


@contextlib.contextmanager
def _refusals(place: Path) -> Iterator[None]:
    """Turns what the system refuses into a line: a program that is not there, a full disk."""
    try:
        yield
    except FarlineError:
        raise
    except FileNotFoundError as error:
        if isinstance(error.filename, str) and "/" not in error.filename:
            raise SystemFailure(f"{error.filename} is not installed") from error
        raise SystemFailure(f"{error.filename or place}: {error.strerror}") from error
    except OSError as error:
        raise SystemFailure(f"{error.filename or place}: {error.strerror or error}") from error


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keeps other processes from measuring into the folder: they would disturb each other.

    Raises:
        SystemFailure: when the folder cannot be written.
        UsageError: when another process measures there.
    """
    path = folder / ".measuring.lock"
    with _refusals(path):
        file = path.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{folder}: another farline reproduce measures into this folder; wait for its end,"
                " or name another folder with -o"
            ) from None
        except OSError:
            pass  # a file system without locks
        yield


def _campaigns(item: Item) -> list[str]:
    return [name for name in item.sources if name in SOURCES]


def kept_results(folder: Path, items: Sequence[Item], scale: Scale) -> Iterator[Result]:
    """The results that a folder has of items, in their order."""
    for item in items:
        found = read_result(folder, item.id, scale)
        if found is not None:
            yield found


def shown_results(folder: Path, items: Sequence[Item]) -> Iterator[Result]:
    """For each item the newest result that a folder has, of either scale, measured if one is."""
    for item in items:
        found = [one for scale in SCALES if (one := read_result(folder, item.id, scale))]
        if found:
            yield max(found, key=lambda one: (one.verdict != "not measured", one.made_at))
