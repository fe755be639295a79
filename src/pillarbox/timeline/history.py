"""The history of an email: read, and removed together with the email."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.timeline.rules import FIRST

EVENTS = """
    SELECT t.id, t.at, t.kind, r.mailbox AS recipient, t.detail
      FROM timeline t
      LEFT JOIN recipients r
             ON r.team_id = t.team_id AND r.email_id = t.email_id AND r.position = t.position
     WHERE t.team_id = $1 AND t.email_id = $2
     ORDER BY t.id
     LIMIT $3
"""

LAST_OF = """
    SELECT t.id, t.at, t.kind, r.mailbox AS recipient, t.detail
      FROM recipients r
      JOIN timeline t ON t.team_id = r.team_id AND t.email_id = r.email_id AND t.position = r.position
     WHERE r.team_id = $1 AND r.email_id = $2 AND r.address = $3 AND t.kind = $4
     ORDER BY t.id DESC
     LIMIT 1
"""

FIRST_OF = """
    SELECT DISTINCT ON (t.email_id, t.kind) t.id, t.email_id, t.at, t.kind, t.position, t.detail
      FROM unnest($2::uuid[], $3::text[]) AS k (email_id, kind)
      JOIN timeline t ON t.team_id = $1 AND t.email_id = k.email_id AND t.kind = k.kind
     ORDER BY t.email_id, t.kind, t.id
"""

REMOVE = """
    DELETE FROM timeline WHERE team_id = $1 AND email_id = ANY ($2::uuid[])
"""

BEGINNINGS = {kind.value for kind in FIRST}


class HistoryEvent(NamedTuple):
    """One event; `recipient` is None for events of the whole email, `detail` is JSON text."""

    id: UUID
    at: datetime
    kind: str
    recipient: str | None
    detail: str | None


class EmailEvent(NamedTuple):
    """One event of an email, as it is stored; `position` is that of the recipient, `detail` is JSON text."""

    id: UUID
    email_id: UUID
    at: datetime
    kind: str
    position: int | None
    detail: str | None


async def events(db: TeamDb, email_id: UUID, limit: int) -> list[HistoryEvent]:
    """The first `limit` events of one email, oldest first."""
    found = await db.all(HistoryEvent, EVENTS, email_id, limit)
    # The first event stays first even where the clock was set back later.
    return sorted(found, key=lambda row: row.kind not in BEGINNINGS)


async def remove(db: TeamDb, email_ids: Sequence[UUID]) -> int:
    """Remove every event of these emails; returns how many there were. Metrics keep their counts."""
    return await db.run(REMOVE, email_ids)


async def last_of(db: TeamDb, email_id: UUID, address: str, kind: str) -> HistoryEvent | None:
    """The last event of this kind of the recipients with this address, in the form that is compared."""
    return await db.one(HistoryEvent, LAST_OF, email_id, address, kind)


async def first_of(db: TeamDb, wanted_events: Sequence[tuple[UUID, str]]) -> list[EmailEvent]:
    """Return the first event of an email of a kind, for each of these pairs where there is one."""
    email_ids, kinds = zip(*wanted_events, strict=True)
    return await db.all(EmailEvent, FIRST_OF, email_ids, kinds)
