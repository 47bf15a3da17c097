"""The documents of `/v1`: what is asked and what is answered, with ranges, for OpenAPI.

Estimates are the document of `farline estimate --json`, whose one definition is in `crates/spec`:
its model is made from the generated types.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, create_model
from typing_extensions import is_typeddict

from farline.errors import SpecError
from farline.portal.knowledge import Pair as KnownPair
from farline.portal.reservations import Phase
from farline.portal.reservations import Reservation as KeptReservation
from farline.portal.transfer_machine import State
from farline.portal.transfers import Transfer as KeptTransfer
from farline.spec import _types

MOST_BYTES = 2**60
MOST_BPS = 10**15

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Label = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
PathText = Annotated[str, Field(max_length=4096, description="Relative to the endpoint.")]
Rate = Annotated[int, Field(ge=1, le=MOST_BPS, description="Bits per second.")]
Streams = Annotated[int, Field(ge=1, le=256)]
Files = Annotated[int, Field(ge=1, le=1_000_000)]


class Asked(BaseModel):
    """What is asked: a field that there is not is a mistake."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """Why something was not done (RFC 9457), with farline's kind of failure."""

    type: str
    title: str
    status: int
    detail: str = Field(description="One line: what was wrong, and what is allowed.")
    kind: str
    exit_code: int = Field(description="With which `farline` ends for this kind of failure.")
    available_bps: int | None = Field(None, description="What is free at that time.")
    next_window: Window | None = Field(None, description="The first time at which it is free.")


class Window(BaseModel):
    """A span of time."""

    start: datetime
    end: datetime


class EstimateQuestion(Asked):
    """A transfer that may run."""

    source: Name = Field(description="An endpoint, a site or a host.")
    destination: Name
    bytes: int = Field(ge=0, le=MOST_BYTES)
    files: int = Field(1, ge=1, le=10**12)
    start: AwareDatetime | None = Field(None, description="Now, if absent.")
    deadline: AwareDatetime | None = None
    confidence: float = Field(0.9, ge=0.5, le=0.99)
    streams: int | None = Field(None, ge=1, le=1024)
    concurrency: int | None = Field(None, ge=1, le=1024)


class ReservationWish(Asked):
    """So much from one site to another, from when to when."""

    source: Name = Field(description="A site, or an endpoint of one.")
    destination: Name
    rate_bps: Rate
    start: AwareDatetime
    end: AwareDatetime
    label: Label = ""


class ReservationDocument(BaseModel):
    """A reservation. It reserves nothing on a network unless `network` names what it is there."""

    id: str
    user: str
    source: str
    destination: str
    rate_bps: int
    start: datetime
    end: datetime
    phase: Phase
    held_until: datetime | None
    label: str
    created: datetime
    network: str | None = Field(
        default=None, description="What the network calls it, where a back end has reserved it."
    )


class FreeSpan(BaseModel):
    """What is free from when to when."""

    start: datetime
    end: datetime
    available_bps: int


class Availability(BaseModel):
    """What is free between two sites."""

    source: str
    destination: str
    capacity_bps: int
    spans: list[FreeSpan]


class FairnessDocument(BaseModel):
    """A fairness measurement, as `farline fairness` makes them."""

    name: str
    began: str = Field(description="RFC 3339; empty for one that cannot be read.")
    target: str = Field(description="The line that was shared.")
    state: str
    verdicts: list[str] = Field(description="One line for each transfer.")


class PathDocument(BaseModel):
    """A path in one direction, as its newest transfers show it."""

    source: str
    destination: str
    transfers: int
    rate_bps: float
    best_bps: float
    newest: datetime | None
    rtt_ms: float | None
    capacity_bps: float | None
    limit: str | None


class PastDocument(BaseModel):
    """One transfer of the past over a path."""

    source: str = Field(description="The run, or the log that it stands in.")
    kind: str
    tool: str
    ended: datetime | None
    rate_bps: float
    bytes: int | None
    streams: int | None
    limit: str | None


class PathHistoryDocument(BaseModel):
    """A path with its newest transfers, the newest first."""

    path: PathDocument
    transfers: list[PastDocument]


class PlaceDocument(Asked):
    """A path below an endpoint."""

    endpoint: Name
    path: PathText = ""


class TransferOptions(Asked):
    """Options of the copy; what is absent is chosen as by `farline copy`."""

    streams: Streams | None = None
    concurrency: Files | None = None
    total_rate_bps: Rate | None = None
    transport: Literal["tcp", "udt", "rbudp"] | None = None
    overwrite: Literal["never", "older", "different", "always"] | None = None


