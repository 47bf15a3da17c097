"""`farline profile` without a host: a campaign over an emulated path that it brings up itself.

The campaign is written down with its whole testbed, which is brought up unless the plan names one
that is up; `farline serve` starts on its server host, and this program runs once more on its client
host, as `--resume`, with the same store: from there it is a campaign like any other, one that can
set the link between runs.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from farline.cli.common import handled_by
from farline.errors import SystemFailure, TimeoutFailure, UsageError

if TYPE_CHECKING:
    from farline.campaign.data_table import DataTable
    from farline.campaign.journal import Journal
    from farline.campaign.plan import Plan
    from farline.campaign.settings import Campaign
    from farline.cli.campaign_end import Output
    from farline.spec._types import Topology
    from farline.store import Store
    from farline.testbed import Host, Testbed

DEFAULT_TESTBED = "back-to-back"
"""The preset that a plan means which varies a path and names none."""

PORT = 5470
_READY_S = 20.0
_END_S = 10.0
_POLL_S = 0.05


def target_text(plan: Plan) -> str:
    """What the plan runs over, in words, for lines and for the journal."""
    ends = [name for name in (plan.place.client_host, plan.place.server_host) if name]
    return " ".join(["testbed", plan.place.testbed or DEFAULT_TESTBED, *ends])


def run_over_testbed(journal: Journal, store: Store, output: Output) -> int:
    """Runs a campaign that stands in `store` over its testbed; gives its exit code."""
    campaign = journal.campaign
    with _testbed(journal) as bed:
        client, server = end_hosts(bed.topology(), campaign.plan)
        serving = _serving(bed.hosts[server], bed.address(server, client), campaign.plan.data)
        with serving as (address, ticket):
            command = _command(campaign, store, output, address)
            return _run_inside(bed.hosts[client], command, ticket)


@contextmanager
def _testbed(journal: Journal) -> Iterator[Testbed]:
    """The testbed that is up under the name in the plan; else a new one, which ends with the block.

    Raises:
        UsageError: when the one that is up is not the one that the campaign is about.
    """
    from farline.testbed import Testbed

    plan = journal.campaign.plan
    bed = _running(plan)
    if bed is None:
        topology = journal.topology or new_topology(plan)
        with Testbed.up(cast("Topology", topology), name=f"profile-{secrets.token_hex(3)}") as new:
            yield new
        return
    try:
        refuse_another(journal, bed)
        yield bed
    finally:
        bed.close()


def _running(plan: Plan) -> Testbed | None:
    """The running testbed that a plan names; without a name it never is one that is up already."""
    from farline.testbed import Testbed, list_beds

    name = plan.place.testbed
    if name is None:
        return None
    try:
        known = any(bed.name == name for bed in list_beds())
    except SystemFailure:
        # A machine that cannot have testbeds can still check and print a plan.
        return None
    return Testbed.attach(name) if known else None


def refuse_another(journal: Journal, bed: Testbed) -> None:
    """Refuses a testbed that is up if it is not what the campaign was begun over.

    Raises:
        UsageError: when they differ in anything but what the campaign itself sets.
    """
    from farline.campaign.link_change import same_but_for, touched_names
    from farline.spec.links import find_links

    campaign, meant = journal.campaign, journal.topology
    if meant is None:
        return
    links = [link["name"] for link in find_links(meant, campaign.plan.place.link)]
    if not same_but_for(meant, bed.topology(), links, touched_names(campaign.link_keys)):
        raise UsageError(
            f"testbed {bed.name!r} is up, and is not what campaign {campaign.id} was begun over:"
            f" `farline testbed down {bed.name}` makes way for that"
        )


def planned_topology(plan: Plan) -> Mapping[str, Any]:
    """The whole testbed that a plan is over: a running one that it names, or a new one.

    Raises:
        FarlineError: when it cannot be had, or there are no such hosts; nothing has been made.
    """
    bed = _running(plan)
    if bed is None:
        topology: Mapping[str, Any] = new_topology(plan)
    else:
        topology = bed.topology()
        bed.close()
        refuse_bed_options(plan, bed.name, topology)
    end_hosts(topology, plan)
    return topology


def new_topology(plan: Plan) -> Any:
    """The topology that a plan needs: what varies starts at its largest value."""
    from farline.testbed import load

    link = {
        path.removeprefix("path."): max(values)
        for path, values in {**_single(plan.fixed), **plan.axes}.items()
        if path.startswith("path.")
    }
    if plan.place.link is not None:
        link["main_link"] = plan.place.link
    if plan.place.host_cpus is not None:
        link["host_cpus"] = plan.place.host_cpus
    return load(plan.place.testbed or DEFAULT_TESTBED, **link)


def _single(values: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: (value,) for name, value in values.items()}


def refuse_bed_options(plan: Plan, name: str, topology: Mapping[str, Any]) -> None:
    """Refuses options that only a new testbed can have, where one is up.

    Raises:
        UsageError: with what can change in use.
    """
    from farline.spec.links import VARIABLE_KEYS

    own = [path.removeprefix("path.") for path in plan.fixed if path.startswith("path.")]
    new = [key for key in own if key not in VARIABLE_KEYS]
    if not _has_cpus(topology, plan.place.host_cpus):
        new.append("host_cpus")
    if new:
        raise UsageError(
            f"testbed {name!r} is up, and {', '.join(new)} needs a new one;"
            f" what can change in use is {', '.join(VARIABLE_KEYS)}"
        )


def _has_cpus(topology: Mapping[str, Any], wanted: str | None) -> bool:
    from farline.testbed.overrides import read_cpus

    if wanted is None:
        return True
    try:
        cpus = read_cpus(wanted)
    except ValueError as error:
        raise UsageError(f"[path] {error}") from None
    return all((host.get("cpus") or []) == cpus for host in topology["hosts"])


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
def _serving(host: Host, address: str, data: DataTable | None) -> Iterator[tuple[str, str]]:
    """`farline serve` on a host: where it is, and a ticket for it. It ends with the block.

    With `data` the ticket is one to write below its destination.
    """
    with tempfile.TemporaryDirectory(prefix="farline-serve-") as folder:
        log = Path(folder) / "log"
        command = [
            *(sys.executable, "-m", "farline", "serve", "--json"),
            *("--listen", address, "--port", str(PORT), "--state-dir", folder),
            *(("--write", data.destination) if data is not None else ()),
        ]
        with log.open("wb") as out:
            server = host.popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, process_group=0
            )
        try:
            ready = _ready(server, log)
            ticket = ready["ticket"] if data is None else ready["tickets"]["write"]
            yield f"{address}:{PORT}", ticket
        finally:
            _end(server)


def _ready(server: subprocess.Popen[str], log: Path) -> dict[str, Any]:
    """What the server says once it listens."""
    until = time.monotonic() + _READY_S
    while time.monotonic() < until:
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines and lines[0].startswith("{") and lines[0].endswith("\n"):
            ready: dict[str, Any] = json.loads(lines[0])
            return ready
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
            return exit_code(campaign.wait())
        finally:
            _end(campaign)


def exit_code(code: int) -> int:
    """The exit code of a child as a shell says it: 128 + n for signal n."""
    return 128 - code if code < 0 else code


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
    with handled_by(passed.handle):
        yield passed
