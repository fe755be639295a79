"""SQL of what mail of this installation to people says, while it is not delivered."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.security.sealed_values import SealedColumn

INSERT: Final = """
    INSERT INTO sealed_mails (team_id, email_id, text) VALUES ($1, $2, $3)
"""

# Across teams: mail that is delivered, or will not be.
REMOVE_DONE: Final = """
    DELETE FROM sealed_mails s
     WHERE NOT EXISTS (SELECT FROM deliveries d WHERE d.team_id = s.team_id AND d.email_id = s.email_id)
"""

SEALED_MAILS: Final = SealedColumn(
    table="sealed_mails",
    sentence="The text of the mail {id} to a person",
    cure="it waits in the queue until the key is there: whoever it is for can ask for another one.",
    read="""
    SELECT team_id, email_id AS id, text AS sealed, email_id::text AS owner
      FROM sealed_mails
     ORDER BY team_id, email_id
    """,
    replace="""
    UPDATE sealed_mails SET text = $4 WHERE team_id = $1 AND email_id = $2 AND text = $3
    """,
)


async def insert(db: TeamDb, email_id: UUID, text: bytes) -> None:
    """Store what this email says, sealed."""
    await db.run(INSERT, email_id, text)


async def remove_done(source: Source) -> int:
    """Remove what emails say whose delivery has ended; returns how many."""
    status: str = await source.execute(REMOVE_DONE)
    return int(status.rsplit(" ", 1)[-1])
