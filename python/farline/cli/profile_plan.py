"""What `farline profile` is to run: the plan in a file, with what the options say instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from farline.campaign.path_table import check_variable
from farline.campaign.plan import Plan, load_plan, plan_from_document
from farline.cli.limits import SECONDS
from farline.cli.link_flags import host_cpus_option, link_flags, take_link_values
from farline.spec.links import LINK_OPTION_BY_KEY
from farline.spec.options import grid_from_options

_PLAN_FLAGS = (
    "name", "repetitions", "min_repetitions", "max_repetitions", "relative_half_width",
    "confidence", "reference", "pause_s", "count_invalid",
)  # fmt: skip
_PLACE_FLAGS = ("testbed", "client_host", "server_host", "link", "host_cpus")


def plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Flags for what stands under [campaign] in a plan."""
    for option in reversed(
        (
            click.option("--name", help="Name the campaign (default: as the plan file)."),
            click.option("--repetitions", type=int, help="Run each setting exactly N times."),
            click.option(
                "--min-repetitions", type=int, help="Run each setting at least N times (default 5)."
            ),
            click.option(
                "--max-repetitions", type=int, help="Run each setting at most N times (default 27)."
            ),
            click.option(
                "--half-width",
                "relative_half_width",
                type=float,
                metavar="SHARE",
                help="Repeat until the interval around the mean is this narrow (default 0.05).",
            ),
            click.option(
                "--confidence",
                type=float,
                metavar="SHARE",
                help="Use this confidence for the interval (default 0.95).",
            ),
            click.option(
                "--reference",
                metavar="first|none",
                help="Compare other settings with the first one, or with none (default first).",
            ),
            click.option(
                "--pause", "pause_s", type=SECONDS, help="Wait between two runs (default 0s)."
            ),
        )
    ):
        command = option(command)
    return command


def path_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Flags for what stands under [path] in a plan: the emulated path to profile without HOST."""
    places = (
        click.option(
            "--testbed",
            metavar="PRESET|FILE|NAME",
            help="Emulate the path by this testbed (default: two hosts back to back).",
        ),
        click.option(
            "--client-host", metavar="NAME", help="Start the runs on this host of the testbed."
        ),
        click.option(
            "--server-host", metavar="NAME", help="Serve the runs on this host of the testbed."
        ),
        click.option(
            "--link",
            metavar="NAME",
            help="Apply link options to this link (default: the main link and its copies).",
        ),
        host_cpus_option,
        click.option(
            "--count-invalid",
            is_flag=True,
            default=None,
            help="Use runs even if the emulated path was not accurate.",
        ),
    )
    command = link_flags(prefix="link-", sweep=True)(command)
    for option in reversed(places):
        command = option(command)
    return command


def read_plan(plan_path: str | None, options: dict[str, Any]) -> Plan:
    """The plan in the file, if any, with what the options say instead."""
    said = _stated(options, _PLAN_FLAGS)
    place = _stated(options, _PLACE_FLAGS)
    link = take_link_values(options)
    plan = load_plan(Path(plan_path)) if plan_path else Plan()
    document = plan.document()
    if "repetitions" in said:
        for key in ("min_repetitions", "max_repetitions"):
            document["campaign"].pop(key)
    document["campaign"].update(said)
    document.setdefault("path", {}).update(place)
    return _with_link(plan_from_document(document).with_grid(grid_from_options(options)), link)


def has_grid(plan: Plan) -> bool:
    """Whether a plan has more than one setting."""
    return bool(plan.axes or plan.together or plan.points)


def _stated(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: options.pop(name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _with_link(plan: Plan, values: Mapping[str, Any]) -> Plan:
    """`plan` with values of the link instead of its own; several of one vary it."""
    fixed, axes = dict(plan.fixed), dict(plan.axes)
    for key, value in values.items():
        name, several = f"path.{key}", isinstance(value, tuple) and len(value) > 1
        fixed.pop(name, None), axes.pop(name, None)
        if several:
            check_variable(f"--link-{LINK_OPTION_BY_KEY[key].flags[0][2:]}", key)
            axes[name] = value
        else:
            fixed[name] = value[0] if isinstance(value, tuple) else value
    return replace(plan, fixed=fixed, axes=axes)
