"""What who operates the service asks for: the audit, and figures for Prometheus."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse

from farline.portal.audit import Audit
from farline.portal.documents import AuditDocument, when
from farline.portal.figures import CONTENT_TYPE, Figures
from farline.portal.guard import Guard
from farline.portal.routes.answers import content, problems


def routes(guard: Guard, audit: Audit, figures: Figures) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/v1", tags=["operating"], dependencies=[guard.needs("operate")])

    @router.get("/audit", responses=problems())
    def newest(
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    ) -> list[AuditDocument]:
        """What was done, the newest first; `before` continues behind the row of that id."""
        rows = audit.newest(limit, before)
        return [AuditDocument(at=when(row.pop("at_s")), **row) for row in map(dict, rows)]

    @router.get("/metrics", response_class=PlainTextResponse, responses=content("text/plain"))
    def metrics() -> PlainTextResponse:
        """Figures in Prometheus' text format."""
        return PlainTextResponse(figures.text(), media_type=CONTENT_TYPE)

    return router
