"""SQL of captured mail of a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

SPAN = """
    SELECT c.id, k.text LIKE '%' || $2 || '%' AND k.text ~ $3 AS is_concerned
      FROM captured c
     CROSS JOIN LATERAL (
           SELECT lower(concat_ws(' ', c.mail_from, c.sender, c.subject, array_to_string(c.recipients,
               ' '))) AS text
            OFFSET 0) AS k
     WHERE c.team_id = $1 AND c.id > $4
     ORDER BY c.id
     LIMIT $5
"""

REMOVE = """
    DELETE FROM captured WHERE team_id = $1 AND id = ANY ($2::uuid[]) RETURNING blob
"""


class CapturedForPerson(NamedTuple):
    """A captured mail; `is_concerned` where it names the person."""

    id: UUID
    is_concerned: bool


async def span(db: TeamDb, found_by: tuple[str, str], after: UUID, limit: int) -> list[CapturedForPerson]:
    """Return the next captured mails behind an id."""
    return await db.all(CapturedForPerson, SPAN, *found_by, after, limit)


async def remove(db: TeamDb, ids: Sequence[UUID]) -> Sequence[str | None]:
    """Remove these mails; returns their blobs."""
    return await db.values(REMOVE, ids)
