"""What farline's own transfers can be set to from this host, knob by knob."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farline.tools.kernel_limits import own_buffers
from farline.tuning.knobs import Knob, KnobValues, Offers

BLOCKS = (64 << 10, 256 << 10, 1 << 20, 4 << 20)
USUAL_BLOCK = 128 << 10
CHUNKS = (256 << 10, 2 << 20, 8 << 20)
"""What a copy sends and verifies at a time."""
USUAL_CHUNK = 512 << 10
BUFFERS = (256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
ANNOUNCED = (1, 16, 256)
"""Files announced ahead; a copy announces 16,384 unless told."""
_USUAL_ANNOUNCED = 32.0
"""From so many on more are no different to a search."""

_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_CONTROL = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_LARGEST = (Path("/proc/sys/net/core/wmem_max"), Path("/proc/sys/net/core/rmem_max"))


def own_offers(spec: Mapping[str, Any], pushes: bool) -> Offers:
    """Knobs of a measurement, or of a copy; what `spec` states is none.

    The sender's congestion control is known here only where this host sends; buffers go no further
    than what the kernel gives to who asks.
    """
    is_copy = "copy" in spec
    transport = str(spec.get("transport") or "tcp")
    section, copy = spec.get(transport) or {}, spec.get("copy") or {}
    found: dict[Knob, KnobValues] = {}
    if is_copy and "chunk_bytes" not in copy:
        found["block"] = KnobValues(CHUNKS, USUAL_CHUNK)
    elif not is_copy and "block_bytes" not in spec:
        found["block"] = KnobValues(BLOCKS, USUAL_BLOCK)
    if "send_buffer_bytes" not in section and "receive_buffer_bytes" not in section:
        found["buffers"] = KnobValues(_allowed_buffers(), min(own_buffers()))
    if transport == "tcp" and pushes and "congestion_control" not in section:
        found["congestion"] = controls_here()
    if "transport" not in spec:
        found["transport"] = KnobValues(("udt",), "tcp")
    if is_copy and "concurrency" not in copy:
        found["files"] = KnobValues(())
    if is_copy and "pipeline" not in copy:
        found["pipelining"] = KnobValues(ANNOUNCED, _USUAL_ANNOUNCED)
    return found


def _allowed_buffers() -> tuple[int, ...]:
    try:
        most = min(int(path.read_text("ascii")) for path in _LARGEST)
    except (OSError, ValueError):
        return BUFFERS
    return tuple(size for size in BUFFERS if size <= most)


def controls_here() -> KnobValues:
    """Those that this kernel has now, beside its default."""
    try:
        usual = _CONTROL.read_text("ascii").strip()
        others = tuple(name for name in _CONTROLS.read_text("ascii").split() if name != usual)
    except OSError:
        return KnobValues(())
    return KnobValues(others, usual)
