"""Settings of tools of other makers, tried by runs of the tool itself: memory, time or files.

A mover that moves made-up bytes gets as many as last for about the time asked for, a tester gets
the time, and with files each run moves the next ones: what moved stays, and moves no more.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farline.api.knob_offers import BLOCKS, BUFFERS, USUAL_BLOCK, controls_here
from farline.api.samplers import new_name, probed
from farline.campaign.settings import sampled_spec
from farline.drivers.catalogue import find_driver
from farline.errors import SpecError, UsageError
from farline.store.paths.past_transfer import PathEnds, bare_host
from farline.tools.kernel_limits import own_buffers
from farline.tuning.grids import STREAM_COUNTS
from farline.tuning.knobs import Knob, KnobValues, Offers
from farline.tuning.sampling import Surroundings, Taken, tool_spec_with
from farline.tuning.situation import Setting, Situation

if TYPE_CHECKING:
    from farline.drivers.chooser import ToolChooser
    from farline.drivers.driver import Driver
    from farline.store import Store
    from farline.tools import StopQuestion
    from farline.tools.events import Steps

FIRST_BYTES = 4 << 20
"""What the first run of a mover moves, where nothing is known of its rate."""
GROWTH = 16
"""Most times that the bytes of one run are those of the one before."""
ENOUGH = 0.5
"""Share of the time asked for that a run must last to be a sample."""
_ASK_S = 2.0
_SSH_PORT = 22
REQUESTED = (8, 32)
"""Files asked for ahead on one connection, where a tool can pipeline."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """One file to move: where it is, and its folder below the source."""

    path: str
    folder: str
    size: int


class ToolSampler:
    """Tries settings with a driven tool towards `address`, what `spec` states in all runs."""

    def __init__(
        self,
        address: str,
        spec: Mapping[str, Any],
        chooser: ToolChooser,
        store: Store | None = None,
        files: ToolFiles | None = None,
    ) -> None:
        """Prepares; nothing is begun.

        Raises:
            UsageError: when streams are stated, or the tool neither takes streams nor files at once
                nor anything else that could be tried.
            SpecError: when there is no such tool, or it does not take what is stated.
        """
        self._driver: Driver = find_driver(str(spec["tool"]))
        if "streams" in spec:
            raise UsageError("streams: the search tries several numbers; leave it out")
        able = self._driver.abilities
        if files is None and able.kind == "mover" and not able.memory:
            raise UsageError(f"--tool {self._driver.name}: moves files only: name SRC and DST")
        self.is_own_data = files is not None
        self._address, self._store, self._files = address, store, files
        self._spec = {"tool": self._driver.name, **spec}
        self._tool = chooser.driven(self._spec, address)
        self._name = new_name()
        self._next_bytes = FIRST_BYTES
        self._moved_bytes = 0
        """By all runs of the sample that is being taken."""

    @property
    def far(self) -> str:
        """The other host, as it is addressed."""
        return bare_host(self._address)

    @property
    def pushes(self) -> bool:
        """Whether this host sends."""
        return bool(self._spec.get("direction", "forward") == "forward")

    def look(self, should_stop: StopQuestion) -> Steps[Surroundings]:
        """Measures the round-trip time, where any port of the other host answers."""
        yield from ()
        files = self._files
        here, there = (socket.gethostname(),), (self.far,)
        ends = PathEnds.between(here, there) if self.pushes else PathEnds.between(there, here)
        rtt_s = round_trip_s(self._address, (self._driver.usual_port, _SSH_PORT))
        now = Situation(
            ends=ends, transport=str(self._spec.get("transport") or "tcp"),
            tool=self._driver.name, modality="T" if files is None else "E",
            file_bytes=None if files is None else files.mean_bytes,
            files=1 if files is None else files.count,
            concurrency=1, pipelining=1, rtt_ms=None if rtt_s is None else 1000 * rtt_s,
            window_bytes=min(own_buffers()), here_kernel=os.uname().release,
            pushes=self.pushes, now_s=time.time(),
        )  # fmt: skip
        offers = offers_of(self._driver, self._spec, files is not None)
        most = STREAM_COUNTS[-1] if "streams" in self._driver.abilities.takes else 1
        return Surroundings(now, Setting(1), most, offers, f"with {self._driver.name}")

    def sample(self, setting: Setting, seconds: float, should_stop: StopQuestion) -> Steps[Taken]:
        """Runs the tool until a run has lasted long enough to tell.

        Raises:
            FarlineError: when a run failed or moved nothing.
        """
        spec = tool_spec_with(self._spec, setting, self._driver.abilities.takes)
        began, self._moved_bytes = time.monotonic(), 0
        while True:
            again = yield from self._run(spec, setting, seconds, should_stop)
            if again is not None:
                sample = replace(
                    again.sample, seconds=time.monotonic() - began, size_bytes=self._moved_bytes
                )
                return Taken(sample, again.row)

    def _run(
        self, spec: dict[str, Any], setting: Setting, seconds: float, should_stop: StopQuestion
    ) -> Steps[Taken | None]:
        """One run; None if it was over too soon to tell anything, and a larger one follows."""
        timed = "duration_s" in self._driver.abilities.takes and self._files is None
        if timed:
            spec = {**spec, "duration_s": max(1, round(seconds))}
        elif self._files is None:
            spec = {**spec, "total_bytes": self._next_bytes}
        else:
            at_once = setting.concurrency or 1
            folder, batch = self._files.take(self._next_bytes, least=2 * at_once)
            copy = {**(spec.get("copy") or {}), **self._files.ends(folder, batch)}
            spec = {**spec, "copy": copy}
        taken = yield from probed(
            self._address, sampled_spec(spec), setting, self._store, self._name, should_stop,
            tool=self._tool,
        )  # fmt: skip
        self._moved_bytes += taken.sample.size_bytes
        lasted_s = 8 * taken.sample.size_bytes / taken.sample.rate_bps
        if timed:
            return taken
        wanted = self._next_bytes * seconds / max(lasted_s, 1e-3)
        self._next_bytes = round(max(1 << 20, min(wanted, GROWTH * self._next_bytes)))
        is_last = self._files is not None and self._files.is_empty
        if lasted_s < ENOUGH * seconds and not is_last:
            return None
        return Taken(replace(taken.sample, all_there=is_last), taken.row)

    def close(self) -> None:
        """Nothing stays: every run ends its own server."""


class ToolFiles:
    """Local files on their way to a destination, each moved by one run alone."""

    def __init__(self, sources: Sequence[str], destination: str) -> None:
        """Lists them.

        Raises:
            UsageError: when there is none.
        """
        self._waiting = [file for source in sources for file in _files_below(source)]
        self._destination = destination.rstrip("/")
        if not self._waiting:
            raise UsageError(f"{', '.join(sources)}: holds no files to try settings with")
        self.count = len(self._waiting)
        self.mean_bytes = sum(file.size for file in self._waiting) / self.count

    @property
    def is_empty(self) -> bool:
        """Whether all have been taken."""
        return not self._waiting

    def take(self, size_bytes: int, least: int) -> tuple[str, list[LocalFile]]:
        """The next files of one folder, so many bytes and at least so many files if there are.

        Raises:
            UsageError: when none is left.
        """
        if not self._waiting:
            raise UsageError(
                "tune: all files were moved before a sample was long enough; give it more data, or "
                "measure without files: farline tune HOST --tool"
            )
        folder, batch, total = self._waiting[0].folder, list[LocalFile](), 0
        rest = []
        for file in self._waiting:
            if file.folder != folder or (total >= size_bytes and len(batch) >= least):
                rest.append(file)
                continue
            batch.append(file)
            total += file.size
        self._waiting = rest
        return folder, batch

    def ends(self, folder: str, batch: Sequence[LocalFile]) -> dict[str, Any]:
        """Sources and destination of a run."""
        where = f"{self._destination}/{folder}" if folder else self._destination
        return {"sources": [file.path for file in batch], "destination": f"{where}/"}


def _files_below(source: str) -> Iterator[LocalFile]:
    """As with rsync: a slash behind a folder means what is in it.

    Raises:
        UsageError: when there is no such file or folder.
    """
    root = Path(source).absolute()
    if root.is_file():
        yield LocalFile(str(root), "", root.stat().st_size)
        return
    if not root.is_dir():
        raise UsageError(f"{source}: there is no such file or folder on this host")
    top = Path() if source.endswith("/") else Path(root.name)
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            inner = str(top / path.parent.relative_to(root))
            yield LocalFile(str(path), "" if inner == "." else inner, path.stat().st_size)


def offers_of(driver: Driver, spec: Mapping[str, Any], has_files: bool) -> Offers:
    """What a tool can be set to, beside streams; what `spec` states is not tried."""
    takes, found = driver.abilities.takes, dict[Knob, KnobValues]()
    if has_files and "copy.concurrency" in takes:
        found["files"] = KnobValues(())
    if has_files and "copy.pipeline" in takes:
        found["pipelining"] = KnobValues(REQUESTED, 1.0)
    if "block_bytes" in takes and "block_bytes" not in spec and not has_files:
        usual = int(driver.defaults(spec).get("block_bytes") or USUAL_BLOCK)
        found["block"] = KnobValues(tuple(one for one in BLOCKS if one != usual), float(usual))
    if "tcp.send_buffer_bytes" in takes and not (spec.get("tcp") or {}).get("send_buffer_bytes"):
        found["buffers"] = KnobValues(BUFFERS, float(min(own_buffers())))
    if "tcp.congestion_control" in takes:
        found["congestion"] = controls_here()
    others = tuple(
        word for word in driver.abilities.transports if word in ("tcp", "udt")
    )[1:]  # fmt: skip
    if others and "transport" not in spec:
        found["transport"] = KnobValues(others, driver.abilities.transports[0])
    return found


def round_trip_s(host: str, ports: Sequence[int]) -> float | None:
    """Time of a TCP handshake, or of its refusal; None where no port answers in time.

    Raises:
        SpecError: when the host has no address.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SpecError(f"{host}: no such host: {error.strerror}") from None
    family, _, _, _, address = found[0]
    for port in filter(None, ports):
        began = time.monotonic()
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(_ASK_S)
            try:
                one.connect((address[0], port, *address[2:]))
            except ConnectionRefusedError:
                pass
            except OSError:
                continue
            return time.monotonic() - began
    return None
