"""Rules about the machine: processors, memory, clock."""

from __future__ import annotations

from collections.abc import Iterator

from farline.findings.host_finding import HostFinding, HostView, Severity
from farline.spec.units import rate_human

COPIES = 4
"""Times a byte crosses the memory bus at one end: in or out of the NIC, a copy's read and write,
and one to spare for everything else the host does."""

_SLOW_CLOCKS = ("hpet", "acpi_pm", "refined-jiffies", "jiffies", "pit")


def governor(view: HostView) -> Iterator[HostFinding]:
    """Frequency governor."""
    kind = view.facts["cpu"]["governor"]
    if kind is None:
        yield HostFinding("ok", "CPU governor", "none: this kernel does not scale CPU frequencies")
    elif kind == "performance":
        yield HostFinding("ok", "CPU governor", kind)
    else:
        why = "the frequency follows the load with a delay: results vary between runs"
        yield HostFinding(
            "warn", "CPU governor", kind, why, "cpupower frequency-set -g performance"
        )


def processors(view: HostView) -> Iterator[HostFinding]:
    """A CPU for each stream."""
    online, streams = view.facts["cpu"]["online"], view.path.streams
    if not online:
        # Without sysfs it is not known.
        return
    what = f"{online} online"
    if streams <= online:
        yield HostFinding("ok", "CPUs", what)
        return
    why = f"{streams} streams have one thread each: they share CPUs and wait for each other"
    yield HostFinding("warn", "CPUs", what, why, f"farline probe HOST -P {online}")


def virtual_machine(view: HostView) -> Iterator[HostFinding]:
    """Whether a hypervisor is part of every measurement."""
    if view.facts["cpu"]["virtualised"]:
        why = "every result includes the hypervisor's scheduling and network: use more repetitions"
        yield HostFinding(
            "warn", "virtual machine", "yes", why, "farline profile HOST --min-repetitions 10"
        )
    else:
        yield HostFinding("ok", "virtual machine", "no")


def clock(view: HostView) -> Iterator[HostFinding]:
    """Cost of reading the clock, which pacing does for each batch."""
    source = view.facts["clock_source"]
    if source is None:
        return
    if source not in _SLOW_CLOCKS:
        yield HostFinding("ok", "clock source", source)
        return
    why = "reading the clock is slow (a system call or bus access), so pacing is coarse"
    path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    yield HostFinding("warn", "clock source", source, why, f"echo tsc > {path}")


def memory_bandwidth(view: HostView) -> Iterator[HostFinding]:
    """Copy rate of the memory against the stated rate."""
    copy_bps = view.memory_copy_bps
    if copy_bps is None:
        return
    what = f"copies {rate_human(copy_bps)}"
    if copy_bps >= COPIES * view.path.rate_bps:
        yield HostFinding("ok", "memory", what, f"at least {COPIES} times the stated rate")
        return
    severity: Severity = "bad" if copy_bps < view.path.rate_bps else "warn"
    needed = rate_human(COPIES * view.path.rate_bps)
    why = f"each byte crosses the memory bus about {COPIES} times: {needed} is needed"
    command = "farline probe HOST --send-mode zerocopy --receive-mode discard"
    yield HostFinding(severity, "memory", what, why, command)


RULES = (governor, processors, virtual_machine, clock, memory_bandwidth)
"""Every rule of this file."""
