"""Which topics there are, for the other slices: a deleted one is not there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.topics import queries


async def exists(db: TeamDb, topic_id: UUID) -> bool:
    """Whether the team has this topic now."""
    return await queries.get(db, topic_id) is not None


async def hold(db: TeamDb, topic_ids: Collection[UUID]) -> Mapping[UUID, str]:
    """The default subscriptions of topics, all of which stay until the transaction that `db` stands for ends;
    404 where one is not there."""
    wanted = sorted(set(topic_ids))
    found = await queries.hold(db, wanted) if wanted else []
    if len(found) < len(wanted):
        raise NotFound("Topic")
    return {topic.id: topic.default_subscription for topic in found}
