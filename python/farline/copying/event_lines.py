"""Events of a copy as lines of JSON, and back: those of `--json-stream`, and between hosts.

```text
progress  a CopyProgress          file   a ReceiptLine
adjusted  an Adjustment           stages a CopyStages
notice    {kind, about, text}     error  a failure; with again_in_s one that is not the last word
estimate  what had been estimated of a complete copy: {estimated_s, low_s, high_s, took_s}
tuned     {at_s, before, streams, reason, rate_before_bps, rate_bps}: what tuning decided
```

`kind` is `stage`, `server_key`, `cipher`, `detail` (a choice of farline's) or `notice`; `about` is
the `NoticeKind` of a notice, which earlier versions do not say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farline.errors import from_failure
from farline.tools.events import (
    Adjusted,
    EstimateChecked,
    Event,
    FileSettled,
    Notice,
    NoticeKind,
    Progress,
    RetryScheduled,
    ServerKey,
    Stage,
    Stages,
    Tuned,
)

ORDER_SCHEMA = 1
"""Version of the order that is answered by these lines."""

READY = "ready"
"""The line by which a host says that it waits for its order; its data name the version, and with
`adjusts` that it takes changes of the copy meanwhile."""

ADJUST = "adjust"
"""Key of a line on standard input that is a change of the copy under way, and no order."""

ALIVE = "alive"
"""The line by which it says every now and then that it goes on, whatever the copy waits for."""

OVER = "over"
"""The line by which a host that takes several orders says that one has ended without a record."""

_KINDS = {NoticeKind.CIPHER: "cipher", NoticeKind.CHOICE: "detail"}
_ABOUT = {kind: about for about, kind in _KINDS.items()}


def line_of(event: Event) -> tuple[str, Any] | None:
    """Name and data of the line for `event`; None for those that are not told."""
    match event:
        case Progress(report):
            return "progress", report
        case Adjusted(change, by_tuning):
            return "adjusted", {**change, "by_tuning": True} if by_tuning else change
        case Stages(report):
            return "stages", report
        case Tuned():
            return "tuned", event._asdict()
        case FileSettled(line):
            return "file", line
        case RetryScheduled(error, wait_s):
            return "error", {**error.failure(), "again_in_s": wait_s}
        case EstimateChecked():
            return "estimate", event._asdict()
        case Stage(name):
            return "notice", {"kind": "stage", "text": name}
        case ServerKey(fingerprint):
            return "notice", {"kind": "server_key", "text": fingerprint}
        case Notice(about, text):
            kind = _KINDS.get(about, "notice")
            return "notice", {"kind": kind, "about": about.value, "text": text}
    return None


def event_of(name: str, data: Mapping[str, Any]) -> Event | None:
    """The event that a line of these tells; None for a line that is none of them.

    Raises:
        KeyError, TypeError, ValueError: for data that make no sense.
    """
    if name == "progress":
        return Progress(data)  # type: ignore[arg-type]
    if name == "adjusted":
        change = {name: value for name, value in data.items() if name != "by_tuning"}
        return Adjusted(change, bool(data.get("by_tuning")))  # type: ignore[arg-type]
    if name == "tuned":
        return _tuned_of(data)
    if name == "stages":
        return Stages(data)  # type: ignore[arg-type]
    if name == "file":
        return FileSettled(data)  # type: ignore[arg-type]
    if name == "error" and "again_in_s" in data:
        return RetryScheduled(from_failure(data), float(data["again_in_s"]))
    if name == "estimate":
        return EstimateChecked(*(float(data[key]) for key in EstimateChecked._fields))
    return _notice_of(str(data.get("kind")), data) if name == "notice" else None


def _tuned_of(data: Mapping[str, Any]) -> Tuned:
    before_bps = data["rate_before_bps"]
    return Tuned(
        float(data["at_s"]), int(data["before"]), int(data["streams"]), str(data["reason"]),
        None if before_bps is None else float(before_bps), float(data["rate_bps"]),
    )  # fmt: skip


def _notice_of(kind: str, data: Mapping[str, Any]) -> Event:
    text = str(data.get("text"))
    if kind == "stage":
        return Stage(text)
    if kind == "server_key":
        return ServerKey(text)
    try:
        return Notice(NoticeKind(data.get("about")), text)
    except ValueError:
        return Notice(_ABOUT.get(kind, NoticeKind.OTHER), text)
