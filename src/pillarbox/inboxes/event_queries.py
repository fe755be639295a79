"""SQL of what the events of inboxes show.

What an inbox had is gone with it, even while its rows are still being removed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

THREADS: Final = """
    SELECT t.id, t.subject, t.folder, t.unread,
           (SELECT json_agg(json_build_object('id', l.id, 'name', l.name, 'color', l.color)
                            ORDER BY l.created_at, l.id)
              FROM inbox_thread_labels tl
              JOIN inbox_labels l ON l.team_id = tl.team_id AND l.id = tl.label_id
             WHERE tl.team_id = t.team_id AND tl.thread_id = t.id) AS labels
      FROM inbox_threads t
      JOIN inboxes i ON i.team_id = t.team_id AND i.id = t.inbox_id
     WHERE t.team_id = $1 AND t.id = ANY ($2::uuid[])
"""

MESSAGES: Final = """
    SELECT m.inbox_id, m.id, m.direction, m.sender, m.to_list, m.cc_list, m.bcc_list, m.reply_to_list,
           m.subject, m.message_id, m.attachments,
           m.direction = 'outbound' OR CASE WHEN m.marks = t.marks THEN m.is_read ELSE t.marked_read END
           AS is_read, m.received_at
      FROM unnest($2::uuid[], $3::uuid[]) AS k (inbox_id, id)
      JOIN inbox_messages m ON m.team_id = $1 AND m.inbox_id = k.inbox_id AND m.id = k.id
      JOIN inbox_threads t ON t.team_id = $1 AND t.id = m.thread_id
      JOIN inboxes i ON i.team_id = $1 AND i.id = m.inbox_id
"""

# A message that an inbox sent to itself came in, and its attachments are those of the email that was sent.
FILES: Final = """
    SELECT f.email_id, f.id, f.filename, f.size
      FROM (SELECT r.email_id, r.id, r.filename, r.size, r.position
              FROM received_attachments r
             WHERE r.team_id = $1 AND r.email_id = ANY ($2::uuid[])
            UNION ALL
            SELECT e.id, a.id, a.filename, a.size, a.position
              FROM emails e
              JOIN attachments a ON a.team_id = e.team_id AND a.content_id = e.content_id
             WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[]) AND a.size IS NOT NULL) AS f
     ORDER BY f.email_id, f.position
"""

DRAFTS: Final = """
    SELECT d.id, d.thread_id, d.reply_to_email_id, d.to_list, d.cc_list, d.bcc_list, d.subject, d.email_id,
           d.created_at, d.updated_at,
           (SELECT json_agg(json_build_object('id', a.id, 'filename', a.filename,
                                              'content_type', a.content_type, 'size', a.size)
                            ORDER BY a.position)
              FROM inbox_draft_attachments a
             WHERE a.team_id = d.team_id AND a.draft_id = d.id) AS attachments
      FROM inbox_drafts d
      JOIN inboxes i ON i.team_id = d.team_id AND i.id = d.inbox_id
     WHERE d.team_id = $1 AND d.id = ANY ($2::uuid[])
"""


class EventThread(NamedTuple):
    """A thread; `labels` is the JSON of its labels, the oldest first."""

    id: UUID
    subject: str | None
    folder: str
    unread: int
    labels: str | None


class EventMessage(NamedTuple):
    """A message; the `*_list` columns hold the JSON of the wire, and `attachments` is how many there are."""

    inbox_id: UUID
    id: UUID
    direction: str
    sender: str
    to_list: str
    cc_list: str | None
    bcc_list: str | None
    reply_to_list: str | None
    subject: str | None
    message_id: str | None
    attachments: int
    is_read: bool
    received_at: datetime


class EventFile(NamedTuple):
    """An attachment of a message."""

    email_id: UUID
    id: UUID
    filename: str | None
    size: int


class EventDraft(NamedTuple):
    """A draft; the `*_list` columns and `attachments` hold JSON."""

    id: UUID
    thread_id: UUID | None
    reply_to_email_id: UUID | None
    to_list: str | None
    cc_list: str
    bcc_list: str
    subject: str | None
    email_id: UUID | None
    created_at: datetime
    updated_at: datetime
    attachments: str | None


async def threads(db: TeamDb, ids: Collection[UUID]) -> dict[UUID, EventThread]:
    if not ids:
        return {}
    return {thread.id: thread for thread in await db.all(EventThread, THREADS, list(ids))}


async def messages(db: TeamDb, keys: Collection[tuple[UUID, UUID]]) -> dict[tuple[UUID, UUID], EventMessage]:
    """Return the messages by inbox and id."""
    if not keys:
        return {}
    found = await db.all(EventMessage, MESSAGES, *map(list, zip(*keys, strict=True)))
    return {(message.inbox_id, message.id): message for message in found}


async def files(db: TeamDb, email_ids: Sequence[UUID]) -> dict[UUID, list[EventFile]]:
    """Return the attachments of these emails, in the order of each."""
    found: dict[UUID, list[EventFile]] = {}
    if email_ids:
        for file in await db.all(EventFile, FILES, email_ids):
            found.setdefault(file.email_id, []).append(file)
    return found


async def drafts(db: TeamDb, ids: Collection[UUID]) -> dict[UUID, EventDraft]:
    if not ids:
        return {}
    return {draft.id: draft for draft in await db.all(EventDraft, DRAFTS, list(ids))}
