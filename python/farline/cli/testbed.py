"""`farline testbed`: hosts on this machine, joined by emulated links.

Its commands: bringing up and taking down are here, looking in `testbed_status`, links in
`testbed_link`, congestion controls in `testbed_cc`, file systems in `testbed_storage`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from farline.cli.command import Command, Group
from farline.cli.link_flags import host_cpus_option, link_flags, take_link_values
from farline.cli.stamped import run_stamped
from farline.cli.testbed_cc import cc
from farline.cli.testbed_link import capture, change, cut, restore
from farline.cli.testbed_status import host_documents, host_lines, link_line, status
from farline.cli.testbed_storage import storage
from farline.cli.toml_text import toml_text
from farline.errors import FarlineError, UnreachableError, UsageError
from farline.spec.links import across, find_link
from farline.testbeds import Testbed, list_beds, load, sweep, take_down
from farline.testbeds import presets as known
from farline.testbeds.lookup import find_bed, find_host

if TYPE_CHECKING:
    from farline.spec._types import Topology

_ENDINGS = {
    "down": " is down",
    "killed": " did not answer, so it was killed and is down now",
    "swept": " had already ended; what it left was removed",
}
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

_HELP = """Emulate a network on this machine: hosts joined by links of any rate and delay.

Hosts are network namespaces, in which any program runs. The emulator needs no kernel module.
"""


_Command = TypeVar("_Command", bound=Callable[..., Any])


def _topology_options(command: _Command) -> _Command:
    """What is stated instead of the topology's own values; see `_resolved`."""
    options = (
        link_flags(),
        click.option(
            "--seed", type=click.IntRange(0), help="Seed all random losses, delays and errors."
        ),
        click.option(
            "--precise",
            is_flag=True,
            help="Keep time to about 10 us by using one CPU fully.",
        ),
        host_cpus_option,
        click.option(
            "--set",
            "parameters",
            multiple=True,
            metavar="NAME=N",
            help="Set a number of the topology, such as k=8; see farline testbed presets.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=Group, help=_HELP, short_help="Emulate a network on this machine.")
def command() -> None:
    """Chooses the command."""


@command.command(cls=Command, short_help="Bring up a testbed.")
@click.argument("source", metavar="PRESET|FILE")
@click.option("--name", metavar="NAME", help="Name the testbed (default: as the topology).")
@_topology_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def up(
    source: str,
    name: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Bring up hosts and links, which stay until `farline testbed down`.

    Link options apply to both directions of the main link, --mtu to all links. A queue holds
    one bandwidth-delay product unless its size is given.
    """
    topology = _resolved(source, options)
    bed = Testbed.up(topology, name or topology["name"], keep=True)
    for line in bed.warnings:
        click.echo(f"farline: {line}", err=True)
    if as_json:
        click.echo(json.dumps(_document(bed), indent=2))
        return
    for line in _up_lines(bed):
        click.echo(line)


def _resolved(source: str, options: dict[str, Any]) -> Topology:
    stated = take_link_values(options)
    for name in ("seed", "host_cpus"):
        if options[name] is not None:
            stated[name] = options[name]
    if options["precise"]:
        stated["mode"] = "precise"
    for text in options["parameters"]:
        key, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--set {text!r}: write NAME=N, such as k=8")
        stated[key.strip()] = value.strip()
    return load(source, **stated)


def _document(bed: Testbed) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": bed.name,
        "hosts": host_documents(bed),
        "topology": bed.topology(),
        "warnings": bed.warnings,
    }


def _up_lines(bed: Testbed) -> list[str]:
    topology = bed.topology()
    links = len(topology["links"])
    counts = f"{len(bed.hosts)} hosts, {links} link{'s' * (links != 1)}"
    first = next(iter(bed.hosts))
    last = across(topology, first, None)
    return [
        f"testbed {bed.name} is up: {counts}",
        *host_lines(bed),
        link_line(find_link(topology)),
        f"run a command in it: farline testbed exec {bed.name} {first} -- ping {last}",
        f"end it:    farline testbed down {bed.name}",
    ]


@command.command(
    "exec",
    cls=Command,
    short_help="Run a program on a host.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--stamp", is_flag=True, help="Report on standard error whether the emulation was accurate."
)
@click.argument("words", metavar="[NAME] HOST [-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
def execute(stamp: bool, words: tuple[str, ...]) -> int:
    """Run a program on a host of a testbed, or a shell if no program is given.

    Input, signals and the exit status are those of the program. Hosts find each other by
    name. NAME may be omitted while only one testbed is up.
    """
    place, program = _split(words)
    bed = find_bed(place[0] if len(place) == 2 else None)
    host = find_host(bed, place[-1])
    argv = host.command(program) if program else host.shell()
    if stamp:
        return run_stamped(bed, argv)
    bed.close()
    # Python ignores these, and a program keeps what was ignored when it began.
    before = {number: signal.signal(number, signal.SIG_DFL) for number in _IGNORED_BY_PYTHON}
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        for number, action in before.items():
            signal.signal(number, action)
        raise UsageError(f"{argv[0]}: {error.strerror}") from None


def _split(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """`[NAME] HOST` and the program; without `--` the first word is the host."""
    given = list(words)
    if "--" in given:
        at = given.index("--")
        place, program = given[:at], given[at + 1 :]
    else:
        place, program = given[:1], given[1:]
    if len(place) not in (1, 2):
        raise click.UsageError("no host is named: write [NAME] HOST -- COMMAND...")
    return place, program


command.add_command(status)


@command.command("list", cls=Command, short_help="List the testbeds that are up.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_up(as_json: bool) -> None:
    """List the testbeds that are up, and clean up after those that crashed."""
    beds = list_beds()
    if as_json:
        rows = [
            {"name": b.name, "topology": b.topology, "pid": b.pid, "owned": b.owned,
             "started_unix_s": b.started_unix_s}
            for b in beds
        ]  # fmt: skip
        click.echo(json.dumps({"schema": 1, "testbeds": rows}, indent=2))
        return
    if not beds:
        click.echo("no testbed is up; `farline testbed up PRESET` brings one up")
    for bed in beds:
        age = f"up {time.time() - bed.started_unix_s:.0f} s, keeper {bed.pid}"
        own = ", ends with the program that started it" if bed.owned else ""
        click.echo(f"{bed.name:<24}{bed.topology:<20}{age}{own}")


command.add_command(change)
command.add_command(cut)
command.add_command(restore)
command.add_command(capture)


@command.command(cls=Command, short_help="Take down a testbed.")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Take down all testbeds.")
def down(name: str | None, everything: bool) -> int:
    """Take down a testbed and end every program in it.

    NAME may be omitted while only one testbed is up. A testbed that does not respond is ended
    by force.
    """
    if everything and name is not None:
        raise click.UsageError("--all and a name cannot be combined")
    names = [name] if name is not None else _down_names(everything)
    code = 0
    for one in names:
        try:
            how = take_down(one)
            if how is None and not everything:
                raise UnreachableError(
                    f"testbed {one!r} is not up; `farline testbed list` shows those that are"
                )
        except FarlineError as error:
            if not everything:
                raise
            click.echo(f"farline: {error.message}", err=True)
            code = code or error.exit_code
        else:
            click.echo(f"testbed {one}{_ENDINGS[how or 'down']}")
    return code


def _down_names(everything: bool) -> list[str]:
    """Testbeds that are to end where none is named; what dead ones left is removed here."""
    swept = sweep()
    for one in swept.gone:
        click.echo(f"testbed {one}{_ENDINGS['swept']}")
    for line in swept.left.values():
        click.echo(f"farline: {line}", err=True)
    names = [bed.name for bed in list_beds()]
    if everything or len(names) == 1:
        if not names and not swept.gone:
            click.echo("no testbed is up")
        return names
    if names:
        raise UsageError(f"{len(names)} testbeds are up: name one of {', '.join(names)}")
    if not swept.gone:
        raise UsageError("no testbed is up; `farline testbed up PRESET` brings one up")
    return []


@command.command(cls=Command, short_help="List the networks to start from.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def presets(as_json: bool) -> None:
    """List the networks that come with farline, and the numbers that --set can change."""
    found = known().values()
    if as_json:
        rows = [
            {"name": p.name, "description": p.description, "parameters": dict(p.parameters)}
            for p in found
        ]
        click.echo(json.dumps({"schema": 1, "presets": rows}, indent=2))
        return
    for preset in found:
        open_numbers = " ".join(f"{key}={value}" for key, value in preset.parameters.items())
        click.echo(
            f"{preset.name:<20}{preset.description}{f' [{open_numbers}]' * bool(open_numbers)}"
        )


@command.command(cls=Command, short_help="Print a topology as it would come up.")
@click.argument("source", metavar="PRESET|FILE")
@_topology_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of TOML.")
def show(source: str, as_json: bool, **options: Any) -> None:
    """Print a topology with all values filled in, as a file for `farline testbed up`."""
    topology = _resolved(source, options)
    if as_json:
        click.echo(json.dumps(topology, indent=2))
        return
    click.echo(toml_text(topology), nl=False)


command.add_command(cc)
command.add_command(storage)
