"""SQL of threads that leave the trash for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb

JOB_REMOVE: Final = "inbox.thread.remove"
"""Removes the messages of a purged thread; its subject is the thread."""

# Across teams: each of them is gone through on its own.
TEAMS = """
    SELECT DISTINCT team_id FROM inbox_threads WHERE purge_at <= $1 ORDER BY team_id
"""

DUE = """
    SELECT id, inbox_id, purge_at
      FROM inbox_threads
     WHERE team_id = $1 AND purge_at <= $2 AND (purge_at, id) > ($3, $4)
     ORDER BY purge_at, id
     LIMIT $5
"""

# The deadline once more: it is another where somebody has brought the thread back meanwhile.
HOLD = """
    SELECT id FROM inbox_threads WHERE team_id = $1 AND id = $2 AND purge_at <= $3 FOR UPDATE SKIP LOCKED
"""

DROP_FILES = """
    DELETE FROM inbox_draft_attachments f
     USING inbox_drafts d
     WHERE f.team_id = $1 AND d.team_id = $1 AND d.id = f.draft_id AND d.thread_id = $2 AND d.email_id IS NULL
    RETURNING f.blob
"""

DROP_DRAFTS = """
    WITH gone AS (
        DELETE FROM inbox_drafts
         WHERE team_id = $1 AND thread_id = $3 AND email_id IS NULL
        RETURNING id
    )
    UPDATE inboxes SET drafts = drafts - (SELECT count(*) FROM gone) WHERE team_id = $1 AND id = $2
"""

# Behind a place, so that nothing is looked for behind thousands that are gone.
DROP_MESSAGES = """
    WITH next AS MATERIALIZED (
        SELECT inbox_id, id
          FROM inbox_messages
         WHERE team_id = $1 AND thread_id = $2 AND (received_at, id) > ($3, $4)
         ORDER BY received_at, id
         LIMIT $5
    )
    DELETE FROM inbox_messages m
     USING next
     WHERE m.team_id = $1 AND m.inbox_id = next.inbox_id AND m.id = next.id
    RETURNING m.inbox_id, m.id, m.received_at
"""

DROP = """
    WITH labels AS (
        DELETE FROM inbox_thread_labels WHERE team_id = $1 AND thread_id = $2
    )
    DELETE FROM inbox_threads WHERE team_id = $1 AND id = $2
"""


class DueThread(NamedTuple):
    """A thread whose time in the trash is over."""

    id: UUID
    inbox_id: UUID
    purge_at: datetime


class GoneMessage(NamedTuple):
    """A message that was removed."""

    inbox_id: UUID
    id: UUID
    received_at: datetime

    @property
    def place(self) -> tuple[datetime, UUID]:
        """The message's place in its thread."""
        return self.received_at, self.id


async def teams(pool: asyncpg.Pool, now: datetime) -> Sequence[UUID]:
    """Return the teams that have such threads."""
    return [row["team_id"] for row in await pool.fetch(TEAMS, now)]


async def due(db: TeamDb, now: datetime, after: DueThread, limit: int) -> list[DueThread]:
    """Return the next ones behind a thread."""
    return await db.all(DueThread, DUE, now, after.purge_at, after.id, limit)


async def hold(db: TeamDb, thread_id: UUID, now: datetime) -> bool:
    """Hold the thread, where its time is over and nobody else has it."""
    return await db.value(HOLD, thread_id, now) is not None


async def drop_files(db: TeamDb, thread_id: UUID) -> Sequence[str | None]:
    """Remove the attachments of its unsent drafts; returns their blobs."""
    return await db.values(DROP_FILES, thread_id)


async def drop_drafts(db: TeamDb, inbox_id: UUID, thread_id: UUID) -> None:
    """Remove its unsent drafts, and count them no longer."""
    await db.run(DROP_DRAFTS, inbox_id, thread_id)


async def drop_messages(
    db: TeamDb, thread_id: UUID, after: tuple[datetime, UUID], limit: int
) -> list[GoneMessage]:
    """Remove the first of its messages behind a place; returns which."""
    return await db.all(GoneMessage, DROP_MESSAGES, thread_id, *after, limit)


async def drop(db: TeamDb, thread_id: UUID) -> None:
    await db.run(DROP, thread_id)
