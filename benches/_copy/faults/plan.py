"""What a case is, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "kill-client", "kill-server", "cut", "disk-full", "corrupt", "stop-client", "stop-server",
    "change", "grow", "shrink", "remove", "replace", "empty", "rewrite", "time-back", "turn",
]  # fmt: skip
Way = Literal["push", "pull"]

ALTERATIONS: tuple[Kind, ...] = (
    "change", "grow", "shrink", "remove", "replace", "empty", "rewrite", "time-back", "turn",
)  # fmt: skip
KINDS: tuple[Kind, ...] = (
    "kill-client", "kill-server", "cut", "disk-full", "corrupt", "stop-client", "stop-server",
    *ALTERATIONS,
)  # fmt: skip
TRANSPORTS = ("tcp", "udt", "rbudp")
STRAIGHT = ("--verify", "none", "--cipher", "none", "--read-engine", "sendfile")
"""Files go straight from the page cache to the streams."""

STALL_S = 5.0
MIB = 1 << 20


@dataclass(frozen=True)
class Scale:
    """How large everything is: the whole, or a short form for continuous integration."""

    most_file_bytes: int
    most_tree_bytes: int
    files: tuple[int, int]
    longest_cut_s: float
    longest_stop_s: float
    rate_mbps: tuple[int, int]
    limit_s: float
    """Time that one command may take beyond its faults."""


WHOLE = Scale(64 * MIB, 160 * MIB, (20, 60), 60.0, 8.0, (300, 2000), 150.0)
SHORT = Scale(4 * MIB, 16 * MIB, (12, 24), 1.5, 1.0, (200, 400), 60.0)


@dataclass(frozen=True)
class Fault:
    """Something that happens once the copy has come so far."""

    kind: Kind
    at_share: float
    """Of the tree's bytes, settled at the destination."""

    seconds: float
    """How long it lasts, or until what was ended is started again."""

    amount: float
    """Between 0 and 1: which file, how much room, how many packets."""


@dataclass(frozen=True)
class Case:
    """One disturbed copy."""

    number: int
    seed: int
    way: Way
    options: tuple[str, ...]
    link: dict[str, Any]
    retries_itself: bool
    hard_links: bool
    destination_exists: bool
    replaces: bool
    """Some files are at the destination already, older and different, and may be replaced."""

    faults: tuple[Fault, ...]

    @property
    def name(self) -> str:
        """For a line of the log."""
        what = "+".join(fault.kind for fault in self.faults)
        return f"{self.number:4} {self.way} {self.option('--transport'):5} {what}"

    def option(self, flag: str) -> str:
        """The value of one of its options."""
        return self.options[self.options.index(flag) + 1]

    @property
    def is_altered(self) -> bool:
        """Whether the source changes meanwhile."""
        return any(fault.kind in ALTERATIONS for fault in self.faults)

    def draw(self) -> random.Random:
        """Chance for the tree of this case."""
        return random.Random(self.seed)


def cases(seed: int, count: int, scale: Scale) -> list[Case]:
    """So many cases; the first of them have every fault, way and transport once."""
    return [_case(number, seed, scale) for number in range(count)]


def _case(number: int, seed: int, scale: Scale) -> Case:
    draw = random.Random(f"{seed}.{number}")
    first = KINDS[number % len(KINDS)]
    others = draw.choices([0, 1, 2], weights=[5, 3, 2])[0]
    kinds = [first, *draw.sample([kind for kind in KINDS if kind != first], others)]
    options = [
        *("--transport", TRANSPORTS[number % len(TRANSPORTS)]),
        *("--streams", str(draw.randint(1, 4))),
        *("--stall-timeout", f"{STALL_S}s"),
    ]
    proof = [
        *("--verify", draw.choice(["tree", "tree", "read-back"])),
        *("--cipher", draw.choice(["aes128-gcm", "aes256-gcm", "none"])),
    ]
    for flag in ("--readers", "--writers"):
        proof += [flag, str(draw.randint(0, 2))] if draw.random() < 0.5 else []
    options += STRAIGHT if _goes_straight(options, kinds, f"{seed}.{number}") else proof
    hard_links = draw.random() < 0.5
    replaces = random.Random(f"{seed}.{number}.replaces").random() < 0.5
    options += ["--overwrite", "different"] if replaces else []
    link = _link(draw, scale)
    if "rbudp" in options:  # it blasts at a stated rate, each stream its part of the link's
        options += ["--rate", f"{link['rate_bps'] * 8 // 10 // int(options[3])}bit/s"]
    return Case(
        number=number,
        seed=draw.getrandbits(48),
        way=draw.choice(["push", "pull"]),
        options=(*options, *(["--hard-links"] if hard_links else [])),
        link=link,
        retries_itself=draw.random() < 0.5,
        hard_links=hard_links,
        destination_exists=draw.random() < 0.5 or replaces,
        replaces=replaces,
        faults=tuple(sorted(_faults(draw, kinds, scale), key=lambda fault: fault.at_share)),
    )


def _goes_straight(options: Sequence[str], kinds: Sequence[Kind], name: str) -> bool:
    """Whether nobody looks at the bytes of a case: half of the TCP cases without damaged packets.

    TCP's checksum, the only one left, lets one of 65,536 of those through.
    """
    may = "tcp" in options and "corrupt" not in kinds
    return may and random.Random(f"{name}.straight").random() < 0.5


def _link(draw: random.Random, scale: Scale) -> dict[str, Any]:
    """The path: never so bad that a copy could not end over it in time."""
    return {
        "rate_bps": draw.randint(*scale.rate_mbps) * 1_000_000,
        "rtt_s": draw.choice([0.0, 0.002, 0.01, 0.04]),
        "loss": draw.choice([0.0, 0.0, 0.0001, 0.001]),
        "corrupt": 0.0,
    }


def _faults(draw: random.Random, kinds: Sequence[Kind], scale: Scale) -> list[Fault]:
    lasting: dict[str, Callable[[], float]] = {
        "cut": lambda: min(1.0, scale.longest_cut_s) * scale.longest_cut_s ** draw.random(),
        "corrupt": lambda: draw.uniform(0.5, 5.0),
        "stop-client": lambda: draw.uniform(0.3, scale.longest_stop_s),
        "stop-server": lambda: draw.uniform(0.3, scale.longest_stop_s),
    }
    return [
        Fault(
            kind=kind,
            at_share=draw.uniform(0.0, 0.9),
            seconds=lasting.get(kind, lambda: draw.uniform(0.0, 2.0))(),
            amount=draw.random(),
        )
        for kind in kinds
    ]
