"""Who would get a broadcast now, and who would not."""

from __future__ import annotations

from uuid import UUID

from pillarbox.broadcasts.plans import audience_queries
from pillarbox.broadcasts.plans.audience_queries import AudienceCounts
from pillarbox.broadcasts.plans.wire import BroadcastAudience
from pillarbox.broadcasts.store import found
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.shapes import from_row


async def of(db: TeamDb, broadcast_id: UUID) -> BroadcastAudience:
    """Count the audience of a broadcast as it is now, or raise a 404."""
    content = (await found(db, broadcast_id)).content
    counts = AudienceCounts(members=0, unsubscribed=0, topic_opt_out=0, suppressed=0)
    if content.segment_id is not None:
        counts = await audience_queries.count(db, content.segment_id, content.topic_id)
    left_out = counts.unsubscribed + counts.topic_opt_out + counts.suppressed
    return from_row(
        BroadcastAudience,
        counts,
        object="broadcast_audience",
        broadcast_id=broadcast_id,
        recipients=counts.members - left_out,
    )
