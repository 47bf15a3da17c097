"""What was measured, read only: paths, runs, campaigns, profiles, findings; and the endpoints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from farline.portal.access import Caller
from farline.portal.documents import (
    EndpointDocument,
    FairnessDocument,
    ListedDocument,
    Name,
    PastDocument,
    PathDocument,
    PathHistoryDocument,
    PathText,
    TokenDocument,
    maybe_when,
    path_document,
    when,
)
from farline.portal.endpoints import Endpoints, list_folder
from farline.portal.fairness_list import fairness_list
from farline.portal.findings import Findings
from farline.portal.guard import Guard
from farline.portal.knowledge import Knowledge
from farline.portal.problems import NotFoundError
from farline.portal.routes.answers import problems
from farline.store.paths import PastTransfer

RUN_COLUMNS = (
    "run_id", "campaign", "status", "started_at", "client_host", "server_host", "direction",
    "transport", "streams", "total_bps", "verdict_limit", "verdict_line", "error_kind", "error",
)  # fmt: skip

Limit = Annotated[int, Query(ge=1, le=1000)]


def past_document(row: PastTransfer) -> PastDocument:
    """A transfer of the past as it is answered."""
    return PastDocument(
        source=row.source, kind=row.kind, tool=row.tool, ended=maybe_when(row.ended_s),
        rate_bps=row.rate_bps, bytes=row.bytes, streams=row.streams, limit=row.limit,
    )  # fmt: skip


def path_of(knowledge: Knowledge, source: str, destination: str) -> PathDocument:
    """A path that has had transfers.

    Raises:
        NotFoundError: when it has had none.
    """
    for one in knowledge.now.pairs:
        if (one.source, one.destination) == (source, destination):
            return path_document(one)
    raise NotFoundError(f"{source[:80]} to {destination[:80]}: no transfer is known of this path")


def routes(guard: Guard, knowledge: Knowledge, findings: Findings) -> APIRouter:
    """The routes over what was measured."""
    router = APIRouter(prefix="/v1", tags=["results"], dependencies=[guard.needs("see")])

    @router.get("/paths", responses=problems())
    def paths() -> list[PathDocument]:
        """All paths that have had transfers, by name."""
        return [path_document(one) for one in knowledge.now.pairs]

    @router.get("/paths/{source}/{destination}", responses=problems(404))
    def path(source: Name, destination: Name, limit: Limit = 100) -> PathHistoryDocument:
        """A path and its newest transfers, the newest first."""
        found = path_of(knowledge, source, destination)
        rows = knowledge.now.by_path[source, destination][-limit:]
        return PathHistoryDocument(path=found, transfers=[past_document(r) for r in rows[::-1]])

    @router.get("/runs", responses=problems())
    def runs(limit: Limit = 100) -> list[dict[str, Any]]:
        """The newest runs, the newest first."""
        return list(knowledge.runs(limit, RUN_COLUMNS))

    @router.get("/runs/{run}", responses=problems(404))
    def run(run: Name) -> dict[str, Any]:
        """The whole record of a run, as `farline show --json` prints it."""
        return knowledge.record(run)

    @router.get("/campaigns", responses=problems())
    def campaigns() -> list[dict[str, Any]]:
        """Campaigns, the newest first: when they began, and how many runs ended how."""
        return list(knowledge.campaigns())

    @router.get("/fairness", responses=problems(202))
    def fairness() -> list[FairnessDocument]:
        """Fairness measurements, the newest first: on which line, and each transfer's verdict."""
        return [FairnessDocument(**asdict(one)) for one in fairness_list(knowledge)]

    @router.get("/profiles", responses=problems(202))
    def profiles() -> list[dict[str, Any]]:
        """Throughput over round-trip time, of what was measured between each pair of sites."""
        return findings.profiles()

    @router.get("/findings", responses=problems(202))
    def all_findings() -> dict[str, Any]:
        """What limits throughput, with evidence and remedies; and what to measure next."""
        return findings.document()

    return router


def endpoint_routes(guard: Guard, endpoints: Endpoints) -> APIRouter:
    """The routes of endpoints, and who one is."""
    router = APIRouter(prefix="/v1", tags=["endpoints"])
    see, move = guard.needs("see"), guard.needs("move")

    @router.get("/endpoints", responses=problems())
    def all_endpoints(caller: Caller = see) -> list[EndpointDocument]:
        """Names for where data are; `farline portal endpoint add` makes them."""
        return [
            EndpointDocument(name=one.name, kind=one.kind, host=one.host)  # type: ignore[arg-type]
            for one in endpoints.all()
        ]

    @router.get("/endpoints/{name}/files", responses=problems(404))
    def files(name: Name, path: PathText = "", caller: Caller = move) -> list[ListedDocument]:
        """Names in a folder of an endpoint that is a folder on the service's host."""
        found = endpoints.find(name)
        if found is None:
            raise NotFoundError(f"endpoint {name[:80]!r} is unknown")
        return [
            ListedDocument(
                name=one.name, kind=one.kind,  # type: ignore[arg-type]
                bytes=one.bytes, modified=when(one.modified_s),
            )
            for one in list_folder(found, path)
        ]  # fmt: skip

    @router.get("/me", responses=problems())
    def me(caller: Caller = see) -> TokenDocument:
        """Who you are, and what your token allows."""
        return TokenDocument(user=caller.user, scopes=sorted(caller.scopes))

    return router
