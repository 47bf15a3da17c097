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
from farline.copying import CopyRequest
from farline.errors import UsageError
from farline.store.paths.choices import StoredChoice, forget_choice, read_choice
from farline.store.paths.history import forget_path, path_history
from farline.store.paths.past_transfer import PastTransfer, PathEnds, bare_host
from farline.tools.events import Event
from farline.tools.native import parse_target
from farline.tuning.job import BUDGET_S, KNOBS, METHODS, TuneJob, TuneRequest, TuneResult
from farline.tuning.situation import GOALS

if TYPE_CHECKING:
    from farline.copying import DataPath
    from farline.store import Store
    from farline.tools.ssh import SshCommand
    from farline.tuning.choice import Choice
    from farline.tuning.job import KnobNames, Method
    from farline.tuning.situation import Goal


class Tune(BackgroundJob[Event]):
    """One search. What it came to is there at its end: these properties wait for it."""

    def __init__(
        self, request: TuneRequest, sampler: ProbeSampler | CopySampler, store: Store | None
    ) -> None:
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
    knobs: KnobNames = "streams",
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
    made from what the store knows, and nothing is sampled or kept. `knobs="files"` searches
    files at once beside streams. The choice is kept in `store` for copies, unless `keep` is false.

    Raises:
        UsageError: when the places make no path, or a word is not one of those above.
        SpecError: when an option is not allowed.
    """  # fmt: skip
    for name, word, allowed in (
        ("goal", goal, GOALS), ("method", method, METHODS), ("knobs", knobs, KNOBS)
    ):  # fmt: skip
        if word not in allowed:
            raise UsageError(f"{name}: {word!r} is not one of {', '.join(allowed)}")
    known = store_at(store)
    sampler = sampler_for(places, options, known if keep else None, ssh, data_path)
    request = TuneRequest(goal, budget_s, dry_run, method=method, knobs=knobs, keep=keep)
    return Tune(request, sampler, known)


def sampler_for(
    places: tuple[Location | Iterable[Location], ...],
    options: dict[str, Any],
    store: Store | None,
    ssh: SshCommand | None = None,
    data_path: DataPath | None = None,
) -> ProbeSampler | CopySampler:
    """What tries settings between these places.

    Raises:
        UsageError: when they make no path.
        SpecError: when an option is not allowed.
    """
    if len(places) == 1 and isinstance(places[0], str | PathLike):
        return ProbeSampler(str(places[0]), spec_of(options), store)
    words = tuple(_text(one) for place in places for one in _sources(place))
    more = {} if data_path is None else {"data_path": data_path}
    request = CopyRequest.between(
        *words, spec=copy_spec_of(options), ssh=ssh, keep=store is not None,
        store_path=None if store is None else store.path, **more,
    )  # fmt: skip
    return CopySampler(request, store)


@dataclass(frozen=True, slots=True)
class KnownPath:
    """What a store knows of the path to a host or from it."""

    far: str
    pushes: bool
    transfers: tuple[PastTransfer, ...]
    choice: StoredChoice | None

    def document(self) -> dict[str, Any]:
        """For JSON: hosts, times, settings and rates; no names of files or users."""
        return {
            "schema": 1,
            "host": self.far,
            "direction": "to" if self.pushes else "from",
            "exported_s": round(time.time()),
            "choice": None if self.choice is None else asdict(self.choice),
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
    return KnownPath(far, pushes, rows, read_choice(store.layout.paths, far, pushes))


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

    Raises:
        UsageError: when there is none.
    """
    from farline.copying.locations import SCHEME, SshHost, read_location

    if not place.startswith(SCHEME) and ":" in place and "/" not in place.partition(":")[0]:
        head, _, tail = place.rpartition(":")
        if not (tail.isdigit() and head):
            host = read_location(place).host
            if isinstance(host, SshHost):
                return bare_host(host.host)
    return bare_host(parse_target(place.partition("#")[0]).host)


def _ends(far: str, pushes: bool) -> PathEnds:
    """Any host of this machine's names: the store is this machine's."""
    return PathEnds.between((), far) if pushes else PathEnds.between(far, ())
