"""`--listen`: where a server listens, by address, by port or by both."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

import click

DEFAULT_PORT = 5470
_ACCEPTED = (
    "write ADDR, :PORT, ADDR:PORT or [IPv6]:PORT, where ADDR is an IP address and PORT 0 to 65535"
)


@dataclass(frozen=True)
class Listen:
    """Addresses, all of this host if none is named, and the one port of them all."""

    addresses: tuple[str, ...]
    port: int


def read_listen(texts: Sequence[str], port: int | None, default: int = DEFAULT_PORT) -> Listen:
    """What `--listen` and `--port` say together; `default` where neither names a port.

    Raises:
        click.UsageError: for what is no such address, and where two ports are named.
    """
    ends = [_read(text) for text in texts]
    stated = {
        number: text for text, (_, number) in zip(texts, ends, strict=True) if number is not None
    }
    if len(stated) > 1:
        raise click.UsageError(
            f"--listen: {' and '.join(stated.values())} name different ports;"
            " a server has one port: name it once, or start a second server"
        )
    for number, text in stated.items():
        if port is not None and port != number:
            raise click.UsageError(f"--listen {text} and --port {port} name different ports")
    chosen = next(iter(stated), port)
    return Listen(_addresses(texts, ends), default if chosen is None else chosen)


def _addresses(
    texts: Sequence[str], ends: Sequence[tuple[str | None, int | None]]
) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(address for address, _ in ends if address is not None))
    everywhere = [text for text, (address, _) in zip(texts, ends, strict=True) if address is None]
    if named and everywhere:
        raise click.UsageError(
            f"--listen {everywhere[0]} listens on all addresses, {named[0]} too: give one of them"
        )
    return named


def _read(text: str) -> tuple[str | None, int | None]:
    """Address and port of one text; None for what it does not name."""
    bare = _address(text)
    if bare is not None:
        return bare, None
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port[:6]) > 65535:
        raise _refused(text)
    if not host:
        return None, int(port)
    address = _address(host)
    # An IPv6 address before a port stands in brackets: it has colons of its own.
    if address is None or (":" in address) != host.startswith("["):
        raise _refused(text)
    return address, int(port)


def _address(text: str) -> str | None:
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        address = ipaddress.ip_address(inner)
    except ValueError:
        return None
    return None if inner != text and address.version == 4 else str(address)


def _refused(text: str) -> click.UsageError:
    return click.UsageError(f"--listen: {text!r} is not an address to listen on: {_ACCEPTED}")
