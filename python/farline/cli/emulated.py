"""`farline profile` without a host: a campaign over an emulated path that it brings up itself.

The campaign is written down with its whole testbed, which is brought up unless the plan names one
that is up; `farline serve` starts on its server host, and this program runs once more on its client
host, as `--resume`, with the same store: from there it is a campaign like any other, one that can
set the link between runs.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from farline.campaign.emulated_path import (
    DEFAULT_TESTBED,
    end_hosts,
    refuse_another,
    refuse_bed_options,
    testbed_overrides,
)
from farline.testbeds import Testbed, load
from farline.testbeds.lookup import running_bed
from farline.testbeds.serving import run_inside, serving

if TYPE_CHECKING:
    from farline.campaign.journal import Journal
    from farline.campaign.plan import Plan
    from farline.campaign.settings import Campaign
    from farline.cli.campaign_end import Output
    from farline.spec._types import Topology
    from farline.store import Store


def run_over_testbed(journal: Journal, store: Store, output: Output) -> int:
    """Runs a campaign that stands in `store` over its testbed; gives its exit code."""
    campaign = journal.campaign
    data = campaign.plan.data
    with _testbed(journal) as bed:
        client, server = end_hosts(bed.topology(), campaign.plan)
        write = None if data is None else data.destination
        with serving(bed.hosts[server], bed.address(server, client), write) as (address, ticket):
            command = _command(campaign, store, output, address)
            sys.stdout.flush()
            return run_inside(bed.hosts[client], command, ticket)


@contextmanager
def _testbed(journal: Journal) -> Iterator[Testbed]:
    """The testbed that is up under the name in the plan; else a new one, which ends with the block.

    Raises:
        UsageError: when the one that is up is not the one that the campaign is about.
    """
    plan = journal.campaign.plan
    bed = running_bed(plan.place.testbed)
    if bed is None:
        topology = journal.topology or new_topology(plan)
        with Testbed.up(cast("Topology", topology), name=f"profile-{secrets.token_hex(3)}") as new:
            yield new
        return
    try:
        refuse_another(journal, bed.name, bed.topology())
        yield bed
    finally:
        bed.close()


def planned_topology(plan: Plan) -> Mapping[str, Any]:
    """The whole testbed that a plan is over: a running one that it names, or a new one.

    Raises:
        FarlineError: when it cannot be had, or there are no such hosts; nothing has been made.
    """
    bed = running_bed(plan.place.testbed)
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
    return load(plan.place.testbed or DEFAULT_TESTBED, **testbed_overrides(plan))


def _command(campaign: Campaign, store: Store, output: Output, address: str) -> list[str]:
    command = [sys.executable, "-m", "farline", "profile", "-c", address]
    command += ["--resume", campaign.id, "--store", str(store.path.absolute())]
    if output.as_json:
        command.append("--json")
    if output.report_dir is not None:
        command += ["--report", str(output.report_dir.absolute())]
    return command
