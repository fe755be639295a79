"""SQL of the log of requests. `INSERT` takes rows of several teams; each names its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.combined_statement import Statement, rows_json
from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.wire.paging import Page

# Bodies are JSON within JSON as texts: a body may speak of NUL, which a document that is read may not.
INSERT = """
    INSERT INTO logs (team_id, id, created_at, endpoint, method, response_status, user_agent, request_body,
                      response_body, refers)
    SELECT k.team_id, k.id, k.created_at, k.endpoint, k.method, k.response_status, k.user_agent,
           k.request_body::json, k.response_body::json, k.refers
      FROM json_to_recordset($1::text::json)
           AS k (team_id uuid, id uuid, created_at timestamptz, endpoint text, method text,
                 response_status smallint, user_agent text, request_body text, response_body text,
                 refers boolean)
"""

# $5: the least id that is still kept.
LIST = """
    SELECT id, created_at, endpoint, method, response_status, user_agent FROM (
        (SELECT id, created_at, endpoint, method, response_status, user_agent
           FROM logs WHERE team_id = $1 AND id < $2 AND id >= $5 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT id, created_at, endpoint, method, response_status, user_agent
           FROM logs WHERE team_id = $1 AND id > $3 AND id >= $5 ORDER BY id LIMIT $4)
    ) AS page
"""

GET = """
    SELECT id, created_at, endpoint, method, response_status, user_agent, request_body, response_body, refers
      FROM logs
     WHERE team_id = $1 AND id = $2 AND id >= $3
"""

CONTENTS = """
    SELECT id, html, text FROM contents WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""

# Across teams: each of them is gone through on its own, by its own number of days.
TEAMS = """
    SELECT t.team_id, t.days FROM (SELECT id AS team_id, log_retention_days AS days FROM teams) AS t
     ORDER BY t.team_id
"""

REMOVE = """
    WITH old AS MATERIALIZED (
        SELECT id FROM logs WHERE team_id = $1 AND id < $2 ORDER BY id LIMIT $3
    )
    DELETE FROM logs l USING old WHERE l.team_id = $1 AND l.id = old.id
"""


class ListedLog(NamedTuple):
    """A row of the list."""

    id: UUID
    created_at: datetime
    endpoint: str
    method: str
    response_status: int
    user_agent: str | None


class StoredLog(NamedTuple):
    """One row; bodies are the JSON text."""

    id: UUID
    created_at: datetime
    endpoint: str
    method: str
    response_status: int
    user_agent: str | None
    request_body: str | None
    response_body: str | None
    refers: bool


class StoredContent(NamedTuple):
    id: UUID
    html: str | None
    text: str | None


def insert(rows: Sequence[Mapping[str, Any]]) -> Statement:
    return Statement(INSERT, (rows_json(rows),))


async def page(db: TeamDb, page: Page, oldest: UUID) -> list[ListedLog]:
    return await db.all(ListedLog, LIST, *page.args, oldest)


async def get(db: TeamDb, log_id: UUID, oldest: UUID) -> StoredLog | None:
    return await db.one(StoredLog, GET, log_id, oldest)


async def newest_id(db: TeamDb) -> UUID | None:
    found: UUID | None = await db.value("SELECT id FROM logs WHERE team_id = $1 ORDER BY id DESC LIMIT 1")
    return found


async def contents(db: TeamDb, ids: Sequence[UUID]) -> dict[UUID, StoredContent]:
    """Return the contents of these emails, of those that are still here."""
    return {found.id: found for found in await db.all(StoredContent, CONTENTS, ids)}


async def retentions(source: Source) -> list[tuple[UUID, int | None]]:
    """Return the teams with their own number of days, if they have one."""
    return [(row["team_id"], row["days"]) for row in await source.fetch(TEAMS)]


async def remove(db: TeamDb, before: UUID, limit: int) -> int:
    """Remove some of the rows before this id; returns how many."""
    return await db.run(REMOVE, before, limit)


async def request_naming(db: TeamDb, before: UUID, oldest: UUID, text: str, limit: int) -> ListedLog | None:
    """Return the last request before this id whose answer has the text, among the last `limit` requests."""
    return await db.one(
        ListedLog,
        """
        SELECT id, created_at, endpoint, method, response_status, user_agent
          FROM (SELECT id, created_at, endpoint, method, response_status, user_agent, response_body
                  FROM logs
                 WHERE team_id = $1 AND id < $2 AND id >= $3
                 ORDER BY id DESC
                 LIMIT $5) AS near
         WHERE method = 'POST' AND strpos(response_body::text, $4) > 0
         ORDER BY id DESC
         LIMIT 1
        """,
        before,
        oldest,
        text,
        limit,
    )
