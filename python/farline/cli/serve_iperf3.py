"""`farline serve --iperf3`: its options, and the server that answers iperf3's clients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.cli.limits import RATE, SECONDS, SIZE

if TYPE_CHECKING:
    from farline.spec._types import Iperf3Config, Limits

_Command = TypeVar("_Command", bound=Callable[..., Any])

IPERF3_PORT = 5201
_COUNT = click.IntRange(1, 1_000_000)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def iperf3_options(command: _Command) -> _Command:
    """`--iperf3` and what bounds it."""
    for decorate in reversed(
        (
            click.option(
                "--iperf3",
                "iperf3_port",
                is_flag=False,
                flag_value=IPERF3_PORT,
                type=click.IntRange(0, 65535),
                metavar="[PORT]",
                help="Also answer iperf3's clients on this port (default 5201), memory to memory.",
            ),
            click.option("--iperf3-only", is_flag=True, help="Answer iperf3's clients alone."),
            click.option(
                "--iperf3-sessions", type=_COUNT, metavar="N",
                help="Run at most N tests of iperf3 at once (default 4).",
            ),
            click.option(
                "--iperf3-per-address", type=_COUNT, metavar="N",
                help="Run at most N of them for one address (default 2).",
            ),
            click.option(
                "--iperf3-streams", type=click.IntRange(1, 256), metavar="N",
                help="Allow a test of iperf3 at most N streams (default 128).",
            ),
            click.option(
                "--iperf3-rate", type=RATE,
                help="Limit all tests of one address to this rate; 0bit: none (default 10Gbit).",
            ),
            click.option(
                "--iperf3-time", type=SECONDS,
                help="Limit a test of iperf3 to this time (default 60s).",
            ),
            click.option("--iperf3-bytes", type=SIZE, help="Limit a test of iperf3 to this size."),
            click.option(
                "--iperf3-key", type=_FILE,
                help="Require a user and a password, encrypted for this RSA private key.",
            ),
            click.option(
                "--iperf3-users", type=_FILE,
                help="Allow the users of this file, a line NAME,SHA256 each.",
            ),
            click.option(
                "--iperf3-skew", type=SECONDS,
                help="Allow clocks of users to differ by this time (default 10s).",
            ),
            click.option(
                "--iperf3-pkcs1", is_flag=True,
                help="Expect the padding of clients before 3.17.",
            ),
        )
    ):  # fmt: skip
        command = decorate(command)
    return command


def iperf3_config(options: dict[str, Any], addresses: list[str]) -> Iperf3Config | None:
    """The server that the options ask for on these addresses; None without `--iperf3`.

    Raises:
        click.UsageError: for options that need others.
    """
    port = options["iperf3_port"]
    if options["iperf3_only"]:
        _refuse_others(options)
        port = IPERF3_PORT if port is None else port
    if port is None:
        _refuse_without(options)
        return None
    if (options["iperf3_key"] is None) != (options["iperf3_users"] is None):
        raise click.UsageError(
            "--iperf3-key and --iperf3-users must be set together: give both or neither"
        )
    if options["iperf3_key"] is None and (options["iperf3_pkcs1"] or options["iperf3_skew"]):
        flag = "--iperf3-pkcs1" if options["iperf3_pkcs1"] else "--iperf3-skew"
        raise click.UsageError(f"{flag} needs --iperf3-key and --iperf3-users")
    config: Iperf3Config = {"listen": addresses, "port": port, "limits": _limits(options)}
    if options["iperf3_sessions"] is not None:
        config["max_sessions"] = options["iperf3_sessions"]
    if options["iperf3_per_address"] is not None:
        config["max_sessions_per_address"] = options["iperf3_per_address"]
    if options["iperf3_streams"] is not None:
        config["max_streams"] = options["iperf3_streams"]
    if options["iperf3_key"] is not None:
        config["private_key"] = str(options["iperf3_key"])
        config["users"] = str(options["iperf3_users"])
        config["pkcs1_padding"] = options["iperf3_pkcs1"]
        if options["iperf3_skew"] is not None:
            config["time_skew_s"] = round(options["iperf3_skew"])
    return config


def _refuse_without(options: dict[str, Any]) -> None:
    """An option that would do nothing is a mistake."""
    for name, value in options.items():
        if name.startswith("iperf3_") and value not in (None, False):
            flag = "--" + name.replace("_", "-")
            raise click.UsageError(f"{flag} needs --iperf3")


def _refuse_others(options: dict[str, Any]) -> None:
    """Alone, the options of farline's own server would do nothing."""
    for name in ("port", "data_ports", "write_root", "read_root", "anonymous", "single_port"):
        if options[name] not in (None, False):
            flag = "--" + name.removesuffix("_root").replace("_", "-")
            raise click.UsageError(f"{flag} and --iperf3-only exclude each other")


def _limits(options: dict[str, Any]) -> Limits:
    rate_bps, duration_s = options["iperf3_rate"], options["iperf3_time"]
    limits: Limits = {
        "rate_bps": 10_000_000_000 if rate_bps is None else int(rate_bps),
        "duration_s": 60.0 if duration_s is None else duration_s,
    }
    if options["iperf3_bytes"] is not None:
        limits["total_bytes"] = int(options["iperf3_bytes"])
    return limits
