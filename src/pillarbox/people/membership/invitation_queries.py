"""SQL of the invitations to a team."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.work.collectors import changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An invitation that nobody has accepted yet."""

    id: UUID
    email: str
    role: str
    inviter: str | None
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenInvitation:
    """An invitation as whoever opens its link sees it."""

    team_id: UUID
    id: UUID
    team_name: str
    email: str
    role: str
    inviter: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedMember:
    """An invitation that was just accepted."""

    email: str
    role: str


INVITATIONS = """
    SELECT i.id, i.email, i.role, p.email AS inviter, i.created_at, i.expires_at
      FROM team_invitations i
      LEFT JOIN people p ON p.id = i.invited_by
     WHERE i.team_id = $1 AND i.accepted_at IS NULL AND i.expires_at > $2
     ORDER BY i.id DESC
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


# Across teams: what nobody accepted, whoever's it is.
REMOVE_OLD = """
    WITH old AS MATERIALIZED (
        SELECT team_id, id FROM team_invitations WHERE expires_at < $1 LIMIT $2
    )
    DELETE FROM team_invitations i
     USING old
     WHERE i.team_id = old.team_id AND i.id = old.id
"""


async def invitations(db: TeamDb, now: datetime) -> list[Invitation]:
    """Return the invitations that can still be accepted, the newest first."""
    return await db.all(Invitation, INVITATIONS, now)


async def open_invitation(db: TeamDb, invitation_id: UUID | None, now: datetime) -> OpenInvitation | None:
    """Return the invitation, if it can still be accepted."""
    return await db.one(OpenInvitation, OPEN, invitation_id, now)


async def accept(db: TeamDb, invitation_id: UUID | None, now: datetime) -> AcceptedMember | None:
    """Take the invitation, once."""
    return await db.one(AcceptedMember, ACCEPT, invitation_id, now)


async def remove_old(source: Source, before: datetime, limit: int) -> int:
    """Remove invitations that ended before this instant; returns how many."""
    return changed(await source.execute(REMOVE_OLD, before, limit))


async def is_member(db: TeamDb, key: str) -> bool:
    """Tell whether somebody who logs in with this address belongs to the team."""
    found: bool = await db.value(
        """
        SELECT EXISTS (SELECT FROM team_members m
                         JOIN people p ON p.id = m.person_id
                        WHERE m.team_id = $1 AND p.email_key = $2)
        """,
        key,
    )
    return found


async def roles_of_address(db: TeamDb, email: str, now: datetime) -> Sequence[str]:
    """Return the roles that an address has before it is invited: of a member without a person, and of an
    invitation."""
    return await db.values(
        """
        SELECT role FROM team_members WHERE team_id = $1 AND person_id IS NULL AND lower(email) = lower($2)
         UNION
        SELECT role
          FROM team_invitations
         WHERE team_id = $1 AND lower(email) = lower($2) AND accepted_at IS NULL AND expires_at > $3
        """,
        email,
        now,
    )


async def invited_since(db: TeamDb, since: datetime) -> int:
    """Return how many invitations were made after an instant."""
    made: int = await db.value(
        "SELECT count(*) FROM team_invitations WHERE team_id = $1 AND created_at > $2", since
    )
    return made


async def end_earlier(db: TeamDb, email: str, now: datetime) -> None:
    """End the invitations of an address."""
    await db.run(
        """
        UPDATE team_invitations
           SET expires_at = least(expires_at, $3)
         WHERE team_id = $1 AND lower(email) = lower($2) AND accepted_at IS NULL
        """,
        email,
        now,
    )


async def invite(
    db: TeamDb,
    invitation_id: UUID,
    email: str,
    role: str,
    invited_by: UUID | None,
    now: datetime,
    expires_at: datetime,
) -> None:
    """Store an invitation."""
    await db.run(
        """
        INSERT INTO team_invitations (team_id, id, email, role, invited_by, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        invitation_id,
        email,
        role,
        invited_by,
        now,
        expires_at,
    )


async def end_invitation(db: TeamDb, invitation_id: UUID, now: datetime) -> str | None:
    """End an invitation; return its address. It keeps its row until it is removed with age: how many were
    made counts."""
    email: str | None = await db.value(
        """
        UPDATE team_invitations
           SET expires_at = $3
         WHERE team_id = $1 AND id = $2 AND accepted_at IS NULL AND expires_at > $3
        RETURNING email
        """,
        invitation_id,
        now,
    )
    return email


async def end_invitations_by(db: TeamDb, person_id: UUID, now: datetime) -> None:
    """End the invitations that a person has made."""
    await db.run(
        """
        UPDATE team_invitations
           SET expires_at = $3
         WHERE team_id = $1 AND invited_by = $2 AND accepted_at IS NULL AND expires_at > $3
        """,
        person_id,
        now,
    )


async def invitation_role(db: TeamDb, invitation_id: UUID, now: datetime) -> str | None:
    """Return the role that an open invitation gives."""
    found: str | None = await db.value(
        """
        SELECT role
          FROM team_invitations
         WHERE team_id = $1 AND id = $2 AND accepted_at IS NULL AND expires_at > $3
        """,
        invitation_id,
        now,
    )
    return found
