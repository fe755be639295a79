"""SQL of the API keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.people.roles import ACTING_ROLES

# Across teams: the operator names a key by its id alone. One look into the index for each team.
OWNER = """
    SELECT t.id FROM teams t WHERE EXISTS (SELECT FROM api_keys k WHERE k.team_id = t.id AND k.id = $1)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyListRow:
    """A key as the API lists it."""

    id: UUID
    name: str
    created_at: datetime
    last_used_at: datetime | None
    permission: str
    domain_id: UUID | None
    status: str
    display: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownKey:
    """A key as members of the team see it: with its domain, or the address of its inbox and its rights, and
    the address of the person who made it. Its status is `ended` where it acts for somebody who may not have
    keys now, or its program was shut out."""

    id: UUID
    name: str
    created_at: datetime
    last_used_at: datetime | None
    permission: str
    domain_id: UUID | None
    domain: str | None
    inbox_id: UUID | None
    inbox: str | None
    rights: Sequence[str] | None
    status: str
    display: str
    created_by: UUID | None
    maker: str | None
    is_kept: bool

    @property
    def is_of_team(self) -> bool:
        """Whether it acts for nobody."""
        return self.is_kept or self.created_by is None


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key with its team, found by the hash of its token."""

    team_id: UUID
    key_id: UUID
    person_id: UUID | None
    grant_id: UUID | None
    permission: str
    domain_id: UUID | None
    inbox_id: UUID | None
    inbox_address: str | None
    rights: Sequence[str] | None
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
        SELECT d.team_id, d.key_id, k.permission, k.domain_id, k.inbox_id, i.email_address AS inbox_address,
               k.rights,
               CASE WHEN k.is_kept THEN NULL ELSE k.created_by END AS person_id,
               CASE WHEN k.is_kept THEN NULL ELSE k.grant_id END AS grant_id,
               CASE WHEN k.inbox_id IS NOT NULL AND i.id IS NULL THEN 'inactive'
                    WHEN k.is_kept OR k.created_by IS NULL OR h.acts THEN k.status ELSE 'inactive'
                END AS key_status,
               t.status AS team_status, t.number AS team_number, t.rate_limit, t.daily_quota, t.monthly_quota,
               t.log_retention_days AS log_days, t.metrics_retention_days AS metrics_days
          FROM directory_keys d
          JOIN api_keys k ON k.team_id = d.team_id AND k.id = d.key_id
          JOIN teams t ON t.id = d.team_id
          LEFT JOIN inboxes i ON i.team_id = k.team_id AND i.id = k.inbox_id
          LEFT JOIN LATERAL (
               SELECT true AS acts
                 FROM team_members m
                 JOIN people p ON p.id = m.person_id AND p.disabled_at IS NULL
                WHERE m.team_id = k.team_id AND m.person_id = k.created_by AND m.role = ANY ($2::text[])
                  AND (k.grant_id IS NULL
                       OR EXISTS (SELECT FROM oauth_grants g
                                   WHERE g.team_id = k.team_id AND g.id = k.grant_id
                                     AND g.revoked_at IS NULL))) AS h ON NOT k.is_kept
         WHERE d.hash = $1
        """,
        token_hash,
        ACTING_ROLES,
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
    grant_id: UUID | None,
    inbox_id: UUID | None,
    rights: Sequence[str] | None,
) -> None:
    await db.run(
        """
        INSERT INTO api_keys (team_id, id, name, permission, domain_id, display, created_at, created_by,
                              grant_id, inbox_id, rights)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        """,
        key_id,
        name,
        permission,
        domain_id,
        display,
        now,
        created_by,
        grant_id,
        inbox_id,
        rights,
    )


async def hold_inbox(db: TeamDb, inbox_id: UUID) -> bool:
    """Return whether the team has this inbox, which stays until the transaction ends."""
    found = await db.value("SELECT true FROM inboxes WHERE team_id = $1 AND id = $2 FOR KEY SHARE", inbox_id)
    return found is True


async def page(db: TeamDb, page: Page) -> list[ApiKeyListRow]:
    return await db.all(
        ApiKeyListRow,
        """
        SELECT id, name, created_at, last_used_at, permission, domain_id, status, display FROM (
            (SELECT *
               FROM api_keys WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT *
               FROM api_keys WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        ) AS page
        """,
        *page.args,
    )


async def shown_page(db: TeamDb, page: Page) -> list[ShownKey]:
    """Return the rows of `page` for people, in the order of the branch that finds them."""
    return await db.all(
        ShownKey,
        """
        SELECT k.id, k.name, k.created_at, k.last_used_at, k.permission, k.domain_id,
               d.name AS domain, k.inbox_id, i.email_address AS inbox, k.rights,
               CASE WHEN k.is_kept OR k.created_by IS NULL OR h.acts THEN k.status ELSE 'ended' END AS status,
               k.display, k.created_by, p.email AS maker, k.is_kept
          FROM ((SELECT id FROM api_keys WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
                UNION ALL
                (SELECT id FROM api_keys WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)) AS page
          JOIN api_keys k ON k.team_id = $1 AND k.id = page.id
          LEFT JOIN domains d ON d.team_id = $1 AND d.id = k.domain_id
          LEFT JOIN inboxes i ON i.team_id = $1 AND i.id = k.inbox_id
          LEFT JOIN people p ON p.id = k.created_by
          LEFT JOIN LATERAL (
               SELECT true AS acts
                 FROM team_members m
                WHERE m.team_id = $1 AND m.person_id = k.created_by AND m.role = ANY ($5::text[])
                  AND p.disabled_at IS NULL
                  AND (k.grant_id IS NULL
                       OR EXISTS (SELECT FROM oauth_grants g
                                   WHERE g.team_id = $1 AND g.id = k.grant_id
                                     AND g.revoked_at IS NULL))) AS h ON NOT k.is_kept
         ORDER BY CASE WHEN $2::uuid IS NULL THEN k.id END, k.id DESC
        """,
        *page.args,
        ACTING_ROLES,
    )


async def made_by(db: TeamDb, key_id: UUID) -> UUID | None:
    """Return the person for whom the key acts; None for the team's own keys."""
    found: UUID | None = await db.value(
        "SELECT created_by FROM api_keys WHERE team_id = $1 AND id = $2 AND NOT is_kept", key_id
    )
    return found


async def keep(db: TeamDb, key_id: UUID) -> bool:
    return bool(
        await db.run(
            """
            UPDATE api_keys
               SET is_kept = true
             WHERE team_id = $1 AND id = $2 AND NOT is_kept AND created_by IS NOT NULL
            """,
            key_id,
        )
    )


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


async def end_of_inboxes(db: TeamDb, inbox_ids: Sequence[UUID]) -> None:
    await db.run(
        "UPDATE api_keys SET status = 'inactive' WHERE team_id = $1 AND inbox_id = ANY ($2::uuid[])",
        inbox_ids,
    )


async def delete(db: TeamDb, key_id: UUID) -> bool:
    return bool(await db.run("DELETE FROM api_keys WHERE team_id = $1 AND id = $2", key_id))


async def name_of(db: TeamDb, key_id: UUID) -> str | None:
    found: str | None = await db.value("SELECT name FROM api_keys WHERE team_id = $1 AND id = $2", key_id)
    return found


async def owner_of(source: Source, key_id: UUID) -> UUID | None:
    """Return the team whose key this is."""
    found: UUID | None = await source.fetchval(OWNER, key_id)
    return found
