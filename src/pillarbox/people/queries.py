"""SQL of people and of the links that are mailed to them. A person is of no team, so most statements name
none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.work.collectors import changed


@dataclass(frozen=True, slots=True)
class Person:
    """One person, as the operator and the login see it."""

    id: UUID
    email: str
    name: str | None
    password: str | None
    password_changed_at: datetime | None
    has_totp: bool
    created_at: datetime
    last_login_at: datetime | None
    disabled_at: datetime | None
    may_use_password: bool


@dataclass(frozen=True, slots=True)
class ListedPerson:
    """One person of the operator's list."""

    id: UUID
    email: str
    name: str | None
    has_password: bool
    has_totp: bool
    created_at: datetime
    last_login_at: datetime | None
    disabled_at: datetime | None
    is_operator: bool
    may_use_password: bool
    openid_links: int
    passkeys: int
    sessions: int


class PersonLink(NamedTuple):
    """The person, team or invitation that a link is about."""

    person_id: UUID | None
    team_id: UUID | None
    invitation_id: UUID | None


async def person_of_address(source: Source, key: str) -> Person | None:
    """Return the person who logs in with this address, in the form that is compared."""
    row = await source.fetchrow(
        """
        SELECT id, email, name, password, password_changed_at, totp_confirmed_at IS NOT NULL AS has_totp,
               created_at, last_login_at, disabled_at, may_use_password
          FROM people
         WHERE email_key = $1
        """,
        key,
    )
    return None if row is None else Person(**row)


async def person(source: Source, person_id: UUID) -> Person | None:
    """Return the person of this id."""
    row = await source.fetchrow(
        """
        SELECT id, email, name, password, password_changed_at, totp_confirmed_at IS NOT NULL AS has_totp,
               created_at, last_login_at, disabled_at, may_use_password
          FROM people
         WHERE id = $1
        """,
        person_id,
    )
    return None if row is None else Person(**row)


# Across teams: the operator's list.
async def every_person(source: Source, now: datetime) -> list[ListedPerson]:
    """Return all people by address."""
    rows = await source.fetch(
        """
    SELECT p.id, p.email, p.name, p.password IS NOT NULL AS has_password,
           p.totp_confirmed_at IS NOT NULL AS has_totp, p.created_at, p.last_login_at, p.disabled_at,
           p.is_operator, p.may_use_password,
           (SELECT count(*) FROM person_openid_links o WHERE o.person_id = p.id) AS openid_links,
           (SELECT count(*) FROM person_passkeys k WHERE k.person_id = p.id) AS passkeys,
           (SELECT count(*) FROM person_sessions s WHERE s.person_id = p.id AND s.ends_at > $1) AS sessions
      FROM people p
     ORDER BY p.email_key
        """,
        now,
    )
    return [ListedPerson(**row) for row in rows]


