"""SQL of the grants behind access tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page


@dataclass(frozen=True, slots=True)
class LiveGrant:
    """A grant that is not revoked, of a person who is in the team, with what requests need of the team."""

    person_id: UUID
    role: str
    client_id: str
    scopes: Sequence[str]
    inbox_id: UUID | None
    inbox_address: str | None
    team_status: str
    team_number: int
    rate_limit: int | None
    daily_quota: int | None
    monthly_quota: int | None
    log_days: int | None
    metrics_days: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGrant:
    """A grant as the API lists it; `client` is the JSON of what was known of the program."""

    id: UUID
    client_id: str
    client: str
    scopes: Sequence[str]
    created_at: datetime
    revoked_at: datetime | None
    revoked_reason: str | None

    @property
    def program(self) -> dict[str, Any]:
        """The facts about the program when it was allowed to act."""
        found: dict[str, Any] = json.loads(self.client)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRevocation:
    """When a grant was revoked, and why."""

    revoked_at: datetime
    revoked_reason: str


async def live(pool: asyncpg.Pool, team_id: UUID, grant_id: UUID) -> LiveGrant | None:
    """Return the grant, if it is live and the person may still act in the team. One for an inbox is live
    while the inbox is there."""
    row = await pool.fetchrow(
        """
        SELECT g.person_id, m.role, g.client_id, g.scopes, g.inbox_id, i.email_address AS inbox_address,
               t.status AS team_status, t.number AS team_number, t.rate_limit, t.daily_quota, t.monthly_quota,
               t.log_retention_days AS log_days, t.metrics_retention_days AS metrics_days
          FROM oauth_grants g
          JOIN teams t ON t.id = g.team_id
          JOIN team_members m ON m.team_id = g.team_id AND m.person_id = g.person_id
          JOIN people p ON p.id = g.person_id AND p.disabled_at IS NULL
          LEFT JOIN inboxes i ON i.team_id = g.team_id AND i.id = g.inbox_id
         WHERE g.team_id = $1 AND g.id = $2 AND g.revoked_at IS NULL
           AND (g.inbox_id IS NULL OR i.id IS NOT NULL)
        """,
        team_id,
        grant_id,
    )
    return None if row is None else LiveGrant(**row)


# Across teams: one statement for every grant that was used within the last second. Rows are locked in the
# order of their key, so two processes never wait for each other crosswise.
async def set_last_used(
    pool: asyncpg.Pool, teams: Sequence[UUID], grants: Sequence[UUID], times: Sequence[datetime]
) -> None:
    await pool.execute(
        """
        WITH used AS (
            SELECT g.team_id, g.id, u.at
              FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS u (team_id, id, at)
              JOIN oauth_grants g ON g.team_id = u.team_id AND g.id = u.id
             ORDER BY g.team_id, g.id
               FOR NO KEY UPDATE OF g
        )
        UPDATE oauth_grants g
           SET last_used_at = greatest(g.last_used_at, used.at)
          FROM used
         WHERE g.team_id = used.team_id AND g.id = used.id
        """,
        teams,
        grants,
        times,
    )


async def page(db: TeamDb, person_id: UUID | None, page: Page) -> list[ListedGrant]:
    """Return a page of the grants of a person, or with None of everybody."""
    return await db.all(
        ListedGrant,
        """
        SELECT id, client_id, client, scopes, created_at, revoked_at, revoked_reason FROM (
            (SELECT *
               FROM oauth_grants
              WHERE team_id = $1 AND id < $2 AND ($5::uuid IS NULL OR person_id = $5)
              ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT *
               FROM oauth_grants
              WHERE team_id = $1 AND id > $3 AND ($5::uuid IS NULL OR person_id = $5)
              ORDER BY id LIMIT $4)
        ) AS page
        """,
        *page.args,
        person_id,
    )


async def revocation(db: TeamDb, grant_id: UUID) -> GrantRevocation | None:
    """Return when and why a grant was revoked; None where it is unknown or live."""
    return await db.one(
        GrantRevocation,
        """
        SELECT revoked_at, revoked_reason
          FROM oauth_grants
         WHERE team_id = $1 AND id = $2 AND revoked_at IS NOT NULL
        """,
        grant_id,
    )
