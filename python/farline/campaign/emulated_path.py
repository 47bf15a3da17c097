"""What a campaign over an emulated path needs of a testbed; who emulates it is not known here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError, UsageError
from farline.spec.link_change import same_but_for, touched_names
from farline.spec.links import VARIABLE_KEYS, across, change_of, find_links
from farline.spec.topology import read_cpus

if TYPE_CHECKING:
    from farline.campaign.journal import Journal
    from farline.campaign.plan import Plan
    from farline.campaign.settings import Campaign

DEFAULT_TESTBED = "back-to-back"
"""The preset that a plan means which varies a path and names none."""


def target_text(plan: Plan) -> str:
    """What the plan runs over, in words, for lines and for the journal."""
    ends = [name for name in (plan.place.client_host, plan.place.server_host) if name]
    return " ".join(["testbed", plan.place.testbed or DEFAULT_TESTBED, *ends])


def testbed_overrides(plan: Plan) -> dict[str, Any]:
    """What a new testbed has other than its preset: what varies starts at its largest value."""
    link = {
        path.removeprefix("path."): max(values)
        for path, values in {**_single(plan.fixed), **plan.axes}.items()
        if path.startswith("path.")
    }
    if plan.place.link is not None:
        link["main_link"] = plan.place.link
    if plan.place.host_cpus is not None:
        link["host_cpus"] = plan.place.host_cpus
    return link


def _single(values: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: (value,) for name, value in values.items()}


def refuse_another(journal: Journal, name: str, topology: Mapping[str, Any]) -> None:
    """Refuses a testbed that is up if it is not what the campaign was begun over.

    Raises:
        UsageError: when they differ in anything but what the campaign itself sets.
    """
    campaign, meant = journal.campaign, journal.topology
    if meant is None:
        return
    links = [link["name"] for link in find_links(meant, campaign.plan.place.link)]
    if not same_but_for(meant, topology, links, touched_names(campaign.link_keys)):
        raise UsageError(
            f"testbed {name!r} is up, but campaign {campaign.id} was started over another one: "
            f"remove it first with `farline testbed down {name}`"
        )


def refuse_bed_options(plan: Plan, name: str, topology: Mapping[str, Any]) -> None:
    """Refuses options that only a new testbed can have, where one is up.

    Raises:
        UsageError: with what can change in use.
    """
    own = [path.removeprefix("path.") for path in plan.fixed if path.startswith("path.")]
    new = [key for key in own if key not in VARIABLE_KEYS]
    if not _has_cpus(topology, plan.place.host_cpus):
        new.append("host_cpus")
    if new:
        raise UsageError(
            f"testbed {name!r} is up, and {', '.join(new)} needs a new one; these can change "
            f"while it is up: {', '.join(VARIABLE_KEYS)}"
        )


def _has_cpus(topology: Mapping[str, Any], wanted: str | None) -> bool:
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
                f"{name!r} is not a host of {topology['name']}: its hosts are {', '.join(names)}"
            )
    server = plan.place.server_host
    client = plan.place.client_host or next(name for name in names if name != server)
    if server is None:
        server = across(topology, client, plan.place.link)
    if client == server:
        raise UsageError(f"{client!r} is both client and server: name two hosts")
    return client, server


def check_settings(campaign: Campaign, topology: Mapping[str, Any]) -> None:
    """Refuses a campaign if the link cannot have what some setting asks of it.

    Raises:
        SpecError: with the setting.
    """
    for setting in campaign.all_settings:
        try:
            for link in find_links(topology, campaign.plan.place.link):
                change_of(setting.path, link)
        except ValueError as error:
            raise SpecError(f"{setting.text}: [path] {error}") from None
