"""`/v1/transfers`: files copied between endpoints, watched and changed while they are."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import FileResponse, StreamingResponse

from farline.portal.access import Caller
from farline.portal.documents import Adjust, TransferDocument, TransferWish, transfer_document
from farline.portal.event_feed import Feeds
from farline.portal.guard import Guard
from farline.portal.routes.answers import Answers, content, problems
from farline.portal.transfer_desk import TransferDesk, order_of
from farline.portal.transfer_machine import State

STREAM, RECEIPT = "text/event-stream", "application/x-ndjson"

_KNOWN: Answers = {
    200: {
        "model": TransferDocument,
        "description": "The transfer that the key was used for",
    }
}

Key = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[!-~]+$")
]
LastId = Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^[0-9]{1,15}$")]


def routes(guard: Guard, desk: TransferDesk, feeds: Feeds) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/v1/transfers", tags=["transfers"])
    see, move = guard.needs("see"), guard.needs("move")

    @router.get("", responses=problems())
    def list_transfers(
        state: State | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
        caller: Caller = see,
    ) -> list[TransferDocument]:
        """Your transfers, the newest first; with `operate` those of all."""
        return [transfer_document(one) for one in desk.seen(caller, state, limit, offset)]

    @router.post("", status_code=201, responses=_KNOWN | problems(404, 409))
    def create(
        asked: TransferWish, response: Response, key: Key = None, caller: Caller = move
    ) -> TransferDocument:
        """Puts a transfer into the queue; the same Idempotency-Key gives the same transfer."""
        found, is_new = desk.create(caller, order_of(asked), key)
        response.headers["Location"] = f"/v1/transfers/{found.id}"
        response.status_code = 201 if is_new else 200
        return desk.document(found)

    @router.get("/{name}", responses=problems(404))
    def show(name: str, caller: Caller = see) -> TransferDocument:
        """A transfer, and how far it is."""
        return desk.document(desk.own(caller, name))

    _add_changes(router, desk, move)
    _add_files(router, desk, feeds, see)
    return router


def _add_changes(router: APIRouter, desk: TransferDesk, move: Any) -> None:
    """What changes a transfer."""

    @router.post("/{name}/pause", responses=problems(404, 409))
    def pause(name: str, caller: Caller = move) -> TransferDocument:
        """Stops it; what has arrived stays."""
        return desk.document(desk.want(caller, name, "pause"))

    @router.post("/{name}/resume", responses=problems(404, 409))
    def resume(name: str, caller: Caller = move) -> TransferDocument:
        """Continues one that is paused or has failed: what has arrived is not sent again."""
        return desk.document(desk.want(caller, name, "run"))

    @router.post("/{name}/cancel", responses=problems(404, 409))
    def cancel(name: str, caller: Caller = move) -> TransferDocument:
        """Stops it for good; what has arrived stays."""
        return desk.document(desk.want(caller, name, "cancel"))

    @router.post("/{name}/adjust", responses=problems(404, 409))
    def change(name: str, asked: Adjust, caller: Caller = move) -> list[dict[str, Any]]:
        """Changes one that runs, without a pause: what came of each, in force or `refused`."""
        return desk.adjust(caller, name, asked)


def _add_files(router: APIRouter, desk: TransferDesk, feeds: Feeds, see: Any) -> None:
    """What a transfer leaves."""

    @router.get("/{name}/receipt", response_class=FileResponse, responses=content(RECEIPT, 404))
    def receipt(name: str, caller: Caller = see) -> FileResponse:
        """A JSON line per name: what became of it, and the sum of its content."""
        return FileResponse(
            desk.receipt(caller, name), media_type=RECEIPT,
            filename=f"receipt-{name}.jsonl",
        )  # fmt: skip

    @router.get("/{name}/events", response_class=StreamingResponse, responses=content(STREAM, 404))
    async def events(name: str, last_id: LastId = None, caller: Caller = see) -> StreamingResponse:
        """Server-sent events: start, session, progress, notice, adjusted, file, error, end, close.

        Each has an id; who sends it back as Last-Event-ID gets what came behind it.
        """
        stream = desk.events(feeds, caller, name, int(last_id or 0))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type=STREAM, headers=headers)
