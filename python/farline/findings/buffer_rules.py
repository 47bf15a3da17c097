"""Rules about socket buffers: what the kernel allows against the bandwidth-delay product.

A window larger than the product keeps the path full; a smaller one bounds each
stream to window / RTT. Of a receive buffer only a part becomes window, since the
kernel charges its own bookkeeping to it (tcp(7), `tcp_adv_win_scale`); a send
buffer is grown to twice the congestion window (`tcp_sndbuf_expand`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from farline.findings.finding import STREAMS_MAX
from farline.findings.host_finding import HostFinding, HostView
from farline.models.buffer_need import (
    BUFFER_PER_WINDOW,
    MAX_BUFFER_BYTES,
    asked_bytes,
    buffer_bytes,
    is_beyond_kernel,
    raise_limit,
    raise_maximum,
    round_up,
    streams_for,
)
from farline.spec.units import rate_human, size_human, time_human

PAGE_BYTES = 4096
"""Unit of `tcp_mem` on all but a few ARM and POWER kernels, which have larger pages."""

_MEASURED_RATIO_SINCE = (6, 6)
"""Kernel from which the window's share is measured per socket, starting at one half."""


def window_share(view: HostView) -> float:
    """Share of a receive buffer that becomes window."""
    scale = view.number("net.ipv4.tcp_adv_win_scale")
    if scale is None or _kernel_version(view.facts["kernel"]) >= _MEASURED_RATIO_SINCE:
        return 0.5
    return float(1 - 0.5**scale) if scale > 0 else float(0.5**-scale)


def _kernel_version(release: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def receive_buffer(view: HostView) -> Iterator[HostFinding]:
    """Largest receive buffer that autotuning may reach, as window."""
    name = "net.ipv4.tcp_rmem"
    values, need = view.triple(name), view.path.stream_bdp_bytes
    if values is None:
        return
    window = int(values[2] * window_share(view))
    what = f"maximum {size_human(values[2])}, window up to {size_human(window)}"
    if window >= need:
        yield HostFinding("ok", name, what, f"each stream needs {size_human(need)}")
        return
    command = _raise(view, name)
    yield HostFinding("bad", name, what, _bound(view, window), command)


def send_buffer(view: HostView) -> Iterator[HostFinding]:
    """Largest send buffer that autotuning may reach: data on their way and data that wait."""
    name = "net.ipv4.tcp_wmem"
    values, need = view.triple(name), view.path.stream_bdp_bytes
    if values is None:
        return
    what = f"maximum {size_human(values[2])}"
    command = _raise(view, name)
    if values[2] < need:
        yield HostFinding("bad", name, what, _bound(view, values[2]), command)
    elif values[2] < need * BUFFER_PER_WINDOW:
        why = (
            f"holds the {size_human(need)} in flight, but the kernel needs as much again for data "
            "to send next"
        )
        yield HostFinding("warn", name, what, why, command)
    else:
        yield HostFinding(
            "ok", name, what, f"each stream needs {size_human(need * BUFFER_PER_WINDOW)}"
        )


def _bound(view: HostView, window: int) -> str:
    rate = rate_human(window * 8 / view.path.rtt_s)
    rtt, need = time_human(view.path.rtt_s * 1e6), size_human(view.path.stream_bdp_bytes)
    bound = f"each stream needs {need}; over {rtt} this allows {rate} per stream"
    if _is_out_of_reach(view):
        return f"{bound}; no number of streams up to {STREAMS_MAX} fills this path"
    return bound


def _is_out_of_reach(view: HostView) -> bool:
    """Whether the most streams with the largest buffers do not fill the path."""
    path = view.path
    beyond = is_beyond_kernel(path.stream_bdp_bytes)
    return beyond and streams_for(path.stream_bdp_bytes, path.streams) > STREAMS_MAX


def _raise(view: HostView, name: str) -> str:
    """A larger maximum; where the kernel itself bounds it below, more streams to share the path."""
    need = view.path.stream_bdp_bytes
    if _is_out_of_reach(view):
        now = view.triple(name)
        if now is not None and now[2] >= MAX_BUFFER_BYTES:
            return ""
    elif is_beyond_kernel(need):
        return f"farline probe HOST -P {streams_for(need, view.path.streams)}"
    # Of a send buffer half is always the window; an old kernel may keep more of a receive buffer.
    share = window_share(view) if name.endswith("rmem") else 1 / BUFFER_PER_WINDOW
    return raise_maximum(name, view.facts["sysctls"][name], buffer_bytes(need, share))


def explicit_buffers(view: HostView) -> Iterator[HostFinding]:
    """Largest buffers a program may ask for: `-w`, and every UDP socket."""
    need = view.path.stream_bdp_bytes
    for name in ("net.core.rmem_max", "net.core.wmem_max"):
        value = view.number(name)
        if value is None:
            continue
        what = f"programs can request up to {size_human(value)}"
        if value >= need:
            yield HostFinding("ok", name, what, f"each stream needs {size_human(need)}")
            continue
        why = f"a buffer set with -w, and any UDP buffer, stays below the {size_human(need)} needed"
        yield HostFinding("warn", name, what, why, raise_limit(name, asked_bytes(need)))


def autotuning(view: HostView) -> Iterator[HostFinding]:
    """Whether the kernel grows receive buffers by itself."""
    name = "net.ipv4.tcp_moderate_rcvbuf"
    value, start = view.number(name), view.triple("net.ipv4.tcp_rmem")
    if value is None:
        return
    if value:
        yield HostFinding("ok", name, "receive buffers grow automatically")
        return
    size = f" at {size_human(start[1])}" if start else ""
    why = f"receive buffers stay{size} unless the program requests more"
    yield HostFinding("bad", name, "off", why, f"sysctl -w {name}=1")


def tcp_memory(view: HostView) -> Iterator[HostFinding]:
    """Memory of all TCP sockets together, from which the kernel starts to shrink windows."""
    values = view.triple("net.ipv4.tcp_mem")
    if values is None:
        return
    pressure = values[1] * PAGE_BYTES
    need = round(view.path.bdp_bytes / window_share(view))
    what = f"memory pressure starts at {size_human(pressure)} over all sockets"
    why = f"{view.path.streams} streams hold up to {size_human(need)} in buffers"
    if pressure >= need:
        yield HostFinding("ok", "net.ipv4.tcp_mem", what, why)
        return
    pages = -(-round_up(need) // PAGE_BYTES)
    command = f'sysctl -w net.ipv4.tcp_mem="{pages * 3 // 4} {pages} {pages * 3 // 2}"'
    yield HostFinding(
        "bad", "net.ipv4.tcp_mem", what, (f"{why}; above the limit windows shrink"), command
    )


def zerocopy_memory(view: HostView) -> Iterator[HostFinding]:
    """Memory for the notes that tell when a zero-copy send is done."""
    name, enough = "net.core.optmem_max", 1 << 20
    value = view.number(name)
    if value is None:
        return
    what = f"{size_human(value)} per socket for ancillary data"
    if value >= enough:
        yield HostFinding("ok", name, what)
        return
    why = "--send-mode zerocopy runs out of completion notices on a long path and stalls"
    yield HostFinding("warn", name, what, why, f"sysctl -w {name}={enough}")


RULES = (receive_buffer, send_buffer, explicit_buffers, autotuning, tcp_memory, zerocopy_memory)
"""Every rule of this file."""
