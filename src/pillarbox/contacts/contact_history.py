"""The history of a contact, as far as rows of contacts have it: made or imported, joined segments, chose
topics, had events."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.contacts import overview_queries as queries
from pillarbox.contacts import queries as rows
from pillarbox.contacts.overview_queries import EventOfContact, SuppressedAddress
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound


class ContactMoment(NamedTuple):
    """Something that happened: `kind` is created, imported, joined_segment, opt_in or opt_out. `id` is that
    of the segment, the topic, the import or the contact, `name` what it is called. `note` is the consent note
    of an import: where its people come from."""

    at: datetime
    id: UUID
    kind: str
    name: str | None
    note: str | None


async def contact_moments(db: TeamDb, contact_id: UUID) -> list[ContactMoment]:
    """Return what happened to the contact, as many moments as it has segments and topics at most."""
    return [
        ContactMoment(at=row.happened_at, id=row.id, kind=row.kind, name=row.name, note=row.note)
        for row in await queries.moments(db, contact_id)
    ]


async def events_of_contact(
    db: TeamDb, contact_id: UUID, before: tuple[datetime, UUID], limit: int
) -> list[EventOfContact]:
    """Return the events of a contact before an instant and id, one entry for each name, the newest first."""
    return await queries.events(db, contact_id, before, limit)


async def address_of(db: TeamDb, contact_id: UUID) -> str:
    """Return the address of a contact as it is compared; 404 where the contact is gone."""
    address = await rows.address_of(db, contact_id)
    if address is None:
        raise NotFound("Contact")
    return address


async def suppressed_address(db: TeamDb, address: str) -> SuppressedAddress | None:
    """Return the entry of a compared address in the suppression list; None where it is not on it."""
    return await queries.suppressed(db, address)
