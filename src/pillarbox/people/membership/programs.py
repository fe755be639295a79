"""Programs that act for a team because somebody of it has let them: the list, and ending it."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.oauth import grants
from pillarbox.oauth.grant_queries import GrantRef
from pillarbox.oauth.grants import Reason
from pillarbox.people.audit import Act
from pillarbox.people.membership import member_queries
from pillarbox.people.membership.member_queries import GrantedProgram
from pillarbox.people.membership.members import MemberChange, MemberChangeActor
from pillarbox.people.roles import TeamAct


async def listed(db: TeamDb, person_id: UUID | None) -> list[GrantedProgram]:
    """Return the programs that this person, or with None anybody, has let in, the newest first."""
    return await member_queries.programs(db, person_id)


async def revoke(db: TeamDb, by: MemberChangeActor, grant_id: UUID) -> MemberChange:
    """Shut a program out: what one has let in oneself, or whoever has where one manages the team. Its tokens
    mean nothing a second later."""
    async with db.transaction() as inner:
        ref = GrantRef(inner.team_id, grant_id)
        grant = await grants.get(inner.source, ref)
        if grant is None:
            return MemberChange.GONE
        if not await by.may(inner, TeamAct.REVOKE_PROGRAM, grant.person_id):
            return MemberChange.NOT_ALLOWED
        if not await grants.revoke(inner.source, by.at, ref, Reason.FROM_DASHBOARD):
            return MemberChange.GONE
        details = {"client_id": grant.client_id, "reason": Reason.FROM_DASHBOARD.value}
        await by.record(inner, Act.GRANT_REVOKED, grant.client.get("name"), details)
    return MemberChange.DONE
