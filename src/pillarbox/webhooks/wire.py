"""Shapes of the webhooks endpoints (webhooks.md sections 1 and 2); field order is the contract's."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from msgspec import UNSET, Raw, Struct, UnsetType

from pillarbox.kernel.ids import tagged, untagged
from pillarbox.kernel.instants import database_style, iso_style
from pillarbox.kernel.problems import Invalid, InvalidField
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.queries import Attempt, LoggedEvent, Webhook

EVENT = "msg_"
ATTEMPT = "atmpt_"
SHOWN = 100

Status = Literal["enabled", "disabled"]


class NewWebhook(Struct):
    endpoint: str
    events: list[str]


class ChangedWebhook(Struct):
    endpoint: str | UnsetType = UNSET
    events: list[str] | UnsetType = UNSET
    status: Status | UnsetType = UNSET


class WebhookRef(Struct):
    object: Literal["webhook"]
    id: UUID


class WebhookSecret(Struct):
    object: Literal["webhook"]
    id: UUID
    signing_secret: str


class FullWebhook(Struct):
    object: Literal["webhook"]
    id: UUID
    created_at: str
    status: str
    endpoint: str
    events: list[str]
    signing_secret: str


class WebhookItem(Struct):
    id: UUID
    endpoint: str
    created_at: str
    status: str
    events: list[str]


class WebhookList(Struct):
    object: Literal["list"]
    has_more: bool
    data: list[WebhookItem]


class DeletedWebhook(Struct):
    object: Literal["webhook"]
    id: UUID
    deleted: Literal[True]


class EventItem(Struct):
    id: str
    type: str
    created_at: str
    status: str


class EventList(Struct):
    object: Literal["list"]
    has_more: bool
    data: list[EventItem]


class FullEvent(Struct):
    object: Literal["webhook_event"]
    id: str
    type: str
    created_at: str
    status: str
    next_attempt_at: str | None
    payload: Raw


class EventRef(Struct):
    object: Literal["webhook_event"]
    id: str


class AttemptItem(Struct):
    id: str
    http_status_code: int
    response: str
    sent_at: str


class AttemptList(Struct):
    object: Literal["list"]
    has_more: bool
    data: list[AttemptItem]


def kinds_of(events: list[str]) -> list[str]:
    """The kinds that are asked for, each once; 422 names one that does not exist."""
    if not events:
        raise InvalidField("events", "Name at least one event.")
    for kind in events:
        if kind not in KINDS:
            raise InvalidField("events", f"There is no event `{kind[:SHOWN]}`.")
    return list(dict.fromkeys(events))


def refuse_empty(change: ChangedWebhook) -> None:
    """422 for a change that changes nothing."""
    if change.endpoint is UNSET and change.events is UNSET and change.status is UNSET:
        raise Invalid("Provide at least one of `endpoint`, `events` and `status`.")


def full(webhook: Webhook, secret: str) -> FullWebhook:
    return FullWebhook(
        object="webhook",
        id=webhook.id,
        created_at=database_style(webhook.created_at),
        status=webhook.status,
        endpoint=webhook.endpoint,
        events=webhook.events,
        signing_secret=secret,
    )


def item(webhook: Webhook) -> WebhookItem:
    return WebhookItem(
        webhook.id, webhook.endpoint, database_style(webhook.created_at), webhook.status, webhook.events
    )


def event_item(event: LoggedEvent) -> EventItem:
    return EventItem(tagged(EVENT, event.event_id), event.kind, iso_style(event.at), event.status)


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
    return AttemptItem(
        tagged(ATTEMPT, attempt.id), attempt.http_status_code, attempt.response, iso_style(attempt.sent_at)
    )


def event_id(text: str) -> UUID | None:
    """The event that a wire id means; None for what is none."""
    return untagged(EVENT, text)


def attempt_id(text: str) -> UUID | None:
    """The attempt that a wire id means; None for what is none."""
    return untagged(ATTEMPT, text)
