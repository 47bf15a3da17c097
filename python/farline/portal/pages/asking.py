"""Pages that ask: an estimate, and reservations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request, Response

from farline.copying.estimates import stated_times
from farline.errors import FarlineError, SpecError
from farline.estimating import TransferEstimate
from farline.estimating.confidence import parse_confidence
from farline.estimating.times import parse_time
from farline.estimating.words import SHARES, basis_words, between_words
from farline.portal.access import Caller
from farline.portal.estimates import question_of
from farline.portal.pages.drawing import go, page, sent_by, wanted
from farline.portal.pages.parts import Parts
from farline.portal.reservations import NoCapacityError, Wish
from farline.spec.units import parse_file_count, parse_rate, parse_size

_PLAIN_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2})?", re.ASCII)


def routes(parts: Parts) -> APIRouter:
    """The routes."""
    router = APIRouter()
    guard, desk = parts.guard, parts.reservations

    @router.get("/estimate")
    def estimate(request: Request) -> Response:
        caller = guard.person(request).checked("estimate")
        asked = {name: value.strip() for name, value in request.query_params.items()}
        return _estimate_page(request, parts, caller, {k: v for k, v in asked.items() if v})

    @router.get("/reservations")
    def reservations(request: Request) -> Response:
        caller = guard.person(request).checked("see")
        return _reservations_page(request, parts, caller, dict(request.query_params))

    @router.post("/reservations")
    async def hold(request: Request) -> Response:
        caller, form = await sent_by(request, guard, "move")
        try:
            found = desk.hold(caller, _wish_of(form, parts.settings.now()))
        except FarlineError as error:
            return _reservations_page(request, parts, caller, form, error)
        return go(f"/reservations#{found.id}")

    @router.post("/reservations/{name}/commit")
    async def commit(request: Request, name: str) -> Response:
        caller, _ = await sent_by(request, guard, "move")
        return go(f"/reservations#{desk.commit(caller, name).id}")

    @router.post("/reservations/{name}/release")
    async def release(request: Request, name: str) -> Response:
        caller, _ = await sent_by(request, guard, "move")
        return go(f"/reservations#{desk.release(caller, name).id}")

    return router


def ends_of(parts: Parts) -> list[str]:
    """Names between which can be estimated: endpoints, sites, hosts of past transfers."""
    found = dict.fromkeys(one.name for one in parts.endpoints.all())
    if parts.knowledge.infrastructure is not None:
        found |= dict.fromkeys(parts.knowledge.infrastructure.site_names)
    for one in parts.knowledge.now.pairs:
        found |= {one.source: None, one.destination: None}
    return list(found)


def _estimate_page(
    request: Request, parts: Parts, caller: Caller, asked: Mapping[str, str]
) -> Response:
    answer, refusal, status = None, None, 200
    if "source" in asked and "destination" in asked:
        try:
            answer = _answer(parts, asked)
        except FarlineError as error:
            refusal, status = error.message, 422
    return page(
        request, "estimate.html.j2", caller, status, asked=asked, ends=ends_of(parts),
        answer=answer, refusal=refusal,
        endpoints=[one.name for one in parts.endpoints.all()],
    )  # fmt: skip


def _answer(parts: Parts, asked: Mapping[str, str]) -> dict[str, Any]:
    """The estimate and what its page shows of it.

    Raises:
        SpecError: for what cannot be read, with the name of the field.
    """
    now_s = parts.settings.now()
    stated = (utc_text(asked[name]) if name in asked else None for name in ("start", "deadline"))
    begins, until = stated_times(now_s, *stated)
    route = parts.estimates.route(asked["source"], asked["destination"])
    question = question_of(
        now_s, total_bytes=read_field(asked, "size", parse_size),
        files=read_field(asked, "files", parse_file_count, "1"),
        confidence=read_field(asked, "confidence", parse_confidence, "90%"),
        start_s=None if begins is None else begins.timestamp(),
        deadline_s=None if until is None else until.timestamp(),
    )  # fmt: skip
    found = parts.estimates.ask(route, question)
    return {
        "estimate": found, "route": route, "basis": basis_words(found),
        "between": between_words(found.interval(0.8)), "picture": picture(found),
        "shares": SHARES, "asked_s": question.begins_s,
    }  # fmt: skip


def read_field(form: Mapping[str, str], name: str, read: Any, default: str | None = None) -> Any:
    """A field of a form, read.

    Raises:
        SpecError: when it is missing or cannot be read, with its name.
    """
    text = form.get(name, default)
    if text is None:
        raise SpecError(f"{name}: it is missing")
    try:
        return read(text)
    except ValueError as error:
        raise SpecError(f"{name}: {error}") from None


def picture(estimate: TransferEstimate) -> dict[str, Any]:
    """Bars of the intervals over a time axis, in a drawing of 1000 units width."""
    longest = max(one.duration_high_s for one in estimate.intervals)
    scale = 960 / longest if longest else 0.0
    bars = [
        {"cover": one.cover, "x": round(scale * one.duration_low_s, 1),
         "width": max(2.0, round(scale * (one.duration_high_s - one.duration_low_s), 1)),
         "low_s": one.duration_low_s, "high_s": one.duration_high_s}
        for one in sorted(estimate.intervals, key=lambda one: -one.cover)
    ]  # fmt: skip
    deadline_s = estimate.question.deadline_s
    until_s = None if deadline_s is None else deadline_s - estimate.question.begins_s
    is_in = until_s is not None and 0 <= until_s <= longest
    return {
        "bars": bars, "middle": round(scale * estimate.duration_s, 1), "longest_s": longest,
        "deadline": round(scale * until_s, 1) if is_in and until_s is not None else None,
    }  # fmt: skip


def _reservations_page(
    request: Request,
    parts: Parts,
    caller: Caller,
    asked: Mapping[str, str],
    error: FarlineError | None = None,
) -> Response:
    infrastructure = parts.knowledge.infrastructure
    window = error.window if isinstance(error, NoCapacityError) else None
    free = error.available_bps if isinstance(error, NoCapacityError) else None
    return page(
        request, "reservations.html.j2", caller, 200 if error is None else 409,
        reservations=parts.reservations.seen(caller),
        is_networked=parts.reservations.reserves_network,
        network_name=lambda one: parts.reservations.document(one).network,
        asked=asked, error=error, window=window,
        free_bps=free, sites=() if infrastructure is None else infrastructure.site_names,
        hold_min=round(parts.settings.hold_s / 60), iso=_iso,
    )  # fmt: skip


def _wish_of(form: Mapping[str, str], now_s: float) -> Wish:
    """What a form asks for; times are UTC where they say no zone.

    Raises:
        SpecError: for what is missing or cannot be read, with the name of the field.
    """
    return Wish(
        wanted(form, "source"), wanted(form, "destination"),
        read_field(form, "rate", parse_rate),
        read_field(form, "start", lambda text: _moment(text, now_s)),
        read_field(form, "end", lambda text: _moment(text, now_s)), form.get("label", "")[:200],
    )  # fmt: skip


def _moment(text: str, now_s: float) -> float:
    """POSIX seconds of a time as `utc_text` takes it, or `now`.

    Raises:
        ValueError: when it is not a time.
    """
    if text == "now":
        return now_s
    return parse_time(utc_text(text), datetime.fromtimestamp(now_s, UTC)).timestamp()


def utc_text(text: str) -> str:
    """A time with the zone that pages mean where none is written: UTC."""
    return f"{text}Z" if _PLAIN_TIME.fullmatch(text) else text


def _iso(at_s: float) -> str:
    """A time as the field of a form takes it, in UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M")
