"""`farline profile` without a host: a campaign over an emulated path that it brings up itself.

The campaign is written down, a testbed is brought up (or one that is up is used), `farline serve`
starts on its server host, and this program runs once more on its client host, as `--resume`, with
the same store: from there it is a campaign like any other, one that can set the link between runs.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from farline.errors import SystemFailure, TimeoutFailure, UsageError

if TYPE_CHECKING:
    from farline.campaign.plan import Plan
    from farline.campaign.settings import Campaign
    from farline.cli.campaign_end import Output
    from farline.store import Store
    from farline.testbed import Host, Testbed

DEFAULT_TESTBED = "back-to-back"
"""What a plan means that varies a path and names none."""

PORT = 5470
_READY_S = 20.0
_END_S = 10.0
_POLL_S = 0.05


def target_text(plan: Plan) -> str:
    """What the plan runs over, in words, for lines and for the journal."""
    ends = [name for name in (plan.place.client_host, plan.place.server_host) if name]
    return " ".join(["testbed", plan.place.testbed or DEFAULT_TESTBED, *ends])


def run_over_testbed(campaign: Campaign, store: Store, output: Output) -> int:
    """Runs a campaign that stands in `store` over its testbed; gives its exit code."""
    plan = campaign.plan
    with _testbed(plan) as bed:
        client, server = end_hosts(bed.topology(), plan)
        with _serving(bed.hosts[server], bed.address(server, client)) as (address, ticket):
            command = _command(campaign, store, output, address)
            return _run_inside(bed.hosts[client], command, ticket)


@contextmanager
def _testbed(plan: Plan) -> Iterator[Testbed]:
    """The testbed that the plan names, if it is up; else a new one, which ends with the block."""
    from farline.testbed import Testbed, list_beds

    name = plan.place.testbed or DEFAULT_TESTBED
    if any(bed.name == name for bed in list_beds()):
        _refuse_bed_options(plan, name)
        bed = Testbed.attach(name)
        try:
            yield bed
        finally:
            bed.close()
        return
    with Testbed.up(new_topology(plan), name=f"profile-{secrets.token_hex(3)}") as bed:
        yield bed


def new_topology(plan: Plan) -> Any:
    """The topology that a plan needs: what varies starts at its largest value."""
    from farline.testbed import load

    link = {
        path.removeprefix("path."): max(values)
        for path, values in {**_single(plan.fixed), **plan.axes}.items()
        if path.startswith("path.")
    }
    return load(plan.place.testbed or DEFAULT_TESTBED, **link)


def _single(values: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: (value,) for name, value in values.items()}


def _refuse_bed_options(plan: Plan, name: str) -> None:
    from farline.spec.links import VARIABLE_KEYS

    own = [path.removeprefix("path.") for path in plan.fixed if path.startswith("path.")]
    new = [key for key in own if key not in VARIABLE_KEYS]
    if new:
        raise UsageError(
            f"testbed {name!r} is up, and {', '.join(new)} needs a new one;"
            f" what can change in use is {', '.join(VARIABLE_KEYS)}"
        )


def end_hosts(topology: Mapping[str, Any], plan: Plan) -> tuple[str, str]:
    """The client's host and the server's: as the plan says, else on the two sides of the link.

    Raises:
        UsageError: when there is no host of that name, or both are the same.
    """
    names = [host["name"] for host in topology["hosts"]]
    for name in (plan.place.client_host, plan.place.server_host):
        if name is not None and name not in names:
            raise UsageError(
                f"{name!r} is no host of {topology['name']}: it has {', '.join(names)}"
            )
    server = plan.place.server_host
    client = plan.place.client_host or next(name for name in names if name != server)
    if server is None:
        server = across(topology, client, plan.place.link)
    if client == server:
        raise UsageError(f"{client!r} is both client and server: name two hosts")
    return client, server


def across(topology: Mapping[str, Any], host: str, link: str | None) -> str:
    """The first host that cannot be reached from `host` without the link; else the last one.

    Raises:
        UsageError: when there is no such link.
    """
    from farline.spec.links import find_link

    try:
        main = find_link(topology, link)["name"]
    except ValueError as error:
        raise UsageError(f"--link: {error}") from None
    others = [one for one in topology["links"] if one["name"] != main]
    near, grown = {host}, True
    while grown:
        joined = {
            end for one in others if near & {one["a"], one["b"]} for end in (one["a"], one["b"])
        }
        grown = not joined <= near
        near |= joined
    names = [one["name"] for one in topology["hosts"] if one["name"] != host]
    return next((str(name) for name in names if name not in near), str(names[-1]))


@contextmanager
def _serving(host: Host, address: str) -> Iterator[tuple[str, str]]:
    """`farline serve` on a host: where it is, and a ticket for it. It ends with the block."""
    with tempfile.TemporaryDirectory(prefix="farline-serve-") as folder:
        log = Path(folder) / "log"
        command = [
            *(sys.executable, "-m", "farline", "serve", "--json"),
            *("--listen", address, "--port", str(PORT), "--state-dir", folder),
        ]
        with log.open("wb") as out:
            server = host.popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, process_group=0
            )
        try:
            yield f"{address}:{PORT}", _ticket(server, log)
        finally:
            _end(server)


def _ticket(server: subprocess.Popen[str], log: Path) -> str:
    until = time.monotonic() + _READY_S
    while time.monotonic() < until:
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines and lines[0].startswith("{") and lines[0].endswith("\n"):
            return str(json.loads(lines[0])["ticket"])
        if server.poll() is not None:
            said = "".join(lines[:1]).strip() or f"it ended with {server.returncode}"
            raise SystemFailure(f"farline serve on the testbed: {said}")
        time.sleep(_POLL_S)
    raise TimeoutFailure(f"farline serve on the testbed: not ready after {_READY_S:g} s")


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _command(campaign: Campaign, store: Store, output: Output, address: str) -> list[str]:
    command = [sys.executable, "-m", "farline", "profile", "-c", address]
    command += ["--resume", campaign.id, "--store", str(store.path.absolute())]
    if output.as_json:
        command.append("--json")
    if output.report_dir is not None:
        command += ["--report", str(output.report_dir.absolute())]
    return command


def _run_inside(host: Host, command: list[str], ticket: str) -> int:
    """Runs the campaign on its host; signals to this process are the campaign's.

    It has a process group of its own, so that Ctrl-C comes once, and by way of this process.
    """
    from farline.tools.native import TICKET_VARIABLE

    environment = {**os.environ, TICKET_VARIABLE: ticket}
    sys.stdout.flush()
    with _passing_signals() as passed:
        campaign = host.popen(command, env=environment, process_group=0)
        passed.to(campaign)
        try:
            return campaign.wait()
        finally:
            _end(campaign)


class _Passed:
    """Signals that came, and the process that they go to."""

    def __init__(self) -> None:
        self._early: list[int] = []
        self._process: subprocess.Popen[str] | None = None

    def to(self, process: subprocess.Popen[str]) -> None:
        """Names the process; what came before goes to it now."""
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Signal handler."""
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


@contextmanager
def _passing_signals() -> Iterator[_Passed]:
    passed = _Passed()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, passed.handle) for number in numbers}
    try:
        yield passed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_place(plan: Plan) -> None:
    """Refuses a plan whose testbed cannot be had, before anything is written down.

    Raises:
        FarlineError: when there is no such preset, file or running testbed, or no such host.
    """
    from farline.testbed import Testbed, list_beds

    name = plan.place.testbed or DEFAULT_TESTBED
    try:
        running = any(bed.name == name for bed in list_beds())
    except SystemFailure:
        # A machine that cannot have testbeds can still check and print a plan.
        running = False
    topology = Testbed.attach(name).topology() if running else new_topology(plan)
    end_hosts(topology, plan)
