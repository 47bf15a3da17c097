"""Calls into the extension, their failures as `farline.errors`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from farline import _native
from farline.errors import from_failure

if TYPE_CHECKING:
    from farline.spec._types import Topology

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


def checked(
    call: Callable[_Arguments, _Value], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Value:
    """What `call` into the extension gives.

    Raises:
        FarlineError: what the extension refused or failed at.
    """
    try:
        return call(*args, **kwargs)
    except _native.NativeError as error:
        raise from_failure(str(error.args[0])) from None


def validate_topology(document: Any) -> Topology:
    """The topology checked as a whole, with the defaults of its fields filled in.

    Raises:
        SpecError: when it does not hold together.
    """
    whole: Topology = json.loads(checked(_native.validate, "topology", json.dumps(document)))
    return whole


def start_emulator(topology_json: str, hosts_file: str) -> _native.Emulator:
    """Starts a topology; `hosts_file.HOST` is written for every host, and is its `/etc/hosts`.

    Raises:
        FarlineError: when the machine lacks what an emulator needs.
    """
    return checked(_native.start_emulator, topology_json, hosts_file)
