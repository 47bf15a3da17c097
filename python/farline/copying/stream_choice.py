"""What a copy chooses where nothing was stated: how many streams, and the rate of RBUDP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farline.copying.connector import Connector, ReverseConnector
from farline.copying.network_limits import first_contact, interface_bps, own_cores
from farline.copying.source_survey import SMALL_BYTES, are_many_and_small
from farline.spec.units import counted, rate_human
from farline.tools.kernel_limits import Buffers, own_buffers

if TYPE_CHECKING:
    from pathlib import Path

    from farline.store.paths.choices import HostsNow, StoredChoice
    from farline.tools.native import Contact, Target

NEAR_S = 0.001
"""Up to so long a round trip one stream carries whatever an interface does."""

BACK_STREAMS = 4
"""Streams where nothing can be found out about the path beforehand."""

LOSS_BOUND = 0.01
"""Share of RBUDP's packets lost above which it slows down, where nobody stated a rate."""


@dataclass(eq=False, repr=False)
class StreamChoice:
    """Chooses for sessions between this process and the other end of a connector."""

    connector: Connector
    sources: tuple[str, ...]
    pushes: bool
    on_loopback: bool = False
    most_streams: int | None = None
    """Most streams for which there are ports at the other end."""
    paths: Path | None = None
    """Folder of the settings that were found for paths before; None uses none."""
    single_port: bool = False
    """Whether control and data share one port of the other end."""
    _far: str = field(default="", init=False)
    """The other host as it is addressed, once it is known."""
    is_tuned: bool = field(default=False, init=False)
    """Whether the number of streams is one that was found for this path."""
    passed_over: str = field(default="", init=False)
    """Of what was said, the line on a setting that is kept for this path and was not used."""

    def contact(self, document: Mapping[str, Any], target: Target) -> Contact | None:
        """The connection to the other end, where something is to be found out about the path."""
        self._far = target.host
        reverse = isinstance(self.connector, ReverseConnector)
        if unsettled(document) is None or self.on_loopback or reverse:
            return None
        return first_contact(target, document.get("ip_version"))

    def settle(self, spec: dict[str, Any], contact: Contact | None) -> list[str]:
        """Puts what was not stated into `spec`: streams, RBUDP's rate. Says why, a line each."""
        wanted = unsettled(spec)
        if wanted is None:
            return []
        if wanted == "rate_bps":
            return self._settle_blasts(spec, contact)
        from farline.models.stream_need import UNKNOWN_RATE_BPS, core_streams, stream_need

        cores = own_cores()
        if self.on_loopback:
            streams = core_streams(UNKNOWN_RATE_BPS, cores)
            spec["streams"] = streams
            return [f"{streams} stream{'' if streams == 1 else 's'}: both ends are on this host"]
        if isinstance(self.connector, ReverseConnector):
            spec["streams"] = BACK_STREAMS
            return [f"{BACK_STREAMS} streams: the path is not known until that host connects"]
        tuned, said = self._settle_tuned(spec, contact)
        if tuned:
            return said
        if spec.get("transport") in ("udt", "quic"):
            return [*said, self._settle_cores(spec, contact)]
        rtt_s = contact.rtt_s if contact is not None else 0.0
        here = own_buffers()
        there = self.connector.buffers() or here
        sender, receiver = (here, there) if self.pushes else (there, here)
        send, receive = stated_buffers(spec, sender, receiver)
        rate_bps = wanted_bps(spec, contact) if rtt_s > NEAR_S else None
        small = self.pushes and are_many_and_small(self.sources)
        need = stream_need(rtt_s, send, receive, rate_bps, cores, small)
        return [*said, need.reason + self._within_ports(spec, need.streams)]

    def _settle_tuned(
        self, spec: dict[str, Any], contact: Contact | None
    ) -> tuple[bool, list[str]]:
        """Takes what `farline tune` found for this path, if it still holds; says so either way."""
        found = self._tuned(spec)
        if found is None:
            return False, []
        streams, tuned = found
        plural = "" if streams == 1 else "s"
        changes = tuned.changes(_hosts_now(contact))
        if changes:
            are = "is" if streams == 1 else "are"
            self.passed_over = f"the tuned {streams} stream{plural} {are} not used: {changes[0]}"
            return False, [self.passed_over]
        self._settle_knobs(spec, tuned)
        self.is_tuned = True
        line = f"{streams} stream{plural}: tuned for this path ({tuned.basis})"
        return True, [line + self._within_ports(spec, streams)]

    def _settle_knobs(self, spec: dict[str, Any], tuned: StoredChoice) -> None:
        """What was found beside streams, where nothing else was stated.

        Buffers are left to the kernel on a single port, which takes none per session.
        """
        buffers = None if self.single_port else tuned.buffer_bytes
        chunk = tuned.block_bytes if tuned.file_bytes is not None else None
        sections: dict[str, dict[str, Any]] = {
            "copy": {
                "concurrency": tuned.concurrency, "pipeline": tuned.pipelining,
                "chunk_bytes": chunk,
            },
            tuned.transport: {
                "send_buffer_bytes": buffers, "receive_buffer_bytes": buffers,
                "congestion_control": tuned.congestion_control,
            },
        }  # fmt: skip
        for name, knobs in sections.items():
            found = {knob: value for knob, value in knobs.items() if value is not None}
            if found:
                spec[name] = {**found, **(spec.get(name) or {})}

    def _tuned(self, spec: Mapping[str, Any]) -> tuple[int, StoredChoice] | None:
        """What is kept for this path and transport; not what large files gave, for small ones."""
        if self.paths is None or not self.paths.exists():
            return None
        from farline.store.paths.choices import read_choice
        from farline.store.paths.past_transfer import bare_host

        tuned = read_choice(self.paths, bare_host(self._far), self.pushes)
        if tuned is None or not tuned.streams or tuned.transport != spec.get("transport", "tcp"):
            return None
        of_small = tuned.file_bytes is not None and tuned.file_bytes < SMALL_BYTES
        if self.pushes and not of_small and are_many_and_small(self.sources):
            return None
        return tuned.streams, tuned

    def _within_ports(self, spec: dict[str, Any], streams: int) -> str:
        """States so many streams, or fewer where there are ports for fewer: then it says so."""
        spec["streams"] = min(streams, self.most_streams or streams)
        fewer = spec["streams"] < streams
        return f"; {spec['streams']}, limited by the number of ports" if fewer else ""

    def _settle_cores(self, spec: dict[str, Any], contact: Contact | None) -> str:
        """UDT, QUIC and RBUDP fill a path with one stream, if one thread at each end can."""
        from farline.models.stream_need import IDLE_CORES, UNKNOWN_RATE_BPS, core_streams

        streams = core_streams(wanted_bps(spec, contact) or UNKNOWN_RATE_BPS, own_cores())
        reason = f"{counted(streams, 'stream')}: {IDLE_CORES}"
        if streams == 1:
            reason = "1 stream: it fills the path at any round-trip time"
        return reason + self._within_ports(spec, streams)

    def _settle_blasts(self, spec: dict[str, Any], contact: Contact | None) -> list[str]:
        """RBUDP sends at a stated rate; unstated it aims high and gives way to loss."""
        from farline.models.stream_need import UNKNOWN_RATE_BPS

        said = [] if "streams" in spec else [self._settle_cores(spec, contact)]
        rate_bps = (wanted_bps(spec, contact) or UNKNOWN_RATE_BPS) // spec["streams"]
        blasts = spec.get("rbudp") or {}
        spec["rate_bps"], spec["rbudp"] = rate_bps, {"loss_bound": LOSS_BOUND, **blasts}
        bound = spec["rbudp"]["loss_bound"]
        rate = rate_human(rate_bps)
        return [*said, f"rbudp at {rate} per stream, less while more than {bound:g} is lost"]


