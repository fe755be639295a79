"""SQL of what the log of acts has of a person."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.personal_data import WalkedRows
from pillarbox.kernel.postgres.database import TeamDb

WALK = """
    SELECT a.id, a.at, a.what, k.text LIKE '%' || $2 || '%' AND k.text ~ $3 AS is_concerned
      FROM audit_entries a
     CROSS JOIN LATERAL (SELECT lower(concat_ws(' ', a.target, a.details::text)) AS text OFFSET 0) AS k
     WHERE a.team_id = $1 AND a.id > $4
     ORDER BY a.id
     LIMIT $5
"""

ERASE = """
    WITH span AS MATERIALIZED (
        SELECT a.id, k.text LIKE '%' || $2 || '%' AND k.text ~ $3 AS is_concerned
          FROM audit_entries a
         CROSS JOIN LATERAL (SELECT lower(concat_ws(' ', a.target, a.details::text)) AS text OFFSET 0) AS k
         WHERE a.team_id = $1 AND a.id > $5
         ORDER BY a.id
         LIMIT $6
    ), changed AS (
        UPDATE audit_entries a
           SET target = regexp_replace(a.target, $3, $4, 'gi'),
               details = regexp_replace(a.details::text, $3, $4, 'gi')::json
          FROM span
         WHERE a.team_id = $1 AND a.id = span.id AND span.is_concerned
        RETURNING 1
    )
    SELECT (SELECT id FROM span ORDER BY id DESC LIMIT 1) AS last, (SELECT count(*) FROM span) AS walked,
           (SELECT count(*) FROM changed) AS changed
"""


class ActOnPerson(NamedTuple):
    """An act; `is_concerned` where it was on the person."""

    id: UUID
    at: datetime
    what: str
    is_concerned: bool


async def walk(db: TeamDb, found_by: tuple[str, str], after: UUID, limit: int) -> list[ActOnPerson]:
    """Return the next acts behind an id."""
    return await db.all(ActOnPerson, WALK, *found_by, after, limit)


async def erase(
    db: TeamDb, found_by: tuple[str, str], stands_for: str, after: UUID, limit: int
) -> WalkedRows:
    """Replace the address in those of the next acts that are on the person."""
    return await db.one(WalkedRows, ERASE, *found_by, stands_for, after, limit) or WalkedRows(None, 0, 0)
