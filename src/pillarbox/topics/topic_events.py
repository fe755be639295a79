"""Topic events, published in the transaction of the change (webhooks.md section 7.4)."""

from __future__ import annotations

from typing import Final

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import IsoTime
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.topics.queries import TopicRow
from pillarbox.topics.wire import TopicFields
from pillarbox.webhooks.publish import Publisher, WebhookEvent

CREATED: Final = "topic.created"
UPDATED: Final = "topic.updated"
DELETED: Final = "topic.deleted"


class TopicData(TopicFields, kw_only=True):
    """The data of a topic event, its keys in the order of the contract."""

    deleted: bool
    created_at: IsoTime
    updated_at: IsoTime


SHAPES: Final = dict.fromkeys((CREATED, UPDATED, DELETED), TopicData)
"""The type of the data, by the kind of event."""


async def publish(db: TeamDb, publisher: Publisher, kind: str, topic: TopicRow) -> None:
    """Publish an event with the topic as the change has left it; it happened when the topic was updated."""
    data = from_row(TopicData, topic, deleted=kind == DELETED)
    await publisher.publish(db.connection, [WebhookEvent(db.team_id, kind, topic.updated_at, data)])
