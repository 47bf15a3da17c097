"""`farline tune HOST|SRC... DST`: how to use a path, found with few samples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.command import Command
from farline.cli.common import interruptible, open_store, store_options, target_text
from farline.cli.copy.options import ssh_options
from farline.cli.limits import SECONDS
from farline.cli.words import WordList, Words
from farline.spec.values import option_at

if TYPE_CHECKING:
    from farline.api.tuning import AnySampler
    from farline.cli.tune_text import View
    from farline.store import Store
    from farline.tuning.job import TuneJob, TuneResult

KNOBS = ("streams", "files", "pipelining", "block", "buffers", "congestion", "transport")
"""As `farline.tuning.knobs.KNOBS`, which takes longer to import."""
_REPORTS = (".html", ".png", ".svg")
_OVER_SSH = (
    "rsh", "port", "identity", "ssh_option", "ssh_config", "jump", "start_timeout",
    "remote_farline", "bootstrap", "bootstrap_program", "tunnel", "connect_back", "single_port",
    "data_ports",
)  # fmt: skip
"""Options that only a copy has."""


@click.command("tune", cls=Command, short_help="Find how many streams a path needs.")
@click.argument("places", nargs=-1, metavar="HOST | SRC... DST")
@click.option(
    "--budget",
    "budget_s",
    type=SECONDS,
    default=60.0,
    metavar="DURATION",
    help="Take no more than this time for samples (default 60s).",
)
@click.option(
    "--for",
    "goal",
    type=Words(["throughput", "fairness", "cpu"]),
    default="throughput",
    help="Choose the fewest streams near the best rate, streams only while they are worth it to "
    "others on the path, or the least CPU time per byte (default throughput).",
)
@click.option(
    "--knobs",
    type=WordList(KNOBS),
    default="streams",
    metavar="KNOB,...",
    help="Try values of these: streams, files (how many at once), pipelining, block, buffers, "
    "congestion, transport (default streams).",
)
@click.option(
    "--tool", metavar="TOOL", help="Tune this tool instead of farline: `farline tools` lists them."
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Search streams, stripes and up to N nodes a side of a testbed: HOST is the testbed, by "
    "default the preset nodes.",
)
@click.option(
    "--tool-server",
    type=Words(["auto", "here", "ssh", "standing"]),
    help="Start the tool's server here, over ssh, or use one that runs already (default auto).",
)
@click.option(
    "--search",
    "method",
    type=Words(["history", "bracket"]),
    default="history",
    help="Sample where past transfers leave most to learn, or 8, 32 and perhaps 16 streams "
    "(default history).",
)
@click.option("-n", "--dry-run", is_flag=True, help="Choose from past transfers: sample nothing.")
@click.option("--explain", is_flag=True, help="Print what is known of the path, and stop.")
@click.option("--forget", is_flag=True, help="Forget what is known of the path, and stop.")
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write what is known of the path as JSON, and stop; - is standard output.",
)
@click.option("-R", "--reverse", is_flag=True, help="Measure from HOST to this host.")
@click.option(
    "-p",
    "--control-port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Connect to this control port of HOST (default 5470).",
)
@click.option(
    "--transport",
    type=Words(["tcp", "udt"]),
    default="tcp",
    help="Use this transport (default tcp).",
)
@click.option(
    "-C", "--congestion", metavar="NAME", help="Use this congestion control (default: the host's)."
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw samples, fitted curve and choice into a page (.html) or a picture (.svg, .png).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the choice as one JSON document.")
@ssh_options
@store_options
def command(places: tuple[str, ...], **options: Any) -> int:
    """Find how to use the path to HOST with few samples, and say why.

    HOST runs `farline serve`, which discards what is sent to it. With SRC and DST, as
    for `farline copy`, samples are pieces of that copy, and what they transfer
    is kept. Copies to the same host without --streams use the choice.
    """  # fmt: skip
    if options["nodes"] is None and not places:
        raise click.UsageError("HOST, or SRC... DST, is missing")
    _check(places, options)
    store = open_store(options["store_path"], options["no_store"])
    if options["nodes"] is not None:
        from farline.cli.tune_nodes import run_nodes

        return run_nodes(places, store, options, _stated(click.get_current_context()))
    if (told := _told(places, store, options)) is not None:
        return told
    from farline.cli.tune_text import View, print_result
    from farline.tuning.job import TuneJob, TuneRequest

    sampler = _sampler(places, store, options)
    request = TuneRequest(
        options["goal"], options["budget_s"], options["dry_run"],
        method=options["method"], knobs=options["knobs"],
    )  # fmt: skip
    with interruptible(options["as_json"]) as asked:
        result = _driven(TuneJob(request, sampler, store, asked), View(options["as_json"]))
    choice = result.checked()
    if options["report"] is not None:
        from farline.cli.tune_report import save_report

        save_report(result, choice, sampler.far, options["report"])
    print_result(result, choice, places, sampler.far, options)
    return 0


def _driven(job: TuneJob, view: View) -> TuneResult:
    """The job's result, shown while it goes on."""
    try:
        with job:
            for event in job:
                view.show(event)
        return job.wait()
    finally:
        view.end_line()


