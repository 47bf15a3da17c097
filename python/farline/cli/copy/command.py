"""`farline copy SRC... DST`: moves files between this host and others, or between two others.

Reads a command line, has the job done, shows what comes of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.common import store_options
from farline.cli.copy.end import NOWHERE
from farline.cli.copy.options import (
    CopyCommand,
    CopySettings,
    filter_order,
    letter_options,
    manner_options,
    read_settings,
    ssh_options,
)
from farline.cli.copy.show_job import show
from farline.cli.copy.view import JsonView, QuietView, StreamView, TextView, View
from farline.cli.mark_option import MARK_OPTION
from farline.cli.process_time import process_s
from farline.copying import CopyJob, CopyRequest, DataPath, NameList
from farline.copying.locations import Endpoints, SshHost, read_endpoints
from farline.copying.pools import NodePool
from farline.errors import UsageError
from farline.spec.extras import has_analysis

if TYPE_CHECKING:
    from farline.copying.live_tuning import Tuner, TunerStart
    from farline.tools.ssh_command import SshCommand


NO_TUNER = "--tune auto needs numpy: install it with pip install 'farline[analysis]'"


@click.command(cls=CopyCommand, short_help="Copy files and folders.")
@click.argument("places", nargs=-1, metavar="SRC... DST")
@letter_options
@manner_options
@ssh_options
@store_options
@click.option("--order", is_flag=True, hidden=True)
@MARK_OPTION
@click.pass_context
def command(context: click.Context, /, places: tuple[str, ...], order: bool, **options: Any) -> int:
    """Copy files and folders between this host and others, or between two others.

    SRC and DST are local paths, [USER@]HOST:PATH over ssh, or a ticket with a
    path (farline://...#PATH). A source folder with a slash at its end means its
    contents, as in rsync. Existing files that differ are kept and reported as
    failed unless --overwrite is given. To resume an interrupted copy, repeat the
    command.
    """
    if order:
        from farline.cli.copy.ordered import carry_out

        return carry_out(options["mark"], stream_tuner)
    # numpy comes beside a copy's streams: the threads of its linear algebra, which no copy uses,
    # would spin for a tenth of a second.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    settings = read_settings(options, filter_order(context))
    if not options["quiet"]:
        for note in settings.notes:
            click.echo(f"farline: {note}", err=True)
    if options["no_store"] and options["store_path"] is not None:
        raise click.UsageError("--store and --no-store cannot be combined")
    if options["tune"] == "auto" and not has_analysis():
        raise UsageError(NO_TUNER)
    ends = read_endpoints(places)
    if settings.document.get("tool", "native") != "native":
        from farline.cli.copy.driven import carry_out as drive

        is_remote = SshHost in map(type, (ends.source_host, ends.destination_host))
        ssh = ssh_command(options) if is_remote else None
        return drive(ends, settings.document, options, ssh)
    view = _view(options)
    request = _request(ends, settings, options, view.wants_files)
    if request.is_over_nodes or options["nodes"] is not None:
        from farline.cluster import copy_job

        job = copy_job(request, options["nodes"], make_tuner=stream_tuner)
    else:
        job = CopyJob(request, make_tuner=stream_tuner)
    return show(job, view, ends.destination)


def stream_tuner(start: TunerStart) -> Tuner:
    """What tunes a copy that lasts, imported when one does."""
    from farline.api.live_tuner import StreamTuner

    return StreamTuner(start)


def _request(
    ends: Endpoints, settings: CopySettings, options: Mapping[str, Any], tell_files: bool
) -> CopyRequest:
    """What the command line asks for."""
    return CopyRequest(
        ends,
        settings.document,
        ssh=ssh_command(options) if over_ssh(ends, options) else None,
        data_path=data_path(options),
        archive=options["archive"],
        name_list=_name_list(options["source_list"], options["from0"]),
        confirm_deletion=_is_deletion_asked(settings),
        retry_for_s=options["retry_for"],
        retries=options["retries"],
        keep=not options["no_store"],
        store_path=options["store_path"],
        tune=options["tune"],
        max_harm=options["max_harm"],
        own_disks=options["own_disks"],
        place_streams=options["place_streams"],
        receipt=options["receipt"],
        tell_files=tell_files,
        spent_s=process_s(),
    )


def _view(options: Mapping[str, Any]) -> View:
    as_json, as_stream = options["as_json"], options["as_stream"]
    if sum((as_json, as_stream, options["quiet"])) > 1:
        raise click.UsageError("use only one of --json, --json-stream and -q")
    if as_stream:
        return StreamView(options["verbose"])
    if as_json:
        return JsonView()
    if options["quiet"]:
        if options["verbose"] or options["progress"] or options["stats"]:
            raise click.UsageError("-q prints nothing: leave out -v, --progress and --stats")
        return QuietView()
    drops = options["write_engine"] in NOWHERE
    return TextView(options["verbose"], options["progress"] is not False, options["stats"], drops)


def _name_list(text: str | None, zeros: bool) -> NameList | None:
    """The list of `--files-from`: standard input can be read but once."""
    if text is None:
        return None
    return NameList(sys.stdin.buffer if text == "-" else Path(text), zeros)


def _is_deletion_asked(settings: CopySettings) -> bool:
    """Whether `--delete` has no count, which a person types then.

    Raises:
        UsageError: where nobody can be asked.
    """
    copy = settings.document.get("copy", {})
    is_bounded = copy.get("dry_run") or copy.get("max_delete") is not None
    if settings.delete_asked and not is_bounded and not sys.stdin.isatty():
        raise UsageError(
            "--delete asks for confirmation, but this is not a terminal: use --delete=COUNT, or "
            "--max-delete=N to delete at most N names; a dry run (-n --delete) prints the number"
        )
    return settings.delete_asked


def data_path(options: Mapping[str, Any]) -> DataPath:
    ports = None
    if options["data_ports"] is not None:
        from farline.cli.serve import ports_of

        ports = ports_of(options["data_ports"])
    return DataPath(options["tunnel"], options["connect_back"], options["single_port"], ports)


def ssh_command(options: Mapping[str, Any]) -> SshCommand:
    """How ssh is called, from the command line."""
    import shlex

    from farline.tools.ssh_command import SshCommand

    try:
        command = tuple(shlex.split(options["rsh"])) if options["rsh"] else ("ssh",)
    except ValueError as error:
        raise click.UsageError(f"-e: {options['rsh']!r}: {error}") from None
    family = "-4" if options["version4"] else "-6" if options["version6"] else None
    return SshCommand(
        command or ("ssh",), options["port"], options["identity"], tuple(options["ssh_option"]),
        options["ssh_config"], options["jump"], family, options["remote_farline"],
        options["start_timeout"], options["bootstrap"], options["bootstrap_program"],
    )  # fmt: skip


def over_ssh(ends: Endpoints, options: Mapping[str, Any]) -> bool:
    """Whether ssh is needed; its options go with nothing else."""
    if {SshHost, NodePool} & set(map(type, (ends.source_host, ends.destination_host))):
        return True
    refuse_ssh_options(options, "neither end is reached over ssh ([user@]host:path)")
    return False


def refuse_ssh_options(options: Mapping[str, Any], why: str) -> None:
    """Raises for an option of ssh that is given though nothing goes over ssh."""
    for name, flag in (
        ("rsh", "-e"), ("port", "-P"), ("identity", "-i"), ("ssh_option", "-o"),
        ("ssh_config", "-F"), ("jump", "-J"), ("start_timeout", "--start-timeout"),
        ("remote_farline", "--remote-farline"), ("bootstrap", "--bootstrap"),
        ("bootstrap_program", "--bootstrap-program"),
    ):  # fmt: skip
        if options[name] not in (None, (), False):
            raise click.UsageError(f"{flag}: {why}")
