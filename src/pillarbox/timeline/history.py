"""Reading the history of an email."""

from __future__ import annotations

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

BEGINNINGS = {kind.value for kind in FIRST}


class Line(NamedTuple):
    """One event; `recipient` is None for events of the whole email, `detail` is JSON text."""

    id: UUID
    at: datetime
    kind: str
    recipient: str | None
    detail: str | None


async def events(db: TeamDb, email_id: UUID, most: int) -> list[Line]:
    """The first `most` events of one email, oldest first."""
    found = await db.all(Line, EVENTS, email_id, most)
    # What it began with comes first even where the clock was set back since.
    return sorted(found, key=lambda row: row.kind not in BEGINNINGS)
