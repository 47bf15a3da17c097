"""What a running job tells, a type for each kind of event: probes, campaigns, copies, searches.

A consumer tells events apart by their type, and notices by their `kind`; no text is ever looked at.
They are named tuples, since making dataclasses would take longer than a copy of a few small files.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from array import array

    from farline.errors import FarlineError
    from farline.spec._types import Adjustment, CopyProgress, CopyStages, ReceiptLine, RunRecord

    _Value = TypeVar("_Value")

    Columns = Mapping[str, array[int]]
    """One array of 64-bit integers per column, all of one length."""

    Steps = Generator["Event | None", None, _Value]
    """Work that tells its events, and None whenever it has waited for a moment; returns a value."""


class NoticeKind(Enum):
    """What a notice is about."""

    GRANTED = "granted"
    """What the server made of the spec where it does not allow what was asked."""
    FIRST_CONTACT = "first_contact"
    """A server that was met for the first time: its key is remembered."""
    CIPHER = "cipher"
    """How a copy's files are sealed; the record has it as well."""
    CHOICE = "choice"
    """What farline chose where nothing was stated, and why."""
    NOT_USED = "not_used"
    """A setting that was tuned for the path and does not hold any more."""
    NOT_TUNED = "not_tuned"
    """Streams are not tuned, or a rate not held to its budget, any more; or only up to a limit."""
    SHARED = "shared"
    """Losses say that others may share the path, and the transport does not give way."""
    WAITING = "waiting"
    """Something that takes long for a person, such as a start over ssh."""
    NOT_KEPT = "not_kept"
    """The store did not take the record of a session; the job itself goes on."""
    NODE = "node"
    """A node of several that failed, or is not used."""
    OTHER = "other"
    """From a farline on another host that knows more kinds than this one."""


class Stage(NamedTuple):
    """The session has reached this state of the control protocol, such as `HANDSHAKE`."""

    name: str


class ServerKey(NamedTuple):
    """The key that the server showed."""

    fingerprint: str


class Listening(NamedTuple):
    """This host waits for the server to connect, at `address:port`."""

    address: str


class Notice(NamedTuple):
    """A line for people."""

    kind: NoticeKind
    text: str


class Progress(NamedTuple):
    """How far a copy is at this end; ten times a second."""

    report: CopyProgress


class Stages(NamedTuple):
    """How far reading, network and writing of a copy are at both ends; once an interval."""

    report: CopyStages


class Adjusted(NamedTuple):
    """A running copy was changed, or a change was refused."""

    change: Adjustment
    by_tuning: bool = False
    """Whether its tuning wanted it: `Tuned` tells why."""


class Tuned(NamedTuple):
    """The tuning of a running copy has decided something; `Adjusted` tells when it is in force.

    `reason` is `probe` or `small` for a number of streams that is tried, `confirm` for one that is
    measured against the one before once more, `keep`, `back` to the one before, and `alarm` where
    the rate has changed by itself. Rates are means of the last seconds, in bit/s.
    """

    at_s: float
    """Seconds since the session began."""
    before: int
    """Streams that were in force."""
    streams: int
    """Streams from now on."""
    reason: str
    rate_before_bps: float | None
    """The rate before the number was tried; None when one begins to be, and for an alarm."""
    rate_bps: float


class StreamSamples(NamedTuple):
    """Rows of the streams: this end's while the run lasts, the server's after it."""

    columns: Columns


class FileSamples(NamedTuple):
    """The same of a copy's files."""

    columns: Columns


class FileSettled(NamedTuple):
    """A name of a copy has come to its end: copied, present, failed, skipped or deleted."""

    line: ReceiptLine


class SessionBegun(NamedTuple):
    """The engine has begun a session of a copy, and needs nobody for a while."""


class SessionEnded(NamedTuple):
    """A session is over; with its record nothing follows but another session."""

    record: RunRecord


class EstimateChecked(NamedTuple):
    """What earlier copies over the path had said of one that is complete, and what it took.

    `low_s` and `high_s` are between which 8 in 10 such copies lie.
    """

    estimated_s: float
    low_s: float
    high_s: float
    took_s: float


class RetryScheduled(NamedTuple):
    """A session of a copy broke off with `error`; the next begins in `wait_s` seconds."""

    error: FarlineError
    wait_s: float


class Stopping(NamedTuple):
    """Somebody has asked the job to end in good order: it does so from now on."""


class DeletionPlanned(NamedTuple):
    """A copy would delete so many names, and waits for the answer before it changes anything."""

    names: int


class PathKnown(NamedTuple):
    """What a search for a setting knows of its path: before a sample, or when one has told more."""

    rtt_ms: float | None
    basis: str
    """How many past transfers it stands on, for people."""
    default: str
    """The setting that would be used if nothing were chosen."""
    changes: tuple[str, ...]
    """What of hosts and route is not as it was, a phrase each."""
    limits: tuple[str, ...] = ()
    """What the disks at the ends reach by the profiles of their file systems, a phrase each."""


class SampleBegun(NamedTuple):
    """Sample `number` of a search begins, and takes about so long."""

    number: int
    setting: str
    seconds: float


class SampleTaken(NamedTuple):
    """It is over: streams in all, payload bits per second behind the ramp, what it cost."""

    number: int
    setting: str
    streams: int
    rate_bps: float
    seconds: float
    size_bytes: int
    limit: str | None


class SampleFailed(NamedTuple):
    """It came to nothing; the search goes on without this setting, and those that take more."""

    number: int
    setting: str
    text: str


class StorageBegun(NamedTuple):
    """A measurement of storage begins: what is there, and what will be done."""

    file_system: str
    mount: str
    facts: tuple[str, ...]
    measurements: int
    each_s: float
    size_bytes: int


class StorageLaidOut(NamedTuple):
    """The files that are read are written: so many bytes for each thread."""

    files: int
    file_bytes: int
    seconds: float


class StorageMeasured(NamedTuple):
    """Measurement `number` is over."""

    number: int
    setting: str
    rate_bps: float
    latency_s: float
    """Half of the requests were quicker."""
    cached: float | None
    """Share of what could be read that was in the page cache; None for writes, or if unknown."""


Event = (
    Stage
    | ServerKey
    | Listening
    | Notice
    | Progress
    | Stages
    | Adjusted
    | Tuned
    | StreamSamples
    | FileSamples
    | FileSettled
    | SessionBegun
    | SessionEnded
    | EstimateChecked
    | RetryScheduled
    | Stopping
    | DeletionPlanned
    | PathKnown
    | SampleBegun
    | SampleTaken
    | SampleFailed
    | StorageBegun
    | StorageLaidOut
    | StorageMeasured
)
"""Whatever a job may tell. New types may be added: pass over those that you do not know."""
