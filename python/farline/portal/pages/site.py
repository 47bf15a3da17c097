"""The pages mounted: files for browsers, the way in and out, pages of failures."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.responses import RedirectResponse

from farline.errors import KINDS, AuthError, FarlineError
from farline.portal.access import SESSION_S, ForbiddenError
from farline.portal.guard import COOKIE
from farline.portal.knowledge import NotYetError
from farline.portal.oidc import LOGIN_S, RETURN
from farline.portal.pages import asking, fairness, learning, looking, moving, planning
from farline.portal.pages.drawing import form_of, go, page, sent_by, wanted
from farline.portal.pages.parts import Parts
from farline.portal.problems import TITLES, NotFoundError

_STATIC = {
    "uplot.js": ("farline.plots", "static/uplot/uPlot.iife.min.js", "text/javascript"),
    "uplot.css": ("farline.plots", "static/uplot/uPlot.min.css", "text/css"),
    "report.css": ("farline.plots", "static/page/report.css", "text/css"),
    "portal.css": ("farline.portal.pages", "static/portal.css", "text/css"),
    "portal.js": ("farline.portal.pages", "static/portal.js", "text/javascript"),
    "charts.js": ("farline.portal.pages", "static/charts.js", "text/javascript"),
}
"""What browsers may fetch: by name, so that no path can lead elsewhere."""

LOGIN_COOKIE = "farline_portal_login"
"""By which a browser is known that comes back from an issuer."""

__all__ = ["Parts", "failure_page", "mount"]


def mount(app: FastAPI, parts: Parts) -> None:
    """Adds the pages to an application; they are no part of its description."""
    for router in (
        _doors(parts), *_issuer_doors(parts), looking.routes(parts), asking.routes(parts),
        moving.routes(parts), fairness.routes(parts), learning.routes(parts),
        learning.stop_routes(parts), planning.routes(parts),
    ):  # fmt: skip
        app.include_router(router, include_in_schema=False)


def failure_page(request: Request, error: FarlineError, status: int) -> Response:
    """A page that says what went wrong; who has not logged in is sent to do so."""
    if isinstance(error, AuthError) and status == 401 and request.method == "GET":
        return go("/login")
    if isinstance(error, NotYetError):
        response = page(request, "not_yet.html.j2", status=status)
        response.headers["Refresh"] = "3"
        return response
    return page(request, "failure.html.j2", status=status, error=error, title=TITLES[status])


def _doors(parts: Parts) -> APIRouter:
    """Files, login and logout."""
    router = APIRouter()

    @router.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _STATIC:
            raise NotFoundError(f"{name[:80]}: there is no such file")
        package, path, kind = _STATIC[name]
        headers = {"Cache-Control": "public, max-age=3600"}
        return Response(
            (files(package) / path).read_bytes(), 200, headers, f"{kind}; charset=utf-8"
        )

    def login_page(request: Request, status: int = 200, **values: Any) -> Response:
        label = parts.oidc.label if parts.oidc else None
        return page(request, "login.html.j2", status=status, issuer=label, **values)

    @router.get("/login")
    def login(request: Request) -> Response:
        return login_page(request)

    @router.post("/login")
    async def enter(request: Request) -> Response:
        form = await form_of(request)
        try:
            session = parts.guard.enter(request, wanted(form, "token"))
        except AuthError as error:
            return login_page(request, status=401, refusal=error.message)
        return _with_session(go("/"), session, parts)

    @router.post("/logout")
    async def leave(request: Request) -> Response:
        caller, _ = await sent_by(request, parts.guard, "see")
        parts.access.revoke(caller.token_id)
        parts.audit.note(caller.user, caller.token_id, "session.end", caller.token_id)
        response = go("/login")
        response.delete_cookie(COOKIE, path="/")
        return response

    @router.get("/problems/{kind}")
    def problem(request: Request, kind: str) -> Response:
        if kind not in KINDS and kind != "partial":
            raise NotFoundError(f"{kind[:80]}: there is no such kind of failure")
        about: Any = KINDS.get(kind)
        text = about.__doc__ if about else "Some names were not copied; all others were."
        return page(request, "problem.html.j2", kind=kind, about=text)

    return router


def _issuer_doors(parts: Parts) -> list[APIRouter]:
    """The way to an issuer and back, where there is one."""
    logins = parts.oidc
    if logins is None:
        return []
    router = APIRouter()

    @router.get("/login/begin")
    def begin(request: Request) -> Response:
        scheme = "https" if parts.settings.is_secure else request.url.scheme
        place, word = logins.begin(f"{scheme}://{request.headers['host']}{RETURN}")
        response = RedirectResponse(place, 303, {"Cache-Control": "no-store"})
        # The browser comes back from another site: the strict cookie of a session would stay away.
        response.set_cookie(
            LOGIN_COOKIE, word, max_age=int(LOGIN_S), httponly=True, samesite="lax", path="/login",
            secure=parts.settings.is_secure,
        )  # fmt: skip
        return response

    @router.get(RETURN)
    def back(request: Request) -> Response:
        word = request.cookies.get(LOGIN_COOKIE)
        try:
            caller, session = parts.guard.enter_by(
                request, lambda: logins.finish(request.query_params, word)
            )
        except AuthError as error:
            response = page(
                request, "login.html.j2", status=403 if isinstance(error, ForbiddenError) else 401,
                issuer=logins.label, refusal=error.message,
            )  # fmt: skip
        else:
            parts.audit.note(caller.user, caller.token_id, "session.begin", caller.token_id)
            # Not a redirect: only a page of this site brings the strict cookie along.
            response = page(request, "entered.html.j2")
            response.headers["Refresh"] = "0; url=/"
            _with_session(response, session, parts)
        response.delete_cookie(LOGIN_COOKIE, path="/login")
        return response

    return [router]


def _with_session(response: Response, session: str, parts: Parts) -> Response:
    """The response with the cookie of a session."""
    response.set_cookie(
        COOKIE, session, max_age=int(SESSION_S), httponly=True, samesite="strict", path="/",
        secure=parts.settings.is_secure,
    )  # fmt: skip
    return response
