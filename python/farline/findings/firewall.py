"""Which ports a server needs, as rules of nftables."""

from __future__ import annotations

CHAIN = "inet filter input"
"""Family, table and chain of Debian's /etc/nftables.conf."""


def firewall_lines(port: int, first: int, last: int) -> list[str]:
    """Commands for `nft -f` that let others reach a server's control port and data ports.

    Rules are inserted at the head of the chain: behind a rule that drops they would change nothing,
    and so would rules in a table of their own.
    """
    tcp = f"{{ {port}, {first}-{last} }}"
    return [
        f"# For: farline serve --port {port} --data-ports {first}-{last}",
        f"# Apply:  farline host --firewall | sudo nft -f -   (chain {CHAIN})",
        "# Keep them over a restart by adding both to that chain in /etc/nftables.conf.",
        f'insert rule {CHAIN} tcp dport {tcp} accept comment "farline: control, TCP data"',
        f'insert rule {CHAIN} udp dport {first}-{last} accept comment "farline: UDP data"',
    ]
