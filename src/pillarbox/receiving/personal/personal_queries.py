"""SQL of received mail of a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

SPAN = """
    SELECT e.id, k.text LIKE '%' || $2 || '%' AND k.text ~ $3 AS is_concerned
      FROM received_emails e
     CROSS JOIN LATERAL (
           SELECT lower(concat_ws(' ', e.sender, e.mail_from, e.to_list::text, e.cc_list::text,
               e.bcc_list::text,
                                  e.reply_to_list::text, e.received_for::text, e.recipients::text, e.subject,
                                  e.spam_reason, e.verdicts::text)) AS text
            OFFSET 0) AS k
     WHERE e.team_id = $1 AND e.id > $4
     ORDER BY e.id
     LIMIT $5
"""

SHOWN = """
    SELECT e.id, e.created_at, e.sender, e.to_list, e.subject
      FROM received_emails e
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
     ORDER BY e.id
"""


class ReceivedForPerson(NamedTuple):
    """A received mail; `is_concerned` where it is from the person or to it."""

    id: UUID
    is_concerned: bool


class ReceivedShown(NamedTuple):
    """A received mail as the file of a person has it, without what it says."""

    id: UUID
    created_at: datetime
    sender: str
    to_list: str
    subject: str


async def span(db: TeamDb, found_by: tuple[str, str], after: UUID, limit: int) -> list[ReceivedForPerson]:
    """Return the next received mails behind an id."""
    return await db.all(ReceivedForPerson, SPAN, *found_by, after, limit)


async def shown(db: TeamDb, ids: Sequence[UUID]) -> list[ReceivedShown]:
    """Return these mails, the oldest first."""
    return await db.all(ReceivedShown, SHOWN, ids) if ids else []
