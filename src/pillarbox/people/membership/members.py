"""Members of a team: their roles, and that they leave it.

Changes of one team's members come one after the other, and who acts is looked up after its turn has come: two
owners who take each other's role at once leave one of them an owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final
from uuid import UUID

from pillarbox.api_keys import keys
from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.oauth import grants
from pillarbox.people.audit import Act, Actor, record
from pillarbox.people.membership import invitation_queries, member_queries
from pillarbox.people.membership.invitation_queries import Invitation
from pillarbox.people.membership.member_queries import Member, MemberApiKey, MemberFirstSteps, TeamOfPerson
from pillarbox.people.roles import Right, TeamAct, TeamRole, may, may_do, may_manage
from pillarbox.teams.allowances import hold_count

MEMBERS: Final = "members"
LONGEST_TEAM_NAME: Final = 100
MAKING: Final = frozenset({TeamAct.MAKE_KEY, TeamAct.LET_PROGRAM_ACT})
"""The acts whose results belong to the member who does them."""


class MemberChange(Enum):
    """The result of a change."""

    DONE = "done"
    GONE = "gone"
    NOT_ALLOWED = "not allowed"
    LAST_OWNER = "last owner"


class KeysOfMember(Enum):
    """The fate of the API keys that act for a member who leaves: they do nothing, or are the team's own from
    then on, or are deleted."""

    END = "end"
    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class MemberChangeActor:
    """The one who changes a team, and when. Who is no person may do all of it: the operator, and the team's
    keys."""

    actor: Actor
    at: datetime

    async def role(self, db: TeamDb) -> TeamRole | None:
        """Return the role that counts at this moment; None for a person who is no member."""
        if self.actor.person_id is None:
            return TeamRole.OWNER
        found = await member_queries.role(db, self.actor.person_id)
        return None if found is None else TeamRole(found)

    async def may(self, db: TeamDb, act: TeamAct, owner: UUID | None = None) -> bool:
        """Return whether the role allows the act on a thing that `owner` has made, or with None on a new
        one."""
        is_own = owner == self.actor.person_id if owner is not None else act in MAKING
        return may_do(await self.role(db), act, is_own=is_own)

    async def record(
        self, db: TeamDb, what: Act, target: str | None, details: Mapping[str, object] | None = None
    ) -> None:
        """Write down what was done."""
        await record(
            db.source, self.at, what, team_id=db.team_id, actor=self.actor, target=target, details=details
        )


async def hold(db: TeamDb) -> None:
    """Lock the team's members and invitations until the transaction ends."""
    await hold_count(db, MEMBERS)


async def set_role(db: TeamDb, by: MemberChangeActor, member_id: UUID, role: TeamRole) -> MemberChange:
    """Give a member another role; what they invited others to ends, and what a viewer let programs do."""
    async with db.transaction() as inner:
        await hold(inner)
        acting, member = await by.role(inner), await member_queries.member(inner, member_id)
        if member is None or acting is None:
            return MemberChange.GONE if member is None else MemberChange.NOT_ALLOWED
        before = TeamRole(member.role)
        if not (may_manage(acting, before) and may_manage(acting, role)):
            return MemberChange.NOT_ALLOWED
        if before is role:
            return MemberChange.DONE
        if not await member_queries.set_role(inner, member_id, role.value):
            return MemberChange.LAST_OWNER
        await _end_invitations(inner, by, member)
        if role is TeamRole.VIEWER and member.person_id is not None:
            # Programs act with the role of who let them in, and a viewer lets nobody in.
            await grants.revoke_of_person(inner.source, by.at, inner.team_id, member.person_id)
        details = {"from": before.value, "to": role.value}
        await by.record(inner, Act.MEMBER_ROLE_CHANGED, member.email, details)
    return MemberChange.DONE


