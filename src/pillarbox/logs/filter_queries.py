"""SQL of the filtered log of requests. It reads a bounded number of rows for each page."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.logs.queries import ListedLog


async def id_after_rows(db: TeamDb, upper: UUID, lower: UUID, rows: int) -> UUID | None:
    """Return the id that stands `rows` rows below `upper`, or None where the log ends before it."""
    last: UUID | None = await db.value(
        """
        SELECT id
          FROM logs
         WHERE team_id = $1 AND id < $2 AND id >= $3
         ORDER BY id DESC
        OFFSET $4
         LIMIT 1
        """,
        upper,
        lower,
        rows - 1,
    )
    return last


async def filtered(
    db: TeamDb,
    upper: UUID,
    lower: UUID,
    method: str | None,
    least_status: int,
    last_status: int,
    path: str | None,
    agent: str | None,
    limit: int,
) -> list[ListedLog]:
    """Return the newest requests between two ids that fit; `path` and `agent` are parts of what they hold."""
    return await db.all(
        ListedLog,
        """
        SELECT id, created_at, endpoint, method, response_status, user_agent
          FROM logs
         WHERE team_id = $1 AND id < $2 AND id >= $3
           AND ($4::text IS NULL OR method = $4)
           AND response_status BETWEEN $5 AND $6
           AND ($7::text IS NULL OR strpos(lower(endpoint), lower($7)) > 0)
           AND ($8::text IS NULL OR strpos(lower(user_agent), lower($8)) > 0)
         ORDER BY id DESC
         LIMIT $9
        """,
        upper,
        lower,
        method,
        least_status,
        last_status,
        path,
        agent,
        limit,
    )
