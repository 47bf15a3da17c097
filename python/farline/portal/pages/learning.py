"""The pages of the course: all labs, one lab from prediction to explanation, the instructor's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from farline.errors import FarlineError, SpecError
from farline.portal.access import Caller
from farline.portal.documents import Name
from farline.portal.experiment_results import Bar
from farline.portal.experiments import Experiment, why_not_here
from farline.portal.lessons import MBIT, RECORDED, Lab, Prediction, judged, lab_of, labs
from farline.portal.notebooks import notebook_of
from farline.portal.pages.drawing import go, page, sent_by, wanted
from farline.portal.pages.parts import Parts

MOST_S = 600.0
"""When a lab is stopped, if it has not ended."""

REFRESH_S = 2


def routes(parts: Parts) -> APIRouter:
    """The routes."""
    router = APIRouter()
    guard, lessons = parts.guard, parts.lessons

    @router.get("/learn")
    def course(request: Request) -> Response:
        caller = guard.person(request).checked("see")
        mine = lessons.of_user(caller.user)
        rows = [(lab, _progress(parts, lab, mine.get(lab.name))) for lab in labs().values()]
        done = sum(state in ("right", "wrong") for _, state in rows)
        return page(request, "learn.html.j2", caller, rows=rows, done=done, why=why_not_here())

    @router.get("/learn/instructor")
    def instructor(request: Request) -> Response:
        caller = guard.person(request).checked("operate")
        return page(
            request, "instructor.html.j2", caller, labs=list(labs().values()), users=_class(parts)
        )

    @router.get("/learn/{name}")
    def lab(request: Request, name: Name) -> Response:
        caller = guard.person(request).checked("see")
        return _shown(request, parts, caller, lab_of(name))

    @router.get("/learn/{name}/notebook")
    def notebook(request: Request, name: Name) -> Response:
        guard.person(request).checked("see")
        one = lab_of(name)
        return _file(json.dumps(notebook_of(one), indent=1), f"{one.name}.ipynb")

    @router.get("/learn/{name}/plan")
    def plan(request: Request, name: Name) -> Response:
        guard.person(request).checked("see")
        one = lab_of(name)
        return _file(one.plan, f"{one.name}.toml")

    @router.post("/learn/{name}/{act}")
    async def change(request: Request, name: Name, act: str) -> Response:
        caller, form = await sent_by(request, guard, "move" if act == "run" else "see")
        one = lab_of(name)
        try:
            _change(parts, caller, one, act, form)
        except FarlineError as error:
            return _shown(request, parts, caller, one, error)
        return go(f"/learn/{name}")

    return router


def stop_routes(parts: Parts) -> APIRouter:
    """The route that stops what runs, of a lab or of the plan editor."""
    router = APIRouter()

    @router.post("/experiments/{name}/stop")
    async def stop(request: Request, name: Name) -> Response:
        caller, _ = await sent_by(request, parts.guard, "move")
        one = parts.experiments.stop(caller, name)
        return go(f"/experiments/{name}" if one.lab is None else f"/learn/{one.lab}")

    return router


def _file(text: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, headers=headers, media_type="text/plain; charset=utf-8")


def _change(parts: Parts, caller: Caller, lab: Lab, act: str, form: Mapping[str, str]) -> None:
    """One step of a lab.

    Raises:
        SpecError: for a step that there is not, or that comes before the prediction.
        BusyError: when no experiment can begin now.
    """
    lessons, user = parts.lessons, caller.user
    if act == "predict":
        lessons.predict(user, lab, wanted(form, "prediction"))
        return
    if lab.name not in lessons.of_user(user):
        raise SpecError("predict first, to see how close you were")
    if act == "run":
        begun = parts.experiments.begin(
            caller, lab.verb, lab.title, lab.plan, MOST_S, lab=lab.name
        )  # fmt: skip
        lessons.hold_against(user, lab, begun.id)
    elif act == "recorded":
        lessons.hold_against(user, lab, RECORDED)
    elif act == "again":
        lessons.forget(user, lab)
    else:
        raise SpecError(f"{act[:40]}: unknown; allowed: predict, run, recorded, again")


def _shown(
    request: Request, parts: Parts, caller: Caller, lab: Lab, error: FarlineError | None = None
) -> Response:
    """The page of a lab, as far as this user is."""
    prediction = parts.lessons.of_user(caller.user).get(lab.name)
    found = _experiment(parts, prediction)
    bars = _bars(lab, prediction, found)
    is_open = found is not None and found.is_open
    result = None
    if prediction is not None and bars and not is_open:
        result = judged(lab, prediction.text, bars)
    response = page(
        request, "lab.html.j2", caller, 200 if error is None else 422, lab=lab, error=error,
        prediction=prediction, experiment=found, is_open=is_open, result=result,
        is_recorded=prediction is not None and prediction.experiment == RECORDED,
        picture=picture(lab, bars, prediction), why=why_not_here(),
        lines=parts.experiments.lines(found) if found is not None and is_open else (),
        following=_following(lab),
    )  # fmt: skip
    if is_open:
        response.headers["Refresh"] = str(REFRESH_S)
    return response


def _experiment(parts: Parts, prediction: Prediction | None) -> Experiment | None:
    if prediction is None or prediction.experiment in (None, RECORDED):
        return None
    return parts.experiments.find(str(prediction.experiment))


def _bars(lab: Lab, prediction: Prediction | None, found: Experiment | None) -> Sequence[Bar]:
    if prediction is not None and prediction.experiment == RECORDED:
        return lab.recorded.bars
    return () if found is None else found.bars


def picture(
    lab: Lab, bars: Sequence[Bar], prediction: Prediction | None
) -> Sequence[Mapping[str, Any]]:
    """A row for each bar: its length of 1000, its interval, and the prediction where it is."""
    is_rate = lab.question.kind == "rate"
    predicted = float(prediction.text) * MBIT if prediction is not None and is_rate else None
    longest = max((one.high_bps or one.mean_bps for one in bars), default=0.0) or 1.0
    if predicted is not None and any(one.label == lab.question.of for one in bars):
        # A prediction that is far out stands at the edge: the bars stay readable.
        longest = max(longest, min(predicted, 3 * longest))
    scale = 1000 / longest
    return [
        {
            "label": one.label, "mean_bps": one.mean_bps, "width": round(scale * one.mean_bps, 1),
            "low": None if one.low_bps is None else round(scale * one.low_bps, 1),
            "high": None if one.high_bps is None else round(scale * one.high_bps, 1),
            "predicted": round(min(996.0, scale * predicted), 1)
            if predicted is not None and one.label == lab.question.of else None,
            "is_chosen": prediction is not None and not is_rate and prediction.text == one.label,
        }
        for one in bars
    ]  # fmt: skip


def _following(lab: Lab) -> Lab | None:
    return next((one for one in labs().values() if one.number == lab.number + 1), None)


def _progress(parts: Parts, lab: Lab, prediction: Prediction | None) -> str:
    """`new`, `predicted`, `running`, `right` or `wrong`."""
    if prediction is None:
        return "new"
    found = _experiment(parts, prediction)
    if found is not None and found.is_open:
        return "running"
    result = judged(lab, prediction.text, _bars(lab, prediction, found))
    return "predicted" if result is None else "right" if result.holds else "wrong"


def _class(parts: Parts) -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Progress and prediction of each user in each lab."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for one in parts.lessons.everybody():
        if one.lab in labs():
            state = _progress(parts, labs()[one.lab], one)
            found.setdefault(one.user, {})[one.lab] = (state, one.text)
    return found