def _check(places: tuple[str, ...], options: Mapping[str, Any]) -> None:
    """Refuses what does not go together.

    Raises:
        click.UsageError: with the option and the reason.
    """
    asked = [f"--{name}" for name in ("explain", "forget") if options[name]]
    asked += ["--export"] if options["export"] is not None else []
    if len(asked) > 1:
        raise click.UsageError(f"{asked[0]} and {asked[1]} cannot be combined")
    if asked and options["no_store"]:
        raise click.UsageError(f"{asked[0]}: needs the store; leave --no-store out")
    if options["budget_s"] <= 0:
        raise click.UsageError("--budget: allow some time for samples, such as 60s")
    if len(places) <= 1:
        given = [name for name in _OVER_SSH if options[name] not in (None, (), False)]
        if given and not asked:
            flag = f"--{given[0].replace('_', '-')}"
            raise click.UsageError(f"{flag}: works only with SRC and DST, as for farline copy")
        if "files" in options["knobs"] and not asked:
            raise click.UsageError("--knobs files: needs files: name SRC and DST")
    else:
        for name, flag in (("reverse", "-R"), ("control_port", "-p")):
            if options[name]:
                raise click.UsageError(f"{flag}: works only with HOST, not with SRC and DST")
    if options["tool_server"] and not options["tool"]:
        raise click.UsageError("--tool-server: applies only with --tool")
    report = options["report"]
    if report is not None and report.suffix not in _REPORTS:
        raise click.UsageError(f"--report {report}: the name must end in {', '.join(_REPORTS)}")


def _told(places: tuple[str, ...], store: Store | None, options: Mapping[str, Any]) -> int | None:
    """Answers what needs no path; None where a search was asked for."""
    if not (options["explain"] or options["forget"] or options["export"] is not None):
        return None
    from farline.api.tuning import forget, known_path
    from farline.cli.tune_text import print_forgotten, print_known, write_export

    assert store is not None  # `_check`
    place, pushes = _far_place(places, options)
    if options["forget"]:
        print_forgotten(place, *forget(place, store, pushes))
        return 0
    known = known_path(place, store, pushes)
    if options["export"] is None:
        print_known(known, options["as_json"])
        return 0
    write_export(json.dumps(known.document(), indent=1), str(options["export"]))
    return 0


def _stated(context: click.Context) -> set[str]:
    """Options that stand on the command line."""
    from click.core import ParameterSource

    return {
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


def _far_place(places: tuple[str, ...], options: Mapping[str, Any]) -> tuple[str, bool]:
    """The place on the other host, and whether this host sends to it."""
    if len(places) == 1:
        return places[0], not options["reverse"]
    from farline.copying.locations import ThisHost, read_endpoints

    pushes = isinstance(read_endpoints(places).source_host, ThisHost)
    return (places[-1], True) if pushes else (places[0], False)


def _sampler(
    places: tuple[str, ...], store: Store | None, options: Mapping[str, Any]
) -> AnySampler:
    from farline.api.tuning import sampler_for

    spec = _spec(options)
    kept = None if options["dry_run"] else store
    if len(places) == 1:
        if options["reverse"]:
            spec["direction"] = "reverse"
        if "tool" in spec:
            host, colon, port = places[0].rpartition(":")
            standing = int(port) if colon and port.isdigit() else options["control_port"]
            return sampler_for((host if colon else places[0],), spec, kept, port=standing)
        target = target_text(places[0], None, options["control_port"])
        return sampler_for((target,), spec, kept)
    from farline.cli.copy.command import data_path, over_ssh, ssh_command
    from farline.copying.locations import read_endpoints

    ssh = ssh_command(options_of_copy(options)) if over_ssh(
        read_endpoints(places), options
    ) else None  # fmt: skip
    return sampler_for((places[:-1], places[-1]), spec, kept, ssh, data_path(options))


def options_of_copy(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same with what only `farline copy` has, as if it had not been given."""
    return {"version4": False, "version6": False, **options}


def _spec(options: Mapping[str, Any]) -> dict[str, Any]:
    """What all samples have in common."""
    spec: dict[str, Any] = {}
    transport = options["transport"]
    if transport != option_at("transport").default:
        spec["transport"] = transport
    for name in ("tool", "tool_server"):
        if options[name] is not None:
            spec[name] = options[name]
    if options["congestion"] is not None:
        spec[transport] = {"congestion_control": options["congestion"]}
    return spec
