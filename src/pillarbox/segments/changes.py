"""Making, naming and deleting segments (segments.md section 2); nothing is told to webhooks."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.kernel.work import job_queries
from pillarbox.segments import queries
from pillarbox.segments.queries import Segment


async def create(db: TeamDb, ids: Ids, name: str) -> Segment:
    """Create a segment without members; names may repeat."""
    stamp = ids.stamp()
    segment = Segment(id=stamp.id, name=name, created_at=stamp.at)
    await queries.insert(db, segment)
    return segment


async def found(db: TeamDb, segment_id: UUID, called: str = "Segment") -> Segment:
    """Return the segment, or raise a 404."""
    segment = await queries.get(db, segment_id)
    if segment is None:
        raise NotFound(called)
    return segment


async def rename(db: TeamDb, segment_id: UUID, name: str, called: str = "Segment") -> None:
    if not await queries.rename(db, segment_id, name):
        raise NotFound(called)


async def delete(db: TeamDb, ids: Ids, segment_id: UUID) -> None:
    """Delete the segment, if it exists: from the commit on it is gone, and a job removes its members.
    Transactions that add one have ended by then: adding locks the segment."""
    if await queries.delete(db, segment_id):
        await job_queries.add(db, ids.new(), queries.JOB_REMOVE, segment_id, ids.now())
