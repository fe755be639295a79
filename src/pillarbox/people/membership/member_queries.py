"""SQL of the members of a team."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb


@dataclass(frozen=True, slots=True, kw_only=True)
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

# Across teams: those of one person.
TEAMS_OF = """
    SELECT m.team_id, t.name, m.role
      FROM team_members m
      JOIN teams t ON t.id = m.team_id
     WHERE m.person_id = $1 AND t.status <> 'disabled'
     ORDER BY t.name, m.team_id
"""


async def members(db: TeamDb) -> list[Member]:
    """Return the members in the order in which they joined."""
    return await db.all(Member, MEMBERS)


async def member(db: TeamDb, member_id: UUID) -> Member | None:
    return await db.one(Member, MEMBER, member_id)


async def teams_of(source: Source, person_id: UUID) -> list[TeamOfPerson]:
    """Return the teams that the person belongs to, by name."""
    return [TeamOfPerson(**row) for row in await source.fetch(TEAMS_OF, person_id)]


class MemberApiKey(NamedTuple):
    """An API key that a member has made."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedProgram:
    """A program that may act. `client` is the JSON of what was known of it when it was let in."""

    id: UUID
    client: str
    scopes: list[str]
    person_id: UUID
    person: str | None
    created_at: datetime
    last_used_at: datetime | None

    @property
    def name(self) -> str:
        return str(self._known().get("name") or "")

    @property
    def host(self) -> str | None:
        """The host that vouches for the program, if one does."""
        found = self._known().get("host")
        return None if found is None else str(found)

    def _known(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.client)
        return found


async def role(db: TeamDb, person_id: UUID) -> str | None:
    """Return the role of a person in the team; None for whoever is disabled or no member."""
    found: str | None = await db.value(
        """
        SELECT m.role
          FROM team_members m
          JOIN people p ON p.id = m.person_id AND p.disabled_at IS NULL
         WHERE m.team_id = $1 AND m.person_id = $2
        """,
        person_id,
    )
    return found


async def member_of_person(db: TeamDb, person_id: UUID) -> UUID | None:
    """Return the id of a person as a member of the team."""
    found: UUID | None = await db.value(
        "SELECT id FROM team_members WHERE team_id = $1 AND person_id = $2", person_id
    )
    return found


async def set_role(db: TeamDb, member_id: UUID, role: str) -> bool:
    """Give a member another role; False where that would leave the team without an owner."""
    # Changes of members are one after the other (`members.py` holds the lock), so the other owner stays one.
    return (
        await db.run(
            """
            UPDATE team_members m
               SET role = $3
             WHERE m.team_id = $1 AND m.id = $2
               AND (m.role <> 'owner' OR $3 = 'owner' OR EXISTS (
                       SELECT FROM team_members o
                         LEFT JOIN people p ON p.id = o.person_id
                        WHERE o.team_id = $1 AND o.id <> $2 AND o.role = 'owner'
                          AND (m.person_id IS NULL OR (o.person_id IS NOT NULL AND p.disabled_at IS NULL))))
            """,
            member_id,
            role,
        )
        > 0
    )


async def remove(db: TeamDb, member_id: UUID) -> bool:
    """Remove a member; False where that would leave the team without an owner."""
    return (
        await db.run(
            """
            DELETE FROM team_members m
             WHERE m.team_id = $1 AND m.id = $2
               AND (m.role <> 'owner' OR EXISTS (
                       SELECT FROM team_members o
                         LEFT JOIN people p ON p.id = o.person_id
                        WHERE o.team_id = $1 AND o.id <> $2 AND o.role = 'owner'
                          AND (m.person_id IS NULL OR (o.person_id IS NOT NULL AND p.disabled_at IS NULL))))
            """,
            member_id,
        )
        > 0
    )


async def end_sessions(db: TeamDb, person_id: UUID) -> None:
    """End the sessions of a person who has left: those that look at the team, and those that look at the
    first one there is."""
    await db.run(
        """
        DELETE FROM person_sessions WHERE person_id = $2 AND (team_id = $1 OR team_id IS NULL)
        """,
        person_id,
    )


async def look_away(db: TeamDb, person_id: UUID) -> None:
    """Let the sessions of a person look at the team no more."""
    await db.run("UPDATE person_sessions SET team_id = NULL WHERE team_id = $1 AND person_id = $2", person_id)


async def keys_made_by(db: TeamDb, person_id: UUID) -> list[MemberApiKey]:
    """Return the API keys of the team that act for a person, the oldest first."""
    return await db.all(
        MemberApiKey,
        """
        SELECT id, name FROM api_keys WHERE team_id = $1 AND created_by = $2 AND NOT is_kept ORDER BY id
        """,
        person_id,
    )


async def programs(db: TeamDb, person_id: UUID | None) -> list[GrantedProgram]:
    """Return the programs that were let in by this person, or of anybody, the newest first."""
    return await db.all(
        GrantedProgram,
        """
        SELECT g.id, g.client::text AS client, g.scopes, g.person_id, p.email AS person, g.created_at,
               g.last_used_at
          FROM oauth_grants g
          LEFT JOIN people p ON p.id = g.person_id
         WHERE g.team_id = $1 AND g.revoked_at IS NULL AND ($2::uuid IS NULL OR g.person_id = $2)
         ORDER BY g.created_at DESC, g.id
         LIMIT 500
        """,
        person_id,
    )


async def rename_team(db: TeamDb, name: str) -> bool:
    """Call the team something else; False where it is called so."""
    return (
        await db.run(
            """
            UPDATE teams t
               SET name = $2
              FROM (SELECT $1::uuid AS team_id) given
             WHERE t.id = given.team_id AND t.name <> $2
            """,
            name,
        )
        > 0
    )


async def team_name(db: TeamDb) -> str:
    """Return what the team is called."""
    name: str = await db.value(
        "SELECT t.name FROM (SELECT id AS team_id, name FROM teams) t WHERE t.team_id = $1"
    )
    return name


class MemberFirstSteps(NamedTuple):
    """The facts of a team's first steps that a member sees."""

    are_hidden: bool
    has_invited: bool


async def first_steps(db: TeamDb, person_id: UUID) -> MemberFirstSteps | None:
    """Return whether the member has put the first steps away, and whether the team has invited anybody."""
    return await db.one(
        MemberFirstSteps,
        """
        SELECT m.are_first_steps_hidden AS are_hidden,
               EXISTS (SELECT FROM team_members o
                        WHERE o.team_id = $1 AND o.person_id <> m.person_id)
               OR EXISTS (SELECT FROM team_invitations i WHERE i.team_id = $1) AS has_invited
          FROM team_members m
         WHERE m.team_id = $1 AND m.person_id = $2
        """,
        person_id,
    )


async def hide_first_steps(db: TeamDb, person_id: UUID) -> None:
    """Show the first steps to the member no more."""
    await db.run(
        "UPDATE team_members SET are_first_steps_hidden = true WHERE team_id = $1 AND person_id = $2",
        person_id,
    )
