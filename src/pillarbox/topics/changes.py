"""Making, changing and deleting topics (topics.md section 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from msgspec import UNSET

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
        topic = TopicRow(
            id=stamp.id,
            name=new_topic.name,
            description=new_topic.description or None,
            default_subscription=new_topic.default_subscription,
            visibility=new_topic.visibility,
            created_at=stamp.at,
            updated_at=stamp.at,
        )
        await queries.insert(db, topic)
        await publish(db, self.publisher, CREATED, topic)
        return topic.id

    async def change(self, db: TeamDb, topic_id: UUID, changed_topic: ChangedTopic) -> None:
        """Without a difference there is no event."""
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
        """From the commit on the topic is gone for everybody. Its row and what contacts chose stay for mail
        that was accepted before (`collector`)."""
        topic = await queries.delete(db, topic_id, self.ids.now())
        if topic is None:
            raise NotFound("Topic")
        await publish(db, self.publisher, DELETED, topic)


def changed(topic: TopicRow, changed_topic: ChangedTopic) -> TopicRow:
    """The topic with what was asked for; 422 for another default: contacts that chose nothing rely on it."""
    if changed_topic.default_subscription not in (UNSET, topic.default_subscription):
        raise InvalidField("default_subscription", "It cannot be changed.")
    if changed_topic.name is not UNSET:
        topic = replace(topic, name=changed_topic.name)
    if changed_topic.description is not UNSET:
        topic = replace(topic, description=changed_topic.description or None)
    if changed_topic.visibility is not UNSET:
        topic = replace(topic, visibility=changed_topic.visibility)
    return topic
