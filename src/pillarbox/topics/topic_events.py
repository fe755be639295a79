"""Topic events, published in the transaction of the change (webhooks.md section 7.4)."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from msgspec import Struct

from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.topics.queries import TopicRow
from pillarbox.topics.wire import Choice
from pillarbox.webhooks.publish import Publisher, WebhookEvent

CREATED: Final = "topic.created"
UPDATED: Final = "topic.updated"
DELETED: Final = "topic.deleted"


class TopicData(Struct):
    """The data of a topic event, its keys in the order of the contract."""

    id: UUID
    name: str
    description: str | None
    default_subscription: Annotated[str, shown_as(Choice)]
    deleted: bool
    created_at: IsoTime
    updated_at: IsoTime


SHAPES: Final = dict.fromkeys((CREATED, UPDATED, DELETED), TopicData)
"""The type of the data, by the kind of event."""


async def publish(db: TeamDb, publisher: Publisher, kind: str, topic: TopicRow) -> None:
    """Publish an event with the topic as the change has left it; it happened when the topic was updated."""
    data = TopicData(
        topic.id,
        topic.name,
        topic.description,
        topic.default_subscription,
        kind == DELETED,
        iso_style(topic.created_at),
        iso_style(topic.updated_at),
    )
    await publisher.publish(db.connection, [WebhookEvent(db.team_id, kind, topic.updated_at, data)])
