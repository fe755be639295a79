"""SQL of drafts that were sent, for their removal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb


class SentDraft(NamedTuple):
    """A draft that was sent, and whether its message is still there."""

    id: UUID
    is_kept: bool


async def teams(pool: asyncpg.Pool) -> Sequence[UUID]:
    """Return the teams that have drafts that were sent: each of them is gone through on its own."""
    rows = await pool.fetch(
        "SELECT DISTINCT team_id FROM inbox_drafts WHERE email_id IS NOT NULL ORDER BY team_id"
    )
    return [row["team_id"] for row in rows]


async def sent(db: TeamDb, after: UUID, limit: int) -> list[SentDraft]:
    """Return the next of them behind an id."""
    return await db.all(
        SentDraft,
        """
        SELECT d.id,
               EXISTS (SELECT FROM inbox_messages m
                        WHERE m.team_id = d.team_id AND m.inbox_id = d.inbox_id
                          AND m.id = d.email_id) AS is_kept
          FROM inbox_drafts d
         WHERE d.team_id = $1 AND d.id > $2 AND d.email_id IS NOT NULL
         ORDER BY d.id
         LIMIT $3
        """,
        after,
        limit,
    )


async def drop(db: TeamDb, ids: Sequence[UUID]) -> int:
    """Delete drafts that were sent, with their attachments, whose octets are with their emails."""
    return await db.run(
        """
        WITH files AS (
            DELETE FROM inbox_draft_attachments WHERE team_id = $1 AND draft_id = ANY ($2::uuid[])
        )
        DELETE FROM inbox_drafts WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND email_id IS NOT NULL
        """,
        ids,
    )
