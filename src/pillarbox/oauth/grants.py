"""Grants: what a person has allowed a program to do in a team (oauth.md 8).

A grant that is revoked is live nowhere: refresh tokens ask for its row, and access tokens too. It is never
live again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.oauth import grant_queries


class Reason(Enum):
    """Why a grant was revoked."""

    FROM_API = "revoked_from_api"
    FROM_DASHBOARD = "revoked_from_dashboard"
    BY_CLIENT = "revoked_by_client"
    REFRESH_TOKEN_REUSE = "refresh_token_reuse"  # noqa: S105 - a reason
    CODE_REUSE = "code_reuse"
    CLIENT_DISABLED = "client_disabled"
    USER_REMOVED = "user_removed"


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


async def add(
    conn: Connection,
    now: datetime,
    ref: GrantRef,
    *,
    client_id: str,
    client: dict[str, Any],
    person_id: UUID,
    scopes: Sequence[str],
) -> None:
    """Store a new grant, in the transaction of the approval."""
    await conn.execute(grant_queries.ADD, *ref, client_id, json.dumps(client), person_id, list(scopes), now)


async def get(source: Source, ref: GrantRef) -> Grant | None:
    """The grant, live or not."""
    row = await source.fetchrow(grant_queries.GET, *ref)
    return None if row is None else _grant(row)


async def lock_live(conn: Connection, ref: GrantRef) -> Grant | None:
    """The grant, if it is live; nobody revokes it before the transaction ends."""
    row = await conn.fetchrow(grant_queries.LOCK_LIVE, *ref)
    return None if row is None else _grant(row)


async def revoke(conn: Source, now: datetime, ref: GrantRef, reason: Reason) -> bool:
    """Revoke one grant; False where it is unknown or revoked already."""
    return bool(await conn.fetch(grant_queries.REVOKE, *ref, now, reason.value))


async def revoke_of_person(
    conn: Source, now: datetime, team_id: UUID | None, person_id: UUID, reason: Reason = Reason.USER_REMOVED
) -> list[GrantRef]:
    """Revoke all grants of a person in a team, or in all teams; returns which were live."""
    if team_id is None:
        rows = await conn.fetch(grant_queries.REVOKE_OF_PERSON_EVERYWHERE, person_id, now, reason.value)
    else:
        rows = await conn.fetch(grant_queries.REVOKE_OF_PERSON, team_id, person_id, now, reason.value)
    return [GrantRef(*row) for row in rows]


async def revoke_of_client(conn: Source, now: datetime, client_id: str) -> list[GrantRef]:
    """Revoke all grants of a program, because it is disabled; returns which were live."""
    rows = await conn.fetch(grant_queries.REVOKE_OF_CLIENT, client_id, now, Reason.CLIENT_DISABLED.value)
    return [GrantRef(*row) for row in rows]


def _grant(row: asyncpg.Record) -> Grant:
    values = dict(row)
    return Grant(**values | {"client": json.loads(values["client"]), "scopes": tuple(values["scopes"])})
