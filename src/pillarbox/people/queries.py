"""SQL of people and their sessions. A person is of no team, so most statements name none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source


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


@dataclass(frozen=True, slots=True)
class PersonSession:
    """A session that counts, with its person."""

    hash: bytes
    id: UUID
    person_id: UUID
    email: str
    name: str | None
    stage: str
    ways: list[str]
    team_id: UUID | None
    used_at: datetime
    ends_at: datetime
    confirmed_at: datetime


@dataclass(frozen=True, slots=True)
class LookedAtTeam:
    """A team that a person belongs to."""

    team_id: UUID
    name: str
    role: str


PERSON = """
    SELECT id, email, name, password, password_changed_at, totp_confirmed_at IS NOT NULL AS has_totp,
           created_at, last_login_at, disabled_at
      FROM people
     WHERE email_key = $1
"""

PERSON_OF_ID = """
    SELECT id, email, name, password, password_changed_at, totp_confirmed_at IS NOT NULL AS has_totp,
           created_at, last_login_at, disabled_at
      FROM people
     WHERE id = $1
"""

SESSION = """
    SELECT s.hash, s.id, s.person_id, p.email, p.name, s.stage, s.ways, s.team_id, s.used_at, s.ends_at,
           s.confirmed_at
      FROM person_sessions s
      JOIN people p ON p.id = s.person_id
     WHERE s.hash = $1 AND s.used_at > $2 AND s.ends_at > $3 AND p.disabled_at IS NULL
"""

# Across teams: the team that is looked at, or the first one of those that the person belongs to.
LOOKED_AT = """
    SELECT m.team_id, t.name, m.role
      FROM team_members m
      JOIN teams t ON t.id = m.team_id
     WHERE m.person_id = $1 AND t.status <> 'disabled'
     ORDER BY m.team_id = $2::uuid DESC NULLS LAST, m.created_at, m.team_id
     LIMIT 1
"""

# The row is locked: whoever shuts the person out at this moment ends this session too.
BEGIN = """
    INSERT INTO person_sessions (hash, id, person_id, stage, ways, team_id, created_at, used_at, ends_at,
                                 confirmed_at, address, user_agent)
    SELECT $1, $2, p.id, $4, $5, $6, $7, $7, $8, $7, $9, $10
      FROM people p
     WHERE p.id = $3 AND p.disabled_at IS NULL
       FOR NO KEY UPDATE OF p
    RETURNING id
"""

RENEW = """
    UPDATE person_sessions
       SET hash = $2, stage = 'full', ways = $3, confirmed_at = $4, used_at = $4, ends_at = created_at + $5
     WHERE hash = $1 AND ends_at > $4
    RETURNING person_id
"""

# The one of that hash is the newest, whatever the clock says.
END_BEYOND = """
    DELETE FROM person_sessions
     WHERE hash IN (SELECT hash
                      FROM person_sessions
                     WHERE person_id = $1 AND stage = $2 AND hash <> $3
                     ORDER BY used_at DESC, id DESC
                    OFFSET $4)
"""

LOOK_AT = "UPDATE person_sessions SET team_id = $2 WHERE hash = $1"

USED = "UPDATE person_sessions SET used_at = $2 WHERE hash = $1 AND used_at < $2"

END = "DELETE FROM person_sessions WHERE hash = $1 RETURNING person_id"

END_ONE = "DELETE FROM person_sessions WHERE person_id = $1 AND id = $2"

END_ALL = """
    DELETE FROM person_sessions WHERE person_id = $1 AND ($2::bytea IS NULL OR hash <> $2)
"""

END_OLD = """
    DELETE FROM person_sessions
     WHERE hash IN (SELECT hash FROM person_sessions WHERE ends_at < $1 OR used_at < $2 LIMIT $3)
"""


async def person_of_address(source: Source, key: str) -> Person | None:
    row = await source.fetchrow(PERSON, key)
    return None if row is None else Person(**row)


async def person(source: Source, person_id: UUID) -> Person | None:
    row = await source.fetchrow(PERSON_OF_ID, person_id)
    return None if row is None else Person(**row)


async def session(source: Source, hash_: bytes, idle_since: datetime, now: datetime) -> PersonSession | None:
    row = await source.fetchrow(SESSION, hash_, idle_since, now)
    return None if row is None else PersonSession(**row)


async def looked_at(source: Source, person_id: UUID, team_id: UUID | None) -> LookedAtTeam | None:
    row = await source.fetchrow(LOOKED_AT, person_id, team_id)
    return None if row is None else LookedAtTeam(**row)


# Comes first: changes of what one person logs in with, and links mailed to it, are one after the other.
HOLD = "SELECT email FROM people WHERE id = $1 AND disabled_at IS NULL FOR NO KEY UPDATE"

# Comparing takes its time: in the meantime the password or the address may have been changed, or a second
# factor added.
STILL = """
    SELECT totp_confirmed_at IS NOT NULL
      FROM people
     WHERE id = $1 AND password_changed_at IS NOT DISTINCT FROM $2 AND email_key = $3 AND disabled_at IS NULL
       FOR NO KEY UPDATE
