"""API keys, as members of a team make, rename, keep and remove them, on pages and by the API."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from pillarbox.api_keys import keys
from pillarbox.api_keys.keys import CreatedKey, InboxLimit
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import Permission
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.people.audit import Act
from pillarbox.people.membership.members import MemberChange, MemberChangeActor, hold
from pillarbox.people.roles import TeamAct
from pillarbox.teams.allowances import Allowances


@dataclass(frozen=True, slots=True)
class WantedKey:
    """The key that somebody asks for."""

    name: str
    permission: Permission
    domain_id: UUID | None
    inbox: InboxLimit | None = None


async def make(
    db: TeamDb, by: MemberChangeActor, ids: Ids, allowances: Allowances, wanted_key: WantedKey
) -> CreatedKey | None:
    """Make a key and return it with its token, which is stored nowhere; None where the person may not make
    one. It acts for the same person as its maker, and ends with the grant of the program that made it. Raises
    TooMany, and NotFound for a domain or an inbox that the team does
    not have."""
    async with db.joined_transaction() as inner:
        # Whoever is taken out of the team at this moment, with its keys, makes none that stays.
        await hold(inner)
        if not await by.may(inner, TeamAct.MAKE_KEY):
            return None
        await allowances.admit_api_key(inner)
        made = await keys.create(
            inner,
            ids,
            name=wanted_key.name,
            permission=wanted_key.permission,
            domain_id=wanted_key.domain_id,
            inbox=wanted_key.inbox,
            created_by=by.actor.person_id,
            grant_id=by.actor.grant_id,
        )
        details = keys.details(made.id, wanted_key.permission, wanted_key.inbox)
        await by.record(inner, Act.KEY_CREATED, wanted_key.name, details)
    return made


async def rename(db: TeamDb, by: MemberChangeActor, key_id: UUID, name: str) -> MemberChange:
    """Call a key something else."""
    async with db.joined_transaction() as inner:
        refused = await _refused(inner, by, TeamAct.RENAME_KEY, key_id)
        if refused is not None:
            return refused
        await keys.rename(inner, key_id, name)
        await by.record(inner, Act.KEY_RENAMED, name, {"id": key_id})
    return MemberChange.DONE


async def remove(db: TeamDb, by: MemberChangeActor, key_id: UUID) -> MemberChange:
    """Delete a key. Raises NotFound where somebody else has just deleted it."""
    async with db.joined_transaction() as inner:
        refused = await _refused(inner, by, TeamAct.DELETE_KEY, key_id)
        if refused is not None:
            return refused
        # Before it is gone: a key that deletes itself is named too.
        await by.record(inner, Act.KEY_DELETED, await keys.named(inner, key_id), {"id": key_id})
        await keys.delete(inner, key_id)
    return MemberChange.DONE


async def keep(db: TeamDb, by: MemberChangeActor, key_id: UUID) -> MemberChange:
    """Make a key the team's own: it stays when its maker goes. Of one that is so already nothing changes."""
    async with db.joined_transaction() as inner:
        refused = await _refused(inner, by, TeamAct.KEEP_KEY, key_id)
        if refused is not None:
            return refused
        if await keys.keep(inner, key_id):
            await by.record(inner, Act.KEY_KEPT, await keys.named(inner, key_id), {"id": key_id})
    return MemberChange.DONE


async def _refused(db: TeamDb, by: MemberChangeActor, act: TeamAct, key_id: UUID) -> MemberChange | None:
    """Return why nothing is changed; None where the act is allowed."""
    try:
        owner = await keys.made_by(db, key_id)
    except NotFound:
        return MemberChange.GONE
    return None if await by.may(db, act, owner) else MemberChange.NOT_ALLOWED
