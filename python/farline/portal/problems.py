"""Failures as answers: RFC 9457 problem documents with farline's kinds and exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from farline.errors import (
    AuthError,
    BusyError,
    FarlineError,
    InternalError,
    LimitError,
    SpecError,
    SystemFailure,
    UsageError,
)
from farline.estimating.document import at
from farline.estimating.times import rfc3339
from farline.logs import Log
from farline.portal.access import ForbiddenError
from farline.portal.job_folder import redacted
from farline.portal.knowledge import NoSuchRunError, NotYetError
from farline.portal.reservations import NoCapacityError, NoSuchReservationError, WrongPhaseError
from farline.portal.transfers import KeyReusedError, NoSuchTransferError, WrongStateError

if TYPE_CHECKING:
    from fastapi import Request

_LOG = Log(__name__)

MEDIA_TYPE = "application/problem+json"


class NotFoundError(SpecError):
    """There is nothing of that name."""


STATUS: tuple[tuple[type[FarlineError], int], ...] = (
    (ForbiddenError, 403),
    (AuthError, 401),
    (NotYetError, 202),
    (BusyError, 429),
    (NotFoundError, 404),
    (NoSuchRunError, 404),
    (NoSuchReservationError, 404),
    (NoSuchTransferError, 404),
    (NoCapacityError, 409),
    (WrongPhaseError, 409),
    (WrongStateError, 409),
    (KeyReusedError, 422),
    (LimitError, 409),
    (SpecError, 422),
    (UsageError, 422),
    (InternalError, 500),
)
"""Status of each class; the first that fits. What is not here is not the caller's fault: 503."""

TITLES = {
    202: "Being computed",
    400: "The request is not valid HTTP or JSON",
    401: "No token, or one that does not work",
    403: "Not allowed with this token",
    404: "Not found",
    405: "This address does not take this method",
    409: "Not possible now",
    413: "The body is too long",
    422: "A value is not allowed",
    429: "Too many requests",
    500: "A defect in farline",
    503: "This service or another host could not do it",
}


def status_of(error: FarlineError) -> int:
    """The HTTP status of a failure."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 503)


def document_of(error: FarlineError, status: int | None = None) -> dict[str, Any]:
    """The problem document; it names no ticket."""
    number = status or status_of(error)
    found: dict[str, Any] = {
        "type": f"/problems/{error.kind}",
        "title": TITLES[number],
        "status": number,
        "detail": redacted(error.message),
        "kind": error.kind,
        "exit_code": error.exit_code,
    }
    if isinstance(error, NoCapacityError):
        found["available_bps"] = error.available_bps
        if error.window is not None:
            begin, end = (rfc3339(at(one, None)) for one in error.window)
            found["next_window"] = {"start": begin, "end": end}
    return found


def answer(error: FarlineError, status: int | None = None) -> JSONResponse:
    """The response."""
    document = document_of(error, status)
    headers = {"Cache-Control": "no-store"}
    if document["status"] == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    return JSONResponse(document, document["status"], headers, MEDIA_TYPE)


def http_error(error: HTTPException) -> tuple[FarlineError, int]:
    """What the framework refuses, as a failure."""
    status = error.status_code if error.status_code in TITLES else 400
    texts = {404: "there is nothing at this address", 405: "another method is needed here"}
    kind = NotFoundError if status == 404 else UsageError
    return kind(texts.get(status, str(error.detail))), status


def validation_error(error: RequestValidationError) -> tuple[FarlineError, int]:
    """What a body or a parameter has wrong, in one line."""
    found = []
    for one in error.errors()[:5]:
        place = ".".join(str(part) for part in one["loc"] if part not in ("body", "query"))
        found.append(f"{place}: {one['msg']}" if place else str(one["msg"]))
    is_broken = any(one["type"] == "json_invalid" for one in error.errors())
    return SpecError("; ".join(found)[:500] or "not valid"), 400 if is_broken else 422


def unexpected(error: Exception, request: Request) -> FarlineError:
    """A defect: what it was stands in the log, not in the answer."""
    _LOG.error("defect", path=request.url.path, reason=f"{type(error).__name__}: {error}")
    if isinstance(error, OSError):
        return SystemFailure(f"this machine refused: {error.strerror or type(error).__name__}")
    return InternalError("a defect in farline; the log of the service has more")
