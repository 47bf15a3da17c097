"""What a host allows, judged against the path one has in mind.

Every rule is a function from a view of the host to findings, good ones included:
a limit that was looked at and found wide enough is worth knowing too. What the
host does not tell is not judged. The rules are in `buffer_rules`, `kernel_rules`,
`interface_rules` and `machine_rules`.
"""

from __future__ import annotations

from farline.findings import buffer_rules, interface_rules, kernel_rules, machine_rules
from farline.findings.host_finding import SEVERITIES, HostFinding, HostView, StatedPath
from farline.spec._types import HostFacts, InterfaceFacts

_LOOPBACK = "lo"


def findings(
    facts: HostFacts,
    path: StatedPath,
    interface: str | None = None,
    memory_copy_bps: float | None = None,
    loadable_modules: frozenset[str] | None = None,
) -> list[HostFinding]:
    """Findings about a host, worst first; within a severity in the order of the rules.

    Judges the interface that is named, or else every one that is up and has an address.

    Raises:
        ValueError: when the host has no interface of that name.
    """
    chosen = judged_interfaces(facts, interface)
    view = HostView(facts, path, chosen, memory_copy_bps, loadable_modules)
    found = [
        *(item for rule in (*buffer_rules.RULES, *kernel_rules.RULES) for item in rule(view)),
        *(item for one in chosen for rule in interface_rules.RULES for item in rule(view, one)),
        *(item for rule in machine_rules.RULES for item in rule(view)),
    ]
    return sorted(found, key=lambda item: SEVERITIES.index(item.severity))


def judged_interfaces(facts: HostFacts, name: str | None = None) -> tuple[InterfaceFacts, ...]:
    """The interface `name`, or those that are up, have an address and are not the loopback.

    Raises:
        ValueError: when the host has no interface of that name.
    """
    if name is None:
        return tuple(one for one in facts["interfaces"] if _is_in_use(one))
    chosen = tuple(one for one in facts["interfaces"] if one["name"] == name)
    if not chosen:
        names = ", ".join(one["name"] for one in facts["interfaces"])
        raise ValueError(f"no interface {name!r}; available: {names or 'none'}")
    return chosen


def _is_in_use(interface: InterfaceFacts) -> bool:
    return interface["up"] and bool(interface["addresses"]) and interface["name"] != _LOOPBACK
