"""Tools of other makers as this process can drive them: in a testbed, on its hosts."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from farline.api.path_here import inside_testbed
from farline.drivers.chooser import ToolChooser, no_testbed
from farline.errors import UsageError

if TYPE_CHECKING:
    from farline.testbeds import CurrentBed, Host
    from farline.tools.ssh import SshCommand


def tool_chooser(port: int | None = None, ssh: SshCommand | None = None) -> ToolChooser:
    """What makes the tool of a spec; servers start on the hosts of the testbed around this process.

    `port` is that of a server that runs already, `ssh` how ssh is called where servers start there.
    """
    return ToolChooser(_bed_host if inside_testbed() else no_testbed, ssh, port)


def _bed_host(address: str) -> Host | None:
    """The testbed's host that an address belongs to, if it is another than this one."""
    here = _current()
    name = here.host_of(address)
    return None if name is None or name == here.host else here.bed.hosts[name]


@functools.cache
def _current() -> CurrentBed:
    from farline.testbeds import current_bed

    here = current_bed()
    if here is None:
        raise UsageError("the testbed around this process is gone")
    return here
