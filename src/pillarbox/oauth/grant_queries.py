"""SQL of the grants. A grant is a row of its team, and is kept after it was revoked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Connection, Source


class GrantRef(NamedTuple):
    """Which grant of which team."""

    team_id: UUID
    id: UUID


@dataclass(frozen=True, slots=True)
class Grant:
    """A row of the grants. `client` is what was known of the program when it was allowed to act: a
    `clients.Client` as JSON."""

    team_id: UUID
    id: UUID
    client_id: str
    client: dict[str, Any]
    person_id: UUID
    scopes: tuple[str, ...]
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_reason: str | None

    @property
    def ref(self) -> GrantRef:
        """Return what names it."""
        return GrantRef(self.team_id, self.id)


class GrantInTeam(NamedTuple):
    """A grant in the list of a team; `name` is that of the program, `email` that of the person."""

    id: UUID
    client_id: str
    name: str
    email: str | None
    scopes: Sequence[str]
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_reason: str | None


async def add(
    conn: Connection,
    now: datetime,
    ref: GrantRef,
    *,
    client_id: str,
    client: dict[str, Any],
    person_id: UUID,
    scopes: Sequence[str],
    inbox_id: UUID | None,
) -> None:
    """Store a new grant."""
    await conn.execute(
        """
        INSERT INTO oauth_grants (team_id, id, client_id, client, person_id, scopes, created_at, inbox_id)
        VALUES ($1, $2, $3, $4::json, $5, $6, $7, $8)
        """,
        *ref,
        client_id,
        json.dumps(client),
        person_id,
        list(scopes),
        now,
        inbox_id,
    )


async def get(source: Source, ref: GrantRef) -> Grant | None:
    """Return the grant, live or not."""
    row = await source.fetchrow(
        """
        SELECT team_id, id, client_id, client, person_id, scopes, created_at, last_used_at, revoked_at,
               revoked_reason
          FROM oauth_grants
         WHERE team_id = $1 AND id = $2
        """,
        *ref,
    )
    return None if row is None else _grant(row)


async def lock_live(conn: Connection, ref: GrantRef) -> Grant | None:
    """Return the grant, if it is live; nobody revokes it before the transaction ends."""
    row = await conn.fetchrow(
        """
        SELECT team_id, id, client_id, client, person_id, scopes, created_at, last_used_at, revoked_at,
               revoked_reason
          FROM oauth_grants
         WHERE team_id = $1 AND id = $2 AND revoked_at IS NULL
           FOR UPDATE
        """,
        *ref,
    )
    return None if row is None else _grant(row)


async def revoke(source: Source, ref: GrantRef, now: datetime, reason: str) -> bool:
    """Revoke one grant; False where it is unknown or revoked already."""
    rows = await source.fetch(
        """
        UPDATE oauth_grants
           SET revoked_at = $3, revoked_reason = $4
         WHERE team_id = $1 AND id = $2 AND revoked_at IS NULL
        RETURNING team_id, id
        """,
        *ref,
        now,
        reason,
    )
    return bool(rows)


async def revoke_of_person(
    source: Source, team_id: UUID, person_id: UUID, now: datetime, reason: str
) -> list[GrantRef]:
    """Revoke all grants of a person in a team; return which were live."""
    rows = await source.fetch(
        """
        UPDATE oauth_grants
           SET revoked_at = $3, revoked_reason = $4
         WHERE team_id = $1 AND person_id = $2 AND revoked_at IS NULL
        RETURNING team_id, id
        """,
        team_id,
        person_id,
        now,
        reason,
    )
    return [GrantRef(*row) for row in rows]


async def revoke_of_person_everywhere(
    source: Source, person_id: UUID, now: datetime, reason: str
) -> list[GrantRef]:
    """Revoke all grants of a person in all teams; return which were live."""
    rows = await source.fetch(
        """
        UPDATE oauth_grants
           SET revoked_at = $2, revoked_reason = $3
         WHERE person_id = $1 AND revoked_at IS NULL
        RETURNING team_id, id
        """,
        person_id,
        now,
        reason,
    )
    return [GrantRef(*row) for row in rows]


async def revoke_of_client(source: Source, client_id: str, now: datetime, reason: str) -> list[GrantRef]:
    """Revoke all grants of a program in all teams; return which were live."""
    rows = await source.fetch(
        """
        UPDATE oauth_grants
           SET revoked_at = $2, revoked_reason = $3
         WHERE client_id = $1 AND revoked_at IS NULL
        RETURNING team_id, id
        """,
        client_id,
        now,
        reason,
    )
    return [GrantRef(*row) for row in rows]


async def in_team(source: Source, team_id: UUID, limit: int) -> list[GrantInTeam]:
    """Return the grants of a team, the newest first."""
    rows = await source.fetch(
        """
        SELECT g.id, g.client_id, g.client->>'name' AS name, p.email, g.scopes, g.created_at, g.last_used_at,
               g.revoked_at, g.revoked_reason
          FROM oauth_grants g
          LEFT JOIN people p ON p.id = g.person_id
         WHERE g.team_id = $1
         ORDER BY g.id DESC
         LIMIT $2
        """,
        team_id,
        limit,
    )
    return [GrantInTeam(*row) for row in rows]


def _grant(row: asyncpg.Record) -> Grant:
    values = dict(row)
    return Grant(**values | {"client": json.loads(values["client"]), "scopes": tuple(values["scopes"])})
