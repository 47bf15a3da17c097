"""Which of several owners a host belongs to, by patterns of names and addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping

from farline.errors import SpecError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class HostPatterns:
    """Patterns of several owners, ready to be asked. Capitals do not matter."""

    def __init__(self, patterns: Mapping[str, Iterable[str]]) -> None:
        """Takes patterns by owner: whole names, `*` and `?`, addresses, networks.

        Raises:
            SpecError: when two owners have the same pattern, or a network is written wrongly.
        """
        self._exact: dict[str, str] = {}
        self._networks: dict[Network, str] = {}
        self._wildcards: dict[str, str] = {}
        for owner, theirs in patterns.items():
            for pattern in theirs:
                self._add(owner, pattern)
        self._regexes = [
            (_letters(text), _regex(text), owner) for text, owner in self._wildcards.items()
        ]

    def owner_of(self, host: str) -> str | None:
        """Whose host this is; None where nothing fits.

        Raises:
            SpecError: when wildcards of two owners fit equally well.
        """
        name = _plain(host)
        if name in self._exact:
            return self._exact[name]
        address = _address(name)
        if address is not None:
            return self._owner_of_address(address)
        return self._owner_of_name(name)

    def _owner_of_address(self, address: Address) -> str | None:
        known = self._exact.get(str(address))
        fits = [network for network in self._networks if address in network]
        if known is None and fits:
            known = self._networks[max(fits, key=lambda network: network.prefixlen)]
        return self._owner_of_name(str(address)) if known is None else known

    def _owner_of_name(self, name: str) -> str | None:
        fits = [(letters, owner) for letters, regex, owner in self._regexes if regex.match(name)]
        if not fits:
            return None
        most = max(letters for letters, _ in fits)
        owners = sorted({owner for letters, owner in fits if letters == most})
        if len(owners) > 1:
            raise SpecError(
                f"host {name!r}: patterns of {' and '.join(owners)} match it equally well; write "
                "its full name in one of them"
            )
        return owners[0]

    def _add(self, owner: str, pattern: str) -> None:
        text = _plain(pattern)
        if not text:
            raise SpecError(f"site {owner}: an empty host pattern")
        network = _network(text, owner)
        table: dict[str, str] = self._wildcards if _is_wild(text) else self._exact
        if network is not None:
            other = self._networks.setdefault(network, owner)
        else:
            other = table.setdefault(text, owner)
        if other != owner:
            raise SpecError(f"host pattern {pattern!r}: both {other} and {owner} claim it")


def _plain(host: str) -> str:
    """A host as it is compared: small letters, no final dot, addresses in their short form."""
    text = host.strip().rstrip(".").strip("[]").casefold()
    address = _address(text)
    return text if address is None else str(address)


def _is_wild(text: str) -> bool:
    return "*" in text or "?" in text


def _letters(pattern: str) -> int:
    return sum(letter not in "*?" for letter in pattern)


def _regex(pattern: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(one, re.escape(one)) for one in pattern) + r"\Z", re.DOTALL)


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # What a dual-stack server's log calls ::ffff:192.0.2.1 is 192.0.2.1.
    return getattr(address, "ipv4_mapped", None) or address


def _network(text: str, owner: str) -> Network | None:
    """A network if the pattern is one: an address, a slash and a number of bits."""
    if "/" not in text or _address(text.partition("/")[0]) is None:
        return None
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise SpecError(f"site {owner}: host pattern {text!r}: {error}") from None