"""

REHASH = "UPDATE people SET password = $3 WHERE id = $1 AND password = $2"

LOGGED_IN = "UPDATE people SET last_login_at = $2 WHERE id = $1"

IS_KNOWN_ADDRESS = """
    SELECT EXISTS (SELECT FROM person_sessions WHERE person_id = $1 AND address = $2 AND stage = 'full')
"""

INSERT_PERSON = "INSERT INTO people (id, email, email_key, name, created_at) VALUES ($1, $2, $3, $4, $5)"

# The only owner stays one.
TAKE_PLACE = """
    UPDATE team_members
       SET person_id = $3,
           role = CASE WHEN role = 'owner' AND NOT EXISTS (
                            SELECT FROM team_members o
                             WHERE o.team_id = $1 AND o.id <> team_members.id AND o.role = 'owner')
                       THEN role ELSE $4 END
     WHERE team_id = $1 AND person_id IS NULL AND lower(email) = $2
       AND NOT EXISTS (SELECT FROM team_members WHERE team_id = $1 AND person_id = $3)
    RETURNING id
"""

JOIN = """
    INSERT INTO team_members (team_id, id, email, person_id, role, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT DO NOTHING
    RETURNING id
"""

NEW_HASH = """
    UPDATE people SET password = $2, password_changed_at = $3 WHERE id = $1
"""

SET_NAME = "UPDATE people SET name = $2 WHERE id = $1"

DISABLE = "UPDATE people SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL RETURNING id"

ENABLE = "UPDATE people SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL RETURNING id"

END_LINKS = "DELETE FROM person_links WHERE person_id = $1 AND kind = ANY ($2::text[]) AND used_at IS NULL"

INSERT_LINK = """
    INSERT INTO person_links (hash, kind, person_id, team_id, invitation_id, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
"""

FIND_LINK = """
    SELECT person_id, team_id, invitation_id
      FROM person_links
     WHERE hash = $1 AND kind = $2 AND used_at IS NULL AND expires_at > $3
"""

USE_LINK = """
    UPDATE person_links
       SET used_at = $3
     WHERE hash = $1 AND kind = $2 AND used_at IS NULL AND expires_at > $3
    RETURNING person_id, team_id, invitation_id
"""

REMOVE_LINKS = """
    DELETE FROM person_links WHERE hash IN (SELECT hash FROM person_links WHERE expires_at < $1 LIMIT $2)
"""

REMOVE_CHALLENGES = """
    DELETE FROM person_challenges
     WHERE hash IN (SELECT hash FROM person_challenges WHERE expires_at < $1 LIMIT $2)
"""

# Across teams: the operator's list.
EVERY_PERSON = """
    SELECT p.id, p.email, p.name, p.password IS NOT NULL AS has_password,
           p.totp_confirmed_at IS NOT NULL AS has_totp, p.created_at, p.last_login_at, p.disabled_at,
           (SELECT count(*) FROM person_passkeys k WHERE k.person_id = p.id) AS passkeys,
           (SELECT count(*) FROM person_sessions s WHERE s.person_id = p.id AND s.ends_at > $1) AS sessions
      FROM people p
     ORDER BY p.email_key
"""

# Across teams: to which of them people belong.
EVERY_MEMBERSHIP = """
    SELECT m.person_id, t.name, m.role
      FROM team_members m
      JOIN teams t ON t.id = m.team_id
     WHERE m.person_id IS NOT NULL
     ORDER BY t.name, t.id
"""


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
    passkeys: int
    sessions: int


async def every_person(source: Source, now: datetime) -> list[ListedPerson]:
    return [ListedPerson(**row) for row in await source.fetch(EVERY_PERSON, now)]


async def every_membership(source: Source) -> list[tuple[UUID, str, str]]:
    """Person, team and role."""
    return [(row[0], row[1], row[2]) for row in await source.fetch(EVERY_MEMBERSHIP)]
