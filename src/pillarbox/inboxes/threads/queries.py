"""SQL of one thread: what it is, what moves and marks it, its labels and whom it is assigned to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.inboxes.events import ThreadLabel
from pillarbox.inboxes.threads.list_filter import FolderName
from pillarbox.inboxes.threads.thread_labels import labels_of
from pillarbox.kernel.postgres.database import TeamDb

GET = """
    SELECT t.id, t.subject, t.folder, t.inbound, t.unread, t.purge_at, t.assignee,
           (SELECT json_agg(json_build_object('id', l.id, 'name', l.name, 'color', l.color)
                            ORDER BY l.created_at, l.id)
              FROM inbox_thread_labels tl
              JOIN inbox_labels l ON l.team_id = tl.team_id AND l.id = tl.label_id
             WHERE tl.team_id = t.team_id AND tl.thread_id = t.id) AS labels
      FROM inbox_threads t
     WHERE t.team_id = $1 AND t.inbox_id = $2 AND t.id = $3
"""

PUT = """
    UPDATE inbox_threads SET folder = $3, purge_at = $4 WHERE team_id = $1 AND id = $2
"""

MARK = """
    UPDATE inbox_threads
       SET unread = $3, marks = marks + 1, marked_read = $4
     WHERE team_id = $1 AND id = $2
"""

ADD_UNREAD = """
    UPDATE inboxes SET unread = unread + $3 WHERE team_id = $1 AND id = $2
"""

FOLLOW = """
    UPDATE inbox_thread_labels l
       SET list_class = t.list_class, received_at = t.received_at
      FROM inbox_threads t
     WHERE l.team_id = $1 AND l.thread_id = ANY ($2::uuid[]) AND t.team_id = $1 AND t.id = l.thread_id
       AND (l.list_class <> t.list_class OR l.received_at <> t.received_at)
"""

LABELS = """
    SELECT id, name, color
      FROM inbox_labels
     WHERE team_id = $1 AND inbox_id = $2 AND id = ANY ($3::uuid[])
     ORDER BY created_at, id
"""

ADD_LABELS = """
    INSERT INTO inbox_thread_labels (team_id, thread_id, label_id, list_class, received_at)
    SELECT t.team_id, t.id, k.label_id, t.list_class, t.received_at
      FROM inbox_threads t
     CROSS JOIN unnest($3::uuid[]) AS k (label_id)
     WHERE t.team_id = $1 AND t.id = $2
"""

REMOVE_LABELS = """
    DELETE FROM inbox_thread_labels WHERE team_id = $1 AND thread_id = $2 AND label_id = ANY ($3::uuid[])
"""

MEMBER = """
    SELECT email FROM team_members WHERE team_id = $1 AND lower(email) = lower($2) ORDER BY email LIMIT 1
"""

ASSIGN = """
    UPDATE inbox_threads SET assignee = $3 WHERE team_id = $1 AND id = $2
"""


class StoredThread(NamedTuple):
    """A thread; `labels` is the JSON of its labels, the oldest first."""

    id: UUID
    subject: str | None
    folder: FolderName
    inbound: int
    unread: int
    purge_at: datetime | None
    assignee: str | None
    labels: str | None

    @property
    def label_list(self) -> list[ThreadLabel]:
        return labels_of(self.labels)


async def get(db: TeamDb, inbox_id: UUID, thread_id: UUID) -> StoredThread | None:
    return await db.one(StoredThread, GET, inbox_id, thread_id)


async def put(db: TeamDb, thread: StoredThread) -> None:
    """Store folder and deadline."""
    await db.run(PUT, thread.id, thread.folder, thread.purge_at)


async def mark(db: TeamDb, thread: StoredThread) -> None:
    """Mark all messages of the thread that came in, as it says: as read where none is unread."""
    await db.run(MARK, thread.id, thread.unread, thread.unread == 0)


async def add_unread(db: TeamDb, inbox_id: UUID, threads: int) -> None:
    """Count so many unread threads more in the folder `inbox`."""
    await db.run(ADD_UNREAD, inbox_id, threads)


async def follow(db: TeamDb, threads: Sequence[UUID]) -> None:
    """Let the labels of these threads stand in lists where their threads stand."""
    await db.run(FOLLOW, threads)


async def labels(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> list[ThreadLabel]:
    """Return those of the ids that are labels of the inbox, the oldest first."""
    return await db.all(ThreadLabel, LABELS, inbox_id, ids)


async def add_labels(db: TeamDb, thread_id: UUID, ids: Sequence[UUID]) -> None:
    """Put labels on a thread that does not have them."""
    await db.run(ADD_LABELS, thread_id, ids)


async def remove_labels(db: TeamDb, thread_id: UUID, ids: Sequence[UUID]) -> None:
    await db.run(REMOVE_LABELS, thread_id, ids)


async def member(db: TeamDb, email: str) -> str | None:
    """Return the address of a member of the team, as it is stored."""
    found: str | None = await db.value(MEMBER, email)
    return found


async def assign(db: TeamDb, thread_id: UUID, email: str | None) -> None:
    await db.run(ASSIGN, thread_id, email)
