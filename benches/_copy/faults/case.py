"""One case from its tree to its verdict."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from _copy.faults.actors import Actors
from _copy.faults.check import EXIT_WHOLE, End, Watch, problems, read_receipt
from _copy.faults.ground import ROOMY_BYTES, Ground
from _copy.faults.plan import Case, Scale
from _copy.faults.tree import Source, make, put_older
from _iperf3 import FARLINE

MOST_ATTEMPTS = 12
OWN_RETRIES_S = 60
REPEATED = 4
"""One of so many cases is followed by a command that must find nothing to do."""

TICK_S = 0.01


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    case: Case
    attempts: int
    seconds: float
    met: Sequence[str]
    """Faults that met a copy under way; the others came too late."""

    failed: int
    """Names that the last receipt calls failed."""

    looks: int
    problems: Sequence[str]

    @property
    def is_right(self) -> bool:
        """Whether everything held."""
        return not self.problems


@dataclass
class Run:
    """A case while it goes on."""

    ground: Ground
    case: Case
    scale: Scale
    source: Source
    target: Path
    actors: Actors
    watch: Watch
    log: list[str] = field(default_factory=list)

    def attempt(self, number: int) -> End:
        """One command, from its start to its end, with whatever happens meanwhile."""
        receipt = self.ground.folder / f"receipt-{self.case.number}-{number}"
        client = subprocess.Popen(
            self.ground.client.command(self._command(receipt)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "XDG_CONFIG_HOME": str(self.ground.folder)},
        )
        try:
            self._follow(client)
        finally:
            client.kill()
            _, complaint = client.communicate()
        said = complaint.decode(errors="replace").strip().splitlines()
        self.log.append(f"attempt {number}: exit code {client.returncode}; {said[-1:]}")
        return End(client.returncode, read_receipt(receipt), self.case.hard_links)

    def _command(self, receipt: Path) -> list[str]:
        tickets = self.ground.server.tickets
        near, far = f"{self.source.root}/", f"{self.target}/"
        ways = {
            "push": (near, f"{tickets['write']}#{far}"),
            "pull": (f"{tickets['read']}#{near}", far),
        }
        own = OWN_RETRIES_S + self.scale.longest_cut_s if self.case.retries_itself else 0
        words = ["--json-stream", "--no-store", "--receipt", str(receipt), "--retry-for", f"{own}s"]
        return [str(FARLINE), "copy", *ways[self.case.way], *words, *self.case.options]

    def _follow(self, client: subprocess.Popen[bytes]) -> None:
        """Reads what the client tells of its progress, and lets faults happen."""
        assert client.stdout is not None and client.stderr is not None
        os.set_blocking(client.stdout.fileno(), False)
        os.set_blocking(client.stderr.fileno(), False)
        total, settled, rest = max(self.source.total_bytes, 1), 0, b""
        end = time.monotonic() + self.scale.limit_s + self._patience_s()
        complaint = b""
        while client.poll() is None:
            rest += client.stdout.read() or b""
            complaint += client.stderr.read() or b""
            *lines, rest = rest.split(b"\n")
            for event in map(json.loads, lines):
                if event["event"] == "progress":
                    settled = event["data"]["settled_bytes"]
                    self.actors.tick(settled / total, client)
            if settled:
                self.actors.tick(settled / total, client)
            if time.monotonic() > end:
                self.log.append("the command did not end in time")
                client.kill()
            time.sleep(TICK_S)
        if complaint:
            self.log.append(complaint.decode(errors="replace").strip().splitlines()[-1])

    def _patience_s(self) -> float:
        return sum(fault.seconds for fault in self.case.faults) + OWN_RETRIES_S


def run(ground: Ground, case: Case, scale: Scale) -> Outcome:
    """Disturbs a copy until no fault is left, and says whether everything held."""
    since = time.monotonic()
    source_root, target = ground.folder / "source", ground.disk / "target"
    for folder in (source_root, *ground.disk.iterdir()):
        shutil.rmtree(folder, ignore_errors=True)
    ground.resize(ROOMY_BYTES)
    ground.change(**case.link)
    source = make(source_root, case, scale)
    if case.destination_exists:
        target.mkdir()
    if case.replaces:
        put_older(source, target, case)
    watch = Watch(source, target, case.seed)
    going = Run(ground, case, scale, source, target, Actors(ground, source, case), watch)
    with watch:
        attempts, end = _until_done(going)
    watch.look()
    wrong = [*watch.wrong(), *problems(source, target, end), *_done_twice(going, end)]
    return Outcome(
        case=case,
        attempts=attempts,
        seconds=time.monotonic() - since,
        met=going.actors.met,
        failed=len(end.receipt.failed),
        looks=watch.looks,
        problems=[*wrong, *(going.log if wrong else [])],
    )


def _done_twice(going: Run, end: End) -> Iterator[str]:
    """What one more command after a whole copy copies again, in every fourth case."""
    if end.exit_code != EXIT_WHOLE or going.case.is_altered or going.case.number % REPEATED:
        return
    again = going.attempt(MOST_ATTEMPTS + 1)
    if again.exit_code != EXIT_WHOLE:
        yield f"one more command after a whole copy ended with {again.exit_code}"
    for name, line in again.receipt.lines.items():
        if line["status"] == "copied" and line["kind"] == "file":
            yield f"{name!r} was copied again after a whole copy"


def _until_done(going: Run) -> tuple[int, End]:
    """The same command until it is whole, or until it says the same twice with no fault left."""
    actors, before = going.actors, None
    for number in range(1, MOST_ATTEMPTS + 1):
        met = len(actors.met)
        end = going.attempt(number)
        actors.after_attempt()
        if end.exit_code == EXIT_WHOLE:
            break
        if number == MOST_ATTEMPTS // 2:
            actors.mend()
        said = (end.exit_code, frozenset(end.receipt.failed))
        if said == before and not actors.waiting and len(actors.met) == met:
            break
        before = said
    actors.mend()
    return number, end
