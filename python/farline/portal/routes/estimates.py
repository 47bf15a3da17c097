"""`/v1/estimates`: how long a transfer will take, how sure that is, and what to reserve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from farline.portal.documents import EstimateDocument, EstimateQuestion
from farline.portal.estimates import Estimates, question_of
from farline.portal.guard import Guard
from farline.portal.routes.answers import problems


def routes(guard: Guard, estimates: Estimates, now: Callable[[], float]) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/v1/estimates", tags=["estimates"])

    @router.post(
        "", response_model=EstimateDocument, responses=problems(),
        dependencies=[guard.needs("estimate")],
    )  # fmt: skip
    async def estimate(asked: EstimateQuestion) -> JSONResponse:
        """Estimates a transfer from past ones; the document of `farline estimate --json`."""
        route, question = estimates.route(asked.source, asked.destination), _question(asked, now())
        if estimates.is_quick(route, question):
            return JSONResponse(estimates.document(route, question))
        # What is asked of a path for the first time keeps no other request waiting.
        return JSONResponse(await run_in_threadpool(estimates.document, route, question))

    return router


def _question(asked: EstimateQuestion, now_s: float) -> Any:
    return question_of(
        now_s, total_bytes=asked.bytes, files=asked.files, confidence=asked.confidence,
        start_s=None if asked.start is None else asked.start.timestamp(),
        deadline_s=None if asked.deadline is None else asked.deadline.timestamp(),
        streams=asked.streams, concurrency=asked.concurrency,
    )  # fmt: skip
