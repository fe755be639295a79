"""The slice of topics."""

from __future__ import annotations

from collections.abc import Sequence, Set

from pillarbox.emails.copies import MailOfTopic, TopicRules
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.slices import Container, Retention, RetentionItem, Slice
from pillarbox.topics import lookup, routes, subscriptions, topic_events
from pillarbox.topics.changes import TopicChanges
from pillarbox.topics.collector import SETTLED_AFTER, TopicCollector
from pillarbox.topics.subscriptions import TopicAddress
from pillarbox.webhooks.publish import Publisher


def _changes(kit: Container) -> TopicChanges:
    return TopicChanges(kit.need(Ids), kit.need(Publisher))


async def _refused(conn: Connection, mails: Sequence[MailOfTopic]) -> Set[MailOfTopic]:
    return await subscriptions.refused(conn, [TopicAddress(*mail) for mail in mails])


SLICE = Slice(
    name="topics",
    provides={
        TopicChanges: _changes,
        TopicRules: lambda _: TopicRules(lookup.live, _refused),
    },
    routes=collect(routes),
    retention=[
        Retention(
            [
                RetentionItem(
                    "deleted topics with what contacts chose, where no mail from before is open",
                    SETTLED_AFTER,
                )
            ],
            lambda kit: TopicCollector(kit.pool, kit.clock).periodic(),
        )
    ],
    webhook_shapes=topic_events.SHAPES,
)
