"""A UDT transfer over a hostile link: bursts of losses, reordering, old packets, spoilt ones, cuts.

    python tests/interop/hostile.py --seconds 600
    python tests/interop/hostile.py --seconds 600 --sender libudt --receiver farline

Every byte that is sent is part of a hash at both ends, and the resident sets of both are sampled:
it ends with 0 if all arrived and neither process grew, and prints what the link did.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "benches")]

from _udt import peers  # noqa: E402
from _udt.peers import End, Said  # noqa: E402
from farline.testbeds import Host, Testbed  # noqa: E402
from farline.testbeds.topology import topology_from_document  # noqa: E402

if TYPE_CHECKING:
    from farline.spec._types import Topology

RATE_BPS = 300_000_000
RTT_S = 0.04
# Old packets come so late that what they carry has been repeated and acknowledged meanwhile.
OLD_S = 0.3
LARGEST_SEQUENCE = 2**31 - 1
# The wrap of sequence numbers comes within the first seconds.
BEFORE_WRAP = 20_000
BUFFER_BYTES = 16_000_000
ROOM_KB = 8_192
# In a few seconds the buffers may still fill in the second half.
FILLING_KB = ROOM_KB + BUFFER_BYTES // 1024
HURTS = (
    "loss_packets",
    "cut_packets",
    "corrupted_packets",
    "duplicated_packets",
    "reordered_packets",
)


def hostile_link(rate_bps: int = RATE_BPS, period_s: float = 10.0) -> Topology:
    """Two hosts; a cut of 0.4 s in each period, one direction alone is cut for 0.2 s."""
    pipe: dict[str, Any] = {
        "rate_bps": rate_bps,
        "delay_s": RTT_S / 2,
        "mtu_bytes": 1500,
        "queue": {"capacity_bdp": 1.0},
        "loss": {"burst": {"enter": 0.0005, "leave": 0.1, "loss_bad": 0.8}},
        "reorder": 0.003,
        "reorder_delay_s": OLD_S,
        "duplicate": 0.01,
        "corrupt": 0.001,
        "schedule_period_s": period_s,
    }
    both, alone = _cut(0.5 * period_s, 0.4), _cut(0.8 * period_s, 0.2)
    return topology_from_document(
        {
            "name": "hostile",
            "seed": 4,
            "mode": "shared",
            "interval_s": 0.1,
            "hosts": [{"name": "a"}, {"name": "b"}],
            "links": [
                {
                    "name": "wan",
                    "a": "a",
                    "b": "b",
                    "forward": {**pipe, "schedule": both},
                    "reverse": {**pipe, "schedule": both + alone},
                }
            ],
        }
    )


def _cut(at_s: float, for_s: float) -> list[dict[str, Any]]:
    return [
        {"at_s": at_s, "change": {"up": False}},
        {"at_s": at_s + for_s, "change": {"up": True}},
    ]


@dataclass
class Outcome:
    """What came of it."""

    receiver: Said
    sender: Said
    seconds: float
    rss_kb: dict[str, list[int]] = field(default_factory=dict)
    hurts: dict[str, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether all that was sent arrived, and both ends ended well."""
        codes = (self.receiver.error_code, self.sender.error_code)
        sent, received = (
            self.sender.hashes("sent_hash"),
            self.receiver.hashes("received_hash"),
        )
        return codes == (0, 0) and sent == received and self.sender.total("sent_bytes") > 0

    def growth_kb(self, end: str) -> int:
        """By how much the second half's largest resident set is above the first half's.

        0 with fewer than two samples, which are no halves.
        """
        seen = self.rss_kb[end]
        if len(seen) < 2:
            return 0
        middle = len(seen) // 2
        return max(seen[middle:]) - max(seen[:middle])

    def is_level(self, room_kb: int = ROOM_KB) -> bool:
        """Whether neither end grew by more than `room_kb` in the second half."""
        return all(self.growth_kb(end) <= room_kb for end in self.rss_kb)


