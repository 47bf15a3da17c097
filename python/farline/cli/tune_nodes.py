"""`farline tune --nodes N`: streams, then stripes, then nodes, on the nodes of a testbed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from farline.cli.common import interruptible
from farline.spec.units import counted, rate_human

if TYPE_CHECKING:
    from farline.store import Store
    from farline.store.paths.node_choices import NodeChoice

PRESET = "nodes"
_PHASES = {"streams": "streams", "stripes": "stripes", "nodes": "nodes", "all": "search"}
_NOT_OF_NODES = {
    "knobs": "--knobs", "goal": "--for", "method": "--search", "dry_run": "--dry-run",
    "reverse": "-R", "control_port": "-p", "report": "--report", "congestion": "-C",
    "transport": "--transport",
}  # fmt: skip


def run_nodes(
    places: tuple[str, ...], store: Store | None, options: Mapping[str, Any], stated: set[str]
) -> int:
    """Searches, or tells what is kept.

    Raises:
        click.UsageError: for options that only a search of one path has.
    """
    given = [flag for name, flag in _NOT_OF_NODES.items() if name in stated]
    if given or len(places) > 1:
        word = given[0] if given else "SRC DST"
        raise click.UsageError(
            f"{word}: cannot be combined with --nodes, which tries streams, stripes and nodes of a"
            " testbed"
        )
    network, tool = places[0] if places else PRESET, options["tool"]
    tool = None if tool == "native" else tool
    if options["explain"] or options["forget"] or options["export"] is not None:
        assert store is not None  # the caller has refused the rest
        return _told(network, tool, store, options)
    return _searched(network, tool, store, options)


def _searched(
    network: str, tool: str | None, store: Store | None, options: Mapping[str, Any]
) -> int:
    from farline.api.node_sampler import BedNodes
    from farline.cli.tune_text import View
    from farline.tuning.node_job import NodeTuneJob

    nodes: int = options["nodes"]
    view = View(options["as_json"])
    with interruptible(options["as_json"]) as asked:
        job = NodeTuneJob(
            BedNodes(network, nodes, tool), nodes, store, budget_s=options["budget_s"],
            should_stop=asked,
        )  # fmt: skip
        try:
            with job:
                for event in job:
                    view.show(event)
        finally:
            view.end_line()
        result = job.wait()
    choice = result.checked()
    if options["as_json"]:
        click.echo(json.dumps({"schema": 1, **asdict(choice)}, indent=2))
        return 0
    for line in choice_lines(choice, tool):
        click.echo(line)
    if result.kept is not None:
        of_tool = "" if tool is None else f" --tool {tool}"
        shows = f"farline tune {network} --nodes {nodes}{of_tool} --explain"
        click.echo(f"  kept: {shows} shows it")
    return 0


def choice_lines(choice: NodeChoice, tool: str | None = None) -> Iterator[str]:
    """The choice, the default beside it, why each phase ended, what a node can carry."""
    from farline.models.end_to_end import NodeSetting
    from farline.tuning.search import REASON_TEXT

    setting = NodeSetting.of_label(choice.label)
    yield f"choice: {choice.label}: {rate_human(choice.rate_bps)}"
    stripes, streams = counted(setting.stripes, "stripe"), counted(setting.streams, "stream")
    nodes = counted(setting.nodes, "node")
    with_tool = "" if tool is None else f" --tool {tool}"
    yield (
        f"  use: on each of {nodes}, {stripes} of {streams}: farline probe SINK{with_tool} "
        f"--streams {setting.streams}"
    )
    if choice.default_bps is not None:
        yield (
            f"  default: {choice.default}: {rate_human(choice.default_bps)}; the choice is "
            f"x{choice.gain or 0:.3g} of it"
        )
    for phase, reason in choice.reasons.items():
        text = "all nodes are used" if reason == "cap:nodes" else REASON_TEXT[reason]  # type: ignore[index]
        yield f"  {_PHASES[phase]}: {text.replace('more streams were', 'more of them were')}"
    yield f"  a node: {_capacities(choice)}"


def _capacities(choice: NodeChoice) -> str:
    nic, process = choice.nic_bps, choice.process_bps
    known = [] if nic is None else [f"interface {rate_human(nic)}"]
    known += [] if process is None else [f"one process without a network {rate_human(process)}"]
    return ", ".join([*known, "no disk: memory to memory"])


def _told(network: str, tool: str | None, store: Store, options: Mapping[str, Any]) -> int:
    """What is kept of a network, for farline or for a tool."""
    from farline.store.paths.node_choices import forget_node_choice, read_node_choice

    folder = store.layout.paths
    network = network if tool is None else f"{network} {tool}"
    if options["forget"]:
        there = forget_node_choice(folder, network)
        word = "the choice is deleted" if there else "there was no choice"
        click.echo(f"nodes of {network}: {word}")
        return 0
    choice = read_node_choice(folder, network)
    if options["export"] is not None or options["as_json"]:
        document = {"schema": 1, "network": network, "choice": choice and asdict(choice)}
        return _written(json.dumps(document, indent=1), options)
    if choice is None:
        click.echo(f"nothing is known of the nodes of {network}")
        return 0
    age_days = (time.time() - choice.made_s) / 86_400
    click.echo(f"nodes of {network}: {counted(len(choice.samples), 'sample')}, "
               f"{counted(int(age_days), 'day')} old")  # fmt: skip
    for label, rate_bps in choice.samples.items():
        click.echo(f"  {label:>26}: {rate_human(rate_bps)}")
    for line in choice_lines(choice, tool):
        click.echo(line)
    return 0


def _written(text: str, options: Mapping[str, Any]) -> int:
    from farline.cli.tune_text import write_export

    write_export(text, "-" if options["export"] is None else str(options["export"]))
    return 0
