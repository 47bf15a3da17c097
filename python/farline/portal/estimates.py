"""Estimates between endpoints, sites or hosts, from the store as it is now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

from farline.errors import SpecError
from farline.estimating import Question, TransferEstimate
from farline.estimating.document import document_of
from farline.portal.endpoints import Endpoints
from farline.portal.knowledge import Knowledge
from farline.portal.settings import FARTHEST_S
from farline.store.paths import PathEnds

if TYPE_CHECKING:
    from farline.spec._types import TransferEstimate as Document

MOST_ROUTES = 10_000


@dataclass(frozen=True)
class Route:
    """From where to where: names as asked, hosts as the store knows them, sites if known."""

    source: str
    destination: str
    ends: PathEnds
    source_site: str
    destination_site: str


class Estimates:
    """Answers questions about transfers that may run."""

    def __init__(self, knowledge: Knowledge, endpoints: Endpoints) -> None:
        self._knowledge, self._endpoints = knowledge, endpoints
        self._names: dict[tuple[str, object], frozenset[str]] = {}

    def route(self, source: str, destination: str) -> Route:
        """The path between two endpoints, sites or hosts.

        Raises:
            SpecError: for a name that is none of these.
        """
        first, second = self._names_of(source), self._names_of(destination)
        return Route(
            source, destination, PathEnds.between(first, second),
            self.site(source, first), self.site(destination, second),
        )  # fmt: skip

    def is_quick(self, route: Route, question: Question) -> bool:
        """Whether the answer takes a millisecond, and not the history of the path once more."""
        return self._knowledge.now.is_quick(route.ends, question.confidence)

    def ask(self, route: Route, question: Question) -> TransferEstimate:
        """The estimate; link and round-trip time are those of the connection, where it is stated.

        Raises:
            SpecError: for amounts or times that cannot be.
        """
        _check(question)
        history = self._knowledge.now.history(route.ends)
        return history.estimate(self._with_connection(route, question))

    def document(self, route: Route, question: Question) -> Document:
        """The document of the estimate; its times are in UTC.

        Raises:
            SpecError: as `ask`.
        """
        estimate = self.ask(route, question)
        return document_of(estimate, route.source, route.destination, UTC)

    def _with_connection(self, route: Route, question: Question) -> Question:
        known = self._knowledge.infrastructure
        sites = () if known is None else known.site_names
        if known is None or not {route.source_site, route.destination_site} <= set(sites):
            return question
        connection = known.connection(route.source_site, route.destination_site)
        capacity_bps = known.capacity(route.source_site, route.destination_site)
        rtt_s = None if connection is None else connection.rtt_ms / 1e3
        return replace(
            question, link_bps=question.link_bps or capacity_bps, rtt_s=question.rtt_s or rtt_s
        )

    def site(self, name: str, names: frozenset[str]) -> str:
        """The site that one of an end's names belongs to, else the name as asked."""
        known = self._knowledge.infrastructure
        if known is None:
            return name
        sites = (known.site_of(one) for one in (name, *sorted(names)))
        return next((site for site in sites if site is not None), name)

    def _names_of(self, name: str) -> frozenset[str]:
        """Names of the hosts that are meant."""
        snapshot = self._knowledge.now
        endpoint = self._endpoints.find(name)
        key = (name, snapshot if endpoint is None else endpoint.created_s)
        if key not in self._names:
            if len(self._names) >= MOST_ROUTES:
                self._names.clear()
            self._names[key] = (
                snapshot.names_of(name) if endpoint is None else endpoint.host_names()
            )
        return self._names[key]


def _check(question: Question) -> None:
    latest_s = question.now_s + FARTHEST_S
    for what, at_s in (("start", question.start_s), ("deadline", question.deadline_s)):
        if at_s is not None and not question.now_s - 60 <= at_s <= latest_s:
            raise SpecError(f"{what}: it must be between now and a year from now")
    if question.deadline_s is not None and question.deadline_s <= question.begins_s:
        raise SpecError("deadline: it must be after start")


def question_of(now_s: float, **values: Any) -> Question:
    """A question that is asked now; what is None is left to the path's history."""
    return Question(now_s=now_s, **values)
