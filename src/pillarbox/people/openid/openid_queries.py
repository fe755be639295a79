"""SQL of logins by OpenID Connect. People belong to no team."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed


@dataclass(frozen=True, slots=True)
class OpenIdLink:
    """The subject of a provider that a person is joined to, as the person sees it."""

    email: str
    created_at: datetime
    last_used_at: datetime


async def use_state(source: Source, hash_: bytes, expires_at: datetime) -> bool:
    """Take a state; False where an answer has brought it before."""
    taken = await source.fetchval(
        """
        INSERT INTO person_openid_states (hash, expires_at) VALUES ($1, $2)
        ON CONFLICT DO NOTHING
        RETURNING true
        """,
        hash_,
        expires_at,
    )
    return taken is not None


async def remove_states(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` states that expired before an instant; return how many."""
    return changed(
        await source.execute(
            """
            DELETE FROM person_openid_states
             WHERE hash IN (SELECT hash FROM person_openid_states WHERE expires_at < $1 LIMIT $2)
            """,
            before,
            limit,
        )
    )


async def person_of_subject(source: Source, issuer: str, subject: str) -> UUID | None:
    """Return the person that a subject of the provider is joined to."""
    person_id: UUID | None = await source.fetchval(
        "SELECT person_id FROM person_openid_links WHERE issuer = $1 AND subject = $2", issuer, subject
    )
    return person_id


async def link_of(source: Source, person_id: UUID, issuer: str) -> OpenIdLink | None:
    """Return the subject of the provider that the person is joined to."""
    row = await source.fetchrow(
        """
        SELECT email, created_at, last_used_at FROM person_openid_links WHERE person_id = $1 AND issuer = $2
        """,
        person_id,
        issuer,
    )
    return None if row is None else OpenIdLink(**row)


async def link(
    conn: Connection, issuer: str, subject: str, person_id: UUID, email: str, now: datetime
) -> bool:
    """Join a subject to a person; False where either is joined already, or the person is gone or disabled."""
    # The row is locked: whoever shuts the person out at this moment comes before or after.
    made = await conn.fetchval(
        """
        INSERT INTO person_openid_links (issuer, subject, person_id, email, created_at, last_used_at)
        SELECT $1, $2, p.id, $4, $5, $5
          FROM people p
         WHERE p.id = $3 AND p.disabled_at IS NULL
           FOR NO KEY UPDATE OF p
        ON CONFLICT DO NOTHING
        RETURNING true
        """,
        issuer,
        subject,
        person_id,
        email,
        now,
    )
    return made is not None


async def mark_used(conn: Connection, issuer: str, subject: str, person_id: UUID, now: datetime) -> bool:
    """Note that the person comes in by the subject; False where the two are not joined (any more)."""
    used = await conn.fetchval(
        """
        UPDATE person_openid_links SET last_used_at = $4
         WHERE issuer = $1 AND subject = $2 AND person_id = $3
        RETURNING true
        """,
        issuer,
        subject,
        person_id,
        now,
    )
    return used is not None


async def unlink(conn: Connection, issuer: str, person_id: UUID, *, is_only: bool) -> str | None:
    """Remove the person's subject and return its address; None where there is none, or it is the only way
    in: without a password, and with `is_only` without leave to use one."""
    # The password cannot be taken away, so the statement need not lock the person.
    email: str | None = await conn.fetchval(
        """
        DELETE FROM person_openid_links l
         WHERE l.issuer = $1 AND l.person_id = $2
           AND EXISTS (SELECT FROM people p
                        WHERE p.id = $2 AND p.password IS NOT NULL
                          AND (NOT $3::boolean OR p.may_use_password))
        RETURNING l.email
        """,
        issuer,
        person_id,
        is_only,
    )
    return email


async def unlink_all(conn: Connection, person_id: UUID) -> int:
    """Remove the person's subjects of all providers; return how many there were."""
    return changed(await conn.execute("DELETE FROM person_openid_links WHERE person_id = $1", person_id))


async def set_password_use(conn: Connection, person_id: UUID, *, may_use_password: bool) -> bool:
    """Let the person log in by password and passkey where a provider is the only way in, or no longer; False
    where that was so already."""
    done = await conn.fetchval(
        "UPDATE people SET may_use_password = $2 WHERE id = $1 AND may_use_password <> $2 RETURNING true",
        person_id,
        may_use_password,
    )
    return done is not None
