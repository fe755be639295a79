"""SQL of the messages of a thread."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

HAS_THREAD = """
    SELECT EXISTS (SELECT FROM inbox_threads WHERE team_id = $1 AND inbox_id = $2 AND id = $3)
"""

PLACE = """
    SELECT received_at, id
      FROM inbox_messages
     WHERE team_id = $1 AND inbox_id = $2 AND thread_id = $3 AND id = $4
"""

# One of the two branches finds rows: behind a place, or before it, the nearest first.
PAGE = """
    SELECT m.id, m.direction, m.sender, m.to_list, m.cc_list, m.bcc_list, m.reply_to_list, m.subject,
           m.message_id, m.attachments,
           m.direction = 'outbound' OR CASE WHEN m.marks = t.marks THEN m.is_read ELSE t.marked_read END
           AS is_read, m.received_at
      FROM ((SELECT id, received_at FROM inbox_messages
              WHERE team_id = $1 AND thread_id = $3 AND (received_at, id) > ($4, $5)
              ORDER BY received_at, id
              LIMIT $8)
            UNION ALL
            (SELECT id, received_at FROM inbox_messages
              WHERE team_id = $1 AND thread_id = $3 AND (received_at, id) < ($6, $7)
              ORDER BY received_at DESC, id DESC
              LIMIT $8)) AS page
      JOIN inbox_messages m ON m.team_id = $1 AND m.inbox_id = $2 AND m.id = page.id
      JOIN inbox_threads t ON t.team_id = $1 AND t.id = $3
     ORDER BY m.received_at, m.id
"""

GET = """
    SELECT m.id, m.direction, m.sender, m.to_list, m.cc_list, m.bcc_list, m.reply_to_list, m.subject,
           m.message_id, m.attachments,
           m.direction = 'outbound' OR CASE WHEN m.marks = t.marks THEN m.is_read ELSE t.marked_read END
           AS is_read, m.received_at
      FROM inbox_messages m
      JOIN inbox_threads t ON t.team_id = $1 AND t.id = m.thread_id
     WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.thread_id = $3 AND m.id = $4
"""


class MessagePosition(NamedTuple):
    """Where a message stands in its thread."""

    received_at: datetime
    id: UUID


class StoredMessage(NamedTuple):
    """A message without its bodies; the `*_list` columns hold the JSON of the wire, and `attachments` is how
    many there are."""

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

    @property
    def is_inbound(self) -> bool:
        return self.direction == "inbound"


async def has_thread(db: TeamDb, inbox_id: UUID, thread_id: UUID) -> bool:
    """Return whether the inbox has this thread."""
    found: bool = await db.value(HAS_THREAD, inbox_id, thread_id)
    return found


async def place(db: TeamDb, inbox_id: UUID, thread_id: UUID, message_id: UUID) -> MessagePosition | None:
    return await db.one(MessagePosition, PLACE, inbox_id, thread_id, message_id)


async def page(
    db: TeamDb,
    inbox_id: UUID,
    thread_id: UUID,
    after: MessagePosition | None,
    before: MessagePosition | None,
    limit: int,
) -> list[StoredMessage]:
    """Return the messages behind one id, or before the other, up to `limit`, the oldest first."""
    behind, ahead = after or (None, None), before or (None, None)
    return await db.all(StoredMessage, PAGE, inbox_id, thread_id, *behind, *ahead, limit)


async def get(db: TeamDb, inbox_id: UUID, thread_id: UUID, message_id: UUID) -> StoredMessage | None:
    return await db.one(StoredMessage, GET, inbox_id, thread_id, message_id)
