"""Which topics there are, for the other slices: a deleted one is not there."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.topics import queries


async def exists(db: TeamDb, topic_id: UUID) -> bool:
    """Return whether the team has this topic."""
    return bool(await queries.live(db, [topic_id]))


async def live(db: TeamDb, topic_ids: Collection[UUID]) -> set[UUID]:
    """Return those of these topics that the team has."""
    return set(await queries.live(db, list(topic_ids))) if topic_ids else set()
