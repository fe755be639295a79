"""SQL of the members of a team, and of invitations to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody who belongs to the team. Without a person it is an address alone."""

    id: UUID
    person_id: UUID | None
    email: str
    name: str | None
    role: str
    created_at: datetime
    last_login_at: datetime | None
    is_disabled: bool


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation that nobody has accepted yet."""

    id: UUID
    email: str
    role: str
    inviter: str | None
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """An invitation as whoever opens its link sees it."""

    team_id: UUID
    id: UUID
    team_name: str
    email: str
    role: str
    inviter: str | None


@dataclass(frozen=True, slots=True)
class AcceptedMember:
    """An invitation that was just accepted."""

    email: str
    role: str


@dataclass(frozen=True, slots=True)
class TeamOfPerson:
    """A team that somebody belongs to."""

    team_id: UUID
    name: str
    role: str


MEMBERS = """
    SELECT m.id, m.person_id, coalesce(p.email, m.email) AS email, p.name, m.role, m.created_at,
           p.last_login_at, p.disabled_at IS NOT NULL AS is_disabled
      FROM team_members m
      LEFT JOIN people p ON p.id = m.person_id
     WHERE m.team_id = $1
     ORDER BY m.created_at, m.id
"""

MEMBER = """
    SELECT m.id, m.person_id, coalesce(p.email, m.email) AS email, p.name, m.role, m.created_at,
           p.last_login_at, p.disabled_at IS NOT NULL AS is_disabled
      FROM team_members m
      LEFT JOIN people p ON p.id = m.person_id
     WHERE m.team_id = $1 AND m.id = $2
"""

ROLE = """
    SELECT m.role
      FROM team_members m
      JOIN people p ON p.id = m.person_id AND p.disabled_at IS NULL
     WHERE m.team_id = $1 AND m.person_id = $2
"""

MEMBER_OF_PERSON = "SELECT id FROM team_members WHERE team_id = $1 AND person_id = $2"

# Changes of members are one after the other (`members.py` holds the lock), so the other owner stays one.
SET_ROLE = """
    UPDATE team_members m
       SET role = $3
     WHERE m.team_id = $1 AND m.id = $2
       AND (m.role <> 'owner' OR $3 = 'owner' OR EXISTS (
               SELECT FROM team_members o
                 LEFT JOIN people p ON p.id = o.person_id
                WHERE o.team_id = $1 AND o.id <> $2 AND o.role = 'owner'
                  AND (m.person_id IS NULL OR (o.person_id IS NOT NULL AND p.disabled_at IS NULL))))
"""

REMOVE = """
    DELETE FROM team_members m
     WHERE m.team_id = $1 AND m.id = $2
       AND (m.role <> 'owner' OR EXISTS (
               SELECT FROM team_members o
                 LEFT JOIN people p ON p.id = o.person_id
                WHERE o.team_id = $1 AND o.id <> $2 AND o.role = 'owner'
                  AND (m.person_id IS NULL OR (o.person_id IS NOT NULL AND p.disabled_at IS NULL))))
"""

# Of a person who has left: those that look at the team, and those that look at the first one there is.
END_SESSIONS_AT = """
    DELETE FROM person_sessions WHERE person_id = $2 AND (team_id = $1 OR team_id IS NULL)
"""

LOOK_AWAY = "UPDATE person_sessions SET team_id = NULL WHERE team_id = $1 AND person_id = $2"

KEYS_MADE_BY = """
    SELECT id, name FROM api_keys WHERE team_id = $1 AND created_by = $2 AND NOT is_kept ORDER BY id
"""

PROGRAMS = """
    SELECT g.id, g.client::text AS client, g.scopes, g.person_id, p.email AS person, g.created_at,
           g.last_used_at
      FROM oauth_grants g
      LEFT JOIN people p ON p.id = g.person_id
     WHERE g.team_id = $1 AND g.revoked_at IS NULL AND ($2::uuid IS NULL OR g.person_id = $2)
     ORDER BY g.created_at DESC, g.id
     LIMIT 500
"""

# Across teams: those of one person.
TEAMS_OF = """
    SELECT m.team_id, t.name, m.role
      FROM team_members m
      JOIN teams t ON t.id = m.team_id
     WHERE m.person_id = $1 AND t.status <> 'disabled'
     ORDER BY t.name, m.team_id
"""

RENAME_TEAM = """
    UPDATE teams t
       SET name = $2
      FROM (SELECT $1::uuid AS team_id) given
     WHERE t.id = given.team_id AND t.name <> $2
