"""Contacts of one audience: what a path below it names must belong to it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pillarbox.contacts.change import ContactChange, ContactMemberships
from pillarbox.contacts.conditions.membership import filter_of, fits
from pillarbox.contacts.store import Contacts, find
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.segments import changes, queries

AUDIENCE = "Audience"


async def member(db: TeamDb, audience_id: UUID, named: str, now: datetime) -> UUID:
    """Return the contact of that address or id; 404 where there is no such audience, or no such contact in
    it."""
    await changes.found(db, audience_id, AUDIENCE)
    contact_id = await find(db, named)
    by_conditions = await filter_of(db, audience_id, now)
    if by_conditions is None:
        is_in = await queries.is_member(db, audience_id, contact_id)
    else:
        is_in = await fits(db, by_conditions, contact_id)
    if not is_in:
        raise NotFound("Contact")
    return contact_id


async def add(
    db: TeamDb, contacts: Contacts, audience_id: UUID, address: EmailAddress, contact_change: ContactChange
) -> UUID:
    """Find or make the contact of an address, and make it a member; returns its id."""
    await changes.found(db, audience_id, AUDIENCE)
    try:
        stored = await contacts.upsert(db, address, contact_change, ContactMemberships([audience_id]))
    except NotFound:
        # It was deleted since.
        raise NotFound(AUDIENCE) from None
    return stored.id


async def remove(db: TeamDb, contacts: Contacts, audience_id: UUID, named: str) -> None:
    """End the membership, if there is one: no contact of that name is as good as one that is no member."""
    await changes.found(db, audience_id, AUDIENCE)
    try:
        await contacts.remove_from_segment(db, await find(db, named), audience_id)
    except NotFound:
        return
