"""SQL of events that wait, and of their partitions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.work.collectors import changed

WAITING: Final = """
    SELECT id, name, contact_id, address, email, payload, at
      FROM events
     WHERE team_id = $1 AND partition = $2 AND failed_at IS NULL
     ORDER BY number
     LIMIT $3
"""

IS_WAITING: Final = """
    SELECT EXISTS (SELECT FROM events WHERE team_id = $1 AND partition = $2 AND failed_at IS NULL)
"""

REMOVE: Final = """
    DELETE FROM events WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND failed_at IS NULL
    RETURNING id
"""

COUNT_TRY: Final = """
    UPDATE events SET tries = tries + 1 WHERE team_id = $1 AND id = $2 AND failed_at IS NULL
    RETURNING tries
"""

FAIL: Final = """
    UPDATE events SET failed_at = $3, reason = $4 WHERE team_id = $1 AND id = $2 AND failed_at IS NULL
"""

# Whoever deletes the contact waits until the transaction ends.
HOLD_CONTACT: Final = """
    SELECT id FROM contacts WHERE team_id = $1 AND address = $2 FOR KEY SHARE
"""

# Conflicts with those who put events into the partition. It is not waited for: while many events are sent
# there is hardly ever a moment at which nobody does.
HOLD_JOB: Final = """
    SELECT true FROM jobs WHERE team_id = $1 AND id = $2 FOR UPDATE SKIP LOCKED
"""


class WaitingEvent(NamedTuple):
    """An event that waits. `contact_id` is what the sender gave, `email` only where it is not the address."""

    id: UUID
    name: str
    contact_id: UUID | None
    address: str
    email: str | None
    payload: str
    at: datetime


async def waiting(db: TeamDb, partition: int, limit: int) -> list[WaitingEvent]:
    """Return the first events of a partition, in order."""
    return await db.all(WaitingEvent, WAITING, partition, limit)


async def is_waiting(db: TeamDb, partition: int) -> bool:
    return bool(await db.value(IS_WAITING, partition))


async def remove(db: TeamDb, event_ids: Sequence[UUID]) -> Sequence[UUID]:
    """Remove the events; return those of them that were still there."""
    return await db.values(REMOVE, event_ids)


async def count_try(db: TeamDb, event_id: UUID) -> int:
    """Count a try of the event; return how many it has had, 0 where it does not wait any more."""
    return await db.value(COUNT_TRY, event_id) or 0


async def fail(db: TeamDb, event_id: UUID, now: datetime, reason: str) -> bool:
    return await db.run(FAIL, event_id, now, reason) > 0


async def hold_contact(db: TeamDb, address: str) -> UUID | None:
    """Return the contact with an address, which stays until the transaction ends."""
    found: UUID | None = await db.value(HOLD_CONTACT, address)
    return found


async def hold_job(db: TeamDb, job_id: UUID) -> bool:
    """Lock the job, so that nobody adds to its partition until the transaction ends; False where somebody is
    adding now."""
    return bool(await db.value(HOLD_JOB, job_id))


# Across teams: what failed before an instant.
async def remove_failed(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` events that failed before an instant; return how many."""
    return changed(
        await source.execute(
            """
            WITH old AS MATERIALIZED (
                SELECT team_id, id FROM events WHERE failed_at < $1 ORDER BY failed_at LIMIT $2
            )
            DELETE FROM events e USING old WHERE e.team_id = old.team_id AND e.id = old.id
            """,
            before,
            limit,
        )
    )
