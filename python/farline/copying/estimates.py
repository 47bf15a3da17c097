"""Estimates of copies: of one that may run, from its two ends; of one that has, from its record.

The method is `farline.estimating`; here the history is read, hosts get their names, and sources on
this host are counted.
"""

from __future__ import annotations

import math
import os
import platform
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.copying.locations import Endpoints, Host, SshHost, ThisHost
from farline.copying.pools import NodePool
from farline.errors import SystemFailure, UsageError
from farline.estimating import Question, TransferEstimate, estimate_transfer
from farline.estimating.confidence import LEAST, MOST
from farline.estimating.times import checked_future, parse_time
from farline.spec.path_text import from_path_text
from farline.store.paths import PathEnds, path_history
from farline.tools.native import host_facts, parse_target

if TYPE_CHECKING:
    from farline.store.paths import PastTransfer
    from farline.tools.ssh_command import SshCommand


MOST_BYTES = 2**63 - 1
"""Bytes of one copy: as many as a file system can count."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What the sources hold."""

    files: int
    total_bytes: int


def survey(sources: Iterable[str]) -> Survey:
    """Counts regular files and their bytes, as a copy would find them; links are not followed.

    Folders that cannot be read are passed over: the copy itself says which.

    Raises:
        UsageError: when a source is not there.
    """
    files = total = 0
    folders: list[bytes] = []
    for source in sources:
        path = from_path_text(source)
        try:
            facts = os.stat(path)  # noqa: PTH116 (names may be any bytes)
        except OSError as error:
            raise UsageError(
                f"{source}: {error.strerror}; for files that do not exist yet, give --size "
                "and --files"
            ) from None
        if stat.S_ISDIR(facts.st_mode):
            folders.append(path)
        elif stat.S_ISREG(facts.st_mode):
            files, total = files + 1, total + facts.st_size
    while folders:
        found, size, below = _folder(folders.pop())
        files, total = files + found, total + size
        folders += below
    return Survey(files, total)


def _folder(path: bytes) -> tuple[int, int, list[bytes]]:
    """Files in a folder, their bytes, the folders below."""
    files = size = 0
    below: list[bytes] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    files += 1
                    size += entry.stat(follow_symlinks=False).st_size
    except OSError:
        pass
    return files, size, below


def path_ends(ends: Endpoints, ssh: SshCommand | None = None) -> PathEnds:
    """The path between two ends, by all names that their hosts go by."""
    return PathEnds.between(
        host_names(ends.source_host, ssh), host_names(ends.destination_host, ssh)
    )


def host_names(host: Host, ssh: SshCommand | None = None) -> frozenset[str]:
    """Names under which runs may have kept a host.

    Raises:
        UsageError: when a server's address cannot be read.
    """
    if isinstance(host, ThisHost):
        return frozenset({platform.node()})
    if isinstance(host, SshHost):
        from farline.tools.ssh_command import SshCommand

        known = (ssh or SshCommand()).host_name(host.target, host.host)
        return frozenset({host.host, known})
    if isinstance(host, NodePool):
        # A pool is one end: what was learned of its copies is kept by its own name.
        return frozenset({host.text})
    return frozenset({parse_target(host.url).host})


