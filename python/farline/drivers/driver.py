"""What a driver is: what its tool can do, the command lines of both ends, what came of them."""

from __future__ import annotations

import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from farline.drivers.places import Here, InHost, OverSsh, Place, ServerPlace, Standing
from farline.drivers.processes import Ended, Listens
from farline.errors import SpecError, SystemFailure

Kind = Literal["mover", "tester"]
_VERSION_S = 20.0

LIMIT_BESIDE_S = 20.0
"""What a tester may take besides the time that it is to measure."""
LONGEST_S = 7 * 86_400.0
"""A mover may take so long as long as it moves something."""


@dataclass(frozen=True)
class Abilities:
    """What a tool can do; `words` refuses everything else by name.

    `takes` has options of a run by their dotted path, each with what it is called in the tool.
    """

    kind: Kind
    takes: Mapping[str, str]
    transports: tuple[str, ...] = ("tcp",)
    directions: tuple[str, ...] = ("forward", "reverse")
    memory: bool = False
    """Whether a mover can also move made-up bytes, from memory to memory."""
    several_sources: bool = False
    """Whether one command moves more than one source."""
    places: tuple[type, ...] = (Here, InHost, OverSsh, Standing)
    """Where its server can be."""


@dataclass(frozen=True)
class FilePair:
    """One source and the exact name that it gets; of a folder, what is in it goes into that."""

    source: str
    destination: str
    is_folder: bool


