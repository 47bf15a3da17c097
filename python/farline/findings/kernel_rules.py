"""Rules about the kernel's TCP: extensions, congestion controls, queues."""

from __future__ import annotations

import math
from collections.abc import Iterator

from farline.findings.host_finding import HostFinding, HostView, Severity
from farline.spec.units import counted, rate_human, time_human

WRAP_S = 30.0
"""Time in which sequence numbers may come round without timestamps: a quarter of the maximum
segment lifetime that RFC 9293 assumes, as delays on real paths are far below it."""

BACKLOG_S = 0.005
"""Time for which the backlog should hold the packets of a full path: a few scheduler ticks."""

BBR_LOSS = 0.02
"""Share of losses up to which no version of BBR slows down: `BBR.LossThresh` of its draft."""

WANTED_CONTROLS = ("cubic", "bbr", "htcp")
"""Congestion controls a profile of a long path compares."""

BPF_CONTROLS = ("htcp",)
"""Those of them that `farline testbed cc load` brings where the kernel has no module."""

_LOCAL_RTT_S = 0.001
_JUMBO_MTU_BYTES = 1501


def unread(view: HostView) -> Iterator[HostFinding]:
    """A kernel that tells none of its settings: nothing is known of them, good or bad."""
    if not view.facts["sysctls"]:
        why = "what is not read is not judged; mount /proc/sys, or run this on the host itself"
        yield HostFinding("warn", "kernel settings", "none can be read here", why)


def extensions(view: HostView) -> Iterator[HostFinding]:
    """TCP's extensions for long fat paths (RFC 7323, RFC 2018)."""
    limit_bps = 65_535 * 8 / view.path.rtt_s
    whys = {
        "net.ipv4.tcp_window_scaling": (
            "window scaling", f"no window above 64 KiB: at most {rate_human(limit_bps)} per stream"
        ),
        "net.ipv4.tcp_sack": (
            "selective acknowledgments", "each loss after the first costs an extra round trip"
        ),
    }  # fmt: skip
    for name, (word, why) in whys.items():
        value = view.number(name)
        if value == 0:
            yield HostFinding("bad", name, f"{word} off", why, f"sysctl -w {name}=1")
        elif value is not None:
            yield HostFinding("ok", name, f"{word} on")


def timestamps(view: HostView) -> Iterator[HostFinding]:
    """Timestamps: round-trip times, and protection against sequence numbers that come round."""
    name = "net.ipv4.tcp_timestamps"
    value = view.number(name)
    if value is None:
        return
    if value:
        yield HostFinding("ok", name, "timestamps on")
        return
    wrap_s = 2**32 * 8 / (view.path.rate_bps / view.path.streams)
    why = f"sequence numbers wrap around every {time_human(wrap_s * 1e6)}; RTT is measured rarely"
    severity: Severity = "bad" if wrap_s < WRAP_S else "warn"
    yield HostFinding(severity, name, "timestamps off", why, f"sysctl -w {name}=1")


def idle_restart(view: HostView) -> Iterator[HostFinding]:
    """Whether a stream that paused starts slowly again."""
    name = "net.ipv4.tcp_slow_start_after_idle"
    value = view.number(name)
    if value is None:
        return
    if value == 0 or view.path.rtt_s < _LOCAL_RTT_S:
        state = "off" if value == 0 else "on, but the path is short"
        yield HostFinding("ok", name, f"slow start after idle {state}")
        return
    why = "a stream that pauses for one timeout falls back to its initial window"
    yield HostFinding("warn", name, "slow start after idle on", why, f"sysctl -w {name}=0")


def metrics_memory(view: HostView) -> Iterator[HostFinding]:
    """Whether a connection inherits thresholds from the ones before it."""
    name = "net.ipv4.tcp_no_metrics_save"
    value = view.number(name)
    if value is None:
        return
    if value:
        yield HostFinding("ok", name, "each connection starts without saved metrics")
        return
    why = (
        "a run inherits the slow-start threshold and RTT of the run before it: repetitions are "
        "not independent"
    )
    yield HostFinding("warn", name, "path metrics are saved", why, f"sysctl -w {name}=1")


def mtu_probing(view: HostView) -> Iterator[HostFinding]:
    """Whether TCP finds a path's MTU where routers do not tell."""
    name = "net.ipv4.tcp_mtu_probing"
    value = view.number(name)
    if value is None:
        return
    jumbo = any(interface["mtu_bytes"] >= _JUMBO_MTU_BYTES for interface in view.interfaces)
    if value or not jumbo:
        yield HostFinding("ok", name, "on" if value else "off, and there are no jumbo frames")
        return
    why = (
        "if a router drops jumbo frames and its ICMP message is filtered, connections stall "
        "silently"
    )
    yield HostFinding("warn", name, "off", why, f"sysctl -w {name}=1")


