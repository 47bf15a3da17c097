"""Pages of transfers: the list, a new one, one that goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from farline.errors import FarlineError, SpecError
from farline.portal.access import Caller
from farline.portal.documents import Adjust, checked_options
from farline.portal.endpoints import list_folder
from farline.portal.pages.asking import read_field
from farline.portal.pages.drawing import go, page, sent_by, wanted
from farline.portal.pages.parts import Parts
from farline.portal.transfer_machine import Wanted
from farline.portal.transfers import Order, Place, Transfer
from farline.spec.units import parse_integer, parse_rate

PER_PAGE = 50
ACTS: dict[str, Wanted] = {"pause": "pause", "resume": "run", "cancel": "cancel"}


def routes(parts: Parts) -> APIRouter:
    """The routes."""
    router = APIRouter()
    guard, desk = parts.guard, parts.transfers

    @router.get("/transfers")
    def transfers(request: Request, after: int = 0) -> Response:
        caller = guard.person(request).checked("see")
        start = min(max(after, 0), 10**9)
        found = desk.seen(caller, limit=PER_PAGE + 1, offset=start)
        return page(
            request, "transfers.html.j2", caller, counts=desk.counts(caller),
            rows=[(one, desk.progress(one), _mean_bps(one)) for one in found[:PER_PAGE]],
            after=start, per_page=PER_PAGE, has_more=len(found) > PER_PAGE,
        )  # fmt: skip

    @router.get("/transfers/new")
    def begin(request: Request) -> Response:
        caller = guard.person(request).checked("move")
        return _new_page(request, parts, caller, dict(request.query_params))

    @router.post("/transfers")
    async def create(request: Request) -> Response:
        caller, form = await sent_by(request, guard, "move")
        try:
            found, _ = desk.create(caller, _order_of(form), form.get("key"))
        except FarlineError as error:
            return _new_page(request, parts, caller, form, error)
        return go(f"/transfers/{found.id}")

    @router.get("/transfers/{name}")
    def show(request: Request, name: str) -> Response:
        caller = guard.person(request).checked("see")
        return _shown(request, parts, caller, desk.own(caller, name))

    @router.post("/transfers/{name}/adjust")
    async def adjust(request: Request, name: str) -> Response:
        caller, form = await sent_by(request, guard, "move")
        one = desk.own(caller, name)
        try:
            changes = desk.adjust(caller, name, _adjust_of(form))
        except FarlineError as error:
            return _shown(request, parts, caller, one, error.message, 409)
        refused = [str(change["refused"]) for change in changes if change.get("refused")]
        if refused:
            return _shown(request, parts, caller, one, "; ".join(refused), 409)
        return go(f"/transfers/{name}")

    @router.post("/transfers/{name}/{act}")
    async def change(request: Request, name: str, act: str) -> Response:
        caller, _ = await sent_by(request, guard, "move")
        if act not in ACTS:
            raise SpecError(f"{act[:40]}: unknown; allowed: {', '.join(ACTS)}")
        return go(f"/transfers/{desk.want(caller, name, ACTS[act]).id}")

    return router


def _shown(
    request: Request,
    parts: Parts,
    caller: Caller,
    one: Transfer,
    refusal: str | None = None,
    status: int = 200,
) -> Response:
    return page(
        request, "transfer.html.j2", caller, status, one=one, refusal=refusal,
        progress=parts.transfers.progress(one), mean_bps=_mean_bps(one),
        has_receipt=parts.transfers.has_receipt(one),
    )  # fmt: skip


def _mean_bps(one: Transfer) -> float | None:
    """Bits per second of what the last attempt copied, over all of its time."""
    report, duration_s = one.result.get("report"), one.result.get("duration_s")
    copied: int = report["copied"]["bytes"] if report else 0
    return 8 * copied / duration_s if copied and duration_s else None


def _new_page(
    request: Request,
    parts: Parts,
    caller: Caller,
    asked: Mapping[str, str],
    error: FarlineError | None = None,
) -> Response:
    """Two panes: where from, where to; a folder here can be looked into."""
    import secrets

    endpoints = parts.endpoints.all()
    panes = [_pane(parts, asked, end) for end in ("source", "destination")]
    held = [one for one in parts.reservations.seen(caller) if one.is_open]
    return page(
        request, "transfer_new.html.j2", caller, 200 if error is None else 422, asked=asked,
        endpoints=endpoints, panes=panes, error=error, reservations=held,
        key=secrets.token_hex(8),
    )  # fmt: skip


def _pane(parts: Parts, asked: Mapping[str, str], end: str) -> dict[str, Any]:
    """One end as asked for, and what is in its folder if that can be looked into."""
    name, path = asked.get(end, ""), asked.get(f"{end}_path", "").strip("/")
    found: dict[str, Any] = {
        "end": end, "name": name, "path": path, "names": None, "problem": None,
        "parents": [], "kind": None,
    }  # fmt: skip
    endpoint = parts.endpoints.find(name) if name else None
    if endpoint is None:
        return found
    found["kind"] = endpoint.kind
    if endpoint.kind == "folder":
        steps = path.split("/") if path else []
        found["parents"] = [("/".join(steps[:count]), steps[count - 1]) for count in
                            range(1, len(steps) + 1)]  # fmt: skip
        try:
            found["names"] = list_folder(endpoint, path)
        except FarlineError as error:
            found["problem"] = error.message
    return found


def _order_of(form: Mapping[str, str]) -> Order:
    """What a form asks for.

    Raises:
        SpecError: for what is missing or cannot be read, with the name of the field.
    """
    readers: dict[str, Any] = {
        "streams": parse_integer, "concurrency": parse_integer, "total_rate_bps": parse_rate,
        "transport": str, "overwrite": str,
    }  # fmt: skip
    options = {n: read_field(form, n, read) for n, read in readers.items() if n in form}
    return Order(
        Place(wanted(form, "source"), form.get("source_path", "")),
        Place(wanted(form, "destination"), form.get("destination_path", "")),
        form.get("label", "")[:200], checked_options(options), form.get("reservation"),
    )  # fmt: skip


def _adjust_of(form: Mapping[str, str]) -> Adjust:
    """What a form wants changed.

    Raises:
        SpecError: for what cannot be read.
    """
    readers: dict[str, Any] = {
        "streams": parse_integer, "concurrency": parse_integer, "rate_bps": parse_rate
    }  # fmt: skip
    values = {n: read_field(form, n, read) for n, read in readers.items() if n in form}
    return Adjust.model_construct(**{**dict.fromkeys(readers), **values})
