"""The service put together: each part gets what it needs; then REST, pages and what all have."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import compile_path

from farline.errors import FarlineError
from farline.portal import problems
from farline.portal.access import Access
from farline.portal.allowance import Allowance
from farline.portal.around import Around
from farline.portal.audit import Audit
from farline.portal.database import Database
from farline.portal.documents import Problem
from farline.portal.endpoints import Endpoints
from farline.portal.estimates import Estimates
from farline.portal.event_feed import Feeds
from farline.portal.experiments import Experiments
from farline.portal.figures import Figures
from farline.portal.findings import Findings
from farline.portal.guard import Guard
from farline.portal.knowledge import Knowledge
from farline.portal.lessons import Lessons
from farline.portal.network import Network
from farline.portal.oidc import OidcLogins
from farline.portal.pages import site
from farline.portal.reservation_desk import ReservationDesk
from farline.portal.reservations import OPEN, Reservations
from farline.portal.routes import estimates as estimate_routes
from farline.portal.routes import operating, reservations, results, transfers
from farline.portal.runner import Runner
from farline.portal.settings import Settings
from farline.portal.transfer_desk import TransferDesk
from farline.portal.transfers import Transfers

MISTAKES_PER_S, MOST_MISTAKES = 0.2, 20
"""Wrong tokens from one address: after twenty, one in five seconds."""

BURST_S = 2.0
"""Seconds of a user's requests that may come at once."""

POLICY = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
        "connect-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
    )
)  # fmt: skip
"""What pages may load: the service's own files, and nothing else from anywhere."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True)
class Service:
    """The parts that something outside of the application needs: who starts it, and tests."""

    app: FastAPI
    access: Access
    endpoints: Endpoints
    runner: Runner
    knowledge: Knowledge


def create_service(settings: Settings) -> Service:
    """A service over a state folder; its threads run while the application does.

    Raises:
        SystemFailure: when the database or the store cannot be read.
    """
    database = Database(settings.database)
    settings.jobs.mkdir(mode=0o700, exist_ok=True)
    access, audit = Access(database, settings.now), Audit(database, settings.now)
    endpoints, knowledge = Endpoints(database, settings.now), Knowledge(settings)
    knowledge.refresh()
    estimates, findings, feeds = Estimates(knowledge, endpoints), Findings(knowledge), Feeds()
    kept, queue = Reservations(database, settings), Transfers(database, settings)
    runner = Runner(settings, queue, endpoints, kept)
    network = Network(database, kept, settings.network)
    desk = ReservationDesk(kept, network, estimates, audit)
    transfer_desk = TransferDesk(queue, endpoints, desk, runner, audit)
    figures = Figures(lambda: _gauges(queue, kept, feeds))
    guard = _guard(access, settings)

    experiments = Experiments(database, settings, audit)
    app = _application(knowledge, runner, network, experiments)
    app.include_router(estimate_routes.routes(guard, estimates, settings.now))
    app.include_router(reservations.routes(guard, desk))
    app.include_router(transfers.routes(guard, transfer_desk, feeds))
    app.include_router(results.endpoint_routes(guard, endpoints))
    app.include_router(results.routes(guard, knowledge, findings))
    app.include_router(operating.routes(guard, audit, figures))
    parts = site.Parts(
        settings, access, audit, guard, endpoints, knowledge, estimates, findings, desk,
        transfer_desk, experiments, Lessons(database, settings.now),
        None if settings.oidc is None else OidcLogins(settings.oidc, database, settings.now),
    )  # fmt: skip
    site.mount(app, parts)
    _add_failures(app)
    _add_middleware(app, figures, settings)
    return Service(app, access, endpoints, runner, knowledge)


def _guard(access: Access, settings: Settings) -> Guard:
    per_s, now = settings.requests_per_s, time.monotonic
    mistakes = Allowance(MISTAKES_PER_S, MOST_MISTAKES, now)
    return Guard(access, Allowance(per_s, BURST_S * per_s, now), mistakes)


def _application(
    knowledge: Knowledge, runner: Runner, network: Network, experiments: Experiments
) -> FastAPI:
    from importlib.metadata import version

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        knowledge.run()
        runner.run()
        network.run()
        experiments.go_on()
        yield
        network.close()
        runner.close()
        knowledge.close()

    app = FastAPI(
        title="farline", version=version("farline"), lifespan=life, docs_url=None, redoc_url=None,
        openapi_url="/v1/openapi.json", summary="Estimates, reservations and transfers.",
    )  # fmt: skip
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The description, in which every failure is a problem document."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(problem.pop("$defs", {}))
        schemas["Problem"] = problem
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        app.openapi_schema = found
    return app.openapi_schema


def _gauges(
    queue: Transfers, kept: Reservations, feeds: Feeds
) -> Mapping[str, Mapping[str, float]]:
    is_open = sum(one.phase in OPEN for one in kept.newest(limit=10_000))
    return {
        "farline_portal_transfers": {f'state="{k}"': v for k, v in sorted(queue.counts().items())},
        "farline_portal_reservations": {"": is_open},
        "farline_portal_listeners": {"": feeds.listeners},
    }


def _add_failures(app: FastAPI) -> None:
    """Every failure becomes a problem document, or a page of one where a person asked."""

    def shown(request: Request, error: FarlineError, status: int | None = None) -> Response:
        if request.url.path.startswith("/v1/"):
            return problems.answer(error, status)
        return site.failure_page(request, error, status or problems.status_of(error))

    @app.exception_handler(FarlineError)
    async def failed(request: Request, error: FarlineError) -> Response:
        return shown(request, error)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        found = shown(request, *problems.http_error(error))
        found.headers.update(error.headers or {})
        if error.status_code == 405 and (methods := _methods(app, request.url.path)):
            found.headers["Allow"] = ", ".join(sorted(methods))
        return found

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return shown(request, *problems.validation_error(error))

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> Response:
        return shown(request, problems.unexpected(error, request))


def _methods(app: FastAPI, path: str) -> set[str]:
    """What an address of `/v1` takes, of all that the description has for it."""
    found: set[str] = set()
    for template, operations in app.openapi()["paths"].items():
        if compile_path(template)[0].match(path):
            found |= {method.upper() for method in operations}
    return found


def _add_middleware(app: FastAPI, figures: Figures, settings: Settings) -> None:
    hosts = [name if name[0] == "[" else name.partition(":")[0] for name in settings.hosts]
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    app.add_middleware(Around, figures=figures, headers=HEADERS)
