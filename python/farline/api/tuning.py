"""`farline.tune`: how to use a path, found with few samples, as a job."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from farline.api.copy import Location, _sources, _text
from farline.api.job import BackgroundJob, Status
from farline.api.options import copy_spec_of, spec_of
from farline.api.samplers import CopySampler, ProbeSampler
from farline.api.stores import StoreLike, store_at
from farline.api.tool_sampler import ToolSampler
from farline.copying import CopyRequest
from farline.copying.locations import SshHost, ThisHost, read_endpoints
from farline.drivers.catalogue import NATIVE
from farline.errors import UsageError
from farline.store.paths.choices import (
    StoredChoice,
    forget_choice,
    read_choice,
    read_tool_choices,
)
from farline.store.paths.history import forget_path, path_history
from farline.store.paths.past_transfer import PastTransfer, PathEnds, bare_host
from farline.tools.events import Event
from farline.tools.native import parse_target
from farline.tools.ssh_command import SshCommand
from farline.tuning.job import BUDGET_S, METHODS, TuneJob, TuneRequest, TuneResult
from farline.tuning.knobs import KNOBS
from farline.tuning.situation import GOALS

if TYPE_CHECKING:
    from farline.copying import DataPath
    from farline.store import Store
    from farline.tuning.choice import Choice
    from farline.tuning.job import Method
    from farline.tuning.knobs import Knob
    from farline.tuning.situation import Goal


AnySampler = ProbeSampler | CopySampler | ToolSampler


class Tune(BackgroundJob[Event]):
    """One search. What it came to is there at its end: these properties wait for it."""

    def __init__(self, request: TuneRequest, sampler: AnySampler, store: Store | None) -> None:
        """Begins; see `tune`."""
        self._job = TuneJob(request, sampler, store, should_stop=self._should_stop)
        self._result: TuneResult | None = None
        super().__init__("tune")

    def _work(self) -> Status:
        for event in self._job:
            self._tell(event)
        self._result = self._job.wait()
        self._result.checked()
        return "complete"

    @property
    def result(self) -> TuneResult:
        """Choice, cost, what is known of the path, and where the choice is kept."""
        self._join(None)
        if self._result is None:
            self._checked()
        assert self._result is not None
        return self._result

    @property
    def choice(self) -> Choice:
        """The setting with what is expected of it, and the default beside it.

        Raises:
            FarlineError: what the search failed with.
        """
        return self.result.checked()

    def __repr__(self) -> str:
        """One line."""
        return f"<farline.Tune: {self._line()}>"

    def _line(self) -> str:
        if not self.done:
            return "running"
        found = None if self._result is None else self._result.choice
        return self.status if found is None else found.setting.text

    def _repr_html_(self) -> str:
        """The choice, for a notebook."""
        from html import escape

        return f"<p>farline.tune: <b>{escape(self._line())}</b></p>"


def tune(
    *places: Location | Iterable[Location],
    goal: Goal = "throughput",
    budget_s: float = BUDGET_S,
    dry_run: bool = False,
    method: Method = "history",
    knobs: Knob | Iterable[Knob] = "streams",
    tool: str | None = None,
    store: StoreLike = None,
    keep: bool = True,
    ssh: SshCommand | None = None,
    data_path: DataPath | None = None,
    **options: Any,
) -> Tune:
    """Begins to find how a path is used best: `tune("dtn1")` or `tune("data/", "dtn1:/data")`.

    With one place, a host or a ticket, samples are measurements (options of `farline.probe`); with
    a source and a destination they are pieces of that copy (options of `farline.copy`), and what
    they move stays. `goal` is `throughput`, `fairness` or `cpu`. With `dry_run` the choice is
    made from what the store knows, and nothing is sampled or kept. `knobs` names one or
    more of `streams`, `files` (at once), `pipelining`, `block`, `buffers`, `congestion` and
    `transport`. With `tool` (such as "gridftp") runs of that tool are the samples. The choice is
    kept in `store` for copies, unless `keep` is false.

    Raises:
        UsageError: when the places make no path, or a word is not one of those above.
        SpecError: when an option is not allowed.
    """  # fmt: skip
    wanted = (knobs,) if isinstance(knobs, str) else tuple(knobs)
    asked = [("goal", goal, GOALS), ("method", method, METHODS)]
    for name, word, allowed in [*asked, *(("knobs", knob, KNOBS) for knob in wanted)]:
        if word not in allowed:
            raise UsageError(f"{name}: {word!r} is not one of {', '.join(allowed)}")
    known = store_at(store)
    if tool is not None:
        options["tool"] = tool
    sampler = sampler_for(places, options, known if keep else None, ssh, data_path)
    request = TuneRequest(goal, budget_s, dry_run, method=method, knobs=wanted, keep=keep)
    return Tune(request, sampler, known)


def sampler_for(
    places: tuple[Location | Iterable[Location], ...],
    options: dict[str, Any],
    store: Store | None,
    ssh: SshCommand | None = None,
    data_path: DataPath | None = None,
    port: int | None = None,
) -> AnySampler:
    """What tries settings between these places; `port` is that of a tool's running server.

    Raises:
        UsageError: when they make no path.
        SpecError: when an option is not allowed.
    """
    if options.get("tool", NATIVE) != NATIVE:
        return _tool_sampler(places, options, store, ssh, port)
    options.pop("tool", None)
    if len(places) == 1 and isinstance(places[0], str | PathLike):
        return ProbeSampler(str(places[0]), spec_of(options), store)
    words = tuple(_text(one) for place in places for one in _sources(place))
    more = {} if data_path is None else {"data_path": data_path}
    request = CopyRequest.between(
        *words, spec=copy_spec_of(options), ssh=ssh, keep=store is not None,
        store_path=None if store is None else store.path, **more,
    )  # fmt: skip
    return CopySampler(request, store)


def _tool_sampler(
    places: tuple[Location | Iterable[Location], ...],
    options: dict[str, Any],
    store: Store | None,
    ssh: SshCommand | None,
    port: int | None,
) -> ToolSampler:
    """What tries settings of a driven tool: towards a host, or with files of this one.

    Raises:
        UsageError: when the places make no path, or the files are not here.
    """
    from farline.api.tool_here import tool_chooser
    from farline.api.tool_sampler import ToolFiles

    if len(places) == 1:
        address = parse_target(str(places[0])).host
        return ToolSampler(address, options, tool_chooser(port, ssh), store)
    words = tuple(_text(one) for place in places for one in _sources(place))
    ends = read_endpoints(words)
    if not isinstance(ends.source_host, ThisHost):
        raise UsageError(
            f"--tool {options['tool']}: samples are files of this host: run it where they are, or "
            "measure without files: farline tune HOST --tool"
        )
    far, login, server = "127.0.0.1", None, options.get("tool_server")
    if isinstance(ends.destination_host, SshHost):
        login = ends.destination_host.target
        far = (ssh or SshCommand()).host_name(login, login.rpartition("@")[2])
        options = {"tool_server": "ssh", **options}
    elif not isinstance(ends.destination_host, ThisHost):
        raise UsageError(
            f"--tool {options['tool']}: a ticket is for farline alone: write HOST:PATH"
        )
    chooser = tool_chooser(port if server == "standing" else None, ssh, login)
    files = ToolFiles(ends.sources, ends.destination)
    return ToolSampler(far, options, chooser, store, files)


@dataclass(frozen=True, slots=True)
class KnownPath:
    """What a store knows of the path to a host or from it."""

    far: str
    pushes: bool
    transfers: tuple[PastTransfer, ...]
    choice: StoredChoice | None
    """Of farline's own copies."""
    of_tools: tuple[StoredChoice, ...] = ()
    """Of driven tools."""

    def document(self) -> dict[str, Any]:
        """For JSON: hosts, times, settings and rates; no names of files or users."""
        return {
            "schema": 1,
            "host": self.far,
            "direction": "to" if self.pushes else "from",
            "exported_s": round(time.time()),
            "choice": None if self.choice is None else asdict(self.choice),
            "tool_choices": [asdict(one) for one in self.of_tools],
            "transfers": [row.document() for row in self.transfers],
        }


