"""Where other hosts reach a server of this one."""

from __future__ import annotations

from collections.abc import Sequence

from farline.tools.native import host_facts


def reachable_address(addresses: Sequence[str], host: str | None) -> str:
    """`host:port` for a ticket: the stated host, or the first address others can reach."""
    port = addresses[0].rpartition(":")[2]
    if host is not None:
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    wildcards = ("0.0.0.0", "[::]")
    bound = [one for one in addresses if one.rpartition(":")[0] not in wildcards]
    return bound[0] if bound else f"{_own_address()}:{port}"


def _own_address() -> str:
    """This host's first address beyond loopback, else loopback."""
    for interface in host_facts()["interfaces"]:
        for address in interface["addresses"]:
            bare = address.partition("/")[0]
            if interface["up"] and interface["name"] != "lo" and ":" not in bare:
                return bare
    return "127.0.0.1"
