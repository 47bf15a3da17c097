"""What a campaign was meant to be: plan, seed, settings and target, kept beside its runs.

Written once, whole, before the first run; marked once when the campaign has finished. It holds no
ticket. Which runs were done is not in here: the store knows.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.campaign.plan import plan_from_document
from farline.campaign.settings import Campaign, Setting
from farline.errors import SystemFailure, UsageError, VersionError
from farline.spec.json_text import read_object
from farline.store.disk import locked, publish
from farline.store.filters import pick_campaign

if TYPE_CHECKING:
    from farline.store import Store

JOURNAL_VERSION = 5
"""Version 5 may have files to copy in its plan; version 4 points, groups of options and figures;
version 3 has the topology of a testbed, version 2 the paths of settings, version 1 none of these.
"""


@dataclass(frozen=True)
class Journal:
    """A campaign, the server it measures (`host:port`, no ticket), and when it finished.

    `topology` is the whole testbed of a campaign that brings up its own, or is over one by name:
    what a resumed campaign must find, or bring up again.
    """

    campaign: Campaign
    target: str
    created_at: str
    finished_at: str | None = None
    topology: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """The journal as JSON has it."""
        campaign = self.campaign
        return {
            "version": JOURNAL_VERSION,
            "id": campaign.id,
            "target": self.target,
            "created_at": self.created_at,
            "finished_at": self.finished_at,
            "seed": campaign.seed,
            "plan": campaign.plan.document(),
            "settings": [_setting_document(setting) for setting in campaign.settings],
            "reference": campaign.reference and _setting_document(campaign.reference),
            "topology": self.topology,
        }


def new_journal(
    campaign: Campaign, target: str, topology: Mapping[str, Any] | None = None
) -> Journal:
    """The journal of a campaign that starts now."""
    return Journal(campaign, target, _now(), topology=topology)


def write_journal(store: Store, journal: Journal, finished: bool = False) -> None:
    """Keeps a journal; with `finished`, marks that nothing is left to do."""
    document = journal.document()
    if finished:
        document["finished_at"] = _now()
    text = json.dumps(document, indent=1).encode()
    publish(store.layout.temp, _path(store, journal.campaign.id), lambda file: _put(file, text))


def read_journal(store: Store, campaign_id: str) -> Journal:
    """The journal of a campaign, by its full name or the newest of what its user named so.

    Raises:
        UsageError: when there is none of that name.
        VersionError: when a newer farline wrote it.
        SystemFailure: when it is damaged.
    """
    known = [item.stem for item in _newest_first(store)]
    found = pick_campaign(known, campaign_id)
    if found is None:
        newest = f"the newest: {', '.join(known[:5])}" if known else "the store has none"
        raise UsageError(f"no campaign {campaign_id!r} in {store.path}; {newest}")
    path = _path(store, found)
    try:
        return _read(read_object(path.read_bytes()), path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemFailure(f"{path}: damaged: {error!r}") from error


def last_unfinished(store: Store) -> Journal:
    """The newest campaign that has not finished.

    Raises:
        UsageError: when there is none.
    """
    for path in _newest_first(store):
        journal = read_journal(store, path.stem)
        if journal.finished_at is None:
            return journal
    raise UsageError(f"no unfinished campaign in {store.path}")


@contextlib.contextmanager
def campaign_lock(store: Store, campaign_id: str) -> Iterator[None]:
    """Holds a campaign, so that two processes do not run it at once.

    Raises:
        UsageError: when another process has it.
    """
    path = store.layout.campaigns / f"{campaign_id}.lock"
    with locked(path, exclusive=True, wait=False) as mine:
        if not mine:
            raise UsageError(f"campaign {campaign_id} is already being run by another process")
        yield


def _read(document: Mapping[str, Any], path: Path) -> Journal:
    if document["version"] > JOURNAL_VERSION:
        raise VersionError(
            f"{path}: written by a newer version of farline; resume it with that version"
        )
    reference = document["reference"]
    campaign = Campaign(
        id=document["id"],
        plan=plan_from_document(document["plan"]),
        seed=document["seed"],
        settings=tuple(_read_setting(item) for item in document["settings"]),
        reference=_read_setting(reference) if reference else None,
    )
    return Journal(
        campaign,
        document["target"],
        document["created_at"],
        document["finished_at"],
        document.get("topology"),
    )


def _setting_document(setting: Setting) -> dict[str, Any]:
    return {
        "key": setting.key,
        "varied": dict(setting.varied),
        "spec": dict(setting.spec),
        "path": dict(setting.path),
    }


def _read_setting(document: Mapping[str, Any]) -> Setting:
    path = document.get("path", {})
    return Setting(document["key"], document["varied"], document["spec"], path)


def _newest_first(store: Store) -> list[Path]:
    # Names carry the time behind the plan's name, so the files' own times decide.
    files = list(store.layout.campaigns.glob("*.json"))
    return sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.stem), reverse=True)


def _path(store: Store, campaign_id: str) -> Path:
    return store.layout.campaigns / f"{campaign_id}.json"


def _put(file: Any, text: bytes) -> None:
    file.write(text)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
