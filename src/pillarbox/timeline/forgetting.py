"""Removing the history of emails that are removed themselves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

FORGET = """
    DELETE FROM timeline WHERE team_id = $1 AND email_id = ANY ($2::uuid[])
"""


async def forget(db: TeamDb, email_ids: Sequence[UUID]) -> int:
    """Remove every event of these emails; returns how many there were. Metrics keep their counts."""
    return await db.run(FORGET, email_ids)
