"""What topics bring to the program."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Kept, Kit, Retention, Slice
from pillarbox.topics import routes, topic_events
from pillarbox.topics.changes import TopicChanges
from pillarbox.topics.collector import SETTLED_AFTER, TopicCollector
from pillarbox.webhooks.publish import Publisher


def _changes(kit: Kit) -> TopicChanges:
    return TopicChanges(kit.need(Ids), kit.need(Publisher))


SLICE = Slice(
    name="topics",
    provides={TopicChanges: _changes},
    routes=collect(routes),
    retention=[
        Retention(
            [
                Kept(
                    "deleted topics with what contacts chose, where no mail from before is open",
                    SETTLED_AFTER,
                )
            ],
            lambda kit: TopicCollector(kit.pool, kit.clock).periodic(),
        )
    ],
    webhook_shapes=topic_events.SHAPES,
)
