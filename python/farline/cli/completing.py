"""What the Tab key offers: commands, options, and the names that this host knows.

The scripts are those of click; they call `farline` with `_FARLINE_COMPLETE` set and read what
`answer` prints. What cannot be found out is not offered: the Tab key says no errors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import TypeAlias

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    _resolve_context,
    _resolve_incomplete,
)

VARIABLE = "_FARLINE_COMPLETE"
"""Set by the scripts: `bash_source` asks for the script, `bash_complete` for what fits."""

_NEWEST = 50
"""So many runs are offered."""

_FILES = frozenset(("files", "places", "plan_path", "source"))
"""Parameters that can be files, though click takes them for words."""

_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

_Offers: TypeAlias = Iterable[tuple[str, str]]
"""Words, and what each is; nothing where the word says it."""


def answer(cli: click.Group, instruction: str) -> int:
    """Prints what a shell asked for with `instruction`; 1 for what none of them asks."""
    shell, _, wanted = instruction.partition("_")
    if shell not in SHELLS or wanted not in ("source", "complete"):
        return 1
    completer = SHELLS[shell](cli, {}, "farline", VARIABLE)
    click.echo(
        completer.source() if wanted == "source" else completer.complete(), nl=wanted != "source"
    )
    return 0


def fitting(cli: click.Group, args: Sequence[str], incomplete: str) -> list[CompletionItem[str]]:
    """What may stand behind `args` and begins with `incomplete`; nothing for a wrong line."""
    with suppress(Exception), redirect_stderr(StringIO()):
        before = list(args)
        context = _resolve_context(cli, {}, "farline", before)
        wanted, begun = _resolve_incomplete(context, before, incomplete)
        known = wanted.shell_complete(context, begun)
        found = {str(one.value): one for one in known}
        for word, what in _own(context, wanted):
            if word.startswith(begun):
                found.setdefault(word, CompletionItem(word, help=what or None))
        if wanted.name not in _FILES:
            return list(found.values())
        # A shell leaves out files where words are offered beside them.
        return [CompletionItem(begun, type="file"), *(found.values() if begun else ())]
    return []


class _Fitting(ShellComplete):
    """Asks `fitting`."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """What may stand behind `args` and begins with `incomplete`."""
        assert isinstance(self.cli, click.Group)
        return fitting(self.cli, args, incomplete)


class _Bash(_Fitting, BashComplete):
    """bash 4.4 or later."""


class _Zsh(_Fitting, ZshComplete):
    """zsh."""


class _Fish(_Fitting, FishComplete):
    """fish."""


SHELLS: Mapping[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def _own(
    context: click.Context, wanted: click.Command | click.Parameter
) -> Iterator[tuple[str, str]]:
    """Names of this host, and words of the options of runs; all of them, whatever is begun."""
    from farline.spec.options import TableOption

    if isinstance(wanted, click.Command) or wanted.name is None:
        return
    path = context.command_path.partition(" ")[2]
    offer = _NAMES.get((path, wanted.name)) or _NAMES.get(("", wanted.name))
    if offer is not None and _is_first(context, wanted, path):
        with context.scope(cleanup=False):
            offers = list(offer())
        yield from offers
    if isinstance(wanted, TableOption):
        words = (word for option in wanted.options for word in option.choices)
        yield from ((word, "") for word in dict.fromkeys(words))
        if any(option.name == "congestion_control" for option in wanted.options):
            yield from _controls()


def _is_first(context: click.Context, wanted: click.Parameter, path: str) -> bool:
    """Whether the name belongs here: of several words only the first may be one."""
    return path not in _FIRST_ONLY or not context.params.get(str(wanted.name))


def _stated(name: str) -> Path | None:
    """The folder that an option before the word names; a shell leaves `~` and `$HOME` to others."""
    from farline.spec.user_folders import expanded

    found: Path | None = click.get_current_context().params.get(name)
    return None if found is None else expanded(os.path.expandvars(found))


def _runs() -> _Offers:
    from farline.store import Store

    yield "last", "the newest run"
    table = (
        Store.to_read(_stated("store_path"))
        .runs(limit=_NEWEST)
        .select(["run_id", "transport", "status"])
    )
    for row in table.to_pylist():
        yield row["run_id"], f"{row['transport']}, {row['status']}"


def _running() -> _Offers:
    from farline.copying.control_socket import folder

    yield "last", "the newest copy that runs"
    yield from ((one.stem, "") for one in folder().glob("*.sock"))


def _campaigns() -> _Offers:
    from farline.store import Store

    yield "last", "the newest campaign"
    yield from (
        (str(name), "")
        for name in Store.to_read(_stated("store_path")).campaigns()["campaign"].to_pylist()
    )


def _hosts() -> _Offers:
    from farline.tools.known_servers import KnownServers

    yield from ((address, "known server") for address in KnownServers().all())
    yield from ((name, "from the ssh configuration") for name in _ssh_hosts())


def _places() -> _Offers:
    """Sources and destinations: `host:` for ssh, `host:port` for a known server."""
    for name, what in _hosts():
        yield (name if ":" in name else f"{name}:"), what


def _nodes() -> _Offers:
    """Ends of a copy that have several nodes, and hosts."""
    from farline.copying.pools import pool_names

    yield from ((f"{name}:", "pool") for name in pool_names())
    yield from ((f"{name}:", "from the ssh configuration") for name in _ssh_hosts())


def _ssh_hosts() -> Iterator[str]:
    from farline.spec.user_folders import home_folder

    home = home_folder()
    path = home and home / ".ssh" / "config"
    lines = path.read_text(errors="replace").splitlines() if path and path.is_file() else []
    for line in lines:
        keyword, *names = line.replace("=", " ", 1).split()[:16] or [""]
        if keyword.lower() == "host":
            yield from (name for name in names if not set(name) & set("*?!"))


def _tickets() -> _Offers:
    from farline.cli.server_folders import default_state_dir, keys_text
    from farline.cli.ticket_text import allowed_text
    from farline.tools.native import list_tickets

    state, keys = _stated("state_dir") or default_state_dir(), _stated("keys_dir")
    for one in list_tickets(str(state), keys_text(keys)):
        yield one["claims"]["id"], allowed_text(one)


def _presets() -> _Offers:
    from farline.testbeds import presets

    yield from ((name, preset.description) for name, preset in presets().items())


def _beds() -> _Offers:
    from farline.testbeds import list_beds

    yield from ((one.name, "testbed") for one in list_beds())


def _tools() -> _Offers:
    from farline.drivers import drivers

    yield from ((name, "") for name in ("native", *drivers()))


def _items() -> _Offers:
    from farline.reproduce.items import ITEMS

    yield from ((one.id, one.title) for one in ITEMS)


def _slow_storage() -> _Offers:
    from farline.testbeds.storage import PRESETS

    yield from ((name, "") for name in PRESETS)


def _commands() -> _Offers:
    from farline.cli.verbs import COMMANDS

    yield from ((name, verb.help) for name, verb in COMMANDS.items())


def _plan_keys() -> _Offers:
    from farline.spec.table import OPTIONS

    yield from ((f"{one.path}=", one.help) for one in OPTIONS if one.sweep)


def _controls() -> _Offers:
    yield from ((name, "of this kernel") for name in _CONTROLS.read_text().split())


_NAMES: Mapping[tuple[str, str], Callable[[], _Offers]] = {
    ("", "host"): _hosts,
    ("", "client"): _hosts,
    ("", "forget"): _hosts,
    ("", "campaign"): _campaigns,
    ("", "sweep"): _plan_keys,
    ("", "tool"): _tools,
    ("show", "run_id"): _runs,
    ("adjust", "run"): _running,
    ("copy", "places"): _places,
    ("estimate", "places"): _places,
    ("tune", "places"): _hosts,
    ("nodes", "place"): _nodes,
    ("tools", "names"): _tools,
    ("reproduce", "names"): _items,
    ("testbed storage", "words"): _slow_storage,
    ("ticket show", "ticket"): _tickets,
    ("ticket revoke", "tickets"): _tickets,
    ("testbed up", "source"): _presets,
    ("testbed show", "source"): _presets,
    ("testbed down", "name"): _beds,
    ("testbed status", "name"): _beds,
    ("testbed exec", "words"): _beds,
    ("testbed change", "words"): _beds,
    ("testbed cut", "words"): _beds,
    ("testbed restore", "words"): _beds,
    ("testbed capture", "words"): _beds,
    ("man", "words"): _commands,
}
"""Who knows the names for a parameter, by the words of its command (none: any) and its name."""

_FIRST_ONLY = frozenset(path for path, _ in _NAMES if path.startswith("testbed"))


def installing(shell: str) -> str:
    """How to have the completion of `shell` in every terminal."""
    program = Path(sys.argv[0]).name
    return {
        "bash": f"echo 'eval \"$({program} completion bash)\"' >> ~/.bashrc",
        "zsh": f"echo 'eval \"$({program} completion zsh)\"' >> ~/.zshrc",
        "fish": f"{program} completion fish > ~/.config/fish/completions/farline.fish",
    }[shell]
