"""Opens and clicks of one sent email, its webhook deliveries, its request, and its header fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.dashboard.frame.visit import Visit
from pillarbox.emails.insights.origin import EmailOrigin, origin_of
from pillarbox.kernel.ids import tagged
from pillarbox.logs import reading
from pillarbox.logs.policy import LogPolicy
from pillarbox.logs.queries import ListedLog
from pillarbox.timeline import history
from pillarbox.timeline.history_queries import HistoryEvent
from pillarbox.timeline.rules import EventDetail, EventKind
from pillarbox.webhooks.log import DeliveryLog
from pillarbox.webhooks.subjects.deliveries import deliveries_of
from pillarbox.webhooks.subjects.queries import SubjectDelivery
from pillarbox.webhooks.wire import EVENT

MOST_EVENTS: Final = 1000
MOST_OPENS: Final = 100
OPENS: Final = frozenset({EventKind.OPENED.value, EventKind.CLICKED.value})
TONES: Final[Mapping[str, str]] = {
    "success": "good",
    "failed": "bad",
    "attempting": "warn",
    "pending": "info",
}
RETRYING: Final = {"attempting": "retrying"}
"""States of webhook events that the screens name otherwise."""
LEVEL_TONES: Final[Mapping[str, str]] = {"ok": "good", "advice": "info", "warning": "warn"}


class OpenOrClick(NamedTuple):
    """One open or click, and the machine that did it where it is known to be one."""

    at: datetime
    kind: str
    recipient: str | None
    link: str | None
    machine: str | None
    user_agent: str | None


class WebhookLine(NamedTuple):
    """A webhook event of the email with the last answer to it."""

    webhook_id: UUID
    event_id: str
    endpoint: str
    kind: str
    at: datetime
    status: str
    answer: str | None


class EmailDetails(NamedTuple):
    """All that the page shows beside the email. `details` are those of its events, by their ids."""

    details: Mapping[str, EventDetail]
    opens: Sequence[OpenOrClick]
    by_machines: int
    webhooks: Sequence[WebhookLine]
    request: ListedLog | None
    origin: EmailOrigin | None


async def details_of(visit: Visit, email_id: UUID) -> EmailDetails:
    """Return all that the page shows beside the email."""
    db = visit.db
    lines = await history.events(db, email_id, MOST_EVENTS)
    details = {str(line.id): _detail(line) for line in lines}
    opens = [_open(line, details[str(line.id)]) for line in lines if line.kind in OPENS]
    line_ids = [line.id for line in lines]
    deliveries = await deliveries_of(db, visit.request.use(DeliveryLog), email_id, line_ids)
    policy = visit.request.use(LogPolicy)
    oldest = policy.oldest(policy.days_of(visit.visitor.caller()), visit.request.at)
    return EmailDetails(
        details=details,
        opens=list(reversed(opens))[:MOST_OPENS],
        by_machines=sum(entry.machine is not None for entry in opens),
        webhooks=[_webhook(delivery) for delivery in deliveries],
        request=await reading.request_of(db, email_id, oldest),
        origin=await origin_of(db, email_id),
    )


async def name_of(visit: Visit, path: str, thing_id: UUID | None) -> str | None:
    """Return the name of a thing of the API; its id where it is gone or has no name."""
    if thing_id is None:
        return None
    thing = await visit.find(f"{path}/{thing_id}", shown=False)
    return str((thing and thing.get("name")) or thing_id)


def in_words(machine: str) -> str:
    """Return the name of a machine as people read it."""
    return machine.replace("_", " ").capitalize() if "_" in machine else machine


def header_fields(email: Mapping[str, Any], origin: EmailOrigin | None) -> list[tuple[str, str]]:
    """Return the header fields that the email was accepted with, in the order in which they are written."""
    lists = [("To", "to"), ("Cc", "cc"), ("Reply-To", "reply_to")]
    fields = [("From", email["from"])]
    fields += [(name, ", ".join(email[key])) for name, key in lists if email[key]]
    fields += [("Subject", email["subject"]), ("Message-ID", email["message_id"])]
    return fields + (origin.headers if origin else [])


def _detail(line: HistoryEvent) -> EventDetail:
    return EventDetail() if line.detail is None else msgspec.json.decode(line.detail, type=EventDetail)


def _open(line: HistoryEvent, detail: EventDetail) -> OpenOrClick:
    click = detail.click
    return OpenOrClick(
        at=line.at,
        kind=line.kind,
        recipient=line.recipient,
        link=click.link if click else None,
        machine=detail.machine,
        user_agent=click.user_agent if click else None,
    )


def _webhook(delivery: SubjectDelivery) -> WebhookLine:
    code, answer = delivery.http_status_code, None
    if code is not None:
        answer = f"{code} {(delivery.response or '')[:200]}".strip() if code else delivery.response
    return WebhookLine(
        webhook_id=delivery.webhook_id,
        event_id=tagged(EVENT, delivery.event_id),
        endpoint=delivery.endpoint,
        kind=delivery.kind,
        at=delivery.at,
        status=RETRYING.get(delivery.status, delivery.status),
        answer=answer,
    )
