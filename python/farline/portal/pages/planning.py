"""The editors of plans, of campaigns and of fairness measurements, and what was begun from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from farline.errors import FarlineError, SpecError
from farline.portal.access import Caller
from farline.portal.documents import Name
from farline.portal.experiments import Experiment, why_not_here
from farline.portal.fairness_check import CheckedFairnessPlan, check_fairness_plan
from farline.portal.pages.drawing import go, page, sent_by, wanted
from farline.portal.pages.parts import Parts
from farline.portal.plan_check import LONGEST_S, CheckedPlan, check_plan
from farline.portal.plan_form import (
    FAIRNESS_FIELDS,
    FIELDS,
    Field,
    fairness_plan_of_fields,
    plan_of_fields,
)

REFRESH_S = 3
ACTS = ("write", "check", "save", "start")

Checked = CheckedPlan | CheckedFairnessPlan


@dataclass(frozen=True)
class Editor:
    """An editor of plans of one kind."""

    verb: str
    """Of the command that runs such a plan."""
    title: str
    note: str
    fields: Sequence[Field]
    example: Mapping[str, str]
    """What the fields have when the editor is opened."""
    write: Callable[[Mapping[str, str]], str]
    check: Callable[[str], Checked]


CAMPAIGN = Editor(
    "profile", "Plan a campaign",
    "Where values may vary, separate them with commas: each combination is a setting. An empty"
    " field is left out.",
    FIELDS,
    {"name": "streams-and-distance", "repetitions": "3", "duration": "5s", "streams": "1, 4",
     "line": "100Mbit", "rtt": "10ms, 100ms"},
    plan_of_fields, check_plan,
)  # fmt: skip

FAIRNESS = Editor(
    "fairness", "Plan a fairness measurement",
    "Write the transfer, the reference and the background as a transport with its congestion"
    " control and options: tcp:cubic, udt, or tcp:bbr,streams=4. An empty field is left out.",
    FAIRNESS_FIELDS,
    {"name": "udt-beside-cubic", "transfer": "udt", "reference": "tcp:cubic",
     "background": "tcp:cubic", "loads": "30%, 60%, 100%", "repetitions": "3", "duration": "6s",
     "omit": "2s", "line": "100Mbit", "rtt": "10ms"},
    fairness_plan_of_fields, check_fairness_plan,
)  # fmt: skip

EDITORS = {editor.verb: editor for editor in (CAMPAIGN, FAIRNESS)}


def routes(parts: Parts) -> APIRouter:
    """The routes."""
    router = APIRouter()
    guard = parts.guard

    @router.get("/plans/new")
    def campaign(request: Request) -> Response:
        caller = guard.person(request).checked("see")
        return _editor(request, parts, caller, CAMPAIGN, CAMPAIGN.example, "")

    @router.get("/plans/fairness")
    def fairness(request: Request) -> Response:
        caller = guard.person(request).checked("see")
        return _editor(request, parts, caller, FAIRNESS, FAIRNESS.example, "")

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
    """What a button of an editor does: writes, checks, saves or starts the plan."""
    word, text = form.get("act", "check"), form.get("plan", "").replace("\r\n", "\n")
    editor = EDITORS.get(form.get("verb", ""), CAMPAIGN)
    try:
        if word not in ACTS:
            raise SpecError(f"{word[:40]}: unknown; allowed: {', '.join(ACTS)}")
        text = editor.write(form) if word == "write" else wanted({**form, "plan": text}, "plan")
        checked = editor.check(text)
        if word == "save":
            return _file(text + "\n", checked.name)
        if word == "start":
            begun = _begun(parts, caller, editor, checked, text)
            return go(f"/experiments/{begun.id}")
    except FarlineError as error:
        return _editor(request, parts, caller, editor, form, text, error=error)
    return _editor(request, parts, caller, editor, form, text, checked)


def _file(text: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}.toml"'}
    return Response(text, headers=headers, media_type="application/toml; charset=utf-8")


def _begun(parts: Parts, caller: Caller, editor: Editor, checked: Checked, text: str) -> Experiment:
    """Begins a plan that may be started here.

    Raises:
        ForbiddenError: when the token does not allow it.
        SpecError: when it is a plan for the command, or this machine cannot emulate a line.
    """
    caller.checked("move")
    refusal = checked.refusal or why_not_here()
    if refusal is not None:
        raise SpecError(f"this plan cannot be started here: {refusal}")
    return parts.experiments.begin(caller, editor.verb, checked.name, text, LONGEST_S)


def _editor(
    request: Request,
    parts: Parts,
    caller: Caller,
    editor: Editor,
    form: Mapping[str, str],
    text: str,
    checked: Checked | None = None,
    error: FarlineError | None = None,
) -> Response:
    return page(
        request, "plan.html.j2", caller, 200 if error is None else 422, editor=editor, form=form,
        text=text, checked=checked, error=error, why=why_not_here(),
        begun=parts.experiments.plans_of(caller, editor.verb),
    )  # fmt: skip
