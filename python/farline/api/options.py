"""Options given as keyword arguments, read as a plan reads them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from farline.campaign.plan_values import nest, read_section
from farline.errors import SpecError

SECTIONS = ("copy", "rbudp", "tcp", "udp", "udt")


def spec_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """A run spec from options by their names in plans; texts carry units (`duration_s="5s"`).

    Options of a transport stand in a mapping of its name: `tcp={"congestion_control": "reno"}`.

    Raises:
        SpecError: for a name or value that is not allowed, with what is.
    """
    from farline.spec.table import OPTIONS

    names = {option.path.partition(".")[0] for option in OPTIONS} | set(SECTIONS)
    for name in options:
        if name not in names:
            raise SpecError(_unknown(name, [option.path for option in OPTIONS]))
    return nest(dict(read_section("options", options)))


def copy_spec_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a copy, whose own options need no section: `overwrite="different"`.

    Raises:
        SpecError: for a name or value that is not allowed, with what is.
    """
    from farline.spec.options import NOT_OF_COPIES
    from farline.spec.table import OPTIONS

    own = {path.removeprefix("copy.") for option in OPTIONS if (path := option.path)[:5] == "copy."}
    section = dict(options.get("copy", {}))
    section |= {name: value for name, value in options.items() if name in own}
    rest = {name: value for name, value in options.items() if name not in own | {"copy"}}
    for name in rest:
        if name in NOT_OF_COPIES:
            raise SpecError(f"option {name!r} is one of probes; copies do not have it")
    return {"copy": {}, **spec_of({**rest, "copy": section} if section else rest)}


def _unknown(name: str, paths: list[str]) -> str:
    in_sections = [path for path in paths if path.rpartition(".")[2] == name]
    if in_sections:
        section, _, option = in_sections[0].partition(".")
        return f'option {name!r} belongs to a section: write {section}={{"{option}": ...}}'
    near = get_close_matches(name, [path for path in paths if "." not in path], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown option {name!r}: {hint}docs/reference/options.md lists all"
