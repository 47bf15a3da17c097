"""Round-trip times by TCP: run inside a host, needs nothing at the other end.

A closed port answers a SYN with a reset, so a refused connection took one round trip.
`python round_trips.py COUNT ADDRESS...` prints the shortest of COUNT for each address, in
seconds, as a JSON list; null where no answer came within three seconds.
"""

import json
import socket
import sys
import time

CLOSED_PORT = 9
TIMEOUT_S = 3.0


def round_trip_s(address: str) -> float | None:
    """Seconds until the refusal."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as attempt:
        attempt.settimeout(TIMEOUT_S)
        begun = time.perf_counter()
        try:
            attempt.connect((address, CLOSED_PORT))
        except ConnectionRefusedError:
            return time.perf_counter() - begun
        except OSError:
            return None
    return None


def shortest_s(address: str, count: int) -> float | None:
    """Shortest of several."""
    times = [round_trip_s(address) for _ in range(count)]
    return None if None in times else min(item for item in times if item is not None)


if __name__ == "__main__":
    print(json.dumps([shortest_s(address, int(sys.argv[1])) for address in sys.argv[2:]]))