"""


# Invitations -----------------------------------------------------------------------------------------

INVITATIONS = """
    SELECT i.id, i.email, i.role, p.email AS inviter, i.created_at, i.expires_at
      FROM team_invitations i
      LEFT JOIN people p ON p.id = i.invited_by
     WHERE i.team_id = $1 AND i.accepted_at IS NULL AND i.expires_at > $2
     ORDER BY i.id DESC
"""

IS_MEMBER = """
    SELECT EXISTS (SELECT FROM team_members m
                     JOIN people p ON p.id = m.person_id
                    WHERE m.team_id = $1 AND p.email_key = $2)
"""

# What an address has before it is invited: a place without a person, or an invitation.
HELD_ROLES = """
    SELECT role FROM team_members WHERE team_id = $1 AND person_id IS NULL AND lower(email) = lower($2)
     UNION
    SELECT role
      FROM team_invitations
     WHERE team_id = $1 AND lower(email) = lower($2) AND accepted_at IS NULL AND expires_at > $3
"""

INVITED_SINCE = "SELECT count(*) FROM team_invitations WHERE team_id = $1 AND created_at > $2"

END_EARLIER = """
    UPDATE team_invitations
       SET expires_at = least(expires_at, $3)
     WHERE team_id = $1 AND lower(email) = lower($2) AND accepted_at IS NULL
"""

INVITE = """
    INSERT INTO team_invitations (team_id, id, email, role, invited_by, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
"""

# One that was ended keeps its row until it is removed with age: how many were made counts.
END_ONE = """
    UPDATE team_invitations
       SET expires_at = $3
     WHERE team_id = $1 AND id = $2 AND accepted_at IS NULL AND expires_at > $3
    RETURNING email
"""

END_OF_INVITER = """
    UPDATE team_invitations
       SET expires_at = $3
     WHERE team_id = $1 AND invited_by = $2 AND accepted_at IS NULL AND expires_at > $3
"""

INVITATION_ROLE = """
    SELECT role
      FROM team_invitations
     WHERE team_id = $1 AND id = $2 AND accepted_at IS NULL AND expires_at > $3
"""

# Not those of somebody whom the operator has shut out.
OPEN = """
    SELECT i.team_id, i.id, t.name AS team_name, i.email, i.role, p.email AS inviter
      FROM team_invitations i
      JOIN teams t ON t.id = i.team_id
      LEFT JOIN people p ON p.id = i.invited_by
     WHERE i.team_id = $1 AND i.id = $2 AND i.accepted_at IS NULL AND i.expires_at > $3
       AND t.status <> 'disabled' AND p.disabled_at IS NULL
"""

ACCEPT = """
    UPDATE team_invitations
       SET accepted_at = $3
     WHERE team_id = $1 AND id = $2 AND accepted_at IS NULL AND expires_at > $3
       AND NOT EXISTS (SELECT FROM people p WHERE p.id = invited_by AND p.disabled_at IS NOT NULL)
    RETURNING email, role
"""

TEAM_NAME = "SELECT t.name FROM (SELECT id AS team_id, name FROM teams) t WHERE t.team_id = $1"

# Across teams: what nobody accepted, whoever's it is.
REMOVE_OLD = """
    WITH old AS MATERIALIZED (
        SELECT team_id, id FROM team_invitations WHERE expires_at < $1 LIMIT $2
    )
    DELETE FROM team_invitations i
     USING old
     WHERE i.team_id = old.team_id AND i.id = old.id
"""


async def members(db: TeamDb) -> list[Member]:
    """The members, who has been there longest first."""
    return await db.all(Member, MEMBERS)


async def member(db: TeamDb, member_id: UUID) -> Member | None:
    return await db.one(Member, MEMBER, member_id)


async def invitations(db: TeamDb, now: datetime) -> list[Invitation]:
    """Those that can still be accepted, the newest first."""
    return await db.all(Invitation, INVITATIONS, now)


async def open_invitation(db: TeamDb, invitation_id: UUID | None, now: datetime) -> OpenInvitation | None:
    """The invitation, if it can still be accepted."""
    return await db.one(OpenInvitation, OPEN, invitation_id, now)


async def accept(db: TeamDb, invitation_id: UUID | None, now: datetime) -> AcceptedMember | None:
    """Take the invitation, once."""
    return await db.one(AcceptedMember, ACCEPT, invitation_id, now)


async def teams_of(source: Source, person_id: UUID) -> list[TeamOfPerson]:
    """The teams that somebody belongs to, by name."""
    return [TeamOfPerson(**row) for row in await source.fetch(TEAMS_OF, person_id)]


async def remove_old(source: Source, before: datetime, limit: int) -> int:
    """Remove invitations that ended before this instant; returns how many."""
    status: str = await source.execute(REMOVE_OLD, before, limit)
    return int(status.rsplit(" ", 1)[-1])