def known_path(place: str, store: Store, pushes: bool = True) -> KnownPath:
    """What is known of the path to a host (`pushes`) or from it.

    `place` may be a target, or a location of a copy.

    Raises:
        UsageError: when no host is named.
    """
    far = host_of(place)
    rows = path_history(store, _ends(far, pushes))
    folder = store.layout.paths
    own, others = read_choice(folder, far, pushes), read_tool_choices(folder, far, pushes)
    return KnownPath(far, pushes, rows, own, others)


def forget(place: str, store: Store, pushes: bool = True) -> tuple[int, bool]:
    """Begins a path anew: how many transfers count no more, and whether there was a choice.

    The runs themselves stay in the store.

    Raises:
        UsageError: when no host is named.
        SystemFailure: when the store refuses.
    """
    far = host_of(place)
    there = forget_choice(store.layout.paths, far, pushes)
    return forget_path(store, _ends(far, pushes)), there


def host_of(place: str) -> str:
    """The host in a target or in a location of a copy, without port and user.

    Several nodes are one end, whose history is kept by the name that they were given.

    Raises:
        UsageError: when there is none.
    """
    from farline.copying.locations import SCHEME, SshHost, read_location
    from farline.copying.pools import split_pool

    head, _, tail = place.rpartition(":")
    has_port = bool(head) and tail.isdigit()
    if not has_port and (pool := split_pool(place)) is not None:
        return bare_host(pool[0].text)
    is_far = not place.startswith(SCHEME) and ":" in place and "/" not in place.partition(":")[0]
    if is_far and not has_port:
        host = read_location(place).host
        if isinstance(host, SshHost):
            return bare_host(host.host)
    return bare_host(parse_target(place.partition("#")[0]).host)


def _ends(far: str, pushes: bool) -> PathEnds:
    """Any host of this machine's names: the store is this machine's."""
    return PathEnds.between((), far) if pushes else PathEnds.between(far, ())
