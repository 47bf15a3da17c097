"""Every driver, by the word that names it in plans and on command lines."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError
from farline.spec.near import unknown

if TYPE_CHECKING:
    from farline.drivers.driver import Driver

NATIVE = "native"
"""farline's own engine, which needs no driver."""

_CLASSES = {
    "gridftp": "Gridftp",
    "iperf3": "Iperf3",
    "nuttcp": "Nuttcp",
    "xrdcp": "Xrdcp",
    "rsync": "Rsync",
    "scp": "Scp",
    "rclone": "Rclone",
    "globus": "Globus",
    "fdt": "Fdt",
    "bbcp": "Bbcp",
    "uftp": "Uftp",
    "udt": "Udt",
    "iperf2": "Iperf2",
    "command": "Command",
}
"""A module of this room for each, and the class in it."""


@functools.cache
def drivers() -> Mapping[str, Driver]:
    """Every driver by its name, in the order of the list."""
    return {name: find_driver(name) for name in _CLASSES}


@functools.cache
def find_driver(name: str) -> Driver:
    """The driver of that name.

    Raises:
        SpecError: when there is none; says which there are.
    """
    if name not in _CLASSES:
        raise SpecError(f"tool {name!r} is unknown; {unknown(name, (NATIVE, *_CLASSES))}")
    module = importlib.import_module(f"farline.drivers.{name}")
    made: Driver = getattr(module, _CLASSES[name])()
    return made


def tool_of(spec: Mapping[str, Any]) -> str:
    """The tool of a spec: farline itself unless it says otherwise."""
    return str(spec.get("tool") or NATIVE)
