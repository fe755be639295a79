"""Making, changing and deleting topics (topics.md section 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import asdict

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import InvalidField, NotFound
from pillarbox.topics import queries
from pillarbox.topics.queries import TopicRow
from pillarbox.topics.topic_events import CREATED, DELETED, UPDATED, publish
from pillarbox.topics.wire import ChangedTopic, NewTopic
from pillarbox.webhooks.publish import Publisher


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """Each call writes the topic and its event in the transaction that `db` stands for."""

    ids: Ids
    publisher: Publisher

    async def create(self, db: TeamDb, new_topic: NewTopic) -> UUID:
        stamp = self.ids.stamp()
        topic = TopicRow(id=stamp.id, created_at=stamp.at, updated_at=stamp.at, **_given(new_topic))
        await queries.insert(db, topic)
        await publish(db, self.publisher, CREATED, topic)
        return topic.id

    async def change(self, db: TeamDb, topic_id: UUID, changed_topic: ChangedTopic) -> None:
        """Change the given fields; without a difference there is no event."""
        before = await queries.lock(db, topic_id)
        if before is None:
            raise NotFound("Topic")
        after = changed(before, changed_topic)
        if after == before:
            return
        after = replace(after, updated_at=self.ids.now())
        await queries.update(db, after)
        await publish(db, self.publisher, UPDATED, after)

    async def delete(self, db: TeamDb, topic_id: UUID) -> None:
        """Delete the topic: from the commit on it is gone for everybody. Its row and the choices of contacts
        stay for mail that was accepted before (`collector`)."""
        topic = await queries.lock(db, topic_id)
        if topic is None:
            raise NotFound("Topic")
        topic = replace(topic, updated_at=self.ids.now())
        await queries.mark_deleted(db, topic.id, topic.updated_at)
        await publish(db, self.publisher, DELETED, topic)


def changed(topic: TopicRow, changed_topic: ChangedTopic) -> TopicRow:
    """Return the topic with what was asked for; 422 for another default: contacts that chose nothing rely on
    it."""
    if changed_topic.default_subscription not in (UNSET, topic.default_subscription):
        raise InvalidField("default_subscription", "It cannot be changed.")
    return replace(topic, **_given(changed_topic))


def _given(body: NewTopic | ChangedTopic) -> dict[str, Any]:
    """Return the fields that the body gives, an empty text as null."""
    return {
        name: None if value == "" else value for name, value in asdict(body).items() if value is not UNSET
    }
