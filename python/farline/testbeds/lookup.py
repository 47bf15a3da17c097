"""Which testbed, host and link are meant."""

from __future__ import annotations

from farline.errors import SystemFailure, UsageError
from farline.spec.near import unknown
from farline.testbeds.bed import Testbed
from farline.testbeds.host import Host
from farline.testbeds.state import list_beds


def find_bed(name: str | None) -> Testbed:
    """The testbed of that name, or the only one that is up.

    Raises:
        UsageError: when none is up, or several and no name says which.
        UnreachableError: when none of that name is up.
    """
    if name is not None:
        return Testbed.attach(name)
    names = [bed.name for bed in list_beds()]
    if len(names) == 1:
        return Testbed.attach(names[0])
    if not names:
        raise UsageError("no testbed is up; `farline testbed up PRESET` brings one up")
    raise UsageError(f"{len(names)} testbeds are up: name one of {', '.join(names)}")


def find_host(bed: Testbed, name: str) -> Host:
    """A host of a testbed.

    Raises:
        UsageError: when there is none of that name.
    """
    if name not in bed.hosts:
        raise UsageError(f"{name!r} is not a host of {bed.name}; {unknown(name, bed.hosts)}")
    return bed.hosts[name]


def find_bed_and_link(words: tuple[str, ...]) -> tuple[Testbed, str]:
    """`[NAME] [LINK]`: the only testbed and its main link where nothing is said.

    Raises:
        UsageError: for too many words, and for a link that is not there.
    """
    if len(words) > 2:
        raise UsageError(f"too many arguments: {' '.join(words)}; expected [NAME] [LINK]")
    known = [bed.name for bed in list_beds()]
    named = len(words) == 2 or (len(words) == 1 and words[0] in known)
    bed = find_bed(words[0] if named else None)
    rest = words[1:] if named else words
    link = rest[0] if rest else bed.main_link
    links = [one["name"] for one in bed.topology()["links"]]
    if link not in links:
        raise UsageError(f"{link!r} is not a link of {bed.name}; {unknown(link, links)}")
    return bed, link


def running_bed(name: str | None) -> Testbed | None:
    """The testbed that is up under that name; without a name never one that is up already."""
    if name is None:
        return None
    try:
        known = any(bed.name == name for bed in list_beds())
    except SystemFailure:
        # A machine that cannot have testbeds can still check and print a plan.
        return None
    return Testbed.attach(name) if known else None
