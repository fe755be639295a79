"""API keys that members of a team make and remove on pages. A key remembers who made it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from pillarbox.api_keys import keys
from pillarbox.api_keys import queries as key_queries
from pillarbox.api_keys.keys import CreatedKey
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import Permission
from pillarbox.people.audit import Act
from pillarbox.people.membership.members import MemberChange, MemberChangeActor, hold
from pillarbox.people.roles import Right, may
from pillarbox.teams.allowances import Allowances


@dataclass(frozen=True, slots=True)
class WantedKey:
    """What somebody asks for."""

    name: str
    permission: Permission
    domain_id: UUID | None


async def make(
    db: TeamDb, by: MemberChangeActor, ids: Ids, allowances: Allowances, wanted_key: WantedKey
) -> CreatedKey | None:
    """A new key, whose token is nowhere else; None where the person may not make one. Raises TooMany, and
    NotFound for a domain that the team has not."""
    async with db.transaction() as inner:
        # Whoever is taken out of the team at this moment, with its keys, makes none that stays.
        await hold(inner)
        role = await by.role(inner)
        if role is None or not may(role, Right.USE):
            return None
        await allowances.admit_api_key(inner)
        made = await keys.create(
            inner,
            ids,
            name=wanted_key.name,
            permission=wanted_key.permission,
            domain_id=wanted_key.domain_id,
            created_by=by.actor.person_id,
        )
        details = {"id": made.id, "permission": wanted_key.permission.value}
        await by.record(inner, Act.KEY_CREATED, wanted_key.name, details)
    return made


async def remove(db: TeamDb, by: MemberChangeActor, key_id: UUID) -> MemberChange:
    """Delete a key: one's own, or whosever it is where the person may manage the team. Raises
    NotFound where somebody else has just deleted it."""
    async with db.transaction() as inner:
        role, name = await by.role(inner), await key_queries.name_of(inner, key_id)
        if name is None:
            return MemberChange.GONE
        is_own = await key_queries.made_by(inner, key_id) == by.actor.person_id
        if role is None or not may(role, Right.USE if is_own else Right.MANAGE):
            return MemberChange.NOT_ALLOWED
        await keys.delete(inner, key_id)
        await by.record(inner, Act.KEY_DELETED, name, {"id": key_id})
    return MemberChange.DONE
