"""What people are told of a job's events, beside its figures: one line for each, or none."""

from __future__ import annotations

from farline.cli.option_words import spoken
from farline.cli.shown import shown
from farline.copying.adjusting import change_text
from farline.copying.tuned_text import tuned_text
from farline.tools.events import Adjusted, Event, Notice, NoticeKind, ServerKey, Stage, Tuned

_ON_DEMAND = (NoticeKind.CIPHER, NoticeKind.CHOICE)
"""Notices that are for who wants to know each step."""


_STAGES = {
    "CTRL_CHAN_EST": "connecting",
    "HANDSHAKE": "agreeing on options",
    "CREATE_STREAMS": "opening data streams",
    "PROFILING_START": "running",
    "PROFILING_END": "waiting for the last data",
    "EXCHANGE_PROFILE": "collecting results",
    "TPG_DONE": "done",
    "ERROR": "closing after an error",
}
"""What a session does, by the name that its state has in the protocol."""


def stage_text(name: str) -> str:
    """A stage of a session, in words."""
    return _STAGES.get(name, name.lower().replace("_", " "))


def event_text(event: Event, verbose: bool) -> str | None:
    """The line for `event`, if it has one; steps and keys only where that is asked for."""
    match event:
        case Notice(kind, text) if verbose or kind not in _ON_DEMAND:
            return f"farline: {shown(spoken(text))}"
        case Stage(name) if verbose:
            return f"farline: {shown(stage_text(name))}"
        case Adjusted(change, by_tuning) if verbose or not by_tuning:
            return f"farline: {shown(change_text(change))}"
        case Tuned() if (line := tuned_text(event, verbose)) is not None:
            return f"farline: {line}"
        case ServerKey(fingerprint) if verbose:
            return f"farline: server key {shown(fingerprint)}"
    return None
