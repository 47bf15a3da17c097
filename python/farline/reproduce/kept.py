"""What a store has of a campaign that is to be reproduced."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from farline.errors import FarlineError

if TYPE_CHECKING:
    from farline.reproduce.plans import Scale, Source
    from farline.store import Store

State = Literal["finished", "begun", "absent"]


def campaign_state(
    store_path: Path, source: Source, scale: Scale, document: Mapping[str, Any]
) -> State:
    """Whether the newest campaign of a source is this very plan, and at its end."""
    from farline.store import Store

    if not store_path.is_dir():
        return "absent"
    store = Store(store_path, create=False)
    find = _profile_state if source.verb == "profile" else _fairness_state
    try:
        return find(store, source.campaign(scale), copy.deepcopy(dict(document)))
    except FarlineError:  # none, or one that is damaged or a newer farline's: it is made again
        return "absent"


def newest_campaign(store_path: Path, source: Source, scale: Scale) -> str | None:
    """The full name of the newest campaign of a source, whatever its plan; None without any."""
    from farline.store import Store

    if not store_path.is_dir():
        return None
    store = Store(store_path, create=False)
    try:
        if source.verb == "profile":
            from farline.campaign.journal import read_journal

            return read_journal(store, source.campaign(scale)).campaign.id
        from farline.campaign.contention import journal

        return journal.read_journal(store, source.campaign(scale)).name
    except FarlineError:
        return None


def _profile_state(store: Store, name: str, document: dict[str, Any]) -> State:
    from farline.campaign.journal import read_journal
    from farline.campaign.plan import plan_from_document

    journal = read_journal(store, name)
    wanted = {**plan_from_document(document).document()}
    known = journal.campaign.plan.document()
    for plan in (wanted, known):
        plan["campaign"].pop("seed", None)
    if json.dumps(wanted, sort_keys=True, default=str) != json.dumps(
        known, sort_keys=True, default=str
    ):
        return "absent"
    path = store.path / "campaigns" / f"{journal.campaign.id}.json"
    return "finished" if json.loads(path.read_bytes()).get("finished_at") else "begun"


def _fairness_state(store: Store, name: str, document: dict[str, Any]) -> State:
    from farline.api.contention import complete_outcome
    from farline.campaign.contention.journal import read_journal
    from farline.campaign.contention.plan import plan_from_document

    journal = read_journal(store, name)
    wanted, known = plan_from_document(document).document(), journal.plan.document()
    for plan in (wanted, known):
        plan["fairness"].pop("seed", None)
    if json.dumps(wanted, sort_keys=True, default=str) != json.dumps(
        known, sort_keys=True, default=str
    ):
        return "absent"
    try:
        return "begun" if complete_outcome(store, journal) is None else "finished"
    except FarlineError:
        return "begun"