def _hosts_now(contact: Contact | None) -> HostsNow:
    """What a copy knows of the path before it begins."""
    from farline.store.paths.choices import HostsNow

    kernel = os.uname().release
    if contact is None:
        return HostsNow(here_kernel=kernel)
    nic_bps = None if contact.address is None else interface_bps(contact.address)
    return HostsNow(1000 * contact.rtt_s, kernel, nic_bps=nic_bps)


def unsettled(spec: Mapping[str, Any]) -> str | None:
    """What follows from the path and was not stated: `streams`, or RBUDP's `rate_bps`."""
    field = "rate_bps" if spec.get("transport") == "rbudp" else "streams"
    return None if field in spec else field


def stated_buffers(spec: Mapping[str, Any], sender: Buffers, receiver: Buffers) -> tuple[int, int]:
    """Bytes of the sender's and the receiver's buffer: as stated, else what the kernels allow."""
    tcp = spec.get("tcp") or {}
    send = tcp.get("send_buffer_bytes") or sender.send_bytes
    return send, tcp.get("receive_buffer_bytes") or receiver.receive_bytes


def wanted_bps(spec: Mapping[str, Any], contact: Contact | None) -> int | None:
    """The rate that was stated for the whole copy, else that of the interface, if known."""
    stated: int | None = (spec.get("copy") or {}).get("total_rate_bps")
    if stated or contact is None or contact.address is None:
        return stated
    return interface_bps(contact.address)
