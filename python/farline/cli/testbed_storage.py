"""`farline testbed storage PRESET DIR`: a file system with stated rates, while it is needed."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import click

from farline.cli.command import Command
from farline.cli.common import interruptible
from farline.cli.limits import RATE, SECONDS, SIZE
from farline.errors import UsageError
from farline.tools import Stop

_POLL_S = 0.1


@click.command(
    "storage",
    cls=Command,
    short_help="Mount a file system with stated rates.",
    context_settings={"allow_interspersed_args": False},
)
@click.option("--process-rate", type=RATE, help="Limit each process to this rate.")
@click.option("--total-rate", type=RATE, help="Limit all processes together to this rate.")
@click.option("--latency", type=SECONDS, metavar="TIME", help="Answer each message this late.")
@click.option(
    "--credits", "credit_count", type=click.IntRange(1, 4096), metavar="N",
    help="Allow N messages of 1 MiB in flight.",
)  # fmt: skip
@click.option("--capacity", type=SIZE, help="Hold this many bytes, in memory (default 2GiB).")
@click.option(
    "--for", "duration_s", type=SECONDS, metavar="DURATION",
    help="Unmount after this time (default: when interrupted).",
)  # fmt: skip
@click.argument("words", metavar="PRESET DIR [-- COMMAND...]", nargs=-1)
def storage(words: tuple[str, ...], duration_s: float | None, **options: Any) -> int:
    """Mount a file system over the empty folder DIR, with the rates of a preset.

    It stays mounted until interrupted, or while COMMAND runs; its files are then gone. Presets:
    lustre-like, gpfs-like, lnet-like, nvme. Needs root, or the program fusermount3.
    """
    from farline.testbeds.storage import mounted_storage, spec_line, storage_spec

    preset, place, program = _split(words)
    if program and duration_s is not None:
        raise click.UsageError("--for: works only without COMMAND, which ends the mount itself")
    spec = storage_spec(
        preset, process_bps=options["process_rate"], total_bps=options["total_rate"],
        latency_s=options["latency"], credits=options["credit_count"],
        capacity_bytes=None if options["capacity"] is None else int(options["capacity"]),
    )  # fmt: skip
    with interruptible(quiet=True) as asked, mounted_storage(spec, place) as mounted:
        if program:
            return _run(program)
        click.echo(f"{place}: {preset}: {spec_line(spec)}")
        click.echo("press Ctrl-C to unmount it")
        until = None if duration_s is None else time.monotonic() + duration_s
        while asked() is Stop.GO_ON and (until is None or time.monotonic() < until):
            if not mounted.is_mounted:
                raise UsageError(f"{place}: somebody has unmounted it")
            time.sleep(_POLL_S)
        return 0


def _split(words: tuple[str, ...]) -> tuple[str, Path, tuple[str, ...]]:
    place = [word for word in words[:2] if word != "--"]
    if len(place) < 2:
        raise click.UsageError(
            "name a preset and a folder: farline testbed storage lustre-like DIR"
        )
    program = words[2:]
    return place[0], Path(place[1]), program[1:] if program[:1] == ("--",) else program


def _run(program: tuple[str, ...]) -> int:
    """The program's exit status; signals reach it by themselves, and it ends the mount."""
    try:
        with subprocess.Popen(program, env=os.environ) as running:
            return running.wait()
    except OSError as error:
        raise UsageError(f"{program[0]}: {error.strerror}") from None