# Across teams: to which of them people belong.
async def every_membership(source: Source) -> list[tuple[UUID, str, str]]:
    """Return person, team and role of all memberships."""
    rows = await source.fetch(
        """
        SELECT m.person_id, t.name, m.role
          FROM team_members m
          JOIN teams t ON t.id = m.team_id
         WHERE m.person_id IS NOT NULL
         ORDER BY t.name, t.id
        """
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def insert(
    conn: Connection, person_id: UUID, email: str, key: str, name: str | None, now: datetime
) -> None:
    """Store a person without a password."""
    await conn.execute(
        "INSERT INTO people (id, email, email_key, name, created_at) VALUES ($1, $2, $3, $4, $5)",
        person_id,
        email,
        key,
        name,
        now,
    )


async def lock(conn: Connection, person_id: UUID) -> str | None:
    """Return the address of the person, unless disabled; nobody else changes what this person logs in with,
    or mails a link, before the transaction ends. Comes first in a transaction."""
    email: str | None = await conn.fetchval(
        "SELECT email FROM people WHERE id = $1 AND disabled_at IS NULL FOR NO KEY UPDATE",
        person_id,
    )
    return email


async def lock_unchanged(
    conn: Connection, person_id: UUID, password_changed_at: datetime | None, key: str
) -> bool | None:
    """Tell whether the person has a second factor; None where the password or the address was changed."""
    # Comparing takes its time: in the meantime they may have been changed, or a second factor added.
    has_factor: bool | None = await conn.fetchval(
        """
    SELECT totp_confirmed_at IS NOT NULL
      FROM people
     WHERE id = $1 AND password_changed_at IS NOT DISTINCT FROM $2 AND email_key = $3 AND disabled_at IS NULL
       FOR NO KEY UPDATE
        """,
        person_id,
        password_changed_at,
        key,
    )
    return has_factor


async def replace_hash(conn: Connection, person_id: UUID, stored: str, better: str) -> None:
    """Store another hash of the same password, unless the password was changed."""
    await conn.execute(
        "UPDATE people SET password = $3 WHERE id = $1 AND password = $2", person_id, stored, better
    )


async def set_password(conn: Connection, person_id: UUID, hashed: str, now: datetime) -> None:
    """Store another password."""
    await conn.execute(
        """
        UPDATE people SET password = $2, password_changed_at = $3 WHERE id = $1
        """,
        person_id,
        hashed,
        now,
    )


async def set_name(source: Source, person_id: UUID, name: str | None) -> None:
    """Store what the person is called."""
    await source.execute("UPDATE people SET name = $2 WHERE id = $1", person_id, name)


async def mark_login(conn: Connection, person_id: UUID, now: datetime) -> None:
    """Note when the person has logged in."""
    await conn.execute("UPDATE people SET last_login_at = $2 WHERE id = $1", person_id, now)


async def disable(conn: Connection, person_id: UUID, now: datetime) -> bool:
    """Shut the person out; False where that was so already."""
    done = await conn.fetchval(
        "UPDATE people SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL RETURNING id",
        person_id,
        now,
    )
    return done is not None


async def enable(source: Source, person_id: UUID) -> bool:
    """Let the person in again; False where nobody was shut out."""
    done = await source.fetchval(
        "UPDATE people SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL RETURNING id",
        person_id,
    )
    return done is not None


async def set_operator(source: Source, person_id: UUID, *, is_operator: bool) -> bool:
    """Make the person an operator of the installation, or no longer; False where that was so already."""
    done = await source.fetchval(
        "UPDATE people SET is_operator = $2 WHERE id = $1 AND is_operator <> $2 RETURNING id",
        person_id,
        is_operator,
    )
    return done is not None


async def take_place(conn: Connection, team_id: UUID, key: str, person_id: UUID, role: str) -> bool:
    """Make the person the team's member of this address that has no person yet; False where there is none."""
    # The only owner stays one.
    taken = await conn.fetchval(
        """
        UPDATE team_members
           SET person_id = $3,
               role = CASE WHEN role = 'owner' AND NOT EXISTS (
                                SELECT FROM team_members o
                                 WHERE o.team_id = $1 AND o.id <> team_members.id AND o.role = 'owner')
                           THEN role ELSE $4 END
         WHERE team_id = $1 AND person_id IS NULL AND lower(email) = $2
           AND NOT EXISTS (SELECT FROM team_members WHERE team_id = $1 AND person_id = $3)
        RETURNING id
        """,
        team_id,
        key,
        person_id,
        role,
    )
    return taken is not None


async def add_member(
    conn: Connection,
    team_id: UUID,
    member_id: UUID,
    email: str,
    person_id: UUID,
    role: str,
    now: datetime,
) -> bool:
    """Make the person a member of the team; False where that was so already."""
    added = await conn.fetchval(
        """
        INSERT INTO team_members (team_id, id, email, person_id, role, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT DO NOTHING
        RETURNING id
        """,
        team_id,
        member_id,
        email,
        person_id,
        role,
        now,
    )
    return added is not None


async def insert_link(
    conn: Connection, hash_: bytes, kind: str, link: PersonLink, now: datetime, expires_at: datetime
) -> None:
    """Store a link."""
    await conn.execute(
        """
        INSERT INTO person_links (hash, kind, person_id, team_id, invitation_id, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        hash_,
        kind,
        *link,
        now,
        expires_at,
    )


async def find_link(source: Source, hash_: bytes, kind: str, now: datetime) -> PersonLink | None:
    """Return what the link is about, if it works."""
    row = await source.fetchrow(
        """
        SELECT person_id, team_id, invitation_id
          FROM person_links
         WHERE hash = $1 AND kind = $2 AND used_at IS NULL AND expires_at > $3
        """,
        hash_,
        kind,
        now,
    )
    return None if row is None else PersonLink(*row)


async def use_link(conn: Connection, hash_: bytes, kind: str, now: datetime) -> PersonLink | None:
    """Return what the link is about, if it works; it does not work any more afterwards."""
    row = await conn.fetchrow(
        """
        UPDATE person_links
           SET used_at = $3
         WHERE hash = $1 AND kind = $2 AND used_at IS NULL AND expires_at > $3
        RETURNING person_id, team_id, invitation_id
        """,
        hash_,
        kind,
        now,
    )
    return None if row is None else PersonLink(*row)


async def end_links(conn: Connection, person_id: UUID, kinds: Sequence[str]) -> None:
    """Remove the links of these kinds that the person has not used."""
    await conn.execute(
        "DELETE FROM person_links WHERE person_id = $1 AND kind = ANY ($2::text[]) AND used_at IS NULL",
        person_id,
        kinds,
    )


async def remove_links(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` links that expired before an instant; return how many."""
    return changed(
        await source.execute(
            """
        DELETE FROM person_links WHERE hash IN (SELECT hash FROM person_links WHERE expires_at < $1 LIMIT $2)
            """,
            before,
            limit,
        )
    )


async def remove_challenges(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` challenges of passkeys that expired before an instant; return how many."""
    return changed(
        await source.execute(
            """
            DELETE FROM person_challenges
             WHERE hash IN (SELECT hash FROM person_challenges WHERE expires_at < $1 LIMIT $2)
            """,
            before,
            limit,
        )
    )
