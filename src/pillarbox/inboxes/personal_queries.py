"""SQL of what inboxes have of a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.personal_data import DataSubject
from pillarbox.kernel.postgres.database import TeamDb

SPAN = """
    SELECT m.inbox_id, m.id, m.thread_id,
           m.sender_key = $2 OR (k.text LIKE '%' || $3 || '%' AND k.text ~ $4) AS is_concerned
      FROM inbox_messages m
     CROSS JOIN LATERAL (
           SELECT lower(concat_ws(' ', m.sender, m.to_list::text, m.cc_list::text, m.bcc_list::text,
                                  m.reply_to_list::text)) AS text
            OFFSET 0) AS k
     WHERE m.team_id = $1 AND (m.inbox_id, m.id) > ($5::text::uuid, $6::text::uuid)
     ORDER BY m.inbox_id, m.id
     LIMIT $7
"""

SHOWN = """
    SELECT id, thread_id, direction, received_at, sender, to_list, subject
      FROM inbox_messages
     WHERE team_id = $1 AND id = ANY ($2::uuid[])
       AND inbox_id IN (SELECT i.id FROM inboxes i WHERE i.team_id = $1)
     ORDER BY id
"""

ERASE_DRAFTS = """
    UPDATE inbox_drafts d
       SET to_list = regexp_replace(d.to_list::text, $4, '"' || $5 || '"', 'gi')::json,
           cc_list = regexp_replace(d.cc_list::text, $4, '"' || $5 || '"', 'gi')::json,
           bcc_list = regexp_replace(d.bcc_list::text, $4, '"' || $5 || '"', 'gi')::json,
           subject = regexp_replace(d.subject, $3, $5, 'gi'), html = regexp_replace(d.html, $3, $5, 'gi'),
           text = regexp_replace(d.text, $3, $5, 'gi'), version = d.version + 1
      FROM (SELECT id, lower(concat_ws(' ', to_list::text, cc_list::text, bcc_list::text, subject, html,
          text)) AS text
              FROM inbox_drafts
             WHERE team_id = $1
            OFFSET 0) AS k
     WHERE d.team_id = $1 AND d.id = k.id AND k.text LIKE '%' || $2 || '%' AND k.text ~ $3
"""

# Without an entry, everybody would be an allowed sender.
ERASE_LISTED = """
    UPDATE inbox_policies
       SET allowed_senders = CASE WHEN allowed_senders = ARRAY[$2] THEN ARRAY[$3]
                                  ELSE array_remove(allowed_senders, $2) END,
           blocked_senders = array_remove(blocked_senders, $2),
           allowed_recipients = array_remove(allowed_recipients, $2),
           blocked_recipients = array_remove(blocked_recipients, $2)
     WHERE team_id = $1
       AND $2 = ANY (allowed_senders || blocked_senders || allowed_recipients || blocked_recipients)
"""


class MessageOfPerson(NamedTuple):
    """A message of an inbox; `is_concerned` where the person wrote it or got it."""

    inbox_id: UUID
    id: UUID
    thread_id: UUID
    is_concerned: bool


class MessageForFile(NamedTuple):
    """A message as the file of a person has it; `to_list` is JSON text."""

    id: UUID
    thread_id: UUID
    direction: str
    received_at: datetime
    sender: str
    to_list: str
    subject: str | None


async def span(db: TeamDb, person: DataSubject, after: Sequence[str], limit: int) -> list[MessageOfPerson]:
    """Return the next messages behind one, named by its inbox and id."""
    args = (person.address, *person.found_by, *after, limit)
    return await db.all(MessageOfPerson, SPAN, *args)


async def shown(db: TeamDb, ids: Sequence[UUID]) -> list[MessageForFile]:
    """Return these messages, the oldest first."""
    return await db.all(MessageForFile, SHOWN, ids) if ids else []


async def erase_drafts(db: TeamDb, person: DataSubject, stands_for: str) -> int:
    """Replace the person in drafts; returns in how many."""
    return await db.run(ERASE_DRAFTS, *person.found_by, person.quoted, stands_for)


async def erase_listed(db: TeamDb, address: str, stands_for: str) -> int:
    """Take an address off the lists of policies; returns of how many. `stands_for` takes its place where it
    was the only allowed sender."""
    return await db.run(ERASE_LISTED, address, stands_for)
