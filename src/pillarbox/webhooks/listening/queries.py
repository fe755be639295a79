"""SQL of the listeners."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.ids import Stamp
from pillarbox.kernel.postgres.database import Connection, Source, TeamDb
from pillarbox.webhooks.queries import delete

OPEN = """
    INSERT INTO webhooks (team_id, id, created_at, since, kind, endpoint, events, secrets, secret_ends,
                          seen_at)
    VALUES ($1, $2, $3, $3, 'listener', '', $4, ARRAY[$5::bytea], ARRAY[NULL::timestamptz], $3)
"""

TOUCH = """
    UPDATE webhooks SET seen_at = $3 WHERE team_id = $1 AND id = $2 AND kind = 'listener'
"""

TAKE = """
    WITH next AS MATERIALIZED (
        SELECT ctid AS spot
          FROM webhook_deliveries
         WHERE team_id = $1 AND webhook_id = $2
         ORDER BY event_id
         LIMIT $3
           FOR UPDATE SKIP LOCKED
    )
    DELETE FROM webhook_deliveries d
     USING next
     WHERE d.ctid = next.spot AND d.team_id = $1
    RETURNING d.event_id, d.kind, d.at, d.subject_id, d.position, d.detail
"""

# Across teams: listeners that nobody reads any more.
ABANDONED = """
    SELECT team_id, id FROM webhooks WHERE kind = 'listener' AND seen_at < $1 LIMIT 100
"""

SUBSCRIBERS = """
    SELECT count(*) FROM webhooks WHERE team_id = $1 AND status = 'enabled' AND $2 = ANY (events)
"""


class TakenRow(NamedTuple):
    """An event that a listener has taken, with what its body is made of."""

    event_id: UUID
    kind: str
    at: datetime
    subject_id: UUID | None
    position: int | None
    detail: str | None


async def open_listener(db: TeamDb, stamp: Stamp, events: Sequence[str], sealed: bytes) -> None:
    await db.run(OPEN, *stamp, events, sealed)


async def touch(db: TeamDb, listener: UUID, now: datetime) -> bool:
    """Say that it is read; False where it is gone."""
    return await db.run(TOUCH, listener, now) == 1


async def close(db: TeamDb, listener: UUID, job_id: UUID, now: datetime) -> None:
    """Remove it, and leave the removal of what waits for it to a job."""
    await delete(db, listener, job_id, now, "listener")


async def take(conn: Connection, team_id: UUID, listener: UUID, limit: int) -> list[TakenRow]:
    """Take the oldest events out of the queue."""
    return sorted(TakenRow(*row) for row in await conn.fetch(TAKE, team_id, listener, limit))


async def abandoned(conn: Source, before: datetime) -> list[tuple[UUID, UUID]]:
    """Return the team and id of listeners that were last read before then."""
    return [(row["team_id"], row["id"]) for row in await conn.fetch(ABANDONED, before)]


async def subscribers(conn: Connection, team_id: UUID, kind: str) -> int:
    """Return how many webhooks get an event of this kind, listeners among them."""
    return int(await conn.fetchval(SUBSCRIBERS, team_id, kind))
