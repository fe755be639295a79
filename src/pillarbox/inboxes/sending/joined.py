"""How a message that is sent becomes one of its inbox: in a thread that is given, or in a new one."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.emails.rows import Draft
from pillarbox.inboxes import events
from pillarbox.inboxes.events import ThreadRef
from pillarbox.inboxes.folders import Folder, after_outbound, of_first_message
from pillarbox.inboxes.threads import queries as thread_queries
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.webhooks.publish import Publisher

_json = msgspec.json.Encoder().encode

THREAD = """
    SELECT folder, inbound, unread FROM inbox_threads WHERE team_id = $1 AND inbox_id = $2 AND id = $3
"""

ADD_THREAD = """
    INSERT INTO inbox_threads (team_id, id, inbox_id, subject, folder, messages, inbound, unread, has_attachment,
                               last_message_id, received_at, created_at)
    VALUES ($1, $2, $3, nullif($4, ''), $5, 1, 0, 0, $6, $7, $8, $8)
"""

JOIN = """
    UPDATE inbox_threads
       SET folder = $3, purge_at = NULL, messages = messages + 1, has_attachment = has_attachment OR $4,
           last_message_id = CASE WHEN (received_at, last_message_id) < ($6, $5) THEN $5 ELSE last_message_id END,
           received_at = greatest(received_at, $6)
     WHERE team_id = $1 AND id = $2
"""

ADD_MESSAGE = """
    INSERT INTO inbox_messages (team_id, inbox_id, id, thread_id, direction, received_at, sender, sender_key,
                                to_list, cc_list, bcc_list, subject, message_id, message_key, attachments, is_read,
                                is_automatic, searched)
    VALUES ($1, $2, $3, $4, 'outbound', $5, $6, $7, $8, $9, $10, nullif($11, ''), $12,
            hashtextextended(trim(both '<>' from $12), 0), $13, true, false, $14)
"""


class Outbound(NamedTuple):
    """Where a message that is sent belongs; with `is_new` the thread has this id and begins with it."""

    inbox_id: UUID
    thread_id: UUID
    is_new: bool = False


class OutboundJoining:
    """Adds sent messages to threads. Who calls holds the lock of the inbox."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    async def join(self, db: TeamDb, place: Outbound, draft: Draft) -> None:
        """Add the message of this email, and queue what follows from it."""
        told = []
        files = len(draft.attachments) > 0
        if place.is_new:
            folder = of_first_message(is_inbound=False)
            subject = draft.outgoing.subject
            await db.run(
                ADD_THREAD, place.thread_id, place.inbox_id, subject, folder, files, draft.id, draft.at
            )
            told.append(
                events.thread_created(db.team_id, draft.at, place.inbox_id, place.thread_id, draft.id)
            )
        else:
            told += await self._join(db, place, draft, files=files)
        await self._add(db, place, draft)
        told.append(events.email_sent(db.team_id, draft.at, place.inbox_id, place.thread_id, draft.id))
        await self._publisher.refer(db.connection, told)

    async def _join(self, db: TeamDb, place: Outbound, draft: Draft, *, files: bool) -> list[Any]:
        row = await db.one(_Thread, THREAD, place.inbox_id, place.thread_id)
        if row is None:
            raise NotFound("Thread")
        before = Folder(row.folder)
        after = after_outbound(before, has_inbound=row.inbound > 0)
        await db.run(JOIN, place.thread_id, after, files, draft.id, draft.at)
        await thread_queries.follow(db, [place.thread_id])
        if after is before:
            return []
        ref = ThreadRef(db.team_id, place.inbox_id, place.thread_id, events.SYSTEM)
        return [events.folder_updated(ref, draft.at, before, after)]

    async def _add(self, db: TeamDb, place: Outbound, draft: Draft) -> None:
        out = draft.outgoing
        await db.run(
            ADD_MESSAGE,
            place.inbox_id,
            draft.id,
            place.thread_id,
            draft.at,
            out.sender_text,
            out.sender.key,
            _text(out.to_texts),
            _text(out.cc_texts) if out.cc_texts else None,
            _text(out.bcc_texts) if out.bcc_texts else None,
            out.subject,
            draft.message_id,
            len(draft.attachments),
            out.subject,
        )


class _Thread(NamedTuple):
    folder: str
    inbound: int
    unread: int


def _text(texts: object) -> str:
    return _json(texts).decode()
