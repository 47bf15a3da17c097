"""Samples: how long one takes, who takes it, and what a run's record makes of it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from farline.models.dedicated_channel import ramp_s
from farline.models.stream_need import UNKNOWN_RATE_BPS
from farline.store.paths.history import transfer_of
from farline.tuning.search import Sample
from farline.tuning.situation import Setting, Situation

if TYPE_CHECKING:
    from farline.spec._types import RunRecord
    from farline.store.paths.past_transfer import PastTransfer
    from farline.tools import StopQuestion
    from farline.tools.events import Steps
    from farline.tuning.knobs import Offers

LEAST_S = 2.0
"""Shortest part of a sample behind its ramp."""
RAMP_SHARE = 1.5
"""A sample lasts so many ramps and `LEAST_S` or ten round trips more: it is judged by what follows
the ramp, which shorter ones would not show."""
LONGEST_S = 30.0
BUSY = 0.95
"""Share of all processors of a host that is all of them."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a sampler knows of its path before the first sample."""

    situation: Situation
    default: Setting
    """What would be used if nothing were chosen."""
    most_streams: int
    offers: Offers = field(default_factory=dict)
    """What each knob beside streams and files may be set to."""
    where: str = "on this path"
    """For messages: whose knobs these are."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A sample with the row of history that it is."""

    sample: Sample
    row: PastTransfer | None


class Sampler(Protocol):
    """Tries settings on a path. Made by those who can reach it."""

    is_own_data: bool
    """Whether what moves are the user's files, which need not move again."""

    @property
    def far(self) -> str:
        """The other host as it is addressed, without port; known once it was looked at."""

    @property
    def pushes(self) -> bool:
        """Whether this host sends."""

    def look(self, should_stop: StopQuestion) -> Steps[Surroundings]:
        """What is known of the path.

        Raises:
            FarlineError: when it cannot be reached.
        """

    def sample(self, setting: Setting, seconds: float, should_stop: StopQuestion) -> Steps[Taken]:
        """One run with a setting, stopped after about so many seconds.

        Raises:
            FarlineError: when it did not come about, or moved nothing.
        """

    def close(self) -> None:
        """Ends what was started for it."""


def sample_seconds(now: Situation) -> float:
    """How long a sample must last to be behind its ramp: RTT log2(BDP / first window), and more."""
    rtt_ms = now.rtt_ms or 0.0
    capacity_bps = now.capacity_bps or UNKNOWN_RATE_BPS
    ramp = float(ramp_s(rtt_ms, capacity_bps)) if rtt_ms > 0 else 0.0
    return min(RAMP_SHARE * ramp + max(LEAST_S, 10 * rtt_ms / 1000), LONGEST_S)


def spec_with(spec: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    """A run's or a copy's options with a setting: what it leaves open stays as it was.

    A block of a copy is its chunk. Another transport takes none of the options of the first.
    """
    given: dict[str, Any] = {**spec, "streams": setting.streams}
    own = str(spec.get("transport") or "tcp")
    if setting.transport is not None and setting.transport != own:
        given = {name: value for name, value in given.items() if name != own}
        given["transport"] = own = setting.transport
    section = {
        "send_buffer_bytes": setting.buffer_bytes, "receive_buffer_bytes": setting.buffer_bytes,
        "congestion_control": setting.congestion_control,
    }  # fmt: skip
    copy = {"concurrency": setting.concurrency, "pipeline": setting.pipelining}
    if "copy" in given:
        copy["chunk_bytes"] = setting.block_bytes
    elif setting.block_bytes is not None:
        given["block_bytes"] = setting.block_bytes
    for name, values in ((own, section), ("copy", copy)):
        stated = {key: value for key, value in values.items() if value is not None}
        if stated:
            given[name] = {**(given.get(name) or {}), **stated}
    return given


def tool_spec_with(
    spec: Mapping[str, Any], setting: Setting, takes: Container[str]
) -> dict[str, Any]:
    """The same for a driven tool, whose streams are those of one file; what is stated stays.

    `takes` are the options that the tool has.
    """
    streams = max(1, setting.streams // (setting.concurrency or 1))
    given = spec_with({}, replace(setting, streams=streams))
    merged = {
        name: {**value, **(spec.get(name) or {})} if isinstance(value, dict) else value
        for name, value in given.items()
    }
    if "streams" not in takes:
        del merged["streams"]
    return {**spec, **merged}


def sample_of(record: Mapping[str, Any], setting: Setting, seconds: float) -> Taken | None:
    """What a run with summary and verdict is as a sample; None where it moved nothing.

    One that did not end in time is a sample, and no row of history.
    """
    row = transfer_of(cast("RunRecord", record))
    summary = record.get("summary") or {}
    way = summary.get(str(record["spec"].get("direction") or "forward"))
    is_late = (record.get("error") or {}).get("kind") == "timeout"
    if (row is None and not is_late) or not way or not way["bytes"]:
        return None
    copied = record.get("copy")
    sample = Sample(
        setting=setting,
        rate_bps=way["steady_bps"] or way["total_bps"],
        seconds=seconds,
        size_bytes=way["bytes"],
        limit=(record.get("verdict") or {}).get("limit"),
        cpu_full=_is_cpu_full(record, summary),
        cpu_s_per_gb=summary.get("cpu_s_per_gb"),
        retransmits=summary.get("retransmits"),
        run_id=record["run_id"],
        all_there=copied is not None and record["status"] == "complete",
    )
    return Taken(sample, row)


def _is_cpu_full(record: Mapping[str, Any], summary: Mapping[str, Any]) -> bool:
    """Whether a host had no processor time left; two ends on one host are added up."""
    used: dict[str, float] = {}
    online: dict[str, int] = {}
    for end in ("client", "server"):
        host = (record.get(end) or {}).get("host")
        if host:
            name = host["hostname"]
            used[name] = used.get(name, 0.0) + (summary.get(f"{end}_cpu") or 0.0)
            online[name] = host["cpu"]["online"]
    return any(used[name] >= BUSY * max(online[name], 1) for name in used)
