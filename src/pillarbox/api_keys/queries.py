"""SQL of the API keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.wire.paging import Page

# Across teams: the operator names a key by its id alone. One look into the index for each team.
OWNER = """
    SELECT t.id FROM teams t WHERE EXISTS (SELECT FROM api_keys k WHERE k.team_id = t.id AND k.id = $1)
"""


@dataclass(frozen=True, slots=True)
class ApiKeyListRow:
    """A key as the API lists it, with what only the operator sees."""

    id: UUID
    name: str
    created_at: datetime
    last_used_at: datetime | None
    permission: str
    domain_id: UUID | None
    status: str
    display: str


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A key as members of the team see it: with its domain, and the address of the person who made it."""

    id: UUID
    name: str
    created_at: datetime
    last_used_at: datetime | None
    permission: str
    domain: str | None
    status: str
    display: str
    created_by: UUID | None
    maker: str | None


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key with its team, found by the hash of its token."""

    team_id: UUID
    key_id: UUID
    permission: str
    domain_id: UUID | None
    key_status: str
    team_status: str
    team_number: int
    rate_limit: int | None
    daily_quota: int | None
    monthly_quota: int | None
    log_days: int | None
    metrics_days: int | None


# Across teams: a request arrives without one.
async def by_hash(pool: asyncpg.Pool, token_hash: bytes) -> FoundKey | None:
    row = await pool.fetchrow(
        """
        SELECT d.team_id, d.key_id, k.permission, k.domain_id, k.status AS key_status,
               t.status AS team_status, t.number AS team_number, t.rate_limit, t.daily_quota, t.monthly_quota,
               t.log_retention_days AS log_days, t.metrics_retention_days AS metrics_days
          FROM directory_keys d
          JOIN api_keys k ON k.team_id = d.team_id AND k.id = d.key_id
          JOIN teams t ON t.id = d.team_id
         WHERE d.hash = $1
        """,
        token_hash,
    )
    return None if row is None else FoundKey(**row)


# Across teams: one statement for every key that was used within the last second. Rows are locked in the
# order of their key, so two processes never wait for each other crosswise.
async def set_last_used(
    pool: asyncpg.Pool, teams: Sequence[UUID], keys: Sequence[UUID], times: Sequence[datetime]
) -> None:
    await pool.execute(
        """
        WITH used AS (
            SELECT k.team_id, k.id, u.at
              FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS u (team_id, id, at)
              JOIN api_keys k ON k.team_id = u.team_id AND k.id = u.id
             ORDER BY k.team_id, k.id
               FOR NO KEY UPDATE OF k
        )
        UPDATE api_keys k
           SET last_used_at = greatest(k.last_used_at, used.at)
          FROM used
         WHERE k.team_id = used.team_id AND k.id = used.id
        """,
        teams,
        keys,
        times,
    )


async def insert(
    db: TeamDb,
    key_id: UUID,
    name: str,
    permission: str,
    domain_id: UUID | None,
    display: str,
    now: datetime,
    created_by: UUID | None,
) -> None:
    await db.run(
        """
        INSERT INTO api_keys (team_id, id, name, permission, domain_id, display, created_at, created_by)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        key_id,
        name,
        permission,
        domain_id,
        display,
        now,
        created_by,
    )


async def page(db: TeamDb, page: Page) -> list[ApiKeyListRow]:
    return await db.all(
        ApiKeyListRow,
        """
        SELECT id, name, created_at, last_used_at, permission, domain_id, status, display FROM (
            (SELECT id, name, created_at, last_used_at, permission, domain_id, status, display
               FROM api_keys WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT id, name, created_at, last_used_at, permission, domain_id, status, display
               FROM api_keys WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        ) AS page
        """,
        *page.args,
    )


async def shown_page(db: TeamDb, page: Page) -> list[ShownKey]:
    """The same rows, for people. In the order of the branch that finds them."""
    return await db.all(
        ShownKey,
        """
        SELECT k.id, k.name, k.created_at, k.last_used_at, k.permission, d.name AS domain, k.status,
               k.display, k.created_by, p.email AS maker
          FROM ((SELECT id FROM api_keys WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
                UNION ALL
                (SELECT id FROM api_keys WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)) AS page
          JOIN api_keys k ON k.team_id = $1 AND k.id = page.id
          LEFT JOIN domains d ON d.team_id = $1 AND d.id = k.domain_id
          LEFT JOIN people p ON p.id = k.created_by
         ORDER BY CASE WHEN $2::uuid IS NULL THEN k.id END, k.id DESC
        """,
        *page.args,
    )


async def made_by(db: TeamDb, key_id: UUID) -> UUID | None:
    """The person who made the key, if one did."""
    found: UUID | None = await db.value(
        "SELECT created_by FROM api_keys WHERE team_id = $1 AND id = $2", key_id
    )
    return found


async def rename(db: TeamDb, key_id: UUID, name: str) -> bool:
    return bool(await db.run("UPDATE api_keys SET name = $3 WHERE team_id = $1 AND id = $2", key_id, name))


async def change_status(db: TeamDb, key_id: UUID, before: str, after: str) -> bool:
    return bool(
        await db.run(
            "UPDATE api_keys SET status = $4 WHERE team_id = $1 AND id = $2 AND status = $3",
            key_id,
            before,
            after,
        )
    )


async def deactivate(db: TeamDb, domain_id: UUID) -> None:
    await db.run("UPDATE api_keys SET status = 'inactive' WHERE team_id = $1 AND domain_id = $2", domain_id)


async def delete(db: TeamDb, key_id: UUID) -> bool:
    return bool(await db.run("DELETE FROM api_keys WHERE team_id = $1 AND id = $2", key_id))


async def name_of(db: TeamDb, key_id: UUID) -> str | None:
    found: str | None = await db.value("SELECT name FROM api_keys WHERE team_id = $1 AND id = $2", key_id)
    return found


async def owner_of(source: Source, key_id: UUID) -> UUID | None:
    """The team whose key this is."""
    found: UUID | None = await source.fetchval(OWNER, key_id)
    return found
