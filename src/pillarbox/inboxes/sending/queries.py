"""SQL of what is sent from an inbox."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

INBOX = """
    SELECT id, email_address, receiving_address, from_name FROM inboxes WHERE team_id = $1 AND id = $2
"""

SUBJECT = """
    SELECT subject FROM inbox_threads WHERE team_id = $1 AND inbox_id = $2 AND id = $3
"""

TARGET = """
    SELECT m.id, m.direction, m.sender, m.to_list, m.cc_list, m.subject, m.message_id, m.received_at
      FROM inbox_messages m
      JOIN inbox_threads t ON t.team_id = $1 AND t.id = m.thread_id
     WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.thread_id = $3 AND m.id = $4
"""

HAS_MESSAGE = """
    SELECT EXISTS (SELECT FROM inbox_messages m
                     JOIN inbox_threads t ON t.team_id = $1 AND t.id = m.thread_id
                    WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.thread_id = $3 AND m.id = $4)
"""


class SendingInbox(NamedTuple):
    """An inbox as a sender."""

    id: UUID
    email_address: str
    receiving_address: str | None
    from_name: str | None


class Target(NamedTuple):
    """A message that is answered; the `*_list` columns hold the JSON of the wire."""

    id: UUID
    direction: str
    sender: str
    to_list: str
    cc_list: str | None
    subject: str | None
    message_id: str | None
    received_at: datetime

    @property
    def is_inbound(self) -> bool:
        return self.direction == "inbound"


class _Subject(NamedTuple):
    subject: str | None


async def inbox(db: TeamDb, inbox_id: UUID) -> SendingInbox | None:
    return await db.one(SendingInbox, INBOX, inbox_id)


async def thread_subject(db: TeamDb, inbox_id: UUID, thread_id: UUID) -> tuple[str | None] | None:
    """The subject of a thread, in a tuple; None where the inbox has no such thread."""
    return await db.one(_Subject, SUBJECT, inbox_id, thread_id)


async def target(db: TeamDb, inbox_id: UUID, thread_id: UUID, email_id: UUID) -> Target | None:
    return await db.one(Target, TARGET, inbox_id, thread_id, email_id)


async def has_message(db: TeamDb, inbox_id: UUID, thread_id: UUID, email_id: UUID) -> bool:
    """Whether this message is in this thread now."""
    found: bool = await db.value(HAS_MESSAGE, inbox_id, thread_id, email_id)
    return found
