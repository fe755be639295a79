"""SQL of what the log of requests has of a person."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.personal_data import WalkedRows
from pillarbox.kernel.postgres.database import TeamDb

WALK = """
    SELECT l.id, l.created_at, l.method, l.endpoint, l.response_status,
           k.text LIKE '%' || $2 || '%' AND k.text ~ $3 AS is_concerned
      FROM logs l
     CROSS JOIN LATERAL (
           SELECT lower(concat_ws(' ', l.endpoint, l.user_agent, l.request_body::text,
               l.response_body::text)) AS text
            OFFSET 0) AS k
     WHERE l.team_id = $1 AND l.id > $4
     ORDER BY l.id
     LIMIT $5
"""

ERASE = """
    WITH span AS MATERIALIZED (
        SELECT l.id, k.text LIKE '%' || $2 || '%' AND k.text ~ $3 AS is_concerned
          FROM logs l
         CROSS JOIN LATERAL (
               SELECT lower(concat_ws(' ', l.endpoint, l.user_agent, l.request_body::text,
                                      l.response_body::text)) AS text
                OFFSET 0) AS k
         WHERE l.team_id = $1 AND l.id > $5
         ORDER BY l.id
         LIMIT $6
    ), changed AS (
        UPDATE logs l
           SET request_body = NULL, response_body = NULL, refers = false,
               endpoint = regexp_replace(l.endpoint, $3, $4, 'gi'),
               user_agent = regexp_replace(l.user_agent, $3, $4, 'gi')
          FROM span
         WHERE l.team_id = $1 AND l.id = span.id AND span.is_concerned
        RETURNING 1
    )
    SELECT (SELECT id FROM span ORDER BY id DESC LIMIT 1) AS last, (SELECT count(*) FROM span) AS walked,
           (SELECT count(*) FROM changed) AS changed
"""


class LoggedRequest(NamedTuple):
    """A request; `is_concerned` where it names the person."""

    id: UUID
    created_at: datetime
    method: str
    endpoint: str
    response_status: int
    is_concerned: bool


async def walk(db: TeamDb, found_by: tuple[str, str], after: UUID, limit: int) -> list[LoggedRequest]:
    """Return the next requests behind an id."""
    return await db.all(LoggedRequest, WALK, *found_by, after, limit)


async def erase(
    db: TeamDb, found_by: tuple[str, str], stands_for: str, after: UUID, limit: int
) -> WalkedRows:
    """Empty those of the next requests that name the person."""
    return await db.one(WalkedRows, ERASE, *found_by, stands_for, after, limit) or WalkedRows(None, 0, 0)
