"""Grants: what a person has allowed a program to do in a team (oauth.md 8).

A grant that is revoked is live nowhere: refresh tokens ask for its row, and access tokens too. It is never
live again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.oauth import grant_queries as queries
from pillarbox.oauth.grant_queries import Grant, GrantRef


class Reason(Enum):
    """Why a grant was revoked."""

    FROM_API = "revoked_from_api"
    FROM_DASHBOARD = "revoked_from_dashboard"
    BY_CLIENT = "revoked_by_client"
    REFRESH_TOKEN_REUSE = "refresh_token_reuse"  # noqa: S105 - a reason
    CODE_REUSE = "code_reuse"
    CLIENT_DISABLED = "client_disabled"
    USER_REMOVED = "user_removed"


async def add(
    conn: Connection,
    now: datetime,
    ref: GrantRef,
    *,
    client_id: str,
    client: dict[str, Any],
    person_id: UUID,
    scopes: Sequence[str],
    inbox_id: UUID | None = None,
) -> None:
    """Store a new grant, in the transaction of the approval. With `inbox_id` it is for this inbox alone."""
    await queries.add(
        conn,
        now,
        ref,
        client_id=client_id,
        client=client,
        person_id=person_id,
        scopes=scopes,
        inbox_id=inbox_id,
    )


async def get(source: Source, ref: GrantRef) -> Grant | None:
    """Return the grant, live or not."""
    return await queries.get(source, ref)


async def lock_live(conn: Connection, ref: GrantRef) -> Grant | None:
    """Return the grant, if it is live; nobody revokes it before the transaction ends."""
    return await queries.lock_live(conn, ref)


async def revoke(conn: Source, now: datetime, ref: GrantRef, reason: Reason) -> bool:
    """Revoke one grant; False where it is unknown or revoked already."""
    return await queries.revoke(conn, ref, now, reason.value)


async def revoke_of_person(
    conn: Source, now: datetime, team_id: UUID | None, person_id: UUID, reason: Reason = Reason.USER_REMOVED
) -> list[GrantRef]:
    """Revoke all grants of a person in a team, or in all teams; returns which were live."""
    if team_id is None:
        return await queries.revoke_of_person_everywhere(conn, person_id, now, reason.value)
    return await queries.revoke_of_person(conn, team_id, person_id, now, reason.value)


async def revoke_of_client(conn: Source, now: datetime, client_id: str) -> list[GrantRef]:
    """Revoke all grants of a program, because it is disabled; returns which were live."""
    return await queries.revoke_of_client(conn, client_id, now, Reason.CLIENT_DISABLED.value)
