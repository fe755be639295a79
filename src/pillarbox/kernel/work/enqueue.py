"""Adding jobs, in the transaction of what they follow from. Whoever adds one wakes `jobs` when it commits."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


async def add(db: TeamDb, job_id: UUID, kind: str, subject_id: UUID, now: datetime) -> None:
    """A job of this kind about this subject, of which there is none yet; it is due at once."""
    await db.run(
        """
        INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at) VALUES ($1, $2, $3, $4, $5, $5)
        """,
        job_id,
        kind,
        subject_id,
        now,
    )


async def restart(
    db: TeamDb, job_id: UUID, kind: str, subject_id: UUID, due_at: datetime, now: datetime
) -> None:
    """See to it that the one job of this kind about this subject runs at `due_at`. A claim that runs at this
    moment counts no more: it looked before this was asked for."""
    await db.run(
        """
        INSERT INTO jobs AS j (team_id, id, kind, subject_id, due_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (team_id, kind, subject_id) DO UPDATE
           SET due_at = excluded.due_at, owner = NULL, leased_until = NULL, reason = NULL,
               restored_due_at = NULL, attempt = j.attempt + 1, tries = j.attempt + 1
        """,
        job_id,
        kind,
        subject_id,
        due_at,
        now,
    )