def question_of(
    ends: Endpoints,
    now_s: float,
    *,
    size_bytes: int | None,
    files: int | None,
    deadline: str | datetime | None,
    start: str | datetime | None,
    confidence: float,
    **settings: Any,
) -> tuple[Question, tzinfo | None]:
    """The question as asked, and the zone that its times were written in (None: this host's).

    Sources on this host are counted where nobody says what they hold. `settings` are fields of
    `Question`.

    Raises:
        UsageError: for amounts, times, settings or a confidence that cannot be.
    """
    _check_settings(settings)
    if not LEAST <= confidence <= MOST:
        raise UsageError(f"confidence: {confidence:g} is out of range: {LEAST:g} to {MOST:g}")
    times = stated_times(now_s, start, deadline)
    found = _amount(ends, size_bytes, files)
    begins, until = (None if at is None else at.timestamp() for at in times)
    question = Question(
        found.total_bytes, found.files, now_s, begins, until, confidence, **settings
    )
    return question, next((_zone(at) for at in reversed(times) if at is not None), None)


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuses what no path has; a rate of 0 would say that nothing is known of the link."""
    for name, flag, least, unit in (
        ("streams", "--streams", 1, ""),
        ("concurrency", "--concurrency", 1, ""),
        ("link_bps", "--link", 1, " bit/s"),
        ("rtt_s", "--rtt", 0, " s"),
    ):
        value = settings.get(name)
        if value is not None and not least <= value < math.inf:
            raise UsageError(f"{flag}: {value:g}{unit} is out of range: {least}{unit} or more")


def _amount(ends: Endpoints, size_bytes: int | None, files: int | None) -> Survey:
    """Bytes and files: as stated, else as counted in sources on this host."""
    if any(stated is not None and stated < 0 for stated in (size_bytes, files)):
        raise UsageError("size and files: neither can be less than 0")
    if size_bytes is not None and size_bytes > MOST_BYTES:
        raise UsageError(f"--size: {size_bytes:.3g} bytes is more than any copy has: at most 8 EiB")
    if size_bytes is not None:
        return Survey(1 if files is None else files, size_bytes)
    if not isinstance(ends.source_host, ThisHost):
        raise UsageError("--size is missing: only sources on this host can be counted")
    found = survey(ends.sources)
    return found if files is None else replace(found, files=files)


def stated_times(
    now_s: float, start: str | datetime | None, deadline: str | datetime | None
) -> tuple[datetime | None, datetime | None]:
    """Start and deadline in their zones.

    Raises:
        UsageError: when a time is none or past, or the deadline is before the start.
    """
    now = datetime.fromtimestamp(now_s, UTC).astimezone()
    begins, ends = _time(start, now, "--start"), _time(deadline, now, "--deadline")
    if begins is not None and ends is not None and ends <= begins:
        raise UsageError("--deadline: it is before --start")
    return begins, ends


def _time(stated: str | datetime | None, now: datetime, flag: str) -> datetime | None:
    if stated is None:
        return None
    try:
        at = parse_time(stated, now) if isinstance(stated, str) else stated
        return checked_future(at.astimezone() if at.tzinfo is None else at, now, flag)
    except OverflowError:
        raise UsageError(f"{flag}: {stated} is outside the calendar") from None
    except ValueError as error:
        text = str(error)
        raise UsageError(text if text.startswith(flag) else f"{flag}: {text}") from None


def _zone(at: datetime) -> tzinfo | None:
    """The zone of a time that was written in another one than this host's."""
    return None if at.utcoffset() == at.astimezone().utcoffset() else at.tzinfo


def estimate_copy(
    ends: Endpoints,
    question: Question,
    store_path: Path | None = None,
    ssh: SshCommand | None = None,
) -> TransferEstimate:
    """Estimates a copy between two ends from the store, or without any if there is none.

    Raises:
        SystemFailure: when the store cannot be read.
    """
    pushes = isinstance(ends.source_host, ThisHost)
    ours = [pushes, isinstance(ends.destination_host, ThisHost)]
    if any(ours):
        own_bps = None if all(ours) else fastest_interface_bps()
        question = replace(
            question, own_kernel=platform.release(), pushes=pushes,
            link_bps=question.link_bps or own_bps,
        )  # fmt: skip
    return estimate_transfer(question, kept_history(store_path), path_ends(ends, ssh))


def fastest_interface_bps() -> int | None:
    """Speed of this host's fastest interface that is up, if drivers know: no path is faster."""
    speeds = (one["speed_bps"] for one in host_facts()["interfaces"] if one["up"])
    return max((speed for speed in speeds if speed), default=None)


def kept_history(
    store_path: Path | None = None, ends: PathEnds | None = None
) -> tuple[PastTransfer, ...]:
    """The finished transfers of a store, oldest first; none where there is no store.

    Raises:
        SystemFailure: when the store cannot be read.
    """
    from farline.store import Store
    from farline.store.default_folder import usual_path

    path = store_path or usual_path()
    if path is None or not path.exists():
        return ()
    try:
        store = Store.to_read(path)
    except UsageError as error:
        raise SystemFailure(error.message) from None
    return path_history(store, ends)