async def remove(
    db: TeamDb, by: MemberChangeActor, member_id: UUID, *, made_keys: KeysOfMember = KeysOfMember.END
) -> MemberChange:
    """Take somebody out of the team, or leave it. The sessions that look at the team end, what the person let
    programs do in the team, and the API keys that act for it unless they are kept."""
    async with db.transaction() as inner:
        await hold(inner)
        acting, member = await by.role(inner), await member_queries.member(inner, member_id)
        if member is None or acting is None:
            return MemberChange.GONE if member is None else MemberChange.NOT_ALLOWED
        is_self = member.person_id is not None and member.person_id == by.actor.person_id
        if not is_self and not may_manage(acting, TeamRole(member.role)):
            return MemberChange.NOT_ALLOWED
        if not await member_queries.remove(inner, member_id):
            return MemberChange.LAST_OWNER
        may_keep = may_do(acting, TeamAct.KEEP_KEY)
        keep_or_end = made_keys if may_keep or made_keys is not KeysOfMember.KEEP else KeysOfMember.END
        details = await _what_follows(inner, by, member, keep_or_end)
        act = Act.MEMBER_LEFT if is_self else Act.MEMBER_REMOVED
        await by.record(inner, act, member.email, {"role": member.role, **details})
    return MemberChange.DONE


async def _what_follows(
    db: TeamDb, by: MemberChangeActor, member: Member, made_keys: KeysOfMember
) -> dict[str, object]:
    if member.person_id is None:
        return {}
    revoked = await grants.revoke_of_person(db.source, by.at, db.team_id, member.person_id)
    if member.person_id == by.actor.person_id:
        await member_queries.look_away(db, member.person_id)
    else:
        await member_queries.end_sessions(db, member.person_id)
    await _end_invitations(db, by, member)
    made = [] if made_keys is KeysOfMember.END else await keys_of(db, member.person_id)
    for key in made:
        if made_keys is KeysOfMember.KEEP:
            await keys.keep(db, key.id)
        else:
            await keys.delete(db, key.id)
    done = "keys_kept" if made_keys is KeysOfMember.KEEP else "keys_deleted"
    return {"grants_revoked": len(revoked), done: [key.name for key in made]}


async def _end_invitations(db: TeamDb, by: MemberChangeActor, member: Member) -> None:
    """End the invitations of somebody who may not invite any more."""
    if member.person_id is not None:
        await invitation_queries.end_invitations_by(db, member.person_id, by.at)


async def keys_of(db: TeamDb, person_id: UUID) -> list[MemberApiKey]:
    """Return the API keys of the team that act for the person, the oldest first."""
    return await member_queries.keys_made_by(db, person_id)


async def member_of(db: TeamDb, person_id: UUID) -> UUID | None:
    """Return the id of a person as a member of the team."""
    return await member_queries.member_of_person(db, person_id)


async def rename_team(db: TeamDb, by: MemberChangeActor, name: str) -> MemberChange:
    """Call the team something else."""
    async with db.transaction() as inner:
        acting = await by.role(inner)
        if acting is None or not may(acting, Right.OWN):
            return MemberChange.NOT_ALLOWED
        if await member_queries.rename_team(inner, name):
            await by.record(inner, Act.TEAM_RENAMED, name)
    return MemberChange.DONE


async def first_steps(db: TeamDb, person_id: UUID) -> MemberFirstSteps | None:
    """Return what is known of the team's first steps for a member; None for a person who is none."""
    return await member_queries.first_steps(db, person_id)


async def hide_first_steps(db: TeamDb, person_id: UUID) -> None:
    """Put the team's first steps away for a member."""
    await member_queries.hide_first_steps(db, person_id)


async def members(db: TeamDb) -> list[Member]:
    """Return the members in the order in which they joined."""
    return await member_queries.members(db)


async def member(db: TeamDb, member_id: UUID) -> Member | None:
    """Return a member of the team."""
    return await member_queries.member(db, member_id)


async def invitations(db: TeamDb, now: datetime) -> list[Invitation]:
    """Return the invitations that can still be accepted, the newest first."""
    return await invitation_queries.invitations(db, now)


async def teams_of(source: Source, person_id: UUID) -> list[TeamOfPerson]:
    """Return the teams that a person belongs to, by name."""
    return await member_queries.teams_of(source, person_id)
