"""Measurements that users of a service begin: labs, and plans of the editor.

Who asked for what is in the database; how it goes is in the folder of each, as with transfers.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from farline.errors import BusyError
from farline.portal.access import Caller
from farline.portal.audit import Audit
from farline.portal.database import Database, Row
from farline.portal.experiment_keeper import ATTEMPT, BEGUN, OUTPUT, PLAN
from farline.portal.experiment_results import Bar, bars_of
from farline.portal.job_folder import JobFolder
from farline.portal.problems import NotFoundError
from farline.portal.settings import Settings
from farline.store import default_path

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
START_S = 20.0
"""A process that was just started may not hold the lock yet."""

MOST_OPEN, MOST_OF_USER = 8, 1
"""Experiments that have not ended: of all users, and of one."""

LAST_LINES = 12
"""Lines of progress that a page shows."""

Start = Callable[[JobFolder], "subprocess.Popen[bytes] | None"]


@dataclass(frozen=True)
class Experiment:
    """A measurement that was begun. `lab` is None for a plan of the editor."""

    id: str
    user: str
    lab: str | None
    verb: str
    name: str
    created_s: float
    state: State
    error: str | None
    bars: Sequence[Bar]
    campaign: str | None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in ("queued", "running")


class Experiments:
    """Begins, finds and stops them."""

    def __init__(
        self, database: Database, settings: Settings, audit: Audit, start: Start | None = None
    ) -> None:
        """`start` is another way to begin a process."""
        self._database, self._settings, self._audit = database, settings, audit
        self._start_process = start or start_keeper
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        """Those that this service has started, until they have ended."""

    def begin(
        self, caller: Caller, verb: str, name: str, plan: str, most_s: float, lab: str | None = None
    ) -> Experiment:
        """Begins to measure a plan with `farline VERB`; `most_s` is when it is stopped at last.

        A lab has a store of its own; a plan goes into the store of the service.

        Raises:
            BusyError: when this user, or all together, have as many open as is allowed.
            OSError: when the folder cannot be written.
        """
        self._check_room(caller)
        one = secrets.token_hex(6)
        folder = self._folder(one)
        folder.path.parent.mkdir(mode=0o700, exist_ok=True)
        folder.make()
        (folder.path / PLAN).write_text(plan, "utf-8")
        own = folder.path / "store"
        store = own if lab is not None else self._settings.store_path or default_path()
        folder.give_order({"verb": verb, "store": str(store.absolute()), "most_s": most_s})
        row = (one, caller.user, lab, verb, name, self._settings.now())
        with self._database.write() as write:
            write.execute(
                "INSERT INTO experiments(id, user, lab, verb, name, created_s)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
        self._audit.note(caller.user, caller.token_id, "experiment.begin", one)
        self._start(one, folder)
        return self.own(caller, one)

    def _start(self, one: str, folder: JobFolder) -> None:
        process = self._start_process(folder)
        if process is not None:
            self._processes[one] = process

    def go_on(self) -> None:
        """Starts the processes of those that were begun by a service that ended before it did so.

        A process that is there already has the folder's lock, and another one leaves.

        Raises:
            OSError: when one cannot be started.
        """
        for one in self._newest(200):
            folder = self._folder(one.id)
            has_begun = (folder.path / BEGUN).exists() or folder.is_alive()
            if not has_begun and folder.end(ATTEMPT) is None:
                self._start(one.id, folder)

    def _check_room(self, caller: Caller) -> None:
        is_open = [one for one in self._newest(200) if one.is_open]
        mine = sum(one.user == caller.user for one in is_open)
        if mine >= MOST_OF_USER:
            raise BusyError(
                "your last experiment is still running: wait until it ends, or stop it", 30.0
            )
        if len(is_open) >= MOST_OPEN:
            raise BusyError(
                f"{MOST_OPEN} experiments are already waiting: try again in a few minutes", 60.0
            )

    def own(self, caller: Caller, name: str) -> Experiment:
        """An experiment that this caller may see.

        Raises:
            NotFoundError: when there is none of that name.
        """
        found = self.find(name)
        if found is None or not caller.sees(found.user):
            raise NotFoundError(f"experiment {name[:40]}: there is no such experiment")
        return found

    def find(self, name: str) -> Experiment | None:
        """An experiment by name, whoever began it."""
        row = self._database.row("SELECT * FROM experiments WHERE id = ?", (name,))
        return None if row is None else self._seen(row)

    def plans_of(self, caller: Caller, verb: str, limit: int = 20) -> Sequence[Experiment]:
        """The newest plans of a verb that this caller began; of everybody, for who operates."""
        plans = [one for one in self._newest(200) if one.lab is None and one.verb == verb]
        return [one for one in plans if caller.sees(one.user)][:limit]

    def stop(self, caller: Caller, name: str) -> Experiment:
        """Asks it to stop; harmless where it has ended."""
        one = self.own(caller, name)
        if one.is_open:
            self._folder(one.id).ask_to_stop()
            self._audit.note(caller.user, caller.token_id, "experiment.stop", one.id)
        return one

    def lines(self, one: Experiment) -> Sequence[str]:
        """The newest lines of what its command says of its progress."""
        try:
            text = self._folder(one.id).log.read_text("utf-8", "replace")
        except FileNotFoundError:
            return ()
        return text.splitlines()[-LAST_LINES:]

    def _folder(self, name: str) -> JobFolder:
        return JobFolder(self._settings.state_dir / "experiments" / name)

    def _newest(self, limit: int) -> Sequence[Experiment]:
        rows = self._database.rows(
            "SELECT * FROM experiments ORDER BY created_s DESC, id LIMIT ?", (limit,)
        )
        return [self._seen(row) for row in rows]

    def _seen(self, row: Row) -> Experiment:
        folder, lab = self._folder(row["id"]), row["lab"]
        # In this order: a process writes what it came to before it ends.
        is_alive = self._is_alive(row["id"], folder)
        end = folder.end(ATTEMPT)
        state = self._state(folder, end, is_alive, row["created_s"])
        bars: Sequence[Bar] = ()
        if end is not None and lab is not None:
            bars = [Bar(**one) for one in end["bars"]]
        elif lab is not None and state == "running":
            bars = bars_of(folder.path / "store")
        error = None if end is None else end["error"]
        if state == "failed" and end is None:
            error = "its process ended before it was complete; begin it again"
        return Experiment(
            row["id"], row["user"], lab, row["verb"], row["name"], row["created_s"], state, error,
            bars, _campaign(folder) if end is not None else None,
        )  # fmt: skip

    def _is_alive(self, name: str, folder: JobFolder) -> bool:
        """Whether a process works on it, or was started and will."""
        process = self._processes.get(name)
        if process is not None and process.poll() is None:
            return True
        self._processes.pop(name, None)
        return folder.is_alive()

    def _state(
        self, folder: JobFolder, end: dict[str, Any] | None, is_alive: bool, created_s: float
    ) -> State:
        if end is not None:
            if end["stopped"]:
                return "cancelled"
            return "succeeded" if end["error"] is None else "failed"
        if is_alive:
            return "running" if (folder.path / BEGUN).exists() else "queued"
        return "queued" if self._settings.now() - created_s < START_S else "failed"


def _campaign(folder: JobFolder) -> str | None:
    """The name under which the store has it, as the command printed it."""
    try:
        found = json.loads((folder.path / OUTPUT).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    name = found.get("campaign") or found.get("fairness") if isinstance(found, dict) else None
    return name if isinstance(name, str) else None


def start_keeper(folder: JobFolder) -> subprocess.Popen[bytes]:
    """A process in a session of its own, so that no signal for the service reaches it."""
    words = [sys.executable, "-m", "farline.portal.experiment_keeper", str(folder.path)]
    with folder.log.open("ab") as log:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def why_not_here() -> str | None:
    """What this machine lacks to emulate a line, in one line; None where it can."""
    from farline.testbeds.needs import missing

    return missing()