def congestion_controls(view: HostView) -> Iterator[HostFinding]:
    """Which congestion controls can be chosen, and which one is the default."""
    loaded = view.facts["congestion_controls"]
    subject = "congestion control"
    default = view.facts["sysctls"].get("net.ipv4.tcp_congestion_control", "unknown")
    what = f"default {default}; loaded {', '.join(loaded) or 'none'}"
    missing = [name for name in WANTED_CONTROLS if name not in loaded]
    if missing:
        why = f"{', '.join(missing)} cannot be compared{_not_to_be_had(view, missing)}"
        yield HostFinding("warn", subject, what, why, _load_controls(view, missing))
    else:
        yield HostFinding("ok", subject, what)
    yield from _allowed_controls(view, loaded)


def _not_to_be_had(view: HostView, missing: list[str]) -> str:
    known = view.loadable_modules
    if known is None:
        return " (modprobe loads those that the kernel has as modules)"
    none = [name for name in missing if f"tcp_{name}" not in known]
    return f" (this kernel has no module for {', '.join(none)})" if none else ""


def _load_controls(view: HostView, missing: list[str]) -> str:
    """By modprobe what the kernel has as a module, and as a BPF program what it has not."""
    modules = [f"tcp_{name}" for name in missing]
    known = view.loadable_modules
    if known is None:
        return f"modprobe -a {' '.join(modules)}"
    own = [module for module in modules if module in known]
    programs = [name for name in missing if f"tcp_{name}" not in known and name in BPF_CONTROLS]
    commands = [f"modprobe -a {' '.join(own)}"] if own else []
    commands += [f"farline testbed cc load {' '.join(programs)}"] if programs else []
    return "; ".join(commands)


def _allowed_controls(view: HostView, loaded: list[str]) -> Iterator[HostFinding]:
    refused = [name for name in loaded if name not in view.facts["allowed_congestion_controls"]]
    if refused:
        name = "net.ipv4.tcp_allowed_congestion_control"
        why = f"-C {refused[0]} is refused to users without privileges"
        command = f'sysctl -w {name}="{" ".join(loaded)}"'
        yield HostFinding("warn", name, f"does not allow {', '.join(refused)}", why, command)


def loss_bound(view: HostView) -> Iterator[HostFinding]:
    """What loss leaves to a Reno-like stream: Mathis et al. 1997, MSS / RTT * sqrt(3 / 2 p)."""
    loss = view.path.loss
    if not loss:
        return
    mtu = min((interface["mtu_bytes"] for interface in view.interfaces), default=1500)
    stream_bps = (mtu - 52) * 8 / view.path.rtt_s * math.sqrt(1.5 / loss)
    total_bps = stream_bps * view.path.streams
    what = f"a loss rate of {loss:g} limits a Reno-like stream to {rate_human(stream_bps)}"
    if total_bps >= view.path.rate_bps:
        yield HostFinding(
            "ok", "loss", what, f"{counted(view.path.streams, 'stream')} can fill the path"
        )
        return
    default = view.facts["sysctls"].get("net.ipv4.tcp_congestion_control", "")
    if default.startswith("bbr") and loss < BBR_LOSS:
        why = f"{default}, the default here, is not limited by such losses"
        yield HostFinding("ok", "loss", what, why)
        return
    streams = math.ceil(view.path.rate_bps / stream_bps)
    why = (
        f"{view.path.streams} of them reach {rate_human(total_bps)}; filling the path takes "
        f"{streams}, or bbr"
    )
    mend = "-C bbr" if streams > 256 else f"-P {streams}"
    yield HostFinding("bad", "loss", what, why, f"farline probe HOST {mend}")


def backlog(view: HostView) -> Iterator[HostFinding]:
    """Packets that may wait between a device and the protocol (veth, loopback, RPS)."""
    name = "net.core.netdev_max_backlog"
    value = view.number(name)
    if value is None:
        return
    mtu = min((interface["mtu_bytes"] for interface in view.interfaces), default=1500)
    need = math.ceil(view.path.rate_bps / 8 / mtu * BACKLOG_S)
    what = f"{value} packets"
    if value >= need:
        yield HostFinding("ok", name, what, f"{need} packets hold 5 ms of traffic at MTU {mtu}")
        return
    why = (
        f"5 ms at the stated rate are {need} packets of {mtu} bytes; more than the backlog is "
        "dropped"
    )
    yield HostFinding("warn", name, what, why, f"sysctl -w {name}={need}")


RULES = (
    unread,
    extensions,
    timestamps,
    congestion_controls,
    loss_bound,
    mtu_probing,
    idle_restart,
    metrics_memory,
    backlog,
)
"""Every rule of this file."""