@dataclass(frozen=True)
class Task:
    """What a tool is to do in one run."""

    spec: Mapping[str, Any]
    """In farline's words, checked, with the driver's defaults."""
    address: str
    """The server's, as the client sees it."""
    port: int
    server: ServerPlace
    client: Place
    folder: Path
    """For this run alone, readable by this user alone."""
    files: tuple[FilePair, ...] = ()
    secret: str = ""
    """Drawn for this run: a password between its two ends."""

    def get(self, path: str, default: Any = None) -> Any:
        """The option at a dotted path."""
        section, dot, name = path.rpartition(".")
        table = self.spec.get(section) or {} if dot else self.spec
        value = table.get(name)
        return default if value is None else value

    @property
    def forward(self) -> bool:
        """Whether the client sends."""
        return bool(self.get("direction", "forward") == "forward")

    @property
    def way(self) -> str:
        """`forward` or `reverse`; of both at once the first."""
        return "reverse" if self.get("direction") == "reverse" else "forward"

    @property
    def is_started(self) -> bool:
        """Whether farline starts the server."""
        return not isinstance(self.server, Standing)

    @property
    def host(self) -> str:
        """The server's address as a part of a URL: IPv6 in brackets."""
        return f"[{self.address}]" if ":" in self.address else self.address

    def flag(self, name: str, path: str, scale: int = 1) -> list[str]:
        """`name VALUE` where the option is set and not 0."""
        value = self.get(path)
        return [name, str(value // scale if scale > 1 else value)] if value else []


@dataclass(frozen=True)
class Flow:
    """What one direction came to, as the tool says it; None where it does not."""

    bytes: int | None = None
    elapsed_s: float | None = None
    rate_bps: float | None = None


@dataclass(frozen=True)
class Figures:
    """What a tool says of a run."""

    flows: Mapping[str, Flow] = field(default_factory=dict)
    """Of `forward`, `reverse` or both."""
    retransmits: int | None = None
    sent_packets: int | None = None
    lost_packets: int | None = None
    jitter_ns: int | None = None
    min_rtt_us: int | None = None
    mean_rtt_us: float | None = None
    congestion_control: str | None = None
    notes: tuple[str, ...] = ()
    """What a reader of the record has to know, one line each."""
    samples: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Rows of intervals by the columns of samples; none where the tool prints none."""


class Driver(ABC):
    """A data mover or tester of another maker."""

    name: ClassVar[str]
    title: ClassVar[str]
    abilities: ClassVar[Abilities]
    program: ClassVar[str]
    """The client."""
    server_program: ClassVar[str | None] = None
    """What farline starts at the other end; None where nothing is started there."""
    package: ClassVar[str]
    """What brings it: `Debian: iperf3`."""
    usual_port: ClassVar[int] = 0
    listens: Listens = "tcp"
    ready_s: ClassVar[float] = 20.0
    version_words: ClassVar[tuple[str, ...]] = ("--version",)
    version_pattern: ClassVar[str] = r"(\d+(?:\.\d+)+\S*)"
    skips_present: ClassVar[bool] = False
    """Whether files that are there already are not sent again: its own count of bytes holds."""
    both_ends_far: ClassVar[bool] = False
    """Whether neither end is this host: paths are the tool's own, `COLLECTION:path`."""
    verifies_itself: ClassVar[bool] = False
    """Whether the tool compares hashes of both ends of a server that runs already."""
    watches_stalls: ClassVar[bool] = True
    """Whether a mover's client itself reads or writes the data, so that a stall can be seen."""

    def find(self, place: Place) -> str | None:
        """Full name of the client's program at a place; None if it is not there."""
        return place.find(self.program)

    def find_server(self, place: Place, task: Task | None = None) -> str | None:
        """The same of the server's, which may depend on the task."""
        return place.find(self.server_program) if self.server_program else None

    def starts_at(self, place: Place) -> bool:
        """Whether farline starts a server at a place: over ssh some tools start it themselves."""
        return True

    def version(self, place: Place) -> str | None:
        """Version of the client's program as it says it; None if it does not.

        Raises:
            SystemFailure: when the program is not there; the line names the package.
        """
        program = self.find(place)
        if program is None:
            raise self.missing(place, self.program)
        return version_of(place, [program, *self.version_words], self.version_pattern)

    def missing(self, place: Place, program: str) -> SystemFailure:
        """That a program is not there, and which package brings it."""
        return SystemFailure(
            f"{self.name} cannot run: {program} is not installed on {place}; install {self.package}"
        )

    def defaults(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Options by dotted path, as the tool has them where nothing is stated."""
        return {}

    def check_words(self, document: Mapping[str, Any]) -> None:  # noqa: B027
        """Refuses what was stated and the tool does not take after all.

        Raises:
            SpecError: with the option.
        """

    def check(self, task: Task) -> None:  # noqa: B027
        """Refuses what the tool cannot do with this task.

        Raises:
            SpecError: with the option.
        """

    def prepare(self, task: Task) -> None:  # noqa: B027
        """Writes what both ends need into the folder of the task."""

    def server_words(self, task: Task, program: str) -> list[str]:
        """Command line of the server."""
        raise NotImplementedError(f"{self.name} has no server")

    def server_environment(self, task: Task) -> dict[str, str]:
        """What the server's environment has besides."""
        return {}

    def helper_words(self, task: Task, program: str) -> list[str]:
        """Command line of a second server, beside the client; empty where none is needed."""
        return []

    def helper_port(self, task: Task) -> int:
        """Where that one listens."""
        return task.port

    @abstractmethod
    def client_words(self, task: Task, program: str) -> list[str]:
        """Command line of the client."""

    def client_environment(self, task: Task) -> dict[str, str]:
        """What the client's environment has besides: passwords, which command lines would show."""
        return {}

    def limit_s(self, task: Task) -> float:
        """So long the client may take in all."""
        stated: float | None = task.get("tool_timeout_s")
        if stated is not None:
            return stated
        if self.abilities.kind == "tester" and task.get("duration_s"):
            measured: float = task.get("omit_s", 0.0) + task.get("duration_s")
            return measured + LIMIT_BESIDE_S
        return LONGEST_S

    @abstractmethod
    def read(self, task: Task, ended: Ended) -> Figures:
        """What the tool says came of it.

        Raises:
            FarlineError: when it says that it failed, whatever its exit code.
        """

    def clean_up(self, task: Task) -> None:  # noqa: B027
        """What is to be done at a place when the run is over, besides ending its processes."""


def version_of(place: Place, words: Sequence[str], pattern: str) -> str | None:
    """The version that a program says of itself at a place, remembered."""
    return _version(tuple(place.command(words)), pattern)


def package_version(name: str) -> str | None:
    """Version of a Debian package, for programs that do not say their own."""
    return _version(("dpkg-query", "-W", "-f", "${Version}", name), r"^(\S+)")


@lru_cache
def _version(words: tuple[str, ...], pattern: str) -> str | None:
    """The first version in what a program says of itself."""
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_VERSION_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else None


def refuse(name: str, path: str, why: str) -> SpecError:
    """An option that a tool does not take as it is asked for: `WHAT: TOOL ...`."""
    return SpecError(f"{path}: {name} {why}")
