"""Options given as keyword arguments, read as a plan reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from farline.campaign.plan_values import nest, read_section
from farline.errors import SpecError
from farline.spec.table import OPTIONS

_COPY = "copy"


def spec_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """A run spec from options by their names in plans; texts carry units (`duration_s="5s"`).

    Options of a transport stand in a mapping of its name: `tcp={"congestion_control": "reno"}`.

    Raises:
        SpecError: for a name or value that is not allowed, with what is.
    """
    _check_sections(options)
    return nest(dict(read_section("options", options)))


def copy_spec_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a copy, whose own options need no section: `overwrite="different"`.

    Raises:
        SpecError: for a name or value that is not allowed, with what is.
    """
    from farline.spec.options import NOT_OF_COPIES  # imports click, which a probe does without

    own = {option.name for option in OPTIONS if option.path == f"{_COPY}.{option.name}"}
    section = dict(options.get(_COPY, {}))
    section |= {name: value for name, value in options.items() if name in own}
    rest = {name: value for name, value in options.items() if name not in own | {_COPY}}
    for name in rest:
        if name in NOT_OF_COPIES:
            raise SpecError(f"option {name!r} is one of probes; copies do not have it")
    return {_COPY: {}, **spec_of({**rest, _COPY: section} if section else rest)}


def _check_sections(names: Iterable[str]) -> None:
    """Refuses an option of a section that stands outside of it, with the way to write it."""
    for name in names:
        places = [option.path.rpartition(".")[0] for option in OPTIONS if option.name == name]
        if places and all(places):
            raise SpecError(
                f'option {name!r} belongs to a section: write {places[0]}={{"{name}": ...}}'
            )
