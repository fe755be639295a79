"""Tells whether something became of a team's emails, for pages that show them as they change."""

from __future__ import annotations

from uuid import UUID

from pillarbox.emails import overview_queries
from pillarbox.kernel.postgres.database import TeamDb


async def digest_of_emails(db: TeamDb, email_id: UUID | None) -> str:
    """Return a text that is another one after a change of this email, or of the team's newest hundred."""
    if email_id is not None:
        return await overview_queries.digest_of_one(db, email_id)
    return await overview_queries.digest_of_newest(db)
