"""Tools of other makers as this process can drive them: in a testbed, on its hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farline.api.path_here import inside_testbed
from farline.drivers.chooser import ToolChooser, no_testbed
from farline.errors import UsageError

if TYPE_CHECKING:
    from farline.testbeds import CurrentBed, Host
    from farline.tools.ssh_command import SshCommand


def tool_chooser(
    port: int | None = None, ssh: SshCommand | None = None, login: str | None = None
) -> ToolChooser:
    """What makes the tool of a spec; servers start on the hosts of the testbed around this process.

    `port` is that of a server that runs already, `ssh` how ssh is called where servers start there,
    and `login` what it logs in at, if not the target.
    """
    return ToolChooser(_BedHosts() if inside_testbed() else no_testbed, ssh, port, login)


class _BedHosts:
    """The hosts of the testbed around this process, asked for when the first is needed."""

    def __init__(self) -> None:
        self._here: CurrentBed | None = None

    def __call__(self, address: str) -> Host | None:
        """The host that an address belongs to, if it is another than this one."""
        if self._here is None:
            from farline.testbeds import current_bed

            self._here = current_bed()
        here = self._here
        if here is None:
            raise UsageError("the testbed around this process is gone")
        name = here.host_of(address)
        return None if name is None or name == here.host else here.bed.hosts[name]
