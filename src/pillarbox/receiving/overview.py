"""Received mail as the operator sees it, without naming a team."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.receiving import queries
from pillarbox.receiving.queries import AttachmentPart, ReceivedEmailRow

# Across teams: the operator names an email by its id alone. One look into the index for each team.
OWNER = """
    SELECT t.id FROM teams t WHERE EXISTS (SELECT FROM received_emails e WHERE e.team_id = t.id AND e.id = $1)
"""


async def owner_of(source: Source, email_id: UUID) -> UUID | None:
    """The team whose received email this is."""
    found: UUID | None = await source.fetchval(OWNER, email_id)
    return found


async def get(db: TeamDb, email_id: UUID) -> tuple[ReceivedEmailRow, list[AttachmentPart]] | None:
    """The email with its attachments."""
    found = await queries.get(db, email_id)
    return None if found is None else (found, await queries.parts(db, email_id))
