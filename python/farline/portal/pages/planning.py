"""The editor of plans, and what was begun from it."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from farline.errors import FarlineError, SpecError
from farline.portal.access import Caller
from farline.portal.documents import Name
from farline.portal.experiments import Experiment, why_not_here
from farline.portal.pages.drawing import go, page, sent_by, wanted
from farline.portal.pages.parts import Parts
from farline.portal.plan_check import LONGEST_S, CheckedPlan, check_plan
from farline.portal.plan_form import FIELDS, plan_of_fields

REFRESH_S = 3
ACTS = ("write", "check", "save", "start")
EXAMPLE = {
    "name": "streams-and-distance", "repetitions": "3", "duration": "5s", "streams": "1, 4",
    "line": "100Mbit", "rtt": "10ms, 100ms",
}  # fmt: skip
"""What the fields have when the editor is opened."""


def routes(parts: Parts) -> APIRouter:
    """The routes."""
    router = APIRouter()
    guard = parts.guard

    @router.get("/plans/new")
    def editor(request: Request) -> Response:
        caller = guard.person(request).checked("see")
        return _editor(request, parts, caller, EXAMPLE, "")

    @router.post("/plans")
    async def act(request: Request) -> Response:
        caller, form = await sent_by(request, guard, "see")
        return await run_in_threadpool(_acted, request, parts, caller, form)

    @router.get("/experiments/{name}")
    def show(request: Request, name: Name) -> Response:
        caller = guard.person(request).checked("see")
        one = parts.experiments.own(caller, name)
        lines = parts.experiments.lines(one)
        response = page(request, "experiment.html.j2", caller, one=one, lines=lines)
        if one.is_open:
            response.headers["Refresh"] = str(REFRESH_S)
        return response

    return router


def _acted(request: Request, parts: Parts, caller: Caller, form: Mapping[str, str]) -> Response:
    """What a button of the editor does: writes, checks, saves or starts the plan."""
    word, text = form.get("act", "check"), form.get("plan", "").replace("\r\n", "\n")
    try:
        if word not in ACTS:
            raise SpecError(f"{word[:40]}: unknown; allowed: {', '.join(ACTS)}")
        text = plan_of_fields(form) if word == "write" else wanted({**form, "plan": text}, "plan")
        checked = check_plan(text)
        if word == "save":
            return _file(text + "\n", checked.name)
        if word == "start":
            return go(f"/experiments/{_begun(parts, caller, checked, text).id}")
    except FarlineError as error:
        return _editor(request, parts, caller, form, text, error=error)
    return _editor(request, parts, caller, form, text, checked)


def _file(text: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}.toml"'}
    return Response(text, headers=headers, media_type="application/toml; charset=utf-8")


def _begun(parts: Parts, caller: Caller, checked: CheckedPlan, text: str) -> Experiment:
    """Begins a plan that may be started here.

    Raises:
        ForbiddenError: when the token does not allow it.
        SpecError: when it is a plan for the command, or this machine cannot emulate a line.
    """
    caller.checked("move")
    refusal = checked.refusal or why_not_here()
    if refusal is not None:
        raise SpecError(f"this plan cannot be started here: {refusal}")
    return parts.experiments.begin(caller, "profile", checked.name, text, LONGEST_S)


def _editor(
    request: Request,
    parts: Parts,
    caller: Caller,
    form: Mapping[str, str],
    text: str,
    checked: CheckedPlan | None = None,
    error: FarlineError | None = None,
) -> Response:
    return page(
        request, "plan.html.j2", caller, 200 if error is None else 422, form=form, fields=FIELDS,
        text=text, checked=checked, error=error, why=why_not_here(),
        begun=parts.experiments.plans_of(caller),
    )  # fmt: skip
