"""The BPF sources compiled as plain C for this machine, and a sender without a network around them.

What runs is `bpf/*.bpf.c` itself; only the macros that mark programs for the kernel and the two
kernel functions they call are replaced. So a rule is tested apart from recovery, pacing and timing.
"""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SHIM = Path(__file__).with_name("shim")
NO_THRESHOLD = 0x7FFFFFFF
US_PER_S = 1_000_000


class TcpSock(ctypes.Structure):
    """`struct tcp_sock` of bpf/kernel.h, field by field."""

    _fields_ = (
        ("private", ctypes.c_uint64 * 13),
        ("snd_cwnd", ctypes.c_uint32),
        ("snd_cwnd_clamp", ctypes.c_uint32),
        ("snd_ssthresh", ctypes.c_uint32),
        ("max_packets_out", ctypes.c_uint32),
        ("delivered", ctypes.c_uint32),
        ("srtt_us", ctypes.c_uint32),
        ("tcp_mstamp", ctypes.c_uint64),
        ("is_cwnd_limited", ctypes.c_uint8, 1),
    )


class AckSample(ctypes.Structure):
    """`struct ack_sample` of bpf/kernel.h."""

    _fields_ = (
        ("pkts_acked", ctypes.c_uint32),
        ("rtt_us", ctypes.c_int32),
        ("in_flight", ctypes.c_uint32),
    )


def build(name: str, folder: Path) -> Path:
    """Compiles the congestion control `name` into a shared library in `folder`."""
    source = "htcp" if name == "htcp_no_scale" else name
    library = folder / f"{name}.so"
    defines = ["-DHTCP_NO_SCALE"] if name == "htcp_no_scale" else []
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wno-attributes", f"-I{SHIM}", f"-I{ROOT / 'bpf'}"]
    command += [*defines, "-o", str(library), str(ROOT / "bpf" / f"{source}.bpf.c")]
    subprocess.run([*command, str(SHIM / "kernel_functions.c")], check=True, timeout=60)
    return library


@dataclass
class Sender:
    """A sender whose packets all come back after one round-trip time, unless a loss is said."""

    library: ctypes.CDLL
    prefix: str
    socket: TcpSock

    @classmethod
    def start(cls, library: Path, window: int, threshold: int = 1) -> Sender:
        """A connection with this window; past slow start unless `threshold` is above it."""
        socket = TcpSock(
            snd_cwnd=window,
            snd_cwnd_clamp=0xFFFFFFFF,
            snd_ssthresh=threshold,
            tcp_mstamp=US_PER_S,
            is_cwnd_limited=1,
        )
        prefix = "htcp" if library.stem.startswith("htcp") else library.stem
        loaded = ctypes.CDLL(str(library))
        for program in ("ssthresh", "undo_cwnd"):
            getattr(loaded, f"{prefix}_{program}").restype = ctypes.c_uint32
        sender = cls(loaded, prefix, socket)
        sender._call("init")
        return sender

    @property
    def window(self) -> int:
        """The congestion window in packets."""
        return int(self.socket.snd_cwnd)

    @property
    def exact_window(self) -> float:
        """The window with its part of a packet, which comes first in every private area."""
        return self.window + float(self.socket.private[0]) / 2**32

    def _call(self, program: str, *arguments: object) -> int:
        function = getattr(self.library, f"{self.prefix}_{program}", None)
        return 0 if function is None else int(function(ctypes.byref(self.socket), *arguments) or 0)

    def ack(self, packets: int, rtt_s: float) -> None:
        """One ACK for so many packets."""
        rtt_us = round(rtt_s * US_PER_S)
        self.socket.delivered += packets
        self.socket.srtt_us = rtt_us * 8
        if self.prefix == "htcp":
            self._call("pkts_acked", ctypes.byref(AckSample(packets, rtt_us, self.window)))
        self._call("cong_avoid", 0, packets)

    def round_trip(self, rtt_s: float, packets_per_ack: int = 1) -> None:
        """Acknowledges one window of packets over one round-trip time."""
        left = self.window
        start_us, whole = int(self.socket.tcp_mstamp), left
        while left > 0:
            packets = min(packets_per_ack, left)
            left -= packets
            done = (whole - left) / whole
            self.socket.tcp_mstamp = start_us + round(done * rtt_s * US_PER_S)
            self.ack(packets, rtt_s)

    def congestion(self) -> int:
        """A congestion event: the window falls to what the algorithm says."""
        self.socket.snd_ssthresh = self._call("ssthresh")
        self.socket.snd_cwnd = self.socket.snd_ssthresh
        return self.window

    def undo(self) -> int:
        """The event was a mistake: the window that is given back, which is also taken."""
        self.socket.snd_cwnd = self._call("undo_cwnd")
        return self.window
