"""SQL of bounces: the recipients of the group that a bounce address names."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source


class SentTo(NamedTuple):
    """One recipient of the work item; `address` is the form that is compared."""

    team_id: UUID
    email_id: UUID
    position: int
    address: str


# A bounce address names its team by number: who sends the report has no team.
RECIPIENTS = """
    SELECT r.team_id, r.email_id, r.position, r.address
      FROM teams t
      JOIN recipients r ON r.team_id = t.id
     WHERE t.number = $1 AND r.email_id = $2 AND r.grp = $3
     ORDER BY r.position
"""


async def recipients(source: Source, team_number: int, email_id: UUID, group: int) -> list[SentTo]:
    """Return the recipients of one group of an email, in order; none where retention has removed it."""
    rows = await source.fetch(RECIPIENTS, team_number, email_id, group)
    return [SentTo(**row) for row in rows]
