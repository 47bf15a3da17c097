"""A copy to, or from, nodes with disks of their own: whole files, each on one node.

```text
1  get nodes, start farline on pairs of them            ends, own_crew, crew.start
2  each pair looks: what is at the source, and there    dry runs at the same time
3  every name gets its node; the placement is noted     placement, placement_file
4  each pair copies its names: ordinary copies          lists of names, one after the other
5  each node deletes what the sources do not have       own_deletion
```

Where the destination's nodes have disks of their own, there is a pair for each of them; where the
source's have, what they send is the union of their trees. Nothing is cut into pieces, and no
session ends the copy for all: each one names, proves and settles its own files. A node that fails
costs its own files, and these are named.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.cluster.changes import Changes
from farline.cluster.crew import Lane, at_once, start
from farline.cluster.ends import NodeEnds, StreamPlacing
from farline.cluster.own_crew import Duty, OwnCrew
from farline.cluster.own_deletion import (
    Surplus,
    check_apart,
    check_deletion,
    deletion_copy,
    why_not,
    without_deletion,
    without_skips,
)
from farline.cluster.own_joined import OwnJoined
from farline.cluster.parts_queue import PartsQueue
from farline.cluster.placement import Entry, check_once, place, without_parents
from farline.cluster.placement_file import PlacementFile
from farline.cluster.plan import Bases, Listed, lists_of
from farline.cluster.settled import Settled
from farline.copying.pools import NodePool
from farline.copying.session import Attempt
from farline.errors import FarlineError, InterruptedRun, UsageError
from farline.spec.units import counted, size_human
from farline.tools import Stop
from farline.tools.events import Adjusted, Notice, NoticeKind
from farline.tools.job import result_of
from farline.tools.run_name import new_run_name

if TYPE_CHECKING:
    from farline.copying.adjusting import Adjusting
    from farline.copying.locations import Host
    from farline.copying.request import CopyRequest
    from farline.tools import StopQuestion
    from farline.tools.events import Event, Steps

_POLL_S = 0.1
_BUSY_WAITS_S = (0.5, 1.0, 2.0, 4.0)
"""Between attempts while a node has not done with the session before."""
_THERE = ("present", "would-update")
"""What a look says of a name that is at a node in any state."""


def own_disk_sessions(request: CopyRequest) -> OwnDiskSessions:
    """The sessions of a request with `own_disks`.

    Raises:
        UsageError: for what cannot be combined with that.
    """
    copy, ends = request.spec.get("copy") or {}, request.endpoints
    own = (request.own_disks in ("source", "both"), request.own_disks in ("destination", "both"))
    flags = {
        "--remove-source-files": bool(copy.get("remove_source_files")),
        "--hard-links": bool(copy.get("hard_links")),
    }
    if flag := next((flag for flag, is_given in flags.items() if is_given), None):
        raise UsageError(
            f"{flag}: cannot be combined with --own-disks, where each node sees only its own "
            f"files; leave {flag} out, or copy to or from each node by itself"
        )
    if copy.get("delete") is not None or request.confirm_deletion:
        check_deletion(own)
    for host in (ends.source_host, ends.destination_host):
        if isinstance(host, NodePool) and host.engine == "slurm" and host.least < host.count:
            raise UsageError(
                f"{host}: --own-disks needs to know all of its nodes from the start; write "
                f"slurm:PARTITION:{host.count}, or leave least out"
            )
    words = request.data_path.server_words()
    return OwnDiskSessions(ends, request.ssh, words, own, placing=StreamPlacing.of(request))


def site_of(host: Host) -> str:
    """What the names of an end's nodes are unique in; empty for names of hosts."""
    if not isinstance(host, NodePool) or host.engine == "ssh":
        return ""
    if host.engine == "slurm":
        return f"slurm:{host.settings['partition']}"
    return f"testbed:{host.settings['bed']}" if host.engine == "testbed" else host.text


