"""SQL of what deleted inboxes and labels have left behind, a few rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

DROP_DRAFTS: Final = """
    WITH next AS MATERIALIZED (
        SELECT id FROM inbox_drafts WHERE team_id = $1 AND inbox_id = $2 ORDER BY id LIMIT $3
    )
    DELETE FROM inbox_drafts d
     USING next
     WHERE d.team_id = $1 AND d.id = next.id
    RETURNING d.id
"""

DROP_FILES: Final = """
    DELETE FROM inbox_draft_attachments WHERE team_id = $1 AND draft_id = ANY ($2::uuid[]) RETURNING blob
"""

DROP_MESSAGES: Final = """
    WITH next AS MATERIALIZED (
        SELECT id
          FROM inbox_messages
         WHERE team_id = $1 AND inbox_id = $2 AND id > $3
         ORDER BY id
         LIMIT $4
    )
    DELETE FROM inbox_messages m
     USING next
     WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.id = next.id
    RETURNING m.id
"""

DROP_THREADS: Final = """
    WITH next AS MATERIALIZED (
        SELECT id FROM inbox_threads WHERE team_id = $1 AND inbox_id = $2 LIMIT $3
    )
    DELETE FROM inbox_threads t
     USING next
     WHERE t.team_id = $1 AND t.id = next.id
    RETURNING t.id
"""

DROP_THREAD_LABELS: Final = """
    DELETE FROM inbox_thread_labels WHERE team_id = $1 AND thread_id = ANY ($2::uuid[])
"""

DROP_LABELS: Final = """
    DELETE FROM inbox_labels WHERE team_id = $1 AND inbox_id = $2
"""

DROP_AWAITED: Final = """
    DELETE FROM inbox_awaited_messages WHERE team_id = $1 AND inbox_id = $2
"""

DROP_POLICY: Final = """
    DELETE FROM inbox_policies WHERE team_id = $1 AND inbox_id = $2
"""

DROP_AGENT: Final = """
    DELETE FROM inbox_agents WHERE team_id = $1 AND inbox_id = $2
"""

TAKE_OFF: Final = """
    WITH next AS MATERIALIZED (
        SELECT thread_id FROM inbox_thread_labels WHERE team_id = $1 AND label_id = $2 LIMIT $3
    )
    DELETE FROM inbox_thread_labels l
     USING next
     WHERE l.team_id = $1 AND l.label_id = $2 AND l.thread_id = next.thread_id
"""


async def drop_drafts(db: TeamDb, inbox_id: UUID, limit: int) -> Sequence[UUID]:
    """Remove drafts, sent ones too; returns which."""
    return await db.values(DROP_DRAFTS, inbox_id, limit)


async def drop_files(db: TeamDb, drafts: Sequence[UUID]) -> Sequence[str | None]:
    """Remove the attachments of drafts; returns their blobs."""
    return await db.values(DROP_FILES, drafts)


async def drop_messages(db: TeamDb, inbox_id: UUID, after: UUID, limit: int) -> Sequence[UUID]:
    """Remove the messages behind this one; returns the emails that they are of."""
    return await db.values(DROP_MESSAGES, inbox_id, after, limit)


async def drop_threads(db: TeamDb, inbox_id: UUID, limit: int) -> Sequence[UUID]:
    """Remove threads whose messages are gone; returns which."""
    return await db.values(DROP_THREADS, inbox_id, limit)


async def drop_thread_labels(db: TeamDb, threads: Sequence[UUID]) -> None:
    await db.run(DROP_THREAD_LABELS, threads)


async def drop_labels(db: TeamDb, inbox_id: UUID) -> int:
    return await db.run(DROP_LABELS, inbox_id)


async def drop_awaited(db: TeamDb, inbox_id: UUID) -> int:
    """Forget which messages are awaited; there are few thousand at most."""
    return await db.run(DROP_AWAITED, inbox_id)


async def drop_policy(db: TeamDb, inbox_id: UUID) -> int:
    return await db.run(DROP_POLICY, inbox_id)


async def drop_agent(db: TeamDb, inbox_id: UUID) -> int:
    return await db.run(DROP_AGENT, inbox_id)


async def take_off(db: TeamDb, label_id: UUID, limit: int) -> int:
    """Take a label off some threads; returns off how many."""
    return await db.run(TAKE_OFF, label_id, limit)
