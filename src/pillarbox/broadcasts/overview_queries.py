"""SQL of what the operator sees of broadcasts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastOverview:
    """A broadcast with what is not on the wire: how it goes on."""

    id: UUID
    name: str | None
    subject: str
    status: str
    recipients: int | None
    created_at: datetime
    scheduled_at: datetime | None
    queued_at: datetime | None
    resolved_at: datetime | None
    sent_at: datetime | None
    paused_at: datetime | None
    paused_for: str | None
    resumed_at: datetime | None
    failed_for: str | None

    @property
    def condition(self) -> str:
        """The broadcast's status, or `paused`."""
        return "paused" if self.paused_at is not None else self.status


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastCopyCounts:
    """The numbers of recipients whose copies were made, skipped, or are still waiting."""

    made: int
    skipped: int
    waiting: int


async def every(db: TeamDb) -> list[BroadcastOverview]:
    """Return the broadcasts of a team, the newest first."""
    return await db.all(
        BroadcastOverview,
        """
        SELECT id, name, subject, status, recipients, created_at, scheduled_at, queued_at, resolved_at,
               sent_at, paused_at, paused_for, resumed_at, failed_for
          FROM broadcasts
         WHERE team_id = $1
         ORDER BY id DESC
        """,
    )


async def one(db: TeamDb, broadcast_id: UUID) -> BroadcastOverview | None:
    return await db.one(
        BroadcastOverview,
        """
        SELECT id, name, subject, status, recipients, created_at, scheduled_at, queued_at, resolved_at,
               sent_at, paused_at, paused_for, resumed_at, failed_for
          FROM broadcasts
         WHERE team_id = $1 AND id = $2
        """,
        broadcast_id,
    )


async def copies(db: TeamDb, broadcast_id: UUID) -> BroadcastCopyCounts:
    """Count the copies by their rows: a million of them take some tenths of a second."""
    found = await db.one(
        BroadcastCopyCounts,
        """
        SELECT count(email_id) AS made, count(skipped_for) AS skipped,
               count(*) - count(email_id) - count(skipped_for) AS waiting
          FROM broadcast_recipients
         WHERE team_id = $1 AND broadcast_id = $2
        """,
        broadcast_id,
    )
    assert found is not None, "counts have a row"
    return found
