"""Drafts that were sent stay as long as the message that they became: a thread that is purged leaves none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.periodic import Periodic

EVERY: Final = timedelta(hours=6)
PAGE: Final = 1000
NIL: Final = UUID(int=0)

# Across teams: each of them is gone through on its own.
TEAMS: Final = """
    SELECT DISTINCT team_id FROM inbox_drafts WHERE email_id IS NOT NULL ORDER BY team_id
"""

SENT: Final = """
    SELECT d.id,
           EXISTS (SELECT FROM inbox_messages m
                    WHERE m.team_id = d.team_id AND m.inbox_id = d.inbox_id AND m.id = d.email_id) AS is_kept
      FROM inbox_drafts d
     WHERE d.team_id = $1 AND d.id > $2 AND d.email_id IS NOT NULL
     ORDER BY d.id
     LIMIT $3
"""

DROP: Final = """
    WITH files AS (
        DELETE FROM inbox_draft_attachments WHERE team_id = $1 AND draft_id = ANY ($2::uuid[])
    )
    DELETE FROM inbox_drafts WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND email_id IS NOT NULL
"""


class SentDraft(NamedTuple):
    """A draft that was sent, and whether its message is still there."""

    id: UUID
    is_kept: bool


async def teams(pool: asyncpg.Pool) -> Sequence[UUID]:
    """The teams that have drafts that were sent."""
    return [row["team_id"] for row in await pool.fetch(TEAMS)]


async def sent(db: TeamDb, after: UUID, limit: int) -> list[SentDraft]:
    """The next of them behind an id."""
    return await db.all(SentDraft, SENT, after, limit)


async def drop(db: TeamDb, ids: Sequence[UUID]) -> int:
    """Remove drafts that were sent, with their attachments, whose octets are with their emails."""
    return await db.run(DROP, ids)


async def purge(pool: asyncpg.Pool) -> int:
    """Remove all whose message is gone; returns how many. It rests as long as each turn took."""
    removed = 0
    for team_id in await teams(pool):
        db, after = TeamDb(pool, team_id), NIL
        while True:
            started = time.monotonic()
            page = await sent(db, after, PAGE)
            if gone := [draft.id for draft in page if not draft.is_kept]:
                removed += await drop(db, gone)
            if len(page) < PAGE:
                break
            after = page[-1].id
            await asyncio.sleep(time.monotonic() - started)
    return removed


def periodic(pool: asyncpg.Pool) -> list[Periodic]:
    """The job that removes them."""

    async def work() -> str:
        return f"{await purge(pool)} drafts"

    return [Periodic("inboxes.sent_drafts", EVERY, work)]
