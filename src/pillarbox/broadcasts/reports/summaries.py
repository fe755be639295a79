"""Broadcasts as a list of them shows them, with what the list of the API does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from pillarbox.broadcasts.reports import breakdown_queries
from pillarbox.broadcasts.reports.breakdown_queries import BroadcastSummary
from pillarbox.kernel.postgres.database import TeamDb


async def summaries(db: TeamDb, ids: Sequence[UUID]) -> Mapping[str, BroadcastSummary]:
    """Return the summaries of these broadcasts by their ids as texts."""
    return {str(one.id): one for one in await breakdown_queries.summaries(db, ids)}


async def digest_of_broadcasts(db: TeamDb, broadcast_id: UUID | None) -> str:
    """Return a text that is another one after a change of this broadcast and what became of its copies, or
    of the team's newest hundred."""
    return await breakdown_queries.digest(db, broadcast_id)