def run(
    topology: Topology, sender: Path, receiver: Path, seconds: float, *sender_words: object
) -> Outcome:
    """Sends for some seconds from `a` to `b`.

    Raises:
        PeerFailed: if an end does not come to its own end.
    """
    buffers = ["--send-buffer", BUFFER_BYTES, "--receive-buffer", BUFFER_BYTES]
    words = ["--bytes", 0, "--seconds", seconds, *buffers]
    with Testbed.up(topology) as bed, ExitStack() as stack:
        sending, receiving = end_in(bed.hosts["a"], sender), end_in(bed.hosts["b"], receiver)
        begun_s = time.monotonic()
        listener = receiving.run("srv", "--host", receiving.address, *words)
        stack.enter_context(peers.running(listener))
        to = ["--host", receiving.address, "--port", peers.listening_port(listener)]
        caller = stack.enter_context(peers.running(sending.run("cli", *to, *words, *sender_words)))
        rss_kb = watch({"sender": caller, "receiver": listener}, seconds)
        said = peers.last_words(caller, 240)
        heard = peers.last_words(listener, 60)
        outcome = Outcome(heard, said, time.monotonic() - begun_s, rss_kb)
        links = bed.counters()["links"]
        outcome.hurts = {name: sum(link[name] for link in links) for name in HURTS}
    return outcome


def end_in(host: Host, program: Path) -> End:
    """An end inside a host."""

    def start(command: list[str], **options: Any) -> Popen[str]:
        return host.popen(command, **options)

    return End(program, host.address, start)


def watch(processes: dict[str, Popen[str]], seconds: float) -> dict[str, list[int]]:
    """Resident sets of processes in KiB, sampled until the time is over or one has ended."""
    seen: dict[str, list[int]] = {name: [] for name in processes}
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        time.sleep(min(1.0, seconds / 20))
        if any(process.poll() is not None for process in processes.values()):
            break
        for name, process in processes.items():
            seen[name].append(resident_kb(process.pid))
    return seen


def resident_kb(pid: int) -> int:
    """Resident set of a process in KiB; 0 if it has ended."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def report(outcome: Outcome) -> str:
    """What happened, in a few lines."""
    count = outcome.sender.total("sent_bytes")
    lines = [
        f"{count:,} bytes in {outcome.seconds:.1f} s, {8e-6 * count / outcome.seconds:.1f} Mb/s: "
        + ("every byte arrived" if outcome.is_whole else "NOT WHOLE"),
        "link: " + ", ".join(f"{name} {number:,}" for name, number in outcome.hurts.items()),
    ]
    for end, seen in outcome.rss_kb.items():
        sizes = f"{min(seen):,} to {max(seen):,} KiB" if seen else "never sampled"
        lines.append(f"{end}: resident {sizes}, later growth {outcome.growth_kb(end):,}")
    for said in (outcome.sender, outcome.receiver):
        brief = {name: said.document[name] for name in ("role", "error_code", "error", "cpu_s")}
        lines.append(json.dumps(brief | {"statistics": said.connections[0]["statistics"]}))
    return "\n".join(lines)


def first_sequence(sender: str) -> list[object]:
    """Words that make farline's sequence numbers wrap early; libudt draws its own."""
    first = LARGEST_SEQUENCE - BEFORE_WRAP
    return ["--initial-sequence", first] if sender == "farline" else []


def main(arguments: Sequence[str]) -> int:
    """Runs it once; 0 if all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--sender", choices=["farline", "libudt"], default="farline")
    parser.add_argument("--receiver", choices=["farline", "libudt"], default="farline")
    parser.add_argument("--rate-mbps", type=int, default=RATE_BPS // 1_000_000)
    options = parser.parse_args(arguments)
    programs = {"libudt": peers.libudt_peer, "farline": peers.farline_peer}
    outcome = run(
        hostile_link(options.rate_mbps * 1_000_000),
        programs[options.sender](),
        programs[options.receiver](),
        options.seconds,
        *first_sequence(options.sender),
    )
    print(report(outcome))
    return 0 if outcome.is_whole and outcome.is_level() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
