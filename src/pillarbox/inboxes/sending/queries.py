"""SQL of what is sent from an inbox."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.ids import first_id
from pillarbox.kernel.postgres.database import TeamDb

INBOX = """
    SELECT id, email_address, receiving_address, from_name FROM inboxes WHERE team_id = $1 AND id = $2
"""

SUBJECT = """
    SELECT subject FROM inbox_threads WHERE team_id = $1 AND inbox_id = $2 AND id = $3
"""

TARGET = """
    SELECT m.id, m.direction, m.sender, m.to_list, m.cc_list, m.subject, m.message_id, m.received_at,
           m.is_automatic
      FROM inbox_messages m
      JOIN inbox_threads t ON t.team_id = $1 AND t.id = m.thread_id
     WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.thread_id = $3 AND m.id = $4
"""

HAS_MESSAGE = """
    SELECT EXISTS (SELECT FROM inbox_messages m
                     JOIN inbox_threads t ON t.team_id = $1 AND t.id = m.thread_id
                    WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.thread_id = $3 AND m.id = $4)
"""


LATELY_SENT = """
    SELECT count(*) FILTER (WHERE s.thread_id = $3) AS in_thread,
           count(*) FILTER (WHERE s.is_to_them) AS to_them,
           count(*) AS in_inbox
      FROM (SELECT m.thread_id,
                   EXISTS (SELECT FROM json_array_elements_text(m.to_list) AS a (address)
                            WHERE lower(a.address) = ANY ($5::text[])) AS is_to_them
              FROM inbox_messages m
             WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.id >= $4 AND m.direction = 'outbound'
             LIMIT $6) AS s
"""


class LatelySent(NamedTuple):
    """How many messages were sent from an inbox since an instant: in a thread, to some addresses, and all."""

    in_thread: int
    to_them: int
    in_inbox: int


class SendingInbox(NamedTuple):
    """An inbox as a sender."""

    id: UUID
    email_address: str
    receiving_address: str | None
    from_name: str | None


class RepliedMessage(NamedTuple):
    """A message that is answered; the `*_list` columns hold the JSON of the wire."""

    id: UUID
    direction: str
    sender: str
    to_list: str
    cc_list: str | None
    subject: str | None
    message_id: str | None
    received_at: datetime
    is_automatic: bool

    @property
    def is_inbound(self) -> bool:
        return self.direction == "inbound"


class _Subject(NamedTuple):
    subject: str | None


async def inbox(db: TeamDb, inbox_id: UUID) -> SendingInbox | None:
    return await db.one(SendingInbox, INBOX, inbox_id)


async def thread_subject(db: TeamDb, inbox_id: UUID, thread_id: UUID) -> tuple[str | None] | None:
    """Return the subject of a thread, in a tuple; None where the inbox has no such thread."""
    return await db.one(_Subject, SUBJECT, inbox_id, thread_id)


async def target(db: TeamDb, inbox_id: UUID, thread_id: UUID, email_id: UUID) -> RepliedMessage | None:
    return await db.one(RepliedMessage, TARGET, inbox_id, thread_id, email_id)


async def has_message(db: TeamDb, inbox_id: UUID, thread_id: UUID, email_id: UUID) -> bool:
    """Return whether this message is in this thread now."""
    found: bool = await db.value(HAS_MESSAGE, inbox_id, thread_id, email_id)
    return found


async def lately_sent(
    db: TeamDb, inbox_id: UUID, thread_id: UUID, since: datetime, addresses: Sequence[str], limit: int
) -> LatelySent:
    """Return how many messages were sent since then; at most `limit` of them are looked at."""
    found = await db.one(
        LatelySent, LATELY_SENT, inbox_id, thread_id, first_id(since), list(addresses), limit
    )
    assert found is not None, "counts are always there"
    return found