def checked_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a transfer, those that are stated.

    Raises:
        SpecError: for a value that is not allowed, with its name.
    """
    try:
        return TransferOptions(**values).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise SpecError(f"{first['loc'][0]}: {first['msg']}") from None


class TransferWish(Asked):
    """What is to be copied."""

    source: PlaceDocument
    destination: PlaceDocument
    label: Label = ""
    options: TransferOptions = Field(default_factory=TransferOptions)
    reservation: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")] | None = Field(
        None, description="It starts when this is active, within its rate."
    )


class Failure(BaseModel):
    """Why it is not complete."""

    kind: str
    message: str


class Verdict(BaseModel):
    """What limited it."""

    limit: str
    line: str


class TransferDocument(BaseModel):
    """A transfer as it is now."""

    id: str
    user: str
    label: str
    source: PlaceDocument
    destination: PlaceDocument
    options: TransferOptions
    reservation: str | None
    state: State
    wanted: Literal["run", "pause", "cancel"]
    attempt: int
    created: datetime
    begun: datetime | None
    ended: datetime | None
    progress: dict[str, Any] | None = Field(None, description="As the event `progress`.")
    error: Failure | None = None
    verdict: Verdict | None = None
    report: dict[str, Any] | None = None
    run: str | None = None


class Adjust(Asked):
    """Another number of streams, files at once or rate for a transfer that runs."""

    streams: Streams | None = None
    concurrency: Files | None = None
    rate_bps: int | None = Field(None, ge=0, le=MOST_BPS, description="0 is without limit.")


class EndpointDocument(BaseModel):
    """A name for where data are. Where exactly, only who operates the service knows."""

    name: str
    kind: Literal["folder", "ssh", "server"]
    host: str


class ListedDocument(BaseModel):
    """A name in a folder."""

    name: str
    kind: Literal["file", "folder", "other"]
    bytes: int | None
    modified: datetime


class TokenDocument(BaseModel):
    """Who one is, and what one may."""

    user: str
    scopes: list[str]


class AuditDocument(BaseModel):
    """Something that was done."""

    id: int
    at: datetime
    user: str
    token: str
    act: str
    object: str
    outcome: str


def model_of(definition: Any) -> Any:
    """A model with the fields of a `TypedDict`; other types as they are, what is in them too."""
    if is_typeddict(definition):
        hints = get_type_hints(definition)
        required = definition.__required_keys__
        fields: dict[str, Any] = {}
        for name, kind in hints.items():
            default = ... if name in required else None
            own = f"{name}_" if hasattr(BaseModel, name) else name
            fields[own] = (model_of(kind), Field(default, alias=name))
        return create_model(definition.__name__, **fields)
    origin, inner = get_origin(definition), get_args(definition)
    if origin is None or origin is Literal:
        return definition
    if origin is list:
        return list[model_of(inner[0])]  # type: ignore[misc]
    return Union[tuple(model_of(one) for one in inner)]  # noqa: UP007 (made of values)


EstimateDocument: Any = model_of(_types.TransferEstimate)
"""The document of an estimate."""


def when(at_s: float) -> datetime:
    """POSIX seconds as a time of UTC."""
    return datetime.fromtimestamp(at_s, UTC)


def maybe_when(at_s: float | None) -> datetime | None:
    """The same, where there may be none."""
    return None if not at_s else when(at_s)


def reservation_document(one: KeptReservation, network: str | None = None) -> ReservationDocument:
    """A reservation as it is answered; `network` is what a network calls it."""
    return ReservationDocument(
        id=one.id, user=one.user, source=one.source, destination=one.destination,
        rate_bps=one.rate_bps, start=when(one.start_s), end=when(one.end_s), phase=one.phase,
        held_until=when(one.held_until_s) if one.phase == "held" else None,
        label=one.label, created=when(one.created_s), network=network,
    )  # fmt: skip


def transfer_document(
    one: KeptTransfer, progress: dict[str, Any] | None = None
) -> TransferDocument:
    """A transfer as it is answered."""
    order, result = one.order, one.result
    return TransferDocument(
        id=one.id, user=one.user, label=order.label,
        source=PlaceDocument(endpoint=order.source.endpoint, path=order.source.path),
        destination=PlaceDocument(
            endpoint=order.destination.endpoint, path=order.destination.path
        ),
        options=TransferOptions(**order.options), reservation=order.reservation,
        state=one.state, wanted=one.wanted, attempt=one.attempt, created=when(one.created_s),
        begun=maybe_when(one.begun_s), ended=maybe_when(one.ended_s), progress=progress,
        error=Failure(**result["error"]) if result.get("error") else None,
        verdict=Verdict(**result["verdict"]) if result.get("verdict") else None,
        report=result.get("report"), run=result.get("run"),
    )  # fmt: skip


def path_document(one: KnownPair) -> PathDocument:
    """A path as it is answered."""
    values = {name: getattr(one, name) for name in PathDocument.model_fields if name != "newest"}
    return PathDocument(newest=maybe_when(one.newest_s), **values)
