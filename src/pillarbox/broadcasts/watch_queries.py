"""SQL of a broadcast that is being sent: what is left of it, and whether it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBroadcast:
    """A broadcast whose recipients are known and which is neither sent nor canceled."""

    queued_at: datetime
    paused_at: datetime | None
    resumed_at: datetime | None
    stage: str | None


async def running(db: TeamDb, broadcast_id: UUID) -> RunningBroadcast | None:
    return await db.one(
        RunningBroadcast,
        """
        SELECT b.queued_at, b.paused_at, b.resumed_at, p.stage
          FROM broadcasts b
          LEFT JOIN broadcast_plans p ON p.team_id = b.team_id AND p.broadcast_id = b.id
         WHERE b.team_id = $1 AND b.id = $2 AND b.status = 'queued' AND b.resolved_at IS NOT NULL
        """,
        broadcast_id,
    )


async def next_waiting(db: TeamDb, broadcast_id: UUID, first: UUID) -> UUID | None:
    """Return the first contact from `first` on whose copy is neither made nor skipped. None of those before
    waits again, so a caller that goes on from the last answer reads each row once."""
    found: UUID | None = await db.value(
        """
        SELECT contact_id
          FROM broadcast_recipients
         WHERE team_id = $1 AND broadcast_id = $2 AND contact_id >= $3 AND email_id IS NULL
           AND skipped_for IS NULL
         ORDER BY contact_id
         LIMIT 1
        """,
        broadcast_id,
        first,
    )
    return found


async def finish(db: TeamDb, broadcast_id: UUID, now: datetime) -> bool:
    """Mark the broadcast as sent, since no recipient waits; False where it is paused, or not being sent any
    more."""
    return bool(
        await db.run(
            """
            UPDATE broadcasts
               SET status = 'sent', sent_at = $3
             WHERE team_id = $1 AND id = $2 AND status = 'queued' AND resolved_at IS NOT NULL
               AND paused_at IS NULL
            """,
            broadcast_id,
            now,
        )
    )


async def pause(db: TeamDb, broadcast_id: UUID, reason: str, now: datetime) -> bool:
    """Pause the broadcast: no copy is made until it is resumed. False where it is not being sent, or already
    paused."""
    return bool(
        await db.run(
            """
            UPDATE broadcasts
               SET paused_at = $4, paused_for = $3
             WHERE team_id = $1 AND id = $2 AND status = 'queued' AND paused_at IS NULL
            """,
            broadcast_id,
            reason,
            now,
        )
    )


async def resume(db: TeamDb, broadcast_id: UUID, now: datetime) -> bool:
    """Resume the broadcast; False where it is not paused."""
    return bool(
        await db.run(
            """
            UPDATE broadcasts
               SET paused_at = NULL, paused_for = NULL, resumed_at = $3
             WHERE team_id = $1 AND id = $2 AND status = 'queued' AND paused_at IS NOT NULL
            """,
            broadcast_id,
            now,
        )
    )
