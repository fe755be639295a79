"""Making, naming, suspending and deleting keys: shared by the API and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from pillarbox.api_keys import queries
from pillarbox.api_keys.queries import ApiKeyListRow, ShownKey
from pillarbox.directory import keys as directory
from pillarbox.domains import lookup
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import InboxRight, Permission
from pillarbox.kernel.security.secrets import hash_api_key, new_api_key
from pillarbox.kernel.wire.paging import Page, every_row
from pillarbox.kernel.wire.problems import NotFound

SHOWN = 11


@dataclass(frozen=True, slots=True)
class InboxLimit:
    """The one inbox that a key is for, and what it may do there: one right or more."""

    inbox_id: UUID
    rights: frozenset[InboxRight]

    @property
    def names(self) -> list[str]:
        """The names of the rights, in the order of the contract."""
        return [right.value for right in InboxRight if right in self.rights]


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key; the only place where its token ever is."""

    id: UUID
    token: str


async def create(
    db: TeamDb,
    ids: Ids,
    *,
    name: str,
    permission: Permission = Permission.FULL,
    domain_id: UUID | None = None,
    inbox: InboxLimit | None = None,
    token: str | None = None,
    created_by: UUID | None = None,
    grant_id: UUID | None = None,
) -> CreatedKey:
    """Create a key, in the transaction that `db` stands for. It acts for the person `created_by` and ends
    with the grant; without them it is the team's own. With `inbox` its permission is that for one inbox.
    Raise NotFound for a foreign domain or inbox."""
    if inbox is not None:
        permission, domain_id = Permission.INBOX, None
        if not await hold_inbox(db, inbox.inbox_id):
            raise NotFound("Inbox")
    if domain_id is not None and not await lookup.hold(db, domain_id):
        raise NotFound("Domain")
    stamp = ids.stamp()
    token = await _register(db, stamp.id, token)
    await queries.insert(
        db,
        stamp.id,
        name,
        permission.value,
        domain_id,
        display(token),
        stamp.at,
        created_by,
        grant_id,
        None if inbox is None else inbox.inbox_id,
        None if inbox is None else inbox.names,
    )
    return CreatedKey(stamp.id, token)


def details(key_id: UUID, permission: Permission, inbox: InboxLimit | None) -> dict[str, object]:
    """Return what the log of acts says of a new key."""
    if inbox is None:
        return {"id": key_id, "permission": permission.value}
    rights = " ".join(inbox.names)
    return {"id": key_id, "permission": Permission.INBOX.value, "inbox_id": inbox.inbox_id, "rights": rights}


async def rename(db: TeamDb, key_id: UUID, name: str) -> None:
    if not await queries.rename(db, key_id, name):
        raise NotFound("API key")


async def named(db: TeamDb, key_id: UUID) -> str:
    """Return the name of the key."""
    name = await queries.name_of(db, key_id)
    if name is None:
        raise NotFound("API key")
    return name


async def delete(db: TeamDb, key_id: UUID) -> None:
    """Delete the key: its token means nothing from the commit on."""
    if not await queries.delete(db, key_id):
        raise NotFound("API key")
    await directory.remove(db, key_id)


async def keep(db: TeamDb, key_id: UUID) -> bool:
    """Make the key the team's own: it acts for nobody any more, and ends with no program. False where it is
    so already."""
    return await queries.keep(db, key_id)


async def suspend(db: TeamDb, key_id: UUID) -> bool:
    """Suspend the key; return False when it is not active (or not there)."""
    return await queries.change_status(db, key_id, "active", "suspended")


async def resume(db: TeamDb, key_id: UUID) -> bool:
    """Resume the key; return False when it is not suspended (or not there)."""
    return await queries.change_status(db, key_id, "suspended", "active")


async def deactivate(db: TeamDb, domain_id: UUID) -> None:
    """Deactivate the keys that were made for this domain alone, from the commit on and for good."""
    await queries.deactivate(db, domain_id)


async def hold_inbox(db: TeamDb, inbox_id: UUID) -> bool:
    """Return whether the team has this inbox, which stays until the transaction ends."""
    return await queries.hold_inbox(db, inbox_id)


async def end_of_inboxes(db: TeamDb, inbox_ids: Sequence[UUID]) -> None:
    """Deactivate the keys for these inboxes, from the commit on and for good."""
    await queries.end_of_inboxes(db, inbox_ids)


async def page(db: TeamDb, page: Page) -> list[ApiKeyListRow]:
    """Return a page of the team's keys."""
    return await queries.page(db, page)


async def shown_page(db: TeamDb, page: Page) -> list[ShownKey]:
    """Return a page of the team's keys with what people see of them."""
    return await queries.shown_page(db, page)


async def made_by(db: TeamDb, key_id: UUID) -> UUID | None:
    """Return the person for whom the key acts; None for the team's own. Raise NotFound where there is
    no key."""
    await named(db, key_id)
    return await queries.made_by(db, key_id)


async def listed(db: TeamDb) -> list[ShownKey]:
    """Return the team's keys with what people see of them, newest first."""
    return await every_row(partial(queries.shown_page, db))


def display(token: str) -> str:
    """Return the part of a token that may be shown: never more than a third of it."""
    return token[: min(SHOWN, len(token) // 3)]


async def _register(db: TeamDb, key_id: UUID, given: str | None) -> str:
    token = given or new_api_key()
    while not await directory.add(db, hash_api_key(token), key_id):
        if given is not None:
            raise ValueError("this API key exists already")
        token = new_api_key()
    return token
