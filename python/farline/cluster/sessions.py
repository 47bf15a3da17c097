"""One copy over several nodes, as sessions that `CopyJob` drives like any other.

```text
1  get nodes of both ends, start farline on them      nodes, crew.start
2  a dry run by the first pair: what is to be copied   plan
3  pairs carry parts at the same time                  crew; each leaves what it proved
4  one session goes on from all of that, and ends it   names, folders, deletions, the receipt
```

The last session is an ordinary resume: what parts proved it neither sends nor reads again, what
they missed it carries itself. A copy that breaks off anywhere is begun again from the first step,
and goes on from what is there.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from farline.cluster.changes import Changes
from farline.cluster.crew import FIRST_BACK_S, Crew, Lane, at_once, changed, start
from farline.cluster.ends import NodeEnds, StreamPlacing
from farline.cluster.growth import Growth
from farline.cluster.joined import Joined
from farline.cluster.look import shares
from farline.cluster.parts_queue import PartsQueue
from farline.cluster.plan import Bases, Part, parts_of
from farline.copying.locations import Endpoints
from farline.copying.pools import NodePool
from farline.copying.session import Attempt
from farline.errors import FarlineError, InterruptedRun, TimeoutFailure, UsageError
from farline.spec.units import counted, size_human
from farline.tools import Stop
from farline.tools.events import Adjusted, Notice, NoticeKind, Progress
from farline.tools.run_name import new_run_name

if TYPE_CHECKING:
    from farline.cluster.nodes import Nodes
    from farline.copying.adjusting import Adjusting
    from farline.copying.request import CopyRequest
    from farline.models.end_to_end import NodeSetting
    from farline.spec._types import RunRecord
    from farline.tools import StopQuestion
    from farline.tools.events import Event, Steps

_POLL_S = 0.1


def node_sessions(request: CopyRequest, setting: NodeSetting | None = None) -> NodeSessions:
    """The sessions of a request with an end of several nodes.

    `setting` says how many nodes a side, and stripes (pairs of processes) on each; streams stand in
    the request.

    Raises:
        UsageError: for what cannot be combined with several nodes.
    """
    check_nodes(request)
    words = request.data_path.server_words()
    placing = StreamPlacing.of(request)
    return NodeSessions(request.endpoints, request.ssh, words, setting, placing=placing)


def check_nodes(request: CopyRequest) -> None:
    """Refuses what no copy over several nodes can do.

    Raises:
        UsageError: which names the option.
    """
    ends = request.endpoints
    flags = [flag for flag in request.data_path.flags() if flag in ("--tunnel", "--connect-back")]
    if request.name_list is not None:
        flags.append("--files-from")
    if request.max_harm is not None:
        flags.append("--max-harm")
    if request.tune == "auto":
        flags.append("--tune auto")
    if flags:
        raise UsageError(f"{flags[0]}: cannot be combined with several nodes ({_pool_of(ends)})")


def _pool_of(ends: Endpoints) -> NodePool:
    for host in (ends.source_host, ends.destination_host):
        if isinstance(host, NodePool):
            return host
    raise UsageError("neither end is of several nodes")


@dataclass(eq=False, repr=False)
class NodeSessions(NodeEnds):
    """Attempts over all nodes. They stay until `close`."""

    setting: NodeSetting | None = None
    adjusting: Adjusting | None = None
    is_known: bool = False
    far: str | None = None
    repeat = False
    _joins: threading.Lock = field(default_factory=threading.Lock, init=False)
    _lanes: list[Lane] = field(default_factory=list, init=False)

    def attempt(
        self, document: Mapping[str, Any], receipt: Path | None, should_stop: StopQuestion
    ) -> Steps[Attempt]:
        """One attempt, to its end."""
        try:
            document = {**document, "copy": {**document["copy"], "share": {"id": self._id()}}}
            yield from self._get_ready(should_stop)
            if not (self._capacities or document["copy"].get("dry_run")):
                yield None
                self._look(should_stop)
            if document["copy"].get("dry_run"):
                return (yield from self._one(document, receipt, should_stop))
            return (yield from self._carried(document, receipt, should_stop))
        except FarlineError as error:
            return Attempt(None, error)

    def close(self) -> None:
        """Ends farline on all nodes, and gives them back."""
        self._end_lanes()
        self._release_nodes()

    def _end_lanes(self) -> None:
        at_once([lane.sessions.close for lane in self._lanes])
        self._lanes = []

    # Nodes

    def _get_ready(self, should_stop: StopQuestion) -> Steps[None]:
        """Has nodes, and farline on them; what was given up in an attempt before is tried again."""
        if lost := self._lost():
            self._end_lanes()
            self._give_up(lost)
        if not all(self._ends):
            most = None if self.setting is None else self.setting.nodes
            yield from self._get_nodes(most, should_stop)
        if not self._lanes:
            self._lanes = self._made_lanes()
            yield Notice(NoticeKind.CHOICE, self._setting_text())
        yield None
        failed = start(self._lanes, should_stop)
        if should_stop() is not Stop.GO_ON:
            raise InterruptedRun("stopped before the copy began")
        for lane in self._lanes:
            lane.is_away, lane.pause_s = False, FIRST_BACK_S
        for lane, error in failed:
            lane.sessions.close()
            lane.is_away = True
            if isinstance(error, TimeoutFailure):
                lane.pause_s = 0.0
            yield Notice(NoticeKind.NODE, f"{lane.name} is not used yet: {error.message}")
        if len(failed) == len(self._lanes):
            raise failed[0][1]

    def _look(self, should_stop: StopQuestion) -> None:
        """Looks at the nodes that are here: they must see the same files."""
        here = [lane for lane in self._lanes if not lane.is_away]
        self._look_at(here, (False, False), should_stop)
        self._place_streams(self._lanes)
        found = shares([lane.targets for lane in self._lanes], self._capacities)
        for lane, share in zip(self._lanes, found, strict=True):
            lane.share = share

    @property
    def _stripes(self) -> int:
        return 1 if self.setting is None else self.setting.stripes

    def _made_lanes(self) -> list[Lane]:
        sources, sinks = self._places(0), self._places(1)
        pairs = max(len(sources), len(sinks))
        return [
            self._lane(
                pair * self._stripes + stripe,
                sources[pair % len(sources)],
                sinks[pair % len(sinks)],
            )
            for pair in range(pairs)
            for stripe in range(self._stripes)
        ]

    def _joining(self, side: int, nodes: Nodes) -> list[Lane]:
        """Pairs of nodes that have come later, each with the node of the other end that has fewest.

        They are away until they have started.
        """
        self._ends[side].append(nodes)
        made: list[Lane] = []
        for host in nodes.hosts:
            used = [lane.targets[1 - side] for lane in (*self._lanes, *made)]
            other = min(self._places(1 - side), key=lambda place: used.count(place[0].target))
            both = ((host, nodes.command), other)
            for _ in range(self._stripes):
                number = len(self._lanes) + len(made)
                lane = self._lane(number, both[side], both[1 - side])
                lane.is_away, lane.pause_s = True, 0.0
                made.append(lane)
        return made

    def _setting_text(self) -> str:
        pairs = counted(len(self._lanes), "pair")
        missing = sum(end[-1].missing for end in self._ends)
        later = f"; {counted(missing, 'node')} more may join it" if missing else ""
        return f"nodes: {self._sides()}: {pairs} of processes carry the copy{later}"

    def _sides(self) -> str:
        """Stripes and nodes of both sides, as Yildirim and Kosar 2011 write them."""
        return "-".join(
            f"{self._stripes}str-{len(self._places(side))}n" for side in range(len(self._ends))
        )

    # Sessions

    def _one(
        self, document: Mapping[str, Any], receipt: Path | None, should_stop: StopQuestion,
        joined: Joined | None = None,
    ) -> Steps[Attempt]:  # fmt: skip
        """A session of all that was asked for, by the first pair that is well; by the next one, if
        it was not."""
        lanes = sorted(self._lanes, key=lambda lane: (lane.is_away, lane.is_doubtful))
        while True:
            lane = lanes.pop(0)
            attempt = yield from self._by(lane, document, receipt, should_stop, joined)
            error = attempt.error
            if error is None or not _may_be_node(error) or should_stop() is not Stop.GO_ON:
                return attempt
            lane.is_doubtful = True
            lane.sessions.close()
            if not lanes or lanes[0].is_away:
                return attempt
            yield Notice(NoticeKind.NODE, f"{lane.told(error)}; {lanes[0].name} goes on")

    def _by(
        self, lane: Lane, document: Mapping[str, Any], receipt: Path | None,
        should_stop: StopQuestion, joined: Joined | None,
    ) -> Steps[Attempt]:  # fmt: skip
        """A session of all that was asked for by one pair."""
        lane.whole(self._sources())
        if joined is not None:
            joined.changes.carriers(1)
            document = joined.changes.begun(lane.number, lane.name, lane.placed(document))
        steps = lane.sessions.attempt(document, receipt, should_stop)
        if joined is not None:
            steps = changed(lane, steps, joined.changes)
        while True:
            try:
                event = next(steps)
            except StopIteration as end:
                attempt: Attempt = end.value
                return attempt
            if joined is not None:
                yield from self._changed(joined.changes)
                if isinstance(event, Progress):
                    event = joined.at_the_end(event)
            yield event

    def _carried(
        self, document: Mapping[str, Any], receipt: Path | None, should_stop: StopQuestion
    ) -> Steps[Attempt]:
        for lane in self._lanes:
            lane.begin()
        if self.adjusting is not None:
            document = self.adjusting.applied(document)
        changes = Changes(new_run_name(), document, self._carriers)
        joined = Joined(
            time.monotonic(), self._lanes, self._sides(), changes, capacities=self._capacities
        )
        look = yield from self._looked(document, joined, should_stop)
        if look.error is not None:
            return _as_copy(look)
        wanted = len(self._lanes) + self._stripes * sum(end[-1].missing for end in self._ends)
        parts = parts_of(joined.listed, Bases.of(self._sources()), wanted)
        yield Notice(NoticeKind.CHOICE, _plan_text(parts))
        try:
            if self.adjusting is not None:
                self.adjusting.begun(changes)
            error = yield from self._by_all(document, parts, joined, should_stop)
            if error is not None:
                joined.sides, joined.places = self._sides(), self._place_lines()
                return joined.cut_off(error)
            attempt = yield from self._one(document, receipt, should_stop, joined)
            yield from self._changed(changes)
        finally:
            if self.adjusting is not None:
                self.adjusting.ended()
        joined.sides, joined.places = self._sides(), self._place_lines()
        return joined.attempt(attempt, receipt)

    @property
    def _carriers(self) -> int:
        """How many pairs carry parts now."""
        return sum(1 for lane in self._lanes if not lane.is_away)

    def _changed(self, changes: Changes) -> Iterator[Event]:
        """Tells what has come of changes that somebody asked for."""
        for change in changes.told():
            told = Adjusted(change)
            if self.adjusting is not None:
                self.adjusting.note(told)
            yield told

    def _looked(
        self, document: Mapping[str, Any], joined: Joined, should_stop: StopQuestion
    ) -> Steps[Attempt]:
        """The dry run that lists what is to be copied."""
        copy = {key: value for key, value in document["copy"].items() if key not in _LAST_ONLY}
        look = {**document, "copy": {**copy, "dry_run": True}}
        with tempfile.NamedTemporaryFile(prefix="farline-nodes-", suffix=".jsonl") as file:
            steps = self._one(look, Path(file.name), should_stop)
            while True:
                try:
                    event: Event | None = next(steps)
                except StopIteration as end:
                    attempt: Attempt = end.value
                    break
                yield None if isinstance(event, Progress) else event
            if attempt.record is not None and attempt.error is None:
                joined.found(attempt.record, map(json.loads, file))
        return attempt

    def _by_all(
        self, document: Mapping[str, Any], parts: list[Part], joined: Joined,
        should_stop: StopQuestion,
    ) -> Steps[FarlineError | None]:  # fmt: skip
        """All pairs carry parts until there are none; why not all were carried."""
        queue = PartsQueue(parts, self._carriers)
        changes = joined.changes
        crew = Crew(
            self._lanes, queue, lambda part: _part_document(document, part), changes, should_stop
        )
        growths = [
            Growth(end[-1], partial(self._join, side, crew), crew.stops)
            for side, end in enumerate(self._ends)
        ]
        try:
            while crew.is_at_work:
                yield from _noticed(crew, *growths)
                yield from self._changed(changes)
                yield joined.progress()
                time.sleep(_POLL_S)
        finally:
            for growth in growths:
                growth.join()
            crew.join()
        yield from _noticed(crew, *growths)
        if should_stop() is not Stop.GO_ON:
            return InterruptedRun("stopped")
        return queue.error

    def _join(self, side: int, crew: Crew, nodes: Nodes) -> None:
        """Nodes that have come later carry parts, too."""
        with self._joins:
            joining = self._joining(side, nodes)
            self._look_at_later(joining, crew.stops)
            self._place_streams([*self._lanes, *joining])
            for lane in joining:
                self._lanes.append(lane)
                crew.add(lane)


def _as_copy(look: Attempt) -> Attempt:
    """A dry run that was the beginning of a copy, and its end."""
    if look.record is None or not look.record["spec"].get("copy"):
        return look
    record: dict[str, Any] = dict(look.record)
    record.pop("verdict", None)
    record["spec"] = {**record["spec"], "copy": {**record["spec"]["copy"], "dry_run": False}}
    return replace(look, record=cast("RunRecord", record))


def _may_be_node(error: FarlineError) -> bool:
    """Whether another pair may do what one has failed with."""
    return error.may_retry and not error.permanent and error.kind != "busy"


def _noticed(*of: Crew | Growth) -> Iterator[Notice]:
    """What they have said of nodes."""
    for one in of:
        for line in one.said():
            yield Notice(NoticeKind.NODE, line)


_LAST_ONLY = ("delete", "max_delete", "remove_source_files")
"""What only the session does that ends the copy."""


def _part_document(document: Mapping[str, Any], part: Part) -> dict[str, Any]:
    share: dict[str, Any] = {**document["copy"]["share"], "part": part.number}
    if part.span is not None:
        share["offset"], share["bytes"] = part.span
    copy = {key: value for key, value in document["copy"].items() if key not in _LAST_ONLY}
    return {**document, "copy": {**copy, "share": share}}


def _plan_text(parts: list[Part]) -> str:
    names = sum(len(part.names) for part in parts if part.span is None)
    pieces = sum(1 for part in parts if part.span is not None)
    size = size_human(sum(part.size for part in parts))
    cut = f" and {counted(pieces, 'piece')} of large ones" if pieces else ""
    return f"to copy: {size}: {counted(names, 'file')}{cut}, in {counted(len(parts), 'part')}"
