"""What a measurement was meant to be: its plan with its seed, and where it ran.

Written once, whole, before the first trial. It holds no ticket. Which trials were done is not in
here: the store's records know.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farline.campaign.contention.names import journal_folder, journal_names
from farline.campaign.contention.plan import ContentionPlan, plan_from_document
from farline.errors import SpecError, SystemFailure, UsageError, VersionError
from farline.spec.json_text import read_object
from farline.store.disk import locked, publish
from farline.store.filters import pick_campaign

if TYPE_CHECKING:
    from farline.store import Store

VERSION = 1
LAST = "last"


@dataclass(frozen=True)
class ContentionJournal:
    """A measurement: its name, plan and target (`host:port`, or words for an emulated network)."""

    name: str
    plan: ContentionPlan
    target: str
    created_at: str

    @property
    def seed(self) -> int:
        """The seed of its order and of its runs."""
        assert self.plan.seed is not None
        return self.plan.seed


def new_journal(name: str, plan: ContentionPlan, target: str) -> ContentionJournal:
    """The journal of a measurement that starts now; its plan has a seed."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return ContentionJournal(name, plan, target, now)


def write_journal(store: Store, journal: ContentionJournal) -> None:
    """Keeps a journal.

    Raises:
        SystemFailure: when the store cannot be written.
    """
    document = {
        "version": VERSION,
        "name": journal.name,
        "target": journal.target,
        "created_at": journal.created_at,
        "plan": journal.plan.document(),
    }
    text = json.dumps(document, indent=1).encode()
    folder = journal_folder(store)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise SystemFailure(f"{folder}: {error.strerror}") from error
    publish(store.layout.temp, folder / f"{journal.name}.json", lambda file: _put(file, text))


def read_journal(store: Store, wanted: str) -> ContentionJournal:
    """The journal of a measurement: by its full name, the newest that was called so, or `last`.

    Raises:
        UsageError: when there is none.
        VersionError: when a newer farline wrote it.
        SystemFailure: when it is damaged.
    """
    known = journal_names(store)
    found = known[0] if wanted == LAST and known else pick_campaign(known, wanted)
    if found is None:
        newest = f"the newest: {', '.join(known[:5])}" if known else "the store has none"
        raise UsageError(f"no fairness measurement {wanted!r} in {store.path}; {newest}")
    path = journal_folder(store) / f"{found}.json"
    try:
        document = read_object(path.read_bytes())
        if document["version"] > VERSION:
            raise VersionError(f"{path}: written by a newer version of farline")
        plan = plan_from_document(document["plan"])
        return ContentionJournal(found, plan, document["target"], document["created_at"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SpecError) as error:
        raise SystemFailure(f"{path}: damaged: {error!r}") from error


@contextlib.contextmanager
def journal_lock(store: Store, name: str) -> Iterator[None]:
    """Holds a measurement, so that two processes do not run it at once.

    Raises:
        UsageError: when another process has it.
    """
    with locked(journal_folder(store) / f"{name}.lock", exclusive=True, wait=False) as mine:
        if not mine:
            raise UsageError(f"measurement {name} is already being run by another process")
        yield


def _put(file: object, text: bytes) -> None:
    file.write(text)  # type: ignore[attr-defined]
