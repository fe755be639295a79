"""SQL that removes emails and bodies that are old."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb


async def teams(pool: asyncpg.Pool) -> list[tuple[TeamDb, int | None]]:
    """Return every team with the number of days that it has of its own: each is gone through on its own."""
    rows = await pool.fetch("SELECT id, email_retention_days FROM teams ORDER BY id")
    return [(TeamDb(pool, row["id"]), row["email_retention_days"]) for row in rows]


async def old(db: TeamDb, after: UUID, end: UUID, limit: int) -> Sequence[UUID]:
    """Return the next emails behind an id, up to another one."""
    return await db.values(
        "SELECT id FROM emails WHERE team_id = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4",
        after,
        end,
        limit,
    )


async def old_with_body(db: TeamDb, after: UUID, end: UUID, limit: int) -> Sequence[UUID]:
    """Return those of them that have a body or attachments."""
    return await db.values(
        """
        SELECT e.id
          FROM emails e
          JOIN contents c ON c.team_id = e.team_id AND c.id = e.id
         WHERE e.team_id = $1 AND e.id > $2 AND e.id < $3
           AND (c.html IS NOT NULL OR c.text IS NOT NULL OR c.attachments > 0)
         ORDER BY e.id
         LIMIT $4
        """,
        after,
        end,
        limit,
    )


async def lock_finished(db: TeamDb, ids: Sequence[UUID], before: datetime, job_kind: str) -> Sequence[UUID]:
    """Lock those of these emails that are over since an instant, are in no inbox, and have no work or job of
    this kind left; return their ids. What somebody else has locked is left out."""
    return await db.values(
        """
        SELECT e.id
          FROM emails e
         WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[]) AND e.last_event_at < $3 AND e.inbox_id IS NULL
           AND NOT EXISTS (SELECT FROM deliveries d WHERE d.team_id = $1 AND d.email_id = e.id)
           AND NOT EXISTS (SELECT FROM jobs j WHERE j.team_id = $1 AND j.kind = $4 AND j.subject_id = e.id)
         ORDER BY e.id
           FOR UPDATE SKIP LOCKED
        """,
        ids,
        before,
        job_kind,
    )


async def delete_attachments(db: TeamDb, ids: Sequence[UUID]) -> Sequence[str | None]:
    """Delete the attachments of these emails; return their blobs."""
    return await db.values(
        "DELETE FROM attachments WHERE team_id = $1 AND content_id = ANY ($2::uuid[]) RETURNING blob", ids
    )


async def empty_contents(db: TeamDb, ids: Sequence[UUID]) -> None:
    """Delete the bodies of these emails."""
    await db.run(
        """
        UPDATE contents SET html = NULL, text = NULL, attachments = 0
         WHERE team_id = $1 AND id = ANY ($2::uuid[])
        """,
        ids,
    )


async def delete_emails(db: TeamDb, ids: Sequence[UUID]) -> None:
    """Delete these emails with their contents and recipients."""
    await db.run(
        """
        WITH content AS (
            DELETE FROM contents WHERE team_id = $1 AND id = ANY ($2::uuid[])
        ), people AS (
            DELETE FROM recipients WHERE team_id = $1 AND email_id = ANY ($2::uuid[])
        )
        DELETE FROM emails WHERE team_id = $1 AND id = ANY ($2::uuid[])
        """,
        ids,
    )


async def note_purge(db: TeamDb, before: datetime, first_id: UUID) -> None:
    """Write down that emails before an instant, and thus before an id, were removed."""
    await db.run(
        """
        INSERT INTO purges AS p (team_id, before, first_id) VALUES ($1, $2, $3)
        ON CONFLICT (team_id) DO UPDATE SET before = excluded.before, first_id = excluded.first_id
         WHERE p.before < excluded.before
        """,
        before,
        first_id,
    )
