"""`farline copy --tool NAME`: the user's own mover, with what farline knows of both ends."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from farline.copying.locations import Endpoints, SshHost, StandingServer, ThisHost
from farline.copying.pools import NodePool
from farline.errors import UsageError

if TYPE_CHECKING:
    from farline.cli.views import View
    from farline.store import Store
    from farline.tools.ssh_command import SshCommand

HERE = "127.0.0.1"
"""Where a tool's server is of a copy between two folders of this host."""

GLOBUS = "globus"
"""The one tool whose two ends are both far: collections."""

_OWN = {
    "archive": "-a", "source_list": "--files-from", "tunnel": "--tunnel",
    "connect_back": "--connect-back", "single_port": "--single-port",
    "data_ports": "--data-ports", "retries": "--retries", "receipt": "--receipt",
    "as_stream": "--json-stream", "stats": "--stats", "max_harm": "--max-harm",
    "nodes": "--nodes", "own_disks": "--own-disks", "place_streams": "--place-streams",
}  # fmt: skip
"""Options of farline's own copies, by parameter."""


def carry_out(
    ends: Endpoints, document: Mapping[str, Any], options: Mapping[str, Any],
    ssh: SshCommand | None,
) -> int:  # fmt: skip
    """Runs the tool of `document` once, shows what came of it, gives the exit code.

    Raises:
        UsageError: for options and ends that only farline's own copies have.
    """
    from farline.api.tool_here import tool_chooser
    from farline.campaign.probe import ProbeJob
    from farline.campaign.settings import sampled_spec
    from farline.cli.common import interruptible, open_store
    from farline.cli.probe import exit_code, show

    tool = document["tool"]
    _refuse_own(tool, options)
    host, is_push, over_ssh = _far_end(ends, tool)
    login, host = host, host.rpartition("@")[2]
    server = {"tool_server": "ssh"} if over_ssh else {}
    if over_ssh and ssh is not None and document.get("tool_server") != "standing":
        # Its data connections know no alias of ssh's configuration.
        host = ssh.host_name(login, host)
    sources, destination = list(ends.sources), ends.destination
    if tool == GLOBUS:
        sources = [f"{ends.source_host}:{path}" for path in sources]
        destination, server = f"{ends.destination_host}:{destination}", {"tool_server": "standing"}
    store = open_store(options["store_path"], options["no_store"])
    if options.get("tune") != "off":
        document = _tuned(document, store, host, is_push, options["quiet"])
    copy = {**document.get("copy", {}), "sources": sources, "destination": destination}
    direction = "forward" if is_push else "reverse"
    spec = sampled_spec({**server, **document, "direction": direction, "copy": copy})
    is_standing = spec.get("tool_server") == "standing"
    chooser = tool_chooser(options["port"] if is_standing else None, ssh, login)
    with interruptible(options["quiet"]) as asked:
        job = ProbeJob(host, spec, store, tool=chooser.tool(spec, host), should_stop=asked)
        return exit_code(show(job, _view(options), spec, host).record)


def _tuned(
    document: Mapping[str, Any], store: Store | None, far: str, pushes: bool, quiet: bool
) -> Mapping[str, Any]:
    """With what `farline tune --tool` found for the path, where no streams are stated; says so."""
    from farline.drivers.catalogue import find_driver
    from farline.store.paths.choices import HostsNow, read_choice
    from farline.tuning.choice import setting_of
    from farline.tuning.sampling import tool_spec_with

    tool = document["tool"]
    if store is None or "streams" in document:
        return document
    kept = read_choice(store.layout.paths, far, pushes, tool)
    if kept is None or kept.changes(HostsNow(here_kernel=os.uname().release)):
        return document
    setting = setting_of(kept)
    if not quiet:
        click.echo(f"farline: {setting.text}: tuned for this path ({kept.basis})", err=True)
    return tool_spec_with(document, setting, find_driver(tool).abilities.takes)


def _refuse_own(tool: str, options: Mapping[str, Any]) -> None:
    for name, flag in _OWN.items():
        if options.get(name) not in (None, False, ()):
            raise click.UsageError(f"{flag}: {tool} does not take it; leave it out, or --tool")


def _far_end(ends: Endpoints, tool: str) -> tuple[str, bool, bool]:
    """The far end's host, whether it is the destination, and whether ssh leads there."""
    source, target = ends.source_host, ends.destination_host
    far = [host for host in (source, target) if not isinstance(host, ThisHost)]
    if any(isinstance(host, StandingServer) for host in far):
        raise UsageError(f"--tool {tool}: a ticket is for farline's own copies: write HOST:PATH")
    if pool := next((host for host in far if isinstance(host, NodePool)), None):
        raise UsageError(f"--tool {tool}: {pool} has several nodes: name one of them")
    if tool == GLOBUS:
        if len(far) < 2:
            raise UsageError("--tool globus: write COLLECTION:path for both ends")
        return str(target), True, False
    if len(far) > 1:
        raise UsageError(f"--tool {tool}: one end must be on this host")
    if not far:
        return HERE, True, False
    (host,) = far
    assert isinstance(host, SshHost)
    return host.target, host is target, True


def _view(options: Mapping[str, Any]) -> View:
    from farline.cli import views

    if options["quiet"]:
        return views.QuietView()
    if options["as_json"]:
        return views.JsonView(1.0, iperf3=False)
    return views.PlainView(1.0, options["verbose"])
