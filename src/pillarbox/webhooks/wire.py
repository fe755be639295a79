"""Shapes of the webhooks endpoints (webhooks.md sections 1 and 2); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from pillarbox.kernel.http.schemas import one_of, shown_as
from pillarbox.kernel.ids import TAG_DIGITS, tagged, untagged
from pillarbox.kernel.wire.instants import DatabaseTime, IsoTime, iso_style
from pillarbox.kernel.wire.problems import Invalid, InvalidField
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.webhooks.endpoints import LONGEST
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.queries import Attempt, LoggedEvent, Webhook

EVENT = "msg_"
ATTEMPT = "atmpt_"
SHOWN = 100

Status = Literal["enabled", "disabled"]
DeliveryStatus = Annotated[str, one_of(("pending", "attempting", "success", "failed"))]
Kind = Annotated[str, one_of(KINDS)]
Url = Annotated[str, Meta(extra_json_schema={"format": "uri", "maxLength": LONGEST})]
WantedKinds = Annotated[list[str], shown_as(list[Kind]), Meta(extra_json_schema={"minItems": 1})]
EventId = Annotated[str, Meta(pattern=f"^{EVENT}[0-9A-Za-z]{{{TAG_DIGITS}}}$")]
AttemptId = Annotated[str, Meta(pattern=f"^{ATTEMPT}[0-9A-Za-z]{{{TAG_DIGITS}}}$")]


class NewWebhook(Struct, kw_only=True):
    endpoint: Url
    events: WantedKinds


class ChangedWebhook(Struct, kw_only=True):
    min_properties: ClassVar[int] = 1

    endpoint: Url | UnsetType = UNSET
    events: WantedKinds | UnsetType = UNSET
    status: Status | UnsetType = UNSET


class WebhookRef(Struct, kw_only=True):
    object: Literal["webhook"]
    id: UUID


class WebhookSecret(Struct, kw_only=True):
    object: Literal["webhook"]
    id: UUID
    signing_secret: str


class FullWebhook(Struct, kw_only=True):
    object: Literal["webhook"]
    id: UUID
    created_at: DatabaseTime
    status: Annotated[str, shown_as(Status)]
    endpoint: str
    events: list[Kind]
    signing_secret: str


class WebhookItem(Struct, kw_only=True):
    id: UUID
    endpoint: str
    created_at: DatabaseTime
    status: Annotated[str, shown_as(Status)]
    events: list[Kind]


class DeletedWebhook(Struct, kw_only=True):
    object: Literal["webhook"]
    id: UUID
    deleted: Literal[True]


class WebhooksEventItem(Struct, kw_only=True):
    id: EventId
    type: Kind
    created_at: IsoTime
    status: DeliveryStatus


class Payload(Struct, kw_only=True):
    """What was sent."""

    type: Kind
    created_at: IsoTime
    data: Annotated[Any, Meta(extra_json_schema={"type": "object", "additionalProperties": True})]


class FullEvent(Struct, kw_only=True):
    object: Literal["webhook_event"]
    id: EventId
    type: Kind
    created_at: IsoTime
    status: DeliveryStatus
    next_attempt_at: IsoTime | None
    payload: Annotated[Raw, shown_as(Payload)]


class WebhooksEventRef(Struct, kw_only=True):
    object: Literal["webhook_event"]
    id: EventId


class AttemptItem(Struct, kw_only=True):
    """`http_status_code` 0: there was no answer, and `response` says why."""

    id: AttemptId
    http_status_code: int
    response: str
    sent_at: IsoTime


def kinds_of(events: list[str]) -> list[str]:
    """Return the kinds that are asked for, each once; 422 names one that does not exist."""
    if not events:
        raise InvalidField("events", "Name at least one event.")
    for kind in events:
        if kind not in KINDS:
            raise InvalidField("events", f"There is no event `{kind[:SHOWN]}`.")
    return list(dict.fromkeys(events))


def refuse_empty(change: ChangedWebhook) -> None:
    """Raise a 422 for a change that changes nothing."""
    if change.endpoint is UNSET and change.events is UNSET and change.status is UNSET:
        raise Invalid("Provide at least one of `endpoint`, `events` and `status`.")


def full(webhook: Webhook, secret: str) -> FullWebhook:
    return from_row(FullWebhook, webhook, object="webhook", signing_secret=secret)


def item(webhook: Webhook) -> WebhookItem:
    return from_row(WebhookItem, webhook)


def event_item(event: LoggedEvent) -> WebhooksEventItem:
    return WebhooksEventItem(
        id=tagged(EVENT, event.event_id), type=event.kind, created_at=iso_style(event.at), status=event.status
    )


def full_event(event: LoggedEvent, body: bytes) -> FullEvent:
    return FullEvent(
        object="webhook_event",
        id=tagged(EVENT, event.event_id),
        type=event.kind,
        created_at=iso_style(event.at),
        status=event.status,
        next_attempt_at=iso_style(event.due_at) if event.due_at else None,
        payload=Raw(body),
    )


def attempt_item(attempt: Attempt) -> AttemptItem:
    return from_row(AttemptItem, attempt, id=tagged(ATTEMPT, attempt.id))


def shown_event(event_id: UUID) -> str:
    """Return the id of an event as the wire shows it."""
    return tagged(EVENT, event_id)


def event_id(text: str) -> UUID | None:
    """Return the event that a wire id means; None for what is none."""
    return untagged(EVENT, text)


def attempt_id(text: str) -> UUID | None:
    """Return the attempt that a wire id means; None for what is none."""
    return untagged(ATTEMPT, text)
