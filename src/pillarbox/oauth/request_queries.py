"""SQL of authorizations that somebody has still to decide about, and of deciding. The team is chosen with the
decision."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed


class RequestRow(NamedTuple):
    """A request of a program; `client` is what is known of the program, as JSON text."""

    client_id: str
    client: str
    redirect_uri: str
    scopes: Sequence[str]
    state: str | None
    challenge: str


class MembershipRow(NamedTuple):
    """A team that somebody belongs to."""

    team_id: UUID
    name: str
    role: str


async def add(
    source: Source,
    hash_: bytes,
    browser_hash: bytes,
    request: RequestRow,
    now: datetime,
    expires_at: datetime,
) -> None:
    """Store a request."""
    await source.execute(
        """
    INSERT INTO oauth_requests (hash, browser_hash, client_id, client, redirect_uri, scopes, state, challenge,
                                created_at, expires_at)
    VALUES ($1, $2, $3, $4::json, $5, $6, $7, $8, $9, $10)
        """,
        hash_,
        browser_hash,
        *request,
        now,
        expires_at,
    )


async def waiting(source: Source, hash_: bytes, browser_hash: bytes, now: datetime) -> RequestRow | None:
    """Return the request of this browser that nobody has decided about."""
    row = await source.fetchrow(
        """
        SELECT client_id, client, redirect_uri, scopes, state, challenge
          FROM oauth_requests
         WHERE hash = $1 AND browser_hash = $2 AND decided_at IS NULL AND expires_at > $3
        """,
        hash_,
        browser_hash,
        now,
    )
    return None if row is None else RequestRow(*row)


async def decide(conn: Connection, hash_: bytes, browser_hash: bytes, now: datetime) -> RequestRow | None:
    """Note that the request is decided, and return it; None where nobody has to decide."""
    row = await conn.fetchrow(
        """
        UPDATE oauth_requests
           SET decided_at = $3
         WHERE hash = $1 AND browser_hash = $2 AND decided_at IS NULL AND expires_at > $3
        RETURNING client_id, client, redirect_uri, scopes, state, challenge
        """,
        hash_,
        browser_hash,
        now,
    )
    return None if row is None else RequestRow(*row)


async def remove(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` requests that expired before an instant; return how many."""
    return changed(
        await source.execute(
            """
        DELETE FROM oauth_requests
         WHERE hash IN (SELECT hash FROM oauth_requests WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
            """,
            before,
            limit,
        )
    )


async def teams_of_person(source: Source, person_id: UUID) -> list[MembershipRow]:
    """Return all teams of a person, by name."""
    rows = await source.fetch(
        """
        SELECT m.team_id, t.name, m.role
          FROM team_members m
          JOIN teams t ON t.id = m.team_id
         WHERE m.person_id = $1
         ORDER BY lower(t.name), m.team_id
        """,
        person_id,
    )
    return [MembershipRow(*row) for row in rows]


async def lock_member(conn: Connection, team_id: UUID, person_id: UUID) -> str | None:
    """Return the role of a person in a team. Whoever removes the member waits until the transaction ends,
    and then finds the grant."""
    role: str | None = await conn.fetchval(
        """
        SELECT role
          FROM team_members
         WHERE team_id = $1 AND person_id = $2
           FOR UPDATE
        """,
        team_id,
        person_id,
    )
    return role
