"""A program: one end of a TCP connection, the sending one watching its own window.

`sink ADDRESS PORT` receives one connection and discards what comes.
`send ADDRESS PORT CONTROL SECONDS EVERY_S` sends over one TCP connection with that congestion
control and, every so many seconds, reads TCP_INFO of its own socket. What it saw is printed at the
end as JSON, a list per column. It needs nothing but Python, so that it runs in any host.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time

BLOCK_BYTES = 1 << 18
INFO_BYTES = 248
CA_STATE_AT, CWND_AT, SSTHRESH_AT, RTT_AT, MSS_AT = 1, 80, 76, 68, 16
RETRANSMITS_AT, DELIVERED_AT = 100, 192
MSG_TRUNC = getattr(socket, "MSG_TRUNC", 0x20)

Columns = dict[str, list[float]]


def read_info(sock: socket.socket) -> dict[str, float]:
    """The values of `struct tcp_info` (linux/tcp.h) that matter here."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)

    def word(at: int) -> int:
        return int(struct.unpack_from("=I", raw, at)[0])

    return {
        "ca_state": raw[CA_STATE_AT],
        "cwnd": word(CWND_AT),
        "ssthresh": word(SSTHRESH_AT),
        "rtt_us": word(RTT_AT),
        "mss_bytes": word(MSS_AT),
        "retransmits": word(RETRANSMITS_AT),
        "delivered": word(DELIVERED_AT),
    }


def watch(sock: socket.socket, every_s: float, stop: threading.Event, into: Columns) -> None:
    """Reads TCP_INFO every so often until told to stop."""
    start_s = next_s = time.monotonic()
    while not stop.is_set():
        values = {"at_s": time.monotonic() - start_s, **read_info(sock)}
        for name, value in values.items():
            into.setdefault(name, []).append(value)
        next_s += every_s
        stop.wait(max(next_s - time.monotonic(), 0))


def send(address: str, port: int, control: str, seconds: float, every_s: float) -> Columns:
    """Sends for so long and gives what was seen."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        sock.connect((address, port))
        seen: Columns = {}
        stop = threading.Event()
        watcher = threading.Thread(target=watch, args=(sock, every_s, stop, seen))
        watcher.start()
        block = bytes(BLOCK_BYTES)
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            sock.send(block)
        stop.set()
        watcher.join()
        # What still waits is of no use to anyone: reset instead of sending it.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return seen


def sink(address: str, port: int) -> None:
    """Receives from one connection and discards in the kernel."""
    with socket.create_server((address, port)) as listener:
        print("listening", flush=True)
        connection, _ = listener.accept()
        try:
            while connection.recv(1 << 24, MSG_TRUNC):
                pass
        except ConnectionResetError:
            pass


def main(arguments: list[str]) -> int:
    """Runs what the command line says."""
    what, address, port, *rest = arguments
    if what == "sink":
        sink(address, int(port))
    else:
        control, seconds, every_s = rest
        print(json.dumps(send(address, int(port), control, float(seconds), float(every_s))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