@dataclass(eq=False, repr=False)
class OwnDiskSessions(NodeEnds):
    """Attempts over all nodes. They stay until `close`."""

    own: tuple[bool, bool]
    """Of which end the nodes have disks of their own."""
    adjusting: Adjusting | None = None
    is_known: bool = False
    far: str | None = None
    repeat = False
    _duties: list[Duty] = field(default_factory=list, init=False)
    _entries: dict[str, Entry] = field(default_factory=dict, init=False)
    """All names that are to be copied, by their paths."""
    _is_looked_at: bool = field(default=False, init=False)

    def attempt(
        self, document: Mapping[str, Any], receipt: Path | None, should_stop: StopQuestion
    ) -> Steps[Attempt]:
        """One attempt, to its end. Nodes that fail are no error: their files are."""
        try:
            if lost := self._lost():
                self._end_lanes(self._duties)
                self._duties = []
                self._give_up(lost)
            if not all(self._ends):
                yield from self._get_nodes(None, should_stop)
                self._is_looked_at = False
            with tempfile.TemporaryDirectory(prefix="farline-nodes-") as folder:
                return (yield from self._copied(document, receipt, Path(folder), should_stop))
        except FarlineError as error:
            return Attempt(None, error)

    def close(self) -> None:
        """Ends farline on all nodes, and gives them back."""
        self._end_lanes(self._duties)
        self._duties = []
        self._release_nodes()

    # Pairs

    def _rounds(self) -> list[list[Duty]]:
        """Pairs that work at the same time, one round after the other."""
        sources, sinks = len(self._places(0)), len(self._places(1))
        if all(self.own):
            count = itertools.count()
            return [
                [Duty(next(count), [(one, (one + shift) % sinks)]) for one in range(sources)]
                for shift in range(sinks)
            ]
        if self.own[1]:
            return [
                [
                    Duty(sink, [((sink + shift) % sources, sink) for shift in range(sources)])
                    for sink in range(sinks)
                ]
            ]
        return [
            [
                Duty(one, [(one, (one + shift) % sinks) for shift in range(sinks)])
                for one in range(sources)
            ]
        ]

    def _names(self, side: int) -> list[str]:
        """Nodes of an end by what they are known by, whoever logs in."""
        return [host.host for host, _ in self._places(side)]

    def _source(self, duty: Duty) -> str:
        return self._names(0)[duty.pairs[0][0]]

    def _sink(self, duty: Duty) -> str:
        return self._names(1)[duty.pairs[0][1]]

    def _own_node(self, duty: Duty) -> str:
        """The node whose own disk it is about: that of the destination, if it has one."""
        return self._sink(duty) if self.own[1] else self._source(duty)

    def _begin(self, duties: Sequence[Duty], should_stop: StopQuestion) -> Iterator[Event | None]:
        """Has farline run on the first pair of each that starts."""
        waiting = [duty for duty in duties if duty.lane is None]
        while waiting and should_stop() is Stop.GO_ON:
            yield None
            by_lane: dict[Lane, Duty] = {}
            for duty in waiting:
                source, sink = duty.pairs[0]
                lane = self._lane(duty.number, self._places(0)[source], self._places(1)[sink])
                duty.lane, duty.error = lane, None
                by_lane[lane] = duty
            waiting, failed = [], start(list(by_lane), should_stop)
            if should_stop() is not Stop.GO_ON:
                break
            for lane, error in failed:
                duty = by_lane[lane]
                duty.give_up(error)
                yield Notice(NoticeKind.NODE, f"{lane.name} is not used: {error.message}")
                waiting += self._with_next_pair([duty])
        if should_stop() is not Stop.GO_ON:
            raise InterruptedRun("stopped")

    def _with_next_pair(self, duties: Sequence[Duty]) -> list[Duty]:
        """Those that another pair may do."""
        again = [duty for duty in duties if len(duty.pairs) > 1]
        for duty in again:
            duty.pairs.pop(0)
        return again

    def _through(
        self, duties: Sequence[Duty], work: Callable[[Duty], None],
        tell: Callable[[], Iterator[Event | None]], should_stop: StopQuestion,
    ) -> Steps[None]:  # fmt: skip
        """Has each duty done by its pair, all at the same time; those that fail by their next."""
        waiting = list(duties)
        while waiting:
            yield from self._begin(waiting, should_stop)
            ready = [duty for duty in waiting if duty.lane is not None]
            self._place_streams([duty.lane for duty in ready if duty.lane is not None])
            threads = [threading.Thread(target=work, args=(duty,), daemon=True) for duty in ready]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                yield from tell()
                time.sleep(_POLL_S)
            yield from tell()
            if should_stop() is not Stop.GO_ON:
                raise InterruptedRun("stopped")
            waiting = self._with_next_pair([duty for duty in ready if duty.error is not None])

    # The copy

    def _copied(
        self, document: Mapping[str, Any], receipt: Path | None, folder: Path,
        should_stop: StopQuestion,
    ) -> Steps[Attempt]:  # fmt: skip
        began_s, rounds = time.monotonic(), self._rounds()
        self._end_lanes(self._duties)
        self._duties = [duty for one in rounds for duty in one]
        if self.adjusting is not None:
            document = self.adjusting.applied(document)
        numbers = itertools.count()

        def receipts() -> Path:
            return folder / f"{next(numbers)}.jsonl"

        if document["copy"].get("delete") is not None:
            destination = self._names(1), self._destination()
            check_apart((self._names(0), self._sources()), destination)
        for one in rounds:
            yield from self._seen(one, document, receipts, should_stop)
            self._close_between(one, rounds)
        settled = Settled(marks_nodes=self.own[1])
        placement = self._placed(settled, bool(document["copy"].get("dry_run")))
        yield Notice(NoticeKind.CHOICE, self._placement_text(placement))
        joined = OwnJoined(
            began_s, [], self._sides(), Changes(new_run_name(), document, len(rounds[0])),
            capacities=self._capacities, places=self._place_lines(), settled=settled,
            asked=document["copy"],
        )  # fmt: skip
        joined.looks = [duty.record for duty in self._duties if duty.record is not None]
        names = [one for ours in placement.values() for one in ours]
        joined.found_names(len(names), sum(one.size for one in names))
        try:
            if self.adjusting is not None:
                self.adjusting.begun(joined.changes)
            for one in rounds:
                yield from self._carried(one, document, joined, receipts, should_stop)
                self._close_between(one, rounds)
            yield from self._deleted(document, joined, receipts, should_stop)
        except InterruptedRun as stopped:
            return joined.whole(receipt, stopped, names)
        finally:
            if self.adjusting is not None:
                self.adjusting.ended()
        return joined.whole(receipt)

    def _end_lanes(self, duties: Sequence[Duty]) -> None:
        """Ends farline on both nodes of each pair."""
        at_once([duty.lane.sessions.close for duty in duties if duty.lane is not None])
        for duty in duties:
            duty.lane = None

    def _close_between(self, duties: Sequence[Duty], rounds: Sequence[Sequence[Duty]]) -> None:
        """Where pairs take turns, each ends with its turn."""
        if len(rounds) > 1:
            self._end_lanes(duties)

    def _seen(
        self, duties: Sequence[Duty], document: Mapping[str, Any], receipts: Callable[[], Path],
        should_stop: StopQuestion,
    ) -> Steps[None]:  # fmt: skip
        """Each pair looks at what is at the source, and which of it is at the destination."""
        yield from self._begin(duties, should_stop)
        here = [duty.lane for duty in duties if duty.lane is not None]
        if not here:
            raise next(duty.error for duty in duties if duty.error is not None)
        if not self._is_looked_at and not document["copy"].get("dry_run"):
            self._is_looked_at = True
            self._look_at(here, self.own, should_stop)
        copy = {**document["copy"], "dry_run": True, "sync_level": "exists", "overwrite": "never"}
        copy.pop("max_delete", None)
        spec = {**document, "copy": copy}
        refused: list[FarlineError] = []

        def one(duty: Duty) -> None:
            lane, lines = duty.lane, receipts()
            assert lane is not None
            lane.whole(self._sources())
            found: Attempt = result_of(lane.sessions.attempt(spec, lines, should_stop))
            if found.error is None and found.record is not None:
                duty.record, duty.found = found.record, lines
                return
            error = found.error or InterruptedRun("stopped")
            if error.fault == "caller" and not isinstance(error, InterruptedRun):
                # No node is to blame for what was asked.
                refused.append(error.reworded(lane.told(error)))
            duty.give_up(error)

        ready = [duty for duty in duties if duty.lane is not None]
        yield from self._through(ready, one, _nothing, should_stop)
        if refused:
            raise refused[0]
        if all(duty.record is None for duty in duties):
            raise next(duty.error for duty in duties if duty.error is not None)
        for duty in duties:
            if duty.record is None and duty.error is not None:
                text = f"{self._own_node(duty)}: its files are left out: {duty.error.message}"
                yield Notice(NoticeKind.NODE, text)

    # Where names are to be

    def _placed(self, settled: Settled, is_dry: bool) -> dict[str, list[Entry]]:
        """Gives every duty its names, and notes those that none can carry. Names by node."""
        at_source = self._at_source(settled)
        entries = {one.path: one for listed in at_source.values() for one in listed}
        self._entries = entries
        nodes_of: dict[str, list[str]] = {}
        for node, listed in at_source.items():
            for one in listed:
                if not one.is_folder:
                    nodes_of.setdefault(one.path, []).append(node)
        check_once(nodes_of)
        sink_of = self._placement(entries, is_dry) if self.own[1] else {}
        bases, by_node = Bases.of(self._sources()), dict[str, list[Entry]]()
        for duty in self._duties:
            ours = at_source.get(self._source(duty) if self.own[0] else "", [])
            if self.own[1]:
                ours = [one for one in ours if sink_of.get(one.path) == self._sink(duty)]
            if not ours:
                continue
            by_node.setdefault(self._own_node(duty), []).extend(ours)
            if duty.record is None:
                self._fail(settled, duty, ours)
            else:
                duty.parts = lists_of((Listed(one.path, one.size) for one in ours), bases)
        known_sinks = set(self._names(1))
        for path, node in sink_of.items():
            if node not in known_sinks:
                reason = f"its earlier version is on {node}, which is not among the nodes now"
                settled.fail(node, path, entries[path].size, reason)
        return by_node

    def _fail(self, settled: Settled, duty: Duty, entries: Sequence[Entry]) -> None:
        why = duty.error.message if duty.error is not None else "the copy did not get that far"
        for one in entries:
            kind = "folder" if one.is_folder else "file"
            settled.fail(self._sink(duty), one.path, one.size, why, kind)

    def _at_source(self, settled: Settled) -> dict[str, list[Entry]]:
        """Names by the source node that has them; under no name where all have the same."""
        found: dict[str, dict[str, Entry]] = {}
        missing: dict[str, tuple[int, dict[str, Any]]] = {}
        looked: set[str] = set()
        for duty in self._duties:
            node = self._source(duty) if self.own[0] else ""
            if duty.record is None or node in looked:
                continue
            looked.add(node)
            ours = found.setdefault(node, {})
            for line in _lines(duty.found):
                if line["status"] == "failed" and line["kind"] == "other":
                    count, _ = missing.get(line["path"], (0, line))
                    missing[line["path"]] = (count + 1, line)
                    continue
                if line["status"] == "would-delete":
                    continue
                is_folder = line["kind"] == "folder"
                ours[line["path"]] = Entry(line["path"], line["bytes"], is_folder)
        for path, (count, line) in missing.items():
            # A source that only some nodes have is no failure: they have it together.
            if count == len(looked):
                settled.fail("", path, 0, line.get("reason") or "cannot be read", "other")
        if self.own[0]:
            self._note_away(settled, looked)
        return {node: without_parents(ours.values()) for node, ours in found.items()}

    def _note_away(self, settled: Settled, looked: set[str]) -> None:
        """Names what source nodes have that did not answer, as far as an earlier copy says so."""
        for duty in self._duties:
            node = self._source(duty)
            if node in looked or duty.error is None:
                continue
            looked.add(node)
            why = f"is on {node}, which did not answer: {duty.error.message}"
            known: dict[str, int] = {}
            for source in self._sources():
                if source.endswith("/"):
                    file = PlacementFile(site_of(self.endpoints.source_host), source)
                    known |= file.read(node)
            for path, size in known.items():
                settled.fail(node, path, size, why)
            if not known:
                text = f"{node}: what it has was not copied: {duty.error.message}"
                settled.problem(node, self._sources()[0], text)

    def _placement(self, entries: Mapping[str, Entry], is_dry: bool) -> dict[str, str]:
        """Where each name is to be at the destination; noted before anything is sent."""
        there: dict[str, list[str]] = {}
        for duty in self._duties:
            for line in _lines(duty.found):
                if line["status"] in _THERE:
                    nodes_of = there.setdefault(line["path"], [])
                    if self._sink(duty) not in nodes_of:
                        nodes_of.append(self._sink(duty))
        site = site_of(self.endpoints.destination_host)
        file, nodes = PlacementFile(site, self._destination()), self._names(1)
        # Names of hosts are no site: what others of another name have says nothing.
        known_nodes = [node for node in file.nodes() if site or node in nodes]
        kept = {node: file.read(node) for node in known_nodes}
        loads = {node: sum(names.values()) for node, names in kept.items()} if kept else None
        known = {path: node for node, names in kept.items() for path in names}
        node_of = place(without_parents(entries.values()), nodes, there, known, loads)
        if not is_dry:
            placed: dict[str, dict[str, int]] = {}
            for path, node in node_of.items():
                placed.setdefault(node, {})[path] = entries[path].size
            file.add(placed)
        return node_of

    def _placement_text(self, by_node: Mapping[str, Sequence[Entry]]) -> str:
        told = []
        for node, ours in sorted(by_node.items()):
            size = size_human(sum(one.size for one in ours))
            told.append(f"{node} {counted(len(ours), 'name')} ({size})")
        verb = "on" if self.own[1] else "from"
        return f"whole files {verb} nodes: {', '.join(told) or 'none'}"

    def _sides(self) -> str:
        return "-".join(f"1str-{len(self._places(side))}n" for side in range(2))

    # Sessions

    def _carried(
        self, duties: Sequence[Duty], document: Mapping[str, Any], joined: OwnJoined,
        receipts: Callable[[], Path], should_stop: StopQuestion,
    ) -> Steps[None]:  # fmt: skip
        """Every pair copies its names."""
        busy = [duty for duty in duties if duty.parts]
        crews: list[OwnCrew] = []
        joined.changes.carriers(len(busy))

        def one(duty: Duty) -> None:
            lane = duty.lane
            assert lane is not None
            joined.lanes.append(lane)
            spec = self._document(document, duty)
            spec["copy"] = without_deletion(spec["copy"])
            queue = PartsQueue(duty.parts, 1)
            crew = OwnCrew(lane, queue, lambda part: spec, joined.changes, should_stop, receipts)
            crews.append(crew)
            crew.join()
            for written in crew.written:
                joined.settled.take(self._sink(duty), written)
            duty.parts = queue.left
            if queue.error is not None:
                duty.give_up(queue.error)

        def tell() -> Iterator[Event | None]:
            for crew in list(crews):
                for line in crew.said():
                    yield Notice(NoticeKind.NODE, line)
            for change in joined.changes.told():
                told = Adjusted(change)
                if self.adjusting is not None:
                    self.adjusting.note(told)
                yield told
            yield joined.progress()

        yield from self._through(busy, one, tell, should_stop)
        for duty in busy:
            left = [self._entries[path] for part in duty.parts for path in part.names]
            self._fail(joined.settled, duty, left)

    def _deleted(
        self, document: Mapping[str, Any], joined: OwnJoined, receipts: Callable[[], Path],
        should_stop: StopQuestion,
    ) -> Steps[None]:  # fmt: skip
        """Each node deletes what the sources do not have: all of them as many as was said, or
        none."""
        if document["copy"].get("delete") is None:
            return
        settled, by_node = joined.settled, {self._sink(duty): duty for duty in self._duties}
        surplus = Surplus.of({node: partial(_lines, duty.found) for node, duty in by_node.items()})
        # What made way for other things is gone already, and counts.
        count = sum(len(names | settled.deleted(node)) for node, names in surplus.names.items())
        looks = {node: duty.record for node, duty in by_node.items() if duty.error is None}
        if why := why_not(
            self._names(1), looks, surplus, count, settled.failed(), document["copy"]
        ):
            settled.problem("", self._destination(), why)
            return

        def one(duty: Duty) -> None:
            lane, lines, node = duty.lane, receipts(), self._sink(duty)
            assert lane is not None
            if lane not in joined.lanes:
                joined.lanes.append(lane)
            lane.whole(self._sources())
            spec = self._document(document, duty)
            left = surplus.names[node] - settled.deleted(node)
            copy = deletion_copy(spec["copy"], len(left))
            for wait_s in (*_BUSY_WAITS_S, 0.0):
                steps = lane.sessions.attempt({**spec, "copy": copy}, lines, should_stop)
                ended: Attempt = result_of(steps)
                if ended.error is None or ended.error.kind != "busy":
                    break
                time.sleep(wait_s)
            if ended.record is not None:
                lane.records.append(without_skips(ended.record))
            settled.take_deleted(node, lines)
            if ended.error is not None:
                duty.give_up(ended.error)

        def tell() -> Iterator[Event | None]:
            for change in joined.changes.told():
                yield Adjusted(change)
            yield joined.progress()

        busy = [duty for node, duty in by_node.items() if surplus.names[node]]
        yield from self._through(busy, one, tell, should_stop)
        for duty in busy:
            node = self._sink(duty)
            if not document["copy"].get("dry_run"):
                site = site_of(self.endpoints.destination_host)
                try:
                    PlacementFile(site, self._destination()).forget(node, settled.deleted(node))
                except FarlineError as error:
                    settled.problem(node, self._destination(), f"{node}: {error.message}")
            if duty.error is not None:
                text = f"{node}: not all was deleted: {duty.error.message}"
                settled.problem(node, self._destination(), text)

    def _document(self, document: Mapping[str, Any], duty: Duty) -> dict[str, Any]:
        """The spec of a pair's sessions: a copy of its own for each node with a disk of its own."""
        nodes = (self._source(duty) if self.own[0] else "", self._sink(duty) if self.own[1] else "")
        return {**document, "copy": {**document["copy"], "share": {"id": self._id(*nodes)}}}


def _nothing() -> Iterator[Event | None]:
    yield None


def _lines(receipt: Path | None) -> Iterator[dict[str, Any]]:
    """Lines of a receipt; none where none was written."""
    if receipt is not None and receipt.exists():
        with receipt.open(encoding="utf-8") as file:
            yield from map(json.loads, file)
