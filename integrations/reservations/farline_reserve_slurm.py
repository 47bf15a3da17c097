#!/usr/bin/env python3
"""Reserves what users of `farline portal` commit as licences of a Slurm cluster.

    farline portal --reserve-with 'farline_reserve_slurm.py --license wan_mbps' ...

A line to another site is a licence with as many pieces as it has Mbit/s (`Licenses=wan_mbps:100000`
in slurm.conf); jobs that move data over it ask for theirs (`sbatch -L wan_mbps:20000`). A
reservation of the portal takes its rate from them for its time: Slurm starts no job meanwhile that
would need what is reserved. Needs Slurm 22.05 or later, and to be an administrator of it.

The portal calls this with `reserve` or `release` behind these words and a JSON document on standard
input. It ends with 0 when that is done, and says on standard error why otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from datetime import datetime
from typing import Any

WAIT_S = 30
PREFIX = "farline_"


class NoAnswerError(Exception):
    """Slurm does not say whether it has a reservation; why."""


def main() -> int:
    """0 when it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--license", default="wan_mbps", help="the licence, a piece per Mbit/s")
    parser.add_argument("--users", default="root", help="whose jobs may use what is reserved")
    parser.add_argument("--scontrol", default="scontrol", help="the command of that name")
    parser.add_argument("act", choices=("reserve", "release"))
    options = parser.parse_args()
    asked: dict[str, Any] = json.load(sys.stdin)["reservation"]
    name = PREFIX + asked["id"]
    try:
        if options.act == "release":
            return release(options.scontrol, name)
        return reserve(options, name, asked)
    except (OSError, subprocess.TimeoutExpired, NoAnswerError) as error:
        print(f"{options.scontrol}: {error}", file=sys.stderr)
        return 1


def reserve(options: argparse.Namespace, name: str, asked: dict[str, Any]) -> int:
    """Makes the reservation, unless it is there from an earlier call."""
    if is_there(options.scontrol, name):
        print(name)
        return 0
    begin, end = (datetime.fromisoformat(asked[key]) for key in ("start", "end"))
    now = datetime.now(begin.tzinfo)
    begin = max(begin, now)
    minutes = math.ceil((end - begin).total_seconds() / 60)
    mbps = math.ceil(asked["rate_bps"] / 1e6)
    # Slurm takes times of its host's clock, and refuses those that are past.
    start = "now" if begin == now else begin.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    words = [
        "create", "reservation", f"ReservationName={name}", f"Users={options.users}",
        f"StartTime={start}", f"Duration={max(minutes, 1)}", f"Licenses={options.license}:{mbps}",
        "Flags=ANY_NODES",
    ]  # fmt: skip
    done = scontrol(options.scontrol, *words)
    if done.returncode:
        print(done.stderr.strip() or done.stdout.strip(), file=sys.stderr)
        return 1
    print(name)
    return 0


def release(program: str, name: str) -> int:
    """Ends the reservation, if it is there."""
    if not is_there(program, name):
        return 0
    done = scontrol(program, "delete", f"ReservationName={name}")
    if done.returncode:
        print(done.stderr.strip() or done.stdout.strip(), file=sys.stderr)
    return done.returncode


def is_there(program: str, name: str) -> bool:
    """Whether Slurm has a reservation of this name.

    Raises:
        NoAnswerError: when it does not say: what is reserved may not be taken for given back.
    """
    done = scontrol(program, "--oneliner", "show", "reservation", name)
    said = done.stdout + done.stderr
    has_none = f"Reservation {name} not found" in said or "No reservations in the system" in said
    if done.returncode and not has_none:
        raise NoAnswerError(said.strip() or f"exit code {done.returncode}")
    return f"ReservationName={name} " in done.stdout


def scontrol(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What Slurm answers."""
    return subprocess.run(
        [program, *words], capture_output=True, text=True, timeout=WAIT_S, stdin=subprocess.DEVNULL
    )


if __name__ == "__main__":
    sys.exit(main())
